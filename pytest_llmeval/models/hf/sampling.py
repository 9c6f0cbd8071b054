"""Sampling of the next token from logits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pytest_llmeval.core import Decoding

# This many of the likeliest tokens nearly always include those of top_p; else all are sorted.
_LIKELIEST = 256


def choose_tokens(
    logits: Tensor, decodings: Sequence[Decoding], uniforms: Sequence[float]
) -> list[int | None]:
    """Choose the next token of every row of ``logits``; None where they are not finite.

    ``logits``: (rows, vocabulary). ``uniforms``: a number from [0, 1) per row; rows of temperature
    0 take the first of the largest logits and ignore it. The number is looked up in the cumulative
    distribution over the vocabulary in its original order, so that logits which differ by rounding
    (in another batch) change the token only if the number is within rounding of a boundary.
    """
    logits = logits.float()
    chosen = logits.argmax(-1)
    for key in dict.fromkeys(_key(decoding) for decoding in decodings):
        if key[0] <= 0:
            continue
        rows = [row for row, decoding in enumerate(decodings) if _key(decoding) == key]
        at = torch.tensor(rows, device=logits.device)
        chosen[at] = _sample(sampling_weights(logits[at], *key), [uniforms[row] for row in rows])
    finite = logits.amax(-1).isfinite().tolist()
    return [token if ok else None for token, ok in zip(chosen.tolist(), finite, strict=True)]


def sampling_weights(
    logits: Tensor, temperature: float, top_p: float, top_k: int, min_p: float
) -> Tensor:
    """Return the softmax of (rows, vocabulary) logits after all filters, not normalised again.

    Filters apply in the order of transformers: the ``top_k`` likeliest tokens; of these the fewest
    that together reach ``top_p`` of their sum; of these the tokens with at least ``min_p`` times
    the probability of the likeliest. Ties with the last remaining token remain, too.
    """
    scaled = logits / temperature
    if 0 < top_k < scaled.shape[-1]:
        least = scaled.topk(top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    probabilities = scaled.softmax(-1)
    least = min_p * probabilities.amax(-1, keepdim=True)
    if top_p < 1:
        least = torch.maximum(least, _smallest_in_nucleus(probabilities, top_p))
    return probabilities.masked_fill(probabilities < least, 0.0)


def _key(decoding: Decoding) -> tuple[float, float, int, float]:
    return decoding.temperature, decoding.top_p, decoding.top_k, decoding.min_p


def _smallest_in_nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Return, per row, the smallest probability of the fewest tokens that reach ``top_p``."""
    vocabulary = probabilities.shape[-1]
    for count in (min(_LIKELIEST, vocabulary), vocabulary):
        ordered = probabilities.topk(count, dim=-1).values
        reached = ordered.cumsum(-1)
        if bool((reached[:, -1] >= top_p).all()):
            break
    before = (reached < top_p).sum(-1, keepdim=True)
    return ordered.gather(-1, before.clamp(max=count - 1))


def _sample(mass: Tensor, uniforms: Sequence[float]) -> Tensor:
    """Return, per row, the first token whose cumulative mass exceeds uniform × total."""
    # In single precision, small probabilities would vanish in the cumulative sum.
    exact = torch.float32 if mass.device.type == "mps" else torch.float64
    reached = mass.to(exact).cumsum(-1)
    total = reached[:, -1:]
    target = torch.tensor(uniforms, dtype=exact, device=mass.device)[:, None] * total
    # A product that rounds up to the total would give an index after the last token.
    target = torch.minimum(target, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(reached, target, right=True)[:, 0]
