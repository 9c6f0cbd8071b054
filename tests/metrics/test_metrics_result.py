"""Counts, results, and how items make them."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import summarize
from support.metric_results import CORRECT
from support.metric_results import ERROR
from support.metric_results import UNPARSED
from support.metric_results import WRONG
from support.metric_results import counts
from support.metric_results import item
from support.metric_results import result
from support.metric_results import total


def test_counts_include_missing_items() -> None:
    part = Counts(10, correct=3, wrong=2, unparsed=1, error=1)
    assert (part.answered, part.attempted, part.missing, part.complete) == (6, 7, 3, False)
    assert Counts(2, 1, 1).complete
    assert not Counts(2, 1, 0, 0, 1).complete
    assert Counts(0).complete


@pytest.mark.parametrize(
    "arguments", [(-1,), (1, -1), (1, 2), (3, 1, 1, 1, 1), (1.0,), (float("nan"),), (2, 1.0)]
)
def test_counts_refuse_nonsense(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|more than"):
        Counts(*arguments)


def test_only_answers_are_truncated() -> None:
    with pytest.raises(ValueError, match="2 truncated of 1"):
        Counts(2, correct=1, error=1, truncated=2)


@pytest.mark.parametrize("spread", [{}, {(2, 1): 2}, {(1, 1): 1, (1, 0): 1}, {(2, 2): 1}])
def test_a_spread_is_of_these_answers(spread: dict[tuple[int, int], int]) -> None:
    with pytest.raises(ValueError, match="are not these counts"):
        Counts(2, correct=1, wrong=0, spread=spread)


def test_the_tally_of_single_answers() -> None:
    assert Counts(9, correct=3, wrong=2, unparsed=1, error=1).tally == {(1, 1): 3, (1, 0): 3}
    assert Counts(9, correct=3).tally == {(1, 1): 3}
    assert Counts(9, error=9).tally == {}


@given(counts, counts, counts)
def test_merging_is_associative_and_commutative(a: Counts, b: Counts, c: Counts) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert (a + b).missing == a.missing + b.missing
    assert (a + b).tally == Counter(a.tally) + Counter(b.tally)


@given(counts)
def test_nothing_added_changes_nothing(a: Counts) -> None:
    assert a + Counts(0) == Counts(0) + a == a


@given(st.lists(st.tuples(counts, st.integers(0, 3)), max_size=12))
def test_any_split_over_workers_gives_the_same_sum(parts: list[tuple[Counts, int]]) -> None:
    workers = [
        reduce(add, (part for part, worker in parts if worker == w), Counts(0)) for w in range(4)
    ]
    assert reduce(add, workers) == reduce(add, (part for part, _ in parts), Counts(0))


def test_workers_of_unequal_load_are_pooled() -> None:
    """Not the mean of the workers' own accuracies, 0.725."""
    pooled = Counts(60, correct=30, wrong=30) + Counts(40, correct=38, wrong=2)
    assert result({"s": pooled}).accuracy == 0.68


def test_an_item_distinguishes_answers_from_errors() -> None:
    outcomes = item(CORRECT, ERROR, UNPARSED, CORRECT)
    assert (outcomes.answered, outcomes.correct) == (3, 2)


def test_same_text_in_two_subjects_is_two_items() -> None:
    """Items are distinguished by id alone."""
    items = {
        "anatomy/17": item(CORRECT, subject="anatomy"),
        "clinical/203": item(WRONG, subject="clinical"),
    }
    whole = total(list(items.values()), {"anatomy": 1, "clinical": 1})
    assert (whole.counts.answered, whole.accuracy) == (2, 0.5)


def test_items_are_counted_per_subject() -> None:
    whole = total(
        [
            item(CORRECT, tie=True, encoded_apart=True),
            item(UNPARSED, dropped_shots=True, truncated=1),
        ],
        {"s": 2, "t": 3},
    )
    assert whole.subjects == {"s": Counts(2, 1, 0, 1, truncated=1), "t": Counts(3)}
    assert (whole.ties, whole.dropped_shots, whole.encoded_apart) == (1, 1, 1)
    assert summarize(whole)["encoded_apart"] == 1
    assert "encoded_apart" not in summarize(total([item(CORRECT)], {"s": 1}))
    assert (whole.items("s"), whole.items("t")) == (2, 3)


def test_several_samples_are_counted_as_answers_and_kept_by_item() -> None:
    items = [item(CORRECT, WRONG, CORRECT), item(ERROR, CORRECT, UNPARSED), item(ERROR, ERROR)]
    whole = total(items, {"s": 4, "t": 1}, samples=3)
    part = whole.subjects["s"]
    assert part == Counts(12, 3, 1, 1, 3, spread={(3, 2): 1, (2, 1): 1})
    assert (part.missing, whole.counts.total) == (4, 15)
    assert (whole.items("s"), whole.items("t")) == (4, 1)
    assert whole.subjects["t"].tally == {}


