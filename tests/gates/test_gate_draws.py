"""Random draws (`--llm-limit`): decided by their interval, and marked as sampled."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.gates import Verdict
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import detectable_drop
from pytest_llmeval.metrics import macro_interval
from pytest_llmeval.metrics import stratified_accuracy
from pytest_llmeval.metrics import stratified_effective_size
from pytest_llmeval.metrics import stratified_interval
from pytest_llmeval.metrics import wilson_interval
from support.gate_results import measured
from support.gate_results import result
from support.gate_results import right
from support.gate_results import verdict_of
from support.gate_results import verdicts

ALL = {"a": 400, "b": 100}


def draw(a: tuple[int, int], b: tuple[int, int], error: int = 0) -> Result:
    """A draw of (correct, items) of subjects with 400 and 100 items."""
    pairs = {"a": a, "b": b}
    counts = {
        subject: Counts(ALL[subject], correct, n - correct)
        for subject, (correct, n) in pairs.items()
    }
    if error:
        n = counts["a"]
        counts["a"] = Counts(n.total, n.correct, n.wrong - error, error=error)
    return result(counts, drawn={subject: n for subject, (_, n) in pairs.items()})


def tallies(run: Result) -> dict[str, dict[tuple[int, int], int]]:
    return {subject: dict(counts.tally) for subject, counts in run.subjects.items()}


RUN = draw((40, 50), (10, 50))


@pytest.mark.parametrize(
    ("least", "status", "how"),
    [(-1e-6, "pass", "is inside"), (1e-6, "undecided", "straddles"), (0.3, "fail", "is outside")],
)
def test_confidence_decides_by_the_uncorrected_interval(
    least: float, status: str, how: str
) -> None:
    low, high = stratified_interval(tallies(RUN), ALL, finite=False)
    verdict = verdict_of(f"accuracy = {{ min = {low + least}, confidence = 0.95 }}", RUN)
    assert (verdict.status, verdict.interval) == (status, (low, high))
    # Subjects weigh what they weigh in the benchmark: 0.8 of 400 and 0.2 of 100.
    assert verdict.measured == pytest.approx(0.68)
    assert verdict.measured == stratified_accuracy(tallies(RUN), ALL)
    assert verdict.reason == (
        f"sampled 100 of 500 items: 50 of 100 correct; the 95 % interval {how} the bound"
    )
    size = stratified_effective_size(tallies(RUN), ALL)
    assert verdict.detectable == detectable_drop(verdict.measured, size)


def test_without_confidence_a_draw_can_only_be_shown_to_fail() -> None:
    """What was not run is not green, but it may already be lost."""
    low, high = stratified_interval(tallies(RUN), ALL, finite=True)
    assert high < stratified_interval(tallies(RUN), ALL, finite=False)[1]
    verdict = verdict_of("accuracy = 0.1", RUN)
    assert (verdict.status, verdict.interval) == ("undecided", (low, high))
    assert verdict.reason == (
        "sampled 100 of 500 items: the value over the whole benchmark is between"
        f" {low:.4f} and {high:.4f} (95 %); to pass, run all items or set confidence"
    )
    assert verdict_of(f"accuracy = {high - 1e-6}", RUN).status == "undecided"
    assert verdict_of(f"accuracy = {high + 1e-6}", RUN).status == "fail"
    assert verdict_of(f"accuracy = {{ max = {low - 1e-6} }}", RUN).status == "fail"


def test_all_but_one_item_is_no_easier_than_all() -> None:
    """With the finite-population correction the draw would pass where the full run is undecided."""
    gate = "accuracy = { min = 0.75, confidence = 0.95 }"
    full = verdict_of(gate, right(80, 100))
    part = verdict_of(gate, result(Counts(100, 80, 19), drawn={"s": 99}))
    assert (full.status, part.status) == ("undecided", "undecided")
    assert part.interval == wilson_interval(80, 99)


def test_macro_and_gain_of_a_draw() -> None:
    macro = verdict_of("macro_accuracy = { min = 0.3, confidence = 0.95 }", RUN)
    assert (macro.status, macro.measured) == ("pass", 0.5)
    assert macro.interval == macro_interval(tallies(RUN))
    finite = verdict_of("macro_accuracy = 0.3", RUN)
    assert (finite.status, finite.interval) == (
        "undecided",
        macro_interval(tallies(RUN), 0.95, ALL),
    )
    gain = verdict_of("normalized_gain = { min = 0.3, confidence = 0.95 }", RUN)
    assert gain.measured == pytest.approx((0.68 - 0.25) / 0.75)
    assert gain.status == "pass"


def test_subjects_of_a_draw_are_decided_by_their_own() -> None:
    run = draw((40, 50), (60, 100))  # all of b
    text = "[benchmarks.x]\nevery_subject.accuracy = 0.6\n"
    text += "subjects.a.accuracy = { min = 0.6, confidence = 0.95 }"
    by_gate = verdicts(text, run)
    assert {id: v.status for id, v in by_gate.items()} == {
        "x::every_subject::a::accuracy": "undecided",
        "x::every_subject::b::accuracy": "pass",
        "x::subjects.a::accuracy": "pass",
    }
    assert "the value over the whole subject is" in by_gate["x::every_subject::a::accuracy"].reason
    assert by_gate["x::every_subject::b::accuracy"].reason == "60 of 100 correct"
    assert by_gate["x::subjects.a::accuracy"].interval == wilson_interval(40, 50)
    assert by_gate["x::subjects.a::accuracy"].reason.startswith("sampled 50 of 400 items: 40 of 50")


def test_a_part_that_is_no_draw_decides_nothing() -> None:
    gate = "accuracy = { min = 0, confidence = 0.95 }"
    for drawn in ({"a": 50, "b": 51}, {"a": 50, "b": 49}, {"a": 50}, None):
        run = result(dict(RUN.subjects), drawn=drawn)
        assert verdict_of(gate, run).status == "undecided"
        assert verdict_of(gate, run).reason == "only 100 of 500 items were run"


def test_a_subject_of_which_nothing_was_drawn() -> None:
    run = draw((40, 50), (0, 0))
    for gate in ("accuracy", "macro_accuracy", "unparsed_rate", "error_rate"):
        verdict = verdict_of(f"{gate} = {{ min = 0, confidence = 0.95 }}", run)
        assert (verdict.status, verdict.reason) == ("undecided", "no item of b was sampled")


def test_errors_of_a_draw() -> None:
    run = draw((40, 50), (10, 50), error=5)
    assert verdict_of("accuracy = 0", run).reason == "incomplete: 5 errors (max_errors 0)"
    gate = "[benchmarks.x]\naccuracy = {{ min = {}, confidence = 0.95 }}\nmax_errors = 5"
    by_gate = verdicts(gate.format(0.6), run)
    assert by_gate["x::accuracy"].interval is not None
    assert (
        by_gate["x::accuracy"].interval[0]
        == stratified_interval(tallies(RUN), ALL, finite=False)[0]
    )
    assert by_gate["x::accuracy"].measured == pytest.approx(0.68)
    assert by_gate["x::max_errors"].status == "pass"


def test_a_sample_of_all_items_is_the_whole_benchmark() -> None:
    run = result(Counts(10, 8, 1, error=1), drawn={"s": 10})
    by_gate = verdicts("[benchmarks.x]\naccuracy = 0.8\nmax_errors = 1", run)
    assert {v.status for v in by_gate.values()} == {"pass"}
    assert "sampled" not in by_gate["x::accuracy"].reason


def test_rates_of_a_draw() -> None:
    run = result(
        {"a": Counts(400, 25, unparsed=25), "b": Counts(100, 50)}, drawn={"a": 50, "b": 50}
    )
    verdict = verdict_of("unparsed_rate = { max = 0.6, confidence = 0.95 }", run)
    assert (verdict.status, verdict.measured) == ("pass", pytest.approx(0.4))
    assert verdict.reason.startswith("sampled 100 of 500 items: 25 of 100 answers unparsed; ")
    assert verdict_of("unparsed_rate = 0.6", run).status == "undecided"
    assert verdict_of("unparsed_rate = 0.1", run).status == "fail"
    alone = result(Counts(400, 45, unparsed=5), drawn={"s": 50})
    corrected = verdict_of("unparsed_rate = 0.5", alone).interval
    uncorrected = verdict_of("unparsed_rate = { max = 0.5, confidence = 0.95 }", alone).interval
    assert uncorrected == pytest.approx(wilson_interval(5, 50))
    assert corrected is not None
    assert uncorrected[0] < corrected[0] < 0.1 < corrected[1] < uncorrected[1]


def test_pass_at_k_of_a_draw() -> None:
    answers = {"a": ["cw"] * 20 + [""] * 60, "b": ["ww", "cc"] * 5 + [""] * 10}
    run = measured(answers, samples=2, drawn={"a": 20, "b": 10})
    verdict = verdict_of('"pass@1" = { min = 0.2, confidence = 0.95 }', run)
    assert (verdict.status, verdict.measured, verdict.n) == ("pass", pytest.approx(0.5), 30)
    assert verdict.reason.startswith("sampled 30 of 100 items: 30 of 60 answers correct")
    assert verdict_of('"pass@1" = 0.2', run).status == "undecided"
    whole = verdict_of('"pass@2" = { min = 0.2, confidence = 0.95 }', run)
    assert whole.measured == pytest.approx(0.8 + 0.2 * 0.5)


def test_chance_of_a_draw() -> None:
    run = draw((13, 50), (12, 50))
    assert verdict_of("accuracy.chance = true", run).status == "pass"
    assert verdict_of("accuracy.chance = true", RUN).status == "fail"


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30), st.integers(0, 30)), min_size=1),
    st.floats(0, 1),
)
def test_a_draw_without_confidence_never_passes(
    parts: list[tuple[int, int, int]], least: float
) -> None:
    subjects = {
        str(i): Counts(run + rest, min(run, correct), run - min(run, correct))
        for i, (run, correct, rest) in enumerate(parts)
    }
    run = result(subjects, drawn={name: counts.attempted for name, counts in subjects.items()})
    verdict = verdict_of(f"accuracy = {least}", run)
    assert (verdict.status == "pass") <= run.complete
    assert verdict.interval is not None
    assert 0 <= verdict.interval[0] <= verdict.measured <= verdict.interval[1] <= 1


def test_the_interval_of_a_sample_contains_the_full_accuracy() -> None:
    """Draws of 100 of 1,000 items: the 95 % interval holds the full run's accuracy."""
    generator = random.Random(1)
    population = [1] * 300 + [0] * 700
    held = 0
    for _ in range(300):
        correct = sum(generator.sample(population, 100))
        verdict: Verdict = verdict_of(
            "accuracy = 0", result(Counts(1000, correct, 100 - correct), drawn={"s": 100})
        )
        assert verdict.interval is not None
        held += verdict.interval[0] <= 0.3 <= verdict.interval[1]
    assert held >= 0.92 * 300
