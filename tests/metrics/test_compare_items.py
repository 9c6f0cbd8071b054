"""Two runs paired item by item."""

from __future__ import annotations

import json
import random as randoms
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics import Comparison
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import compare_items
from pytest_llmeval.metrics import detectable_paired_drop
from pytest_llmeval.metrics import holm
from pytest_llmeval.metrics import mcnemar
from pytest_llmeval.metrics import paired_interval
from pytest_llmeval.metrics import sign_flip
from pytest_llmeval.metrics import stratified_change
from pytest_llmeval.metrics.paired_tests import detectable_stratified_change

OUTCOMES = {
    "c": Outcome.CORRECT,
    "w": Outcome.WRONG,
    "u": Outcome.UNPARSED,
    "e": Outcome.ERROR,
}
Run = dict[str, ItemOutcomes]


def run(subject: str = "s", **items: str) -> Run:
    """Item id -> one letter per sample."""
    return {
        name: ItemOutcomes(subject, tuple(map(OUTCOMES.__getitem__, letters)))
        for name, letters in items.items()
    }


def compared(baseline: Run, candidate: Run, sizes: dict[str, int], **more: Any) -> Comparison:
    return compare_items(
        baseline,
        candidate,
        benchmark="b",
        scorer="letter",
        baseline_model="old",
        candidate_model="new",
        sizes=sizes,
        **more,
    )


def test_by_hand() -> None:
    comparison = compared(
        run("s", a="c", b="c", c="w", d="u") | run("t", x="c", y="w"),
        run("s", a="w", b="u", c="c", d="w") | run("t", x="c", y="w"),
        {"t": 2, "s": 4},
    )
    assert (comparison.baseline, comparison.candidate, comparison.benchmark) == ("old", "new", "b")
    assert (comparison.newly_wrong, comparison.newly_right) == (("a", "b"), ("c",))
    overall = comparison.overall
    assert (overall.items, overall.baseline, overall.candidate) == (6, 0.5, 2 / 6)
    assert overall.drop == 1 / 6
    assert (overall.newly_wrong, overall.newly_right) == (2, 1)
    assert overall.p_value == overall.adjusted == mcnemar(2, 1) == 1
    assert overall.interval == paired_interval({1: 2, -1: 1, 0: 3})
    assert overall.detectable == detectable_paired_drop(6, 2, 1)
    assert list(comparison.subjects) == list(comparison.sizes) == ["s", "t"]
    assert (comparison.subjects["s"].drop, comparison.subjects["t"].drop) == (0.25, 0)
    assert comparison.complete
    assert [name for name, _ in comparison.worst()] == ["s"]


def test_only_items_answered_in_both_runs_are_paired() -> None:
    baseline = run(a="c", b="c", c="e", d="c", e="e")
    candidate = run(a="w", b="e", d="c", f="c", e="c")
    comparison = compared(baseline, candidate, {"s": 9, "t": 1})
    assert (comparison.overall.items, comparison.newly_wrong) == (2, ("a",))
    assert (comparison.only_baseline, comparison.only_candidate) == (("c",), ("f",))
    assert (comparison.errors_baseline, comparison.errors_candidate) == (2, 1)
    assert not comparison.complete
    empty = comparison.subjects["t"]
    assert (empty.items, empty.baseline, empty.candidate, empty.drop) == (0, None, None, None)
    assert (empty.interval, empty.detectable) == (None, None)
    assert (empty.p_value, empty.adjusted) == (1, 1)


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [({}, {}), (run(a="c"), {}), ({}, run(a="c")), (run(a="e"), run(a="c"))],
)
def test_nothing_is_paired(baseline: Run, candidate: Run) -> None:
    comparison = compared(baseline, candidate, {"s": 1})
    assert (comparison.overall.items, comparison.overall.drop, comparison.overall.p_value) == (
        0,
        None,
        1,
    )
    assert not comparison.complete
    json.dumps(comparison.as_json(), allow_nan=False)
    assert compared(baseline, candidate, {"s": 0}).complete


def test_samples_of_an_item_go_together() -> None:
    baseline = run(a="ccc", b="ccw", c="www", d="cc", e="ccc")
    candidate = run(a="www", b="ccu", c="wcw", d="ccc", e="cec")
    comparison = compared(baseline, candidate, {"s": 5})
    changes = {3: 1, 0: 1, -1: 1}
    overall = comparison.overall
    assert (overall.items, overall.baseline, overall.candidate) == (3, 5 / 9, 3 / 9)
    assert overall.drop == 2 / 9
    assert (comparison.newly_wrong, comparison.newly_right) == (("a",), ("c",))
    assert overall.p_value == sign_flip(changes)
    assert overall.interval == paired_interval(changes, 3)
    # d was cut short in the baseline, e had an error in the candidate.
    assert (comparison.only_baseline, comparison.only_candidate) == ((), ("d",))
    assert (comparison.errors_baseline, comparison.errors_candidate) == (0, 1)


def test_unsampled_items_enter_the_interval() -> None:
    before = run("s", **{f"s{n}": "c" for n in range(20)})
    before |= run("t", **{f"t{n}": "c" for n in range(20)})
    after = before | run("s", s0="w", s1="w")
    sizes = {"s": 900, "t": 100}
    drawn = compared(before, after, sizes, sampled=True).overall
    parts = [(0.9, {1: 2, 0: 18}), (0.1, {0: 20})]
    assert (drawn.interval, drawn.p_value) == stratified_change(parts)
    assert drawn.detectable == pytest.approx(detectable_stratified_change(parts))
    assert drawn.detectable > compared(before, after, sizes).overall.detectable


