"""Gates on hybrid scores: by value, by interval, and what leaves them open."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import KnownNames
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import noise_warnings
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import hybrid_or_reason
from support.gate_results import LETTERS
from support.gate_results import result
from support.gate_results import verdicts

NAME = "0.7*matched+0.3*letter"
PLACE = "[benchmarks.x.hybrids]\n"


def judged(gate: str, total: int | None = None, **scorers: str) -> Verdict:
    """The verdict on the hybrid; every scorer as the outcomes of its items (``ccw``)."""
    results, outcomes = [], {}
    for scorer, letters in scorers.items():
        size = len(letters) if total is None else total
        counts = Counts(size, *(letters.count(letter) for letter in "cwue"))
        results.append(result(counts, scorer=scorer))
        outcomes["m", "x", scorer] = {f"i{n}": LETTERS[mark] for n, mark in enumerate(letters)}
    return verdicts(gate, *results, outcomes=outcomes)[f"x::hybrids.{NAME}"]


@pytest.mark.parametrize(("bound", "status"), [("0.6", "pass"), ("0.61", "fail"), ("0.59", "pass")])
def test_the_value_decides(bound: str, status: str) -> None:
    # (1 + 0.7 + 0.7 + 0.3 + 0.3) / 5 = 0.6
    verdict = judged(f'{PLACE}"{NAME}" = {bound}', matched="cccuw", letter="cwwcc")
    assert verdict.status == status
    assert verdict.measured == pytest.approx(0.6)
    assert (verdict.n, verdict.scorer, verdict.min) == (5, None, float(bound))
    assert verdict.reason == "5 items under 2 scorers"
    assert verdict.detectable is not None


def test_other_spellings_gate_the_same() -> None:
    for key in ('"0.3 letter + 0.7 matched"', f'"{NAME}"'):
        verdict = judged(f"\n[benchmarks.x.hybrids.{key}]\nmin = 0.5", matched="cc", letter="wc")
        assert verdict.measured == pytest.approx(0.85)
        assert verdict.line == 3


@pytest.mark.parametrize(("least", "status"), [(0.3, "pass"), (0.5, "undecided"), (0.8, "fail")])
def test_the_interval_decides_where_there_is_a_confidence(least: float, status: str) -> None:
    scorers = {"matched": "cccccwwwww" * 10, "letter": "cccwwcwwww" * 10}
    gate = f'{PLACE}"{NAME}" = {{ min = {least}, confidence = 0.9 }}'
    verdict = judged(gate, **scorers)
    assert verdict.status == status
    outcomes = {s: {str(n): LETTERS[mark] for n, mark in enumerate(v)} for s, v in scorers.items()}
    expected = hybrid_or_reason({"matched": 0.7, "letter": 0.3}, outcomes, 0.9)
    assert not isinstance(expected, str)
    assert verdict.interval == expected.interval


def test_errors_fail_a_hybrid_gate_unless_allowed() -> None:
    scorers = {"matched": "cce", "letter": "ccc"}
    verdict = judged(f'{PLACE}"{NAME}" = 0.1', **scorers)
    assert (verdict.status, verdict.measured) == ("fail", None)
    assert verdict.reason == "matched is incomplete: 1 error (max_errors 0)"
    allowed = "[benchmarks.x.scorers.matched]\nmax_errors = 1\n"
    verdict = judged(f'{allowed}{PLACE}"{NAME}" = 0.1', **scorers)
    assert (verdict.status, verdict.reason) == ("undecided", "its scorers have 1 error")


@pytest.mark.parametrize(
    ("scorers", "total", "reason"),
    [
        ({"letter": "ccc"}, None, "scorer 'matched' did not run"),
        ({}, None, "scorer 'matched' did not run"),
        ({"letter": "ccc", "matched": "cc"}, 3, "its scorers have different items"),
        ({"letter": "ccc", "matched": "ccc"}, 9, "only 3 of 9 items were run"),
        ({"letter": "", "matched": ""}, 9, "no item was run"),
    ],
)
def test_undecided_hybrid_gates(scorers: dict[str, str], total: int | None, reason: str) -> None:
    verdict = judged(f'{PLACE}"{NAME}" = 0.1', total, **scorers)
    assert (verdict.status, verdict.reason) == ("undecided", reason)


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (
            '"0.7*matched+0.4*letter" = 0.5',
            r"hybrids\.\"0\.7\*matched\+0\.4\*letter\": the weights sum to 1\.1, not 1",
        ),
        ('"letter" = 0.5', "'letter' is not a hybrid such as"),
        (f'"{NAME}" = 1.5', r"outside \[0, 1\]"),
        (f'"{NAME}" = {{ chance = true }}', "only accuracy"),
        (f'"{NAME}" = 0.5\n"0.3 letter + 0.7 matched" = 0.4', "is gated twice"),
        ("", "empty table"),
    ],
)
def test_mistakes_in_the_file(gate: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_thresholds(f"version = 1\n{PLACE}{gate}")


def test_a_hybrid_is_of_a_benchmark_not_of_a_scorer() -> None:
    with pytest.raises(ConfigError, match="hybrids belongs to the benchmark's table"):
        parse_thresholds(f'version = 1\n[benchmarks.x.scorers.letter.hybrids]\n"{NAME}" = 0.5')


def collected(*scorers: str, items: int = 10) -> dict[str, CollectedBenchmark]:
    return {"x": CollectedBenchmark("x", {"s": items}, scorers, 0.25)}


def test_an_unknown_scorer_is_refused_and_a_known_one_may_not_run() -> None:
    thresholds = parse_thresholds(f'version = 1\n{PLACE}"0.7*mached+0.3*letter" = 0.5')
    with pytest.raises(ConfigError, match=r"unknown scorer 'mached'; did you mean 'matched'"):
        check_names(thresholds, KnownNames((), ("matched", "letter")), collected("letter"))
    good = parse_thresholds(f'version = 1\n{PLACE}"{NAME}" = 0.5')
    check_names(good, KnownNames((), ("matched",)), collected("letter"))


def test_a_bound_that_no_result_can_reach_is_reported() -> None:
    text = f'version = 1\n{PLACE}"{NAME}" = {{ min = 0.95, confidence = 0.95 }}'
    (line,) = noise_warnings(parse_thresholds(text), collected("letter", "matched"))
    assert "hybrids" in line
    assert "cannot be met: even with 10 of 10" in line
    assert not noise_warnings(parse_thresholds(text), collected("letter", items=1000))
