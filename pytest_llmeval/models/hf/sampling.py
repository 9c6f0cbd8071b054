"""Sampling of tokens, stop strings, and separation of reasoning from answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pytest_llmeval.core import Decoding
from pytest_llmeval.core.reasoning import LONGEST_MARK
from pytest_llmeval.core.reasoning import begins_reasoning
from pytest_llmeval.core.reasoning import may_end_reasoning
from pytest_llmeval.core.reasoning import split_reasoning

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


# White space between reasoning and answer: blank lines, or blanks on the line of the mark.
_BLANK_LINES = re.compile(r"\A(?:\s*\n|[^\S\n]+)")

# Tokens to decode in addition to one per byte of a stop string: for a character that starts before
# the window, and for tokens without text.
_MARGIN = 4


@dataclass(frozen=True, slots=True)
class ReplyParts:
    """Reasoning and answer of a generated text."""

    #: None without a reasoning block.
    reasoning: str | None
    #: Text up to the first stop string.
    answer: str
    #: False if the text ends inside a reasoning block.
    closed: bool = True
    #: True if a stop string was found.
    stopped: bool = False


def stop_position(text: str, stop: Sequence[str]) -> int:
    """Return the position of the first stop string in a text, or the length of the text.

    A stop string of white space ends a paragraph: it is ignored before the first visible character,
    so that an answer that starts with blank lines is not empty.
    """
    begin = len(text) - len(text.lstrip())
    positions = [text.find(word, begin if word.isspace() else 0) for word in stop if word]
    return min((position for position in positions if position >= 0), default=len(text))


def split_reply(text: str, stop: Sequence[str] = (), *, opened: bool = False) -> ReplyParts:
    """Separate reasoning from the answer, and cut the answer at the first stop string.

    ``opened``: True if the prompt ends inside a reasoning block. White space around reasoning is
    dropped, except the indentation of the answer's first line. Text after an end-of-turn mark is
    kept for the scorers. For stop strings, see ``stop_position``.
    """
    reply = split_reasoning(text, opened=opened)
    if not reply.closed:
        return ReplyParts(reply.reasoning, "", closed=False)
    answer = reply.answer
    if reply.reasoning is not None:
        answer = _BLANK_LINES.sub("", answer)
    answer += reply.after
    length = stop_position(answer, stop)
    return ReplyParts(reply.reasoning, answer[:length], stopped=length < len(answer))


class StopWatcher:
    """Detector of stop strings in an answer that grows token by token.

    Each call decodes the last few tokens only, and the whole text to confirm a match. Stop strings
    inside reasoning are ignored.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], stop: Sequence[str], *, opened: bool = False
    ) -> None:
        self._decode = decode
        self._stop = tuple(word for word in stop if word)
        self._opened = opened
        # None while the text may still become the opening mark of reasoning.
        self._reasoning: bool | None = True if opened else None
        self._window = max((len(word.encode()) for word in self._stop), default=0) + _MARGIN

    def stopped(self, tokens: Sequence[int]) -> bool:
        """Return True if the answer contains a stop string.

        ``tokens``: all tokens so far. Has to be called after every token.
        """
        if not self._stop:
            return False
        if self._reasoning is None:
            self._reasoning = begins_reasoning(self._decode(tokens))
        if self._reasoning:
            candidate = may_end_reasoning(self._decode(tokens[-LONGEST_MARK - _MARGIN :]))
        else:
            recent = self._decode(tokens[-self._window :])
            candidate = any(word in recent for word in self._stop)
        if not candidate:
            return False
        parts = split_reply(self._decode(tokens), self._stop, opened=self._opened)
        if self._reasoning is not None:
            self._reasoning = not parts.closed
        return parts.stopped