def test_runs_of_different_samples_are_compared_by_their_rates() -> None:
    comparison = compared(run(a="cc", b="cw"), run(a="ccw", b="cww"), {"s": 2})
    assert (comparison.overall.baseline, comparison.overall.candidate) == (0.75, 0.5)
    assert comparison.overall.drop == 0.25
    assert (comparison.newly_wrong, comparison.newly_right) == (("a", "b"), ())


@pytest.mark.parametrize(
    ("baseline", "candidate", "message"),
    [
        (run("x", a="c"), {}, "unknown subject 'x'"),
        ({}, run("x", a="c"), "unknown subject 'x'"),
        (run("s", a="c"), run("t", a="c"), "item 'a' is of 's' and of 't'"),
    ],
)
def test_strays_are_refused(baseline: Run, candidate: Run, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compared(baseline, candidate, {"s": 1, "t": 1})


@pytest.mark.parametrize("confidence", [0.0, 1.0, float("nan")])
def test_a_confidence_outside_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        compared({}, {}, {"s": 1}, confidence=confidence)


letters = st.text("cwue", min_size=2, max_size=2)
runs = st.dictionaries(
    st.integers(0, 25).map(str), letters.map(lambda two: tuple(map(OUTCOMES.get, two)))
).map(
    lambda drawn: {
        name: ItemOutcomes("even" if int(name) % 2 == 0 else "odd", outcomes)
        for name, outcomes in drawn.items()
    }
)
SIZES = {"odd": 13, "even": 13}


@given(runs, runs, st.randoms())
def test_the_order_of_items_does_not_matter(baseline: Run, candidate: Run, random: Any) -> None:
    names = list(baseline)
    random.shuffle(names)
    shuffled = {name: baseline[name] for name in names}
    assert compared(shuffled, candidate, SIZES) == compared(baseline, candidate, SIZES)


@given(runs, runs)
def test_swapped_runs_change_the_sign(baseline: Run, candidate: Run) -> None:
    there = compared(baseline, candidate, SIZES)
    back = compared(candidate, baseline, SIZES)
    assert (there.newly_wrong, there.newly_right) == (back.newly_right, back.newly_wrong)
    assert (there.only_baseline, there.only_candidate) == (back.only_candidate, back.only_baseline)
    assert (there.errors_baseline, there.errors_candidate) == (
        back.errors_candidate,
        back.errors_baseline,
    )
    for forward, other in zip(
        (there.overall, *there.subjects.values()),
        (back.overall, *back.subjects.values()),
        strict=True,
    ):
        assert (forward.items, forward.p_value, forward.adjusted) == (
            other.items,
            other.p_value,
            other.adjusted,
        )
        assert (forward.baseline, forward.newly_wrong) == (other.candidate, other.newly_right)
        if forward.drop is not None:
            assert other.drop == -forward.drop


@given(runs, runs)
def test_the_parts_add_up_to_the_whole(baseline: Run, candidate: Run) -> None:
    comparison = compared(baseline, candidate, SIZES)
    subjects = comparison.subjects.values()
    assert sum(part.items for part in subjects) == comparison.overall.items
    assert sum(part.newly_wrong for part in subjects) == len(comparison.newly_wrong)
    assert sum(part.newly_right for part in subjects) == len(comparison.newly_right)
    tested = [part for part in subjects if part.items]
    assert [part.adjusted for part in tested] == holm([part.p_value for part in tested])
    for part in (comparison.overall, *tested):
        if part.items:
            assert part.interval is not None
            assert part.interval[0] <= part.drop <= part.interval[1]
            assert part.drop == pytest.approx(part.baseline - part.candidate, abs=1e-12)
    drops = [part.drop for _, part in comparison.worst()]
    assert drops == sorted(drops, reverse=True)
    assert all(drop > 0 for drop in drops)
    assert json.loads(json.dumps(comparison.as_json(), allow_nan=False)) == comparison.as_json()


def test_the_worst_are_the_first_of_all() -> None:
    baseline: Run = {}
    candidate: Run = {}
    for lost in range(1, 6):
        name = f"subject{lost}"
        items = {f"{name}-{i}": "c" for i in range(10)}
        baseline |= run(name, **items)
        candidate |= run(name, **items) | run(name, **{f"{name}-{i}": "w" for i in range(lost)})
    comparison = compared(baseline, candidate, {f"subject{i}": 10 for i in range(1, 6)})
    assert [name for name, _ in comparison.worst(2)] == ["subject5", "subject4"]
    assert len(comparison.worst()) == 5


def test_a_planted_regression_is_reported_in_its_subject_alone() -> None:
    """One subject 15 points worse, the others a little better: the average rises."""
    rng = randoms.Random(9)
    baseline: Run = {}
    candidate: Run = {}
    for subject in range(20):
        for i in range(200):
            right = rng.random() < 0.6
            lost, won = (0.25, 0.0) if subject == 7 else (0.01, 0.05)
            after = rng.random() >= lost if right else rng.random() < won
            name = f"{subject}-{i}"
            baseline |= run(str(subject), **{name: "c" if right else "w"})
            candidate |= run(str(subject), **{name: "c" if after else "w"})
    comparison = compared(baseline, candidate, {str(subject): 200 for subject in range(20)})
    assert comparison.overall.drop < 0
    worse = [name for name, part in comparison.worst() if part.adjusted <= 0.05]
    assert worse == ["7"]