def test_an_error_is_no_tie() -> None:
    items = [ItemOutcomes("s", (outcome,), tie=True) for outcome in (WRONG, ERROR)]
    assert total(items, {"s": 2}).ties == 1


@st.composite
def item_lists(draw: st.DrawFn) -> tuple[int, list[ItemOutcomes]]:
    samples = draw(st.integers(1, 4))
    samples_of_item = st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=samples)
    outcomes = st.tuples(st.sampled_from("st"), samples_of_item.map(tuple))
    return samples, [ItemOutcomes(*drawn) for drawn in draw(st.lists(outcomes, max_size=30))]


@given(item_lists(), st.randoms())
def test_items_may_come_in_any_order_and_from_any_worker(
    drawn: tuple[int, list[ItemOutcomes]], random: Any
) -> None:
    samples, items = drawn
    sizes = {"s": 30, "t": 30}
    before = total(items, sizes, samples=samples)
    random.shuffle(items)
    assert total(items, sizes, samples=samples) == before
    values = [outcome for entry in items for outcome in entry.outcomes]
    whole = before.counts
    assert whole.total == 60 * samples
    assert (whole.correct, whole.wrong) == (values.count(CORRECT), values.count(WRONG))
    assert (whole.unparsed, whole.error) == (values.count(UNPARSED), values.count(ERROR))
    half = random.randint(0, len(items))
    parts = [total(part, sizes, samples=samples) for part in (items[:half], items[half:])]
    merged = parts[0].counts + parts[1].counts
    assert (merged.correct, merged.wrong, merged.tally) == (whole.correct, whole.wrong, whole.tally)


@pytest.mark.parametrize(
    ("stray", "message"),
    [
        (item(CORRECT, subject="other"), "unknown subject 'other'"),
        (item(CORRECT, CORRECT), "more answers than 1"),
    ],
)
def test_stray_items_are_refused(stray: ItemOutcomes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        total([stray], {"s": 1})


def test_more_items_than_the_benchmark_has_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 1 items"):
        total([item(CORRECT), item(WRONG)], {"s": 1})


@pytest.mark.parametrize("chance", [-0.1, 1.1, float("nan")])
def test_a_chance_level_is_a_proportion(chance: float) -> None:
    with pytest.raises(ValueError, match="chance"):
        result({}, chance)


@pytest.mark.parametrize("samples", [0, -1, 1.5])
def test_there_is_at_least_one_sample(samples: int) -> None:
    with pytest.raises(ValueError, match="samples"):
        result({}, samples=samples)


def test_without_a_chance_level_there_is_no_gain() -> None:
    assert result({"s": Counts(1, 1)}, chance=None).normalized_gain is None
    assert result({"s": Counts(1, 1)}, chance=1.0).normalized_gain is None
    assert result({"s": Counts(2, 1, 0, 0, 1)}).normalized_gain is None


@pytest.mark.parametrize(
    ("subjects", "drawn", "sampled"),
    [
        ({"a": Counts(9, 2, 1), "b": Counts(2, 2)}, {"a": 3, "b": 2}, True),
        ({"a": Counts(9, 2, 0, 0, 1), "b": Counts(2, 2)}, {"a": 3, "b": 2}, True),  # an error
        ({"a": Counts(9, 2), "b": Counts(2, 2)}, {"a": 3, "b": 2}, False),  # one not run
        ({"a": Counts(9, 4), "b": Counts(2, 1)}, {"a": 3, "b": 2}, False),  # another part
        ({"a": Counts(9, 2, 1), "b": Counts(2)}, {"a": 3}, True),  # none drawn of b
        ({"a": Counts(9, 2, 1)}, None, False),  # -k, not a draw
        ({"a": Counts(3, 2, 1)}, {"a": 3}, False),  # all there are
        ({"a": Counts(3, 2, 0, 0, 1)}, {"a": 3}, False),  # all there are, one with an error
    ],
)
def test_a_random_sample_differs_from_any_other_part(
    subjects: dict[str, Counts], drawn: dict[str, int] | None, sampled: bool
) -> None:
    assert result(subjects, drawn=drawn).sampled is sampled


def test_a_draw_of_items_with_several_samples() -> None:
    part = Counts(20, 3, 3, spread={(2, 1): 3})
    assert result({"a": part}, samples=2, drawn={"a": 3}).sampled
    assert not result({"a": part}, samples=2, drawn={"a": 6}).sampled
