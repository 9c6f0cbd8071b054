"""Whether published orders look random: Kendall's S, "of the above", neighbours of a file."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval import catalog
from pytest_llmeval.metrics.contamination import neighbours
from pytest_llmeval.metrics.contamination import published
from pytest_llmeval.metrics.contamination.neighbours import item_checks
from pytest_llmeval.metrics.contamination.neighbours import neighbour_z
from pytest_llmeval.metrics.contamination.published import natural_order
from pytest_llmeval.metrics.contamination.published import numbers
from pytest_llmeval.metrics.contamination.published import option_checks
from support.paths import DATA


def kendall(values) -> int:
    pairs = [(a, b) for i, a in enumerate(values) for b in values[i + 1 :]]
    return sum((a < b) - (a > b) for a, b in pairs)


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=4), min_size=1, max_size=3))
@settings(deadline=None)
def test_kendall_with_ties_by_enumeration(items):
    used = [own for own in items if len(set(own)) > 1]
    check = published._kendall(
        "x", [list(map(str, own)) for own in items], lambda o: [*map(int, o)]
    )
    assert check.items == len(used)
    variance = sum(np.mean([kendall(order) ** 2 for order in permutations(own)]) for own in used)
    total = sum(map(kendall, used))
    assert check.z == pytest.approx(total / math.sqrt(variance) if used else 0.0)


def test_the_variance_without_ties_is_kendalls():
    check = published._kendall("x", [["1", "2", "3", "4"]], numbers)
    assert check.z == pytest.approx(6 / math.sqrt(4 * 3 * 13 / 18))


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (("1", "2.5", "-3"), [1, 2.5, -3]),
        (("$1,000", "$20", "$3"), [1000, 20, 3]),
        (("1/2", "3/4"), [0.5, 0.75]),
        (("10 m", "2 m"), [10, 2]),
        (("5 %", "20%"), [5, 20]),
        (("1 day", "2 days"), [1, 2]),
        (("one", "two"), None),
        (("10 m", "2 s"), None),
        (("1", ""), None),
        (("1/0", "2"), None),
    ],
)
def test_numbers(options, values):
    assert numbers(options) == values


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("red", "green", "blue", "black"), None),
        (("1", "2", "3", "4"), "sorted numbers"),
        (("40", "30", "2", "1"), "sorted numbers"),
        (("2", "1", "3", "4"), None),
        (("red", "blue", "green", "All of the above"), "an option refers to others"),
        (("A cat", "A dog", "Both A and B", "Neither"), "an option refers to others"),
        (("True, True", "False, False", "True, False", "False, True"), "true or false"),
        (("I only", "II only", "I and II", "III only"), "Roman numerals"),
        (("red", "blue", "Red ", "green"), "equal options"),
    ],
)
def test_natural_orders(options, reason):
    assert natural_order(options) == reason


def test_random_orders_pass_and_sorted_ones_do_not():
    generator = random.Random(3)
    items = [[str(generator.randrange(1000)) for _ in range(4)] for _ in range(300)]
    assert all(check.is_random for check in option_checks(items))
    ordered = [sorted(own, key=int) for own in items]
    failing = [check for check in option_checks(ordered) if not check.is_random]
    assert failing[0].name == "numbers ascend"
    assert failing[0].text == f"numbers ascend, z = {failing[0].z:.1f}"


def test_the_last_place_of_all_of_the_above():
    generator = random.Random(4)
    options = [["red", "blue", "green", "None of the above"] for _ in range(60)]
    (check,) = [check for check in option_checks(options) if "above" in check.name]
    assert check.items == 60
    assert check.z == pytest.approx(45 / math.sqrt(60 * 3 / 16))
    shuffled = [generator.sample(own, 4) for own in options]
    (check,) = [check for check in option_checks(shuffled) if "above" in check.name]
    assert check.is_random


@given(st.integers(4, 6), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=15)
def test_the_moments_of_neighbours_by_enumeration(n, generator):
    similar = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            similar[i, j] = similar[j, i] = generator.choice([0.0, 0.2, 0.5, 1.0])
    sums = [sum(similar[a, b] for a, b in pairwise(order)) for order in permutations(range(n))]
    observed = sums[0]
    z = neighbour_z(observed, similar.sum(axis=1), (similar**2).sum(axis=1))
    spread = float(np.std(sums))
    expected = (observed - float(np.mean(sums))) / spread if spread > 1e-9 else 0.0
    assert z == pytest.approx(expected, abs=1e-6)


def test_the_sums_of_words_and_lengths_are_those_of_all_pairs(monkeypatch):
    texts = ["a b", "b c d", "a", "", "d d e f a", "c"]
    seen = []
    monkeypatch.setattr(neighbours, "neighbour_z", lambda *sums: seen.append(sums) or 0.0)
    item_checks(texts)
    bags = [neighbours._bag(text) for text in texts]
    lengths = [math.log1p(len(text)) for text in texts]
    for (observed, sums, squares), pair in zip(
        seen,
        (lambda i, j: float(bags[i] @ bags[j]), lambda i, j: -abs(lengths[i] - lengths[j])),
        strict=True,
    ):
        rows = [[pair(i, j) for j in range(6) if j != i] for i in range(6)]
        assert observed == pytest.approx(sum(pair(i, i + 1) for i in range(5)))
        assert sums == pytest.approx([sum(row) for row in rows])
        assert squares == pytest.approx([sum(value**2 for value in row) for row in rows])


def test_grouped_and_sorted_files_are_found():
    words = {"art": "painter colour", "law": "court judge contract"}
    generator = random.Random(6)
    rows = [
        f"{words[subject]} {generator.choice('abcdefgh')} {generator.choice('ijklmn')}"
        for subject in words
        for _ in range(60)
    ]
    assert not all(check.is_random for check in item_checks(rows))
    generator.shuffle(rows)
    assert all(check.is_random for check in item_checks(rows))
    by_length = ["word " * n for n in range(1, 40)]
    assert not item_checks(by_length)[1].is_random
    assert item_checks(rows[:3]) == ()


def test_the_packaged_benchmark():
    """Its options were shuffled by its authors; its items are sorted by subject."""
    items = catalog.starter().source(None).items
    assert all(check.is_random for check in option_checks([item.options for item in items]))
    checks = item_checks([item.question for item in items])
    assert [check.is_random for check in checks] == [False, False]


@pytest.mark.skipif(not (DATA / "mmlu").is_dir(), reason="no public data (LLMEVAL_DATA)")
def test_public_benchmarks():
    distances = {}
    for name in ("mmlu", "arc_challenge", "commonsenseqa", "cmmlu"):
        items = getattr(catalog, name)().source(DATA).items
        checks = option_checks([item.options for item in items])
        distances[name] = [round(check.z, 1) for check in checks]
    assert distances["mmlu"][0] == pytest.approx(36.5, abs=0.5)
    assert distances["mmlu"][3] > 30
    assert distances["arc_challenge"][0] == pytest.approx(11.0, abs=1.0)
    for name in ("commonsenseqa", "cmmlu"):
        assert max(map(abs, distances[name])) <= published.LIMIT
