"""From logits to the next token. A pure function: what is drawn at random is given to it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pytest_llmeval.core import Decoding

# So many of the likeliest tokens nearly always hold what top_p keeps; else all are sorted.
_LIKELIEST = 256


def choose(
    logits: Tensor, decodings: Sequence[Decoding], draws: Sequence[float]
) -> list[int | None]:
    """The next token of every row of ``logits``; None where the values allow no choice (NaN).

    ``draws``: a number from [0, 1) for every row; rows of temperature 0 take the first of the
    largest logits and leave theirs unused. A draw is looked up in the distribution function over
    the vocabulary in its own order, so that values which differ by rounding (another batch)
    choose another token only where the draw falls within the rounding of a boundary.
    """
    logits = logits.float()
    chosen = logits.argmax(-1)
    for key in dict.fromkeys(_key(decoding) for decoding in decodings):
        if key[0] <= 0:
            continue
        rows = [row for row, decoding in enumerate(decodings) if _key(decoding) == key]
        at = torch.tensor(rows, device=logits.device)
        chosen[at] = _drawn(weights(logits[at], *key), [draws[row] for row in rows])
    usable = logits.amax(-1).isfinite().tolist()
    return [token if known else None for token, known in zip(chosen.tolist(), usable, strict=True)]


def weights(logits: Tensor, temperature: float, top_p: float, top_k: int, min_p: float) -> Tensor:
    """The probabilities that remain of a softmax at this temperature, not normalised again.

    In this order, as transformers has it: the ``top_k`` likeliest; of these the fewest that
    together reach ``top_p`` of their sum; of these the ones that reach ``min_p`` times the
    probability of the likeliest. TokenUsage as likely as the last one kept are kept, too.
    """
    scaled = logits / temperature
    if 0 < top_k < scaled.shape[-1]:
        least = scaled.topk(top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -math.inf)
    probabilities = scaled.softmax(-1)
    least = min_p * probabilities.amax(-1, keepdim=True)
    if top_p < 1:
        least = torch.maximum(least, _least_of(probabilities, top_p))
    return probabilities.masked_fill(probabilities < least, 0.0)


def _key(decoding: Decoding) -> tuple[float, float, int, float]:
    return decoding.temperature, decoding.top_p, decoding.top_k, decoding.min_p


def _least_of(probabilities: Tensor, top_p: float) -> Tensor:
    """Of each row, the smallest probability among the fewest tokens that reach ``top_p``."""
    vocabulary = probabilities.shape[-1]
    for count in (min(_LIKELIEST, vocabulary), vocabulary):
        ordered = probabilities.topk(count, dim=-1).values
        reached = ordered.cumsum(-1)
        if bool((reached[:, -1] >= top_p).all()):
            break
    before = (reached < top_p).sum(-1, keepdim=True)
    return ordered.gather(-1, before.clamp(max=count - 1))


def _drawn(mass: Tensor, draws: Sequence[float]) -> Tensor:
    """Of each row the first token at which the summed mass exceeds its draw times the total."""
    # In single precision a long tail of small probabilities would vanish in the sum.
    exact = torch.float32 if mass.device.type == "mps" else torch.float64
    reached = mass.to(exact).cumsum(-1)
    total = reached[:, -1:]
    wanted = torch.tensor(draws, dtype=exact, device=mass.device)[:, None] * total
    # A product that rounds up to the total would point behind the last token.
    wanted = torch.minimum(wanted, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(reached, wanted, right=True)[:, 0]
