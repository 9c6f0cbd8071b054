"""Seeded draws: even, without repetition, and held fast."""

from __future__ import annotations

from collections import Counter

import pytest

from pytest_llmeval.core.seeded_random import SeededRandom


def test_draws_are_held_fast() -> None:
    draws = SeededRandom("a key", 1)
    assert [draws.below(1000) for _ in range(5)] == GOLDEN
    assert [SeededRandom("a key", 1).below(1000) for _ in range(2)] == GOLDEN[:1] * 2


GOLDEN: list[int] = [193, 17, 130, 602, 448]


def test_keys_are_distinguished() -> None:
    keys = [("a", 1), ("a", "1"), ("a1",), ("a", 1, ""), ("b", 1)]
    assert len({tuple(SeededRandom(*key).below(10**6) for _ in range(1)) for key in keys}) == len(
        keys
    )


def test_every_order_is_as_likely() -> None:
    draws = SeededRandom("orders")
    counts = Counter(tuple(draws.shuffled("abc")) for _ in range(6000))
    assert len(counts) == 6
    # Five standard deviations of a binomial(6000, 1/6).
    assert max(abs(count - 1000) for count in counts.values()) < 5 * (6000 * 5 / 36) ** 0.5


def test_some_of_is_without_repetition_and_even() -> None:
    draws = SeededRandom("some")
    counts: Counter[int] = Counter()
    for _ in range(2000):
        drawn = draws.sample(range(10), 3)
        assert len(set(drawn)) == 3
        counts.update(drawn)
    assert max(abs(count - 600) for count in counts.values()) < 5 * (2000 * 0.3 * 0.7) ** 0.5
    assert sorted(draws.sample("xyz", 3)) == ["x", "y", "z"]
    with pytest.raises(ValueError, match="4 of 3"):
        draws.sample("xyz", 4)
