"""The gain from overlapping items, its interval, and the division of a result."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import aggregate
from pytest_llmeval.metrics import clean_gain
from pytest_llmeval.metrics import divide
from support.paths import REPOSITORY

ORACLES = REPOSITORY.parent / "shared" / "reference" / "contamination_oracles.json"


def tally(correct: int, total: int) -> dict[tuple[int, int], int]:
    return {(1, 1): correct, (1, 0): total - correct}


@pytest.mark.skipif(not ORACLES.exists(), reason="no exact numbers")
def test_exact_numbers():
    cases = json.loads(ORACLES.read_text())["clean_subset"]
    assert len(cases) == 3
    for case in cases:
        gain, interval = clean_gain(
            tally(case["overlapping_right"], case["overlapping"]),
            tally(case["clean_right"], case["clean"]),
        )
        assert gain == pytest.approx(case["gain"], abs=1e-15)
        assert interval == pytest.approx(case["gain_interval_95"], abs=1e-12)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_the_gain_is_the_difference_of_accuracies(right, wrong, clean_right, clean_wrong):
    estimate = clean_gain(
        tally(right, right + wrong), tally(clean_right, clean_right + clean_wrong)
    )
    if clean_right + clean_wrong == 0:
        assert estimate is None
        return
    gain, (low, high) = estimate
    everything = right + wrong + clean_right + clean_wrong
    expected = (right + clean_right) / everything - clean_right / (clean_right + clean_wrong)
    assert gain == pytest.approx(expected, abs=1e-12)
    assert low <= gain <= high
    assert low >= -1
    assert high <= 1


def test_several_samples_count_as_their_items():
    once = clean_gain(tally(6, 10), tally(20, 40))
    copies = clean_gain({(3, 3): 6, (3, 0): 4}, {(3, 3): 20, (3, 0): 20})
    assert copies[0] == pytest.approx(once[0])
    assert copies[1] == pytest.approx(once[1])


OUTCOMES = st.lists(st.sampled_from(list(Outcome)), min_size=2, max_size=2).map(tuple)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("ab"), st.integers(0, 12)),
        st.tuples(st.sampled_from(["clean", "overlapping", "unjudged"]), st.none() | OUTCOMES),
        max_size=20,
    )
)
def test_every_answer_is_in_one_part(items):
    sizes = {"a": 0, "b": 0}
    for subject, _ in items:
        sizes[subject] += 1
    answered = {
        f"{subject}{number}": ItemOutcomes(subject, outcomes)
        for (subject, number), (_, outcomes) in items.items()
        if outcomes is not None
    }
    result = aggregate(
        answered.values(),
        model="m",
        benchmark="x",
        scorer="letter",
        protocol="p",
        chance=0.25,
        sizes=sizes,
        samples=2,
    )
    kinds = {
        kind: {f"{s}{n}": s for (s, n), (own, _) in items.items() if own == kind}
        for kind in ("clean", "overlapping", "unjudged")
    }
    parts = divide(result, answered, kinds["overlapping"], kinds["unjudged"])
    for kind, part in (("clean", parts.clean), ("overlapping", parts.overlapping)):
        own = [answered[id] for id in kinds[kind] if id in answered]
        assert part.counts.total == 2 * len(kinds[kind])
        assert part.counts.correct == sum(item.correct for item in own)
        assert part.counts.answered == sum(item.answered for item in own)
    assert parts.judged == len(kinds["clean"]) + len(kinds["overlapping"])


def test_a_part_of_a_random_sample_is_a_random_sample():
    answered = {f"a{n}": ItemOutcomes("a", (Outcome.CORRECT,)) for n in range(5)}
    result = aggregate(
        answered.values(),
        model="m",
        benchmark="x",
        scorer="letter",
        protocol="p",
        chance=None,
        sizes={"a": 20},
        drawn={"a": 5},
    )
    parts = divide(result, answered, {"a0": "a", "a1": "a", "a9": "a"}, {"a2": "a"})
    assert (parts.clean.sampled, parts.clean.counts.total, parts.clean.drawn) == (
        True,
        16,
        {"a": 2},
    )
    assert (parts.overlapping.counts.total, parts.overlapping.counts.attempted) == (3, 2)
