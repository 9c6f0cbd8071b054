"""The next token: greedy, or drawn from what temperature, top_k, top_p and min_p leave."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.core import Decoding

pytest.importorskip("torch", reason="the extra hf is not installed")

import torch as real_torch

from pytest_llmeval.models.hf.sampling import choose_tokens
from pytest_llmeval.models.hf.sampling import sampling_weights

LOGITS = [2.0, 1.0, 0.0, -1.0, -2.0]


def rows(*values: list[float]) -> Any:
    return real_torch.tensor(values)


def kept(**settings: float) -> list[int]:
    decoding = Decoding(temperature=1.0, **settings)  # type: ignore[arg-type]
    weights = sampling_weights(rows(LOGITS), 1.0, decoding.top_p, decoding.top_k, decoding.min_p)[0]
    return [token for token, mass in enumerate(weights.tolist()) if mass > 0]


def test_temperature_zero_takes_the_first_of_the_largest() -> None:
    logits = rows([1.0, 3.0, 3.0], [5.0, -1.0, 0.0])
    assert choose_tokens(logits, [Decoding(), Decoding()], [0.99, 0.99]) == [1, 0]


def test_tokens_kept_by_top_k_top_p_and_min_p() -> None:
    """Probabilities of LOGITS: 0.636, 0.234, 0.086, 0.032, 0.012."""
    assert kept() == [0, 1, 2, 3, 4]
    assert kept(top_k=2) == [0, 1]
    assert kept(top_p=0.6) == [0]
    assert kept(top_p=0.64) == [0, 1]
    assert kept(top_p=0.871) == [0, 1, 2]
    assert kept(min_p=0.1) == [0, 1, 2]
    assert kept(min_p=0.2) == [0, 1]
    # Of the two likeliest the first has 0.731: top_p is of what top_k leaves.
    assert kept(top_k=2, top_p=0.72) == [0]
    # min_p does not change what top_p counts.
    assert kept(min_p=0.2, top_p=0.88) == [0, 1]


@settings(max_examples=60)
@given(
    values=st.lists(st.floats(-6, 6), min_size=2, max_size=400),
    temperature=st.floats(0.2, 3),
    top_k=st.integers(0, 20),
    top_p=st.floats(0.05, 1),
    min_p=st.floats(0, 0.5),
)
def test_transformers_keeps_the_same(
    values: list[float], temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    """Its warpers, in its order; more than 256 tokens take the sorted path."""
    process = pytest.importorskip("transformers.generation.logits_process")
    logits = rows(values)
    mine = sampling_weights(logits, temperature, top_p, top_k, min_p)
    warped = process.TemperatureLogitsWarper(temperature)(None, logits)
    if top_k:
        warped = process.TopKLogitsWarper(top_k)(None, warped)
    if top_p < 1:
        warped = process.TopPLogitsWarper(top_p)(None, warped)
    if min_p > 0:
        warped = process.MinPLogitsWarper(min_p)(None, warped)
    theirs = warped.softmax(-1)
    mine = mine / mine.sum()
    # At a boundary rounding decides, and tokens as likely as the last one are kept here.
    boundary = (mine > 0) != (theirs > 0)
    if boundary.any():
        raw = logits[boundary]
        assert ((raw - logits[mine > 0].min()).abs() < 1e-3).all()
    else:
        assert (mine - theirs).abs().max() < 1e-5


def test_draws_follow_the_distribution_function() -> None:
    logits = rows([0.0, math.log(2.0), math.log(1.0)])
    decoding = Decoding(temperature=1.0)
    for draw, token in [(0.0, 0), (0.2499, 0), (0.2501, 1), (0.7499, 1), (0.7501, 2)]:
        assert choose_tokens(logits, [decoding], [draw]) == [token]
    # The largest number below 1 is not behind the last token that is left.
    almost = 1 - 2**-53
    assert choose_tokens(logits, [decoding], [almost]) == [2]
    assert choose_tokens(logits, [Decoding(temperature=1.0, top_k=1)], [almost]) == [1]
    # Nor does zero point to a first one that is not.
    assert choose_tokens(logits, [Decoding(temperature=1.0, top_k=1)], [0.0]) == [1]


def test_frequencies_are_the_probabilities() -> None:
    n = 4000
    logits = rows(LOGITS).repeat(n, 1)
    draws = [(i + 0.5) / n for i in range(n)]
    frequencies = Counter(choose_tokens(logits, [Decoding(temperature=1.0)] * n, draws))
    expected = rows(LOGITS).softmax(-1)[0].tolist()
    for token, probability in enumerate(expected):
        assert frequencies[token] / n == pytest.approx(probability, abs=1e-3)


def test_a_long_tail_keeps_its_mass() -> None:
    """100,000 tokens that share 1/3: in single precision their sum would stop growing."""
    logits = real_torch.zeros(1, 100_001)
    logits[0, 0] = math.log(200_000.0)
    tail = choose_tokens(logits, [Decoding(temperature=1.0)], [1 - 1e-6])
    assert tail[0] is not None
    assert 99_000 < tail[0] <= 100_000
    middle = choose_tokens(logits, [Decoding(temperature=1.0)], [2 / 3 + 1 / 6])
    assert middle[0] == pytest.approx(50_000, abs=20)


def test_each_row_is_sampled_by_its_own_settings() -> None:
    generator = real_torch.Generator().manual_seed(3)
    logits = real_torch.randn(6, 300, generator=generator)
    decodings = [
        Decoding(),
        Decoding(temperature=0.7),
        Decoding(temperature=0.7, stop=("x",)),
        Decoding(temperature=1.5, top_k=5),
        Decoding(temperature=1.0, top_p=0.5),
        Decoding(temperature=1.0, min_p=0.3),
    ]
    draws = [0.1, 0.3, 0.5, 0.7, 0.9, 0.2]
    together = choose_tokens(logits, decodings, draws)
    alone = [choose_tokens(logits[i : i + 1], [decodings[i]], [draws[i]])[0] for i in range(6)]
    assert together == alone
    assert len(set(together)) > 3


def test_values_that_are_no_numbers_choose_nothing() -> None:
    logits = rows([0.0, math.nan, 1.0], [0.0, 1.0, 2.0], [-math.inf] * 3, [math.inf, 0.0, 0.0])
    for decoding in (Decoding(), Decoding(temperature=1.0)):
        assert choose_tokens(logits, [decoding] * 4, [0.999] * 4) == [None, 2, None, None]
