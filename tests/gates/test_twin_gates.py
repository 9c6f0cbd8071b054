"""Verdicts on the gap between a benchmark and its rewritten copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.gates.evidence import Evidence
from pytest_llmeval.gates.evidence import Origin
from pytest_llmeval.gates.evidence import Reference
from pytest_llmeval.metrics import Counts
from support.gate_results import LETTERS
from support.gate_results import result

GATE = '[benchmarks.x.twin]\nof = "y"\nmax_gap = 0.03\n'


def outcomes(text: str) -> dict[str, Outcome]:
    return {f"item-{n}": LETTERS[letter] for n, letter in enumerate(text)}


def counts(text: str, total: int | None = None) -> Counts:
    numbers = {name: text.count(name) for name in "cwue"}
    size = len(text) if total is None else total
    return Counts(size, numbers["c"], numbers["w"], numbers["u"], numbers["e"])


def origins(model: str, **benchmarks: str) -> dict[tuple[str, str, str], Origin]:
    """Every benchmark with its protocol; the weights are named like the model."""
    return {
        (model, name, "letter"): Origin(protocol, "data", model)
        for name, protocol in {"x": "p", "y": "p", **benchmarks}.items()
    }


def reference(model: str = "b", *, of: str | None = None, **texts: str) -> Reference:
    """A reference run; `of`: the name of its weights."""
    by_key = {(model, name, "letter"): outcomes(text) for name, text in texts.items()}
    own = {key: value._replace(weights=of or model) for key, value in origins(model).items()}
    return Reference(outcomes=by_key, origins=own)


def judged(original: str, twin: str, more: str = "", references=None, **totals: int) -> Verdict:
    results = [
        result(counts(text, totals.get(name)), benchmark=name)
        for name, text in (("x", original), ("y", twin))
        if text
    ]
    by_key = {r.key: outcomes(t) for r, t in zip(results, (original, twin), strict=False)}
    (verdict,) = judge(
        parse_thresholds(f"version = 1\n{GATE}{more}"),
        results,
        ["m"],
        ["x", "y"],
        outcomes=by_key,
        evidence=Evidence(origins=origins("m"), references=references or {}),
    )
    assert len(verdict_line(verdict).splitlines()) == 1
    assert verdict.id == "x::twin::max_gap"
    assert verdict.line in (2, 4)
    return verdict


# 200 items: 12 right in the original only, 3 in the twin only.
ORIGINAL = "c" * 12 + "w" * 3 + "c" * 185
TWIN = "w" * 12 + "c" * 3 + "c" * 185


def test_a_gap_fails():
    verdict = judged(ORIGINAL, TWIN)
    assert (verdict.status, verdict.measured, verdict.max, verdict.n) == ("fail", 0.045, 0.03, 200)
    assert verdict.p_value == pytest.approx(0.017578125)
    assert verdict.bound == "<= 0.03, alpha 0.05"
    assert verdict.reason.startswith("12 of 200 items count for the original, 3 for y, p = 0.018")


def test_a_gap_that_may_be_chance_passes_with_a_warning():
    verdict = judged("ccc" + "c" * 40, "www" + "c" * 40)
    assert (verdict.status, verdict.state) == ("pass", "warned")
    assert verdict.warning == "more than 0.03 but not significant at alpha 0.05"


def test_no_gap_is_no_proof():
    verdict = judged("c" * 50, "c" * 50)
    assert (verdict.status, verdict.measured, verdict.p_value) == ("pass", 0.0, 1.0)
    assert verdict.reason.endswith("no sign that the wording matters, which is no proof")
    # A twin that is easier is no gap.
    assert judged("w" * 50, "c" * 50).status == "pass"


def test_a_reference_removes_a_difference_in_difficulty():
    harder = reference(x=ORIGINAL, y=TWIN)
    verdict = judged(ORIGINAL, TWIN, 'against = "base"', {"base": harder})
    assert (verdict.status, verdict.measured) == ("pass", 0.0)
    equal = reference(x=TWIN, y=TWIN)
    verdict = judged(ORIGINAL, TWIN, 'against = "base"', {"base": equal})
    assert verdict.status == "fail"
    assert "against base" in verdict.reason


@pytest.mark.parametrize(
    ("original", "twin", "totals", "status", "reason"),
    [
        ("cc", "", {}, "undecided", "no item of y was run"),
        ("ce", "cc", {}, "fail", "incomplete: 1 error in x"),
        ("cc", "cc", {"y": 9}, "undecided", "only 2 of 9 items are in both benchmarks"),
        ("c", "cc", {}, "undecided", "only 1 of 2 items are in both benchmarks"),
    ],
)
def test_nothing_is_decided_without_pairs(original, twin, totals, status, reason):
    verdict = judged(original, twin, **totals)
    assert (verdict.status, verdict.reason, verdict.measured) == (status, reason, None)


@pytest.mark.parametrize(
    ("base", "reason"),
    [
        (Reference(), "has no result x[letter]"),
        (reference(x="cc"), "has no result y[letter]"),
        (reference(x="ce", y="cc"), "1 of 2 items are not in it, or are errors"),
        (reference(x="cc", y="cc", of="m"), "has the same weights: a model shows nothing"),
        (
            replace(reference(x="cc", y="cc"), origins=origins("b", y="other")),
            "not comparable: other protocol or data of y",
        ),
    ],
)
def test_a_reference_that_cannot_be_used(base, reason):
    verdict = judged("cc", "cw", 'against = "base"', {"base": base})
    assert verdict.status == "undecided"
    assert verdict.reason.startswith(f"reference base: {reason}")


def test_the_scorers_must_be_the_same():
    results = [
        result(counts("cc"), benchmark="x", scorer="letter"),
        result(counts("cc"), benchmark="y", scorer="cloze"),
    ]
    thresholds = parse_thresholds(f"version = 1\n{GATE}")
    (verdict,) = judge(thresholds, results, ["m"], ["x", "y"], outcomes={})
    assert verdict.status == "undecided"
    assert verdict.reason == "x and y have 0 scorers in common, not 1"
