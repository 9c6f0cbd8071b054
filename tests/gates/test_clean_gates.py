"""Gates on the overlap with a corpus: its share, the items without it, and the gain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import Overlaps
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import aggregate
from pytest_llmeval.metrics import clean_gain
from pytest_llmeval.metrics import divide
from pytest_llmeval.overlap.report import BenchmarkOverlap
from pytest_llmeval.overlap.report import ItemOverlap
from support.gate_results import LETTERS
from support.gate_results import verdicts

MATCH = ItemOverlap("s", 20, 13, 5, 12, 12, "corpus.jsonl:7", "the passage")
SHORT = ItemOverlap("s", 40, 33, 1, 8, 8, "corpus.jsonl:9", "a few words")


def measured(**groups: str) -> tuple[Result, Mapping[str, ItemOutcomes]]:
    """A result of items in groups, each as the outcomes of its items; ``-`` was not run."""
    sizes = {"s": sum(map(len, groups.values()))}
    items = {
        f"{group}-{number}": ItemOutcomes("s", (LETTERS[letter],))
        for group, letters in groups.items()
        for number, letter in enumerate(letters)
        if letter != "-"
    }
    more: dict[str, Any] = {"model": "m", "benchmark": "x", "scorer": "letter", "protocol": "p"}
    return aggregate(items.values(), chance=0.25, sizes=sizes, **more), items


def judged(gates: str, **groups: str) -> dict[str, Verdict]:
    """Verdicts on a benchmark whose items are ``clean``, ``overlapping`` in the corpus, or ``short``."""
    result, items = measured(**groups)
    ids = {group: [f"{group}-{n}" for n in range(len(groups.get(group, "")))] for group in groups}
    overlapping, short = ids.get("overlapping", []), dict.fromkeys(ids.get("short", []), "s")
    part = BenchmarkOverlap(
        "x",
        "h",
        sum(map(len, groups.values())),
        {**dict.fromkeys(overlapping, MATCH), **dict.fromkeys(ids.get("clean", [])[:1], SHORT)},
        short,
    )
    divided = divide(result, items, dict.fromkeys(overlapping, "s"), short)
    overlaps = Overlaps({"x": part}, {result.key: divided})
    return verdicts(gates, result, overlaps=overlaps)


CLEAN = "[benchmarks.x.clean]\n"


def test_clean_accuracy_is_that_of_the_clean_items():
    by_gate = judged(f"{CLEAN}accuracy = 0.5", clean="ccww", overlapping="wwwwww")
    verdict = by_gate["x::clean::accuracy"]
    assert (verdict.status, verdict.measured, verdict.n, verdict.line) == ("pass", 0.5, 4, 3)
    assert verdict.reason == "2 of 4 correct"
    assert verdict.scorer == "letter"


def test_every_metric_can_be_gated():
    gates = "macro_accuracy = 0.5\nnormalized_gain = 0.3\nunparsed_rate = 0.25\n" + '"pass@1" = 0.5'
    by_gate = judged(CLEAN + gates, clean="ccwu", overlapping="uuuu")
    assert {name: verdict.status for name, verdict in by_gate.items()} == {
        "x::clean::macro_accuracy": "pass",
        "x::clean::normalized_gain": "pass",
        "x::clean::unparsed_rate": "pass",
        "x::clean::pass@1": "pass",
    }


@pytest.mark.parametrize(("limit", "status"), [("0.1", "pass"), ("0.09", "fail")])
def test_the_gain(limit, status):
    by_gate = judged(f"{CLEAN}max_gain = {limit}", clean="ccccwwww", overlapping="cc", short="w")
    verdict = by_gate["x::clean::max_gain"]
    assert (verdict.status, verdict.n) == (status, 10)
    assert verdict.measured == pytest.approx(0.6 - 0.5)
    assert verdict.reason == "2 of 2 overlapping and 4 of 8 clean items correct"
    gain = clean_gain({(1, 1): 2}, {(1, 1): 4, (1, 0): 4})
    assert verdict.interval == pytest.approx(gain[1])


@pytest.mark.parametrize(("limit", "status"), [(0.5, "pass"), (0.1, "undecided"), (-0.5, "fail")])
def test_the_interval_of_the_gain_decides_with_a_confidence(limit, status):
    gates = f"{CLEAN}max_gain = {{ max = {limit}, confidence = 0.9 }}"
    assert judged(gates, clean="ccccwwww", overlapping="cc")["x::clean::max_gain"].status == status


def test_without_overlapping_items_there_is_no_gain():
    verdict = judged(f"{CLEAN}max_gain = 0", clean="cw")["x::clean::max_gain"]
    assert (verdict.status, verdict.measured, verdict.interval) == ("pass", 0.0, (0.0, 0.0))


def test_without_clean_items_nothing_is_decided():
    by_gate = judged(f"{CLEAN}max_gain = 0.1\naccuracy = 0.1", overlapping="cc")
    assert {verdict.status for verdict in by_gate.values()} == {"undecided"}


def test_missing_items_decide_nothing():
    by_gate = judged(f"{CLEAN}max_gain = 0.9\naccuracy = 0.1", clean="cc-", overlapping="c")
    assert by_gate["x::clean::accuracy"].reason == "only 2 of 3 items were run"
    assert by_gate["x::clean::max_gain"].reason.endswith("1 item of the judged ones were not run")
    assert {verdict.status for verdict in by_gate.values()} == {"undecided"}


def test_errors_fail_unless_they_are_allowed():
    gates = f"{CLEAN}accuracy = 0.5\nmax_gain = 0.1\n"
    by_gate = judged(gates, clean="cce", overlapping="c")
    assert {verdict.status for verdict in by_gate.values()} == {"fail"}
    assert "incomplete: 1 error here" in by_gate["x::clean::accuracy"].reason
    allowed = judged(f"[benchmarks.x]\nmax_errors = 1\n{gates}", clean="cce", overlapping="c")
    assert allowed["x::clean::accuracy"].status == "pass"
    # The error may be wrong: accuracies of 1 and 2/3.
    assert allowed["x::clean::max_gain"].measured == pytest.approx(3 / 4 - 2 / 3)
    # Errors of overlapping items are not those of the clean ones.
    other = judged(gates, clean="cc", overlapping="e")
    assert other["x::clean::accuracy"].status == "pass"
    assert other["x::clean::max_gain"].status == "fail"


def test_many_items_that_are_not_judged_are_warned_of():
    gates = f"{CLEAN}accuracy = 0.5\n[benchmarks.x.contamination]\nmax_overlap = 0.5"
    by_gate = judged(gates, clean="c" * 18, overlapping="c", short="c")
    assert all(verdict.warning is None for verdict in by_gate.values())
    by_gate = judged(gates, clean="c" * 17, overlapping="c", short="cc")
    warnings = {verdict.warning for verdict in by_gate.values()}
    assert warnings == {"2 items (10.0%) could not be judged"}
    assert {verdict.state for verdict in by_gate.values()} == {"warned"}


@pytest.mark.parametrize(("limit", "status"), [("0.2", "pass"), ("0.1", "fail"), ("0", "fail")])
def test_the_share_of_overlapping_items(limit, status):
    by_gate = judged(
        f"[benchmarks.x.contamination]\nmax_overlap = {limit}",
        clean="cccc",
        overlapping="c",
        short="c",
    )
    verdict = by_gate["x::contamination::max_overlap"]
    assert (verdict.status, verdict.measured, verdict.n, verdict.line) == (status, 0.2, 5, 3)
    assert verdict.reason == "1 of 5 items overlap, such as overlapping-0 with corpus.jsonl:7"
    assert verdict.scorer is None


def test_without_a_search_nothing_is_decided():
    result, _ = measured(clean="cc")
    gates = f"{CLEAN}accuracy = 0.5\n[benchmarks.x.contamination]\nmax_overlap = 0.5"
    for overlaps, reason in (
        (Overlaps(), "no corpus was searched"),
        (Overlaps({"x": "the overlap report is incomplete"}), "the overlap report is incomplete"),
    ):
        by_gate = verdicts(gates, result, overlaps=overlaps)
        assert {verdict.status for verdict in by_gate.values()} == {"undecided"}
        assert all(reason in verdict.reason for verdict in by_gate.values())


def test_several_scorers():
    result, items = measured(clean="cw", overlapping="c")
    divided = divide(result, items, {"overlapping-0": "s"}, {})
    overlaps = Overlaps(
        {"x": BenchmarkOverlap("x", "h", 3, {"overlapping-0": MATCH}, {})}, {result.key: divided}
    )
    by_gate = verdicts(
        "[benchmarks.x.scorers.letter.clean]\naccuracy = 0.5\n"
        "[benchmarks.x.scorers.cloze.clean]\naccuracy = 0.5\n",
        result,
        overlaps=overlaps,
    )
    assert {name: verdict.status for name, verdict in by_gate.items()} == {
        "x::scorers.letter::clean::accuracy": "pass",
        "x::scorers.cloze::clean::accuracy": "undecided",
    }
    assert [verdict.line for verdict in by_gate.values()] == [3, 5]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{CLEAN}acuracy = 0.5", "clean.acuracy: unknown key 'acuracy'; did you mean 'accuracy'"),
        (f"{CLEAN}consistency = 0.5", "clean.consistency: consistency is a gate of a whole bench"),
        (f"{CLEAN}max_errors = 1", "clean.max_errors: max_errors is a gate of a whole benchmark"),
        (f"{CLEAN}max_gain = 2", "clean.max_gain: max = 2 is outside [-1, 1]"),
        (f"{CLEAN}max_gain = {{ chance = true }}", "only accuracy can be compared with chance"),
        ("[benchmarks.x]\nmax_gain = 0.1", "max_gain belongs to the table clean: write clean.max"),
        ("[benchmarks.x]\nmax_overlap = 0.1", "belongs to the table contamination"),
        ("[benchmarks.x.contamination]\nmax_overlap = 2", "write 0.02 for 2 %"),
        (CLEAN, "clean: empty table"),
    ],
)
def test_a_mistake_is_one_line(text, line):
    with pytest.raises(ConfigError) as caught:
        parse_thresholds(f"version = 1\n{text}", "t.toml")
    assert line in str(caught.value)
    assert str(caught.value).startswith("t.toml: benchmarks.x")
