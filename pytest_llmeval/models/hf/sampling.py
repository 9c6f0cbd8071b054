"""The next token of a text, and where a generated answer begins and ends."""

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


# Before the answer: blank lines, and blanks where the answer is on the line of the mark.
_BLANK_LINES = re.compile(r"\A(?:\s*\n|[^\S\n]+)")

# TokenUsage looked back on beyond one for every byte of a stop string: a character of which the
# window holds the end only, and tokens without a text.
_MARGIN = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """A generated text taken apart. ``reasoning``: None where there is none.

    ``closed``: no reasoning is open at the end. ``stopped``: a stop string was found; ``answer``
    ends before the first of them.
    """

    reasoning: str | None
    answer: str
    closed: bool = True
    stopped: bool = False


def end_of(text: str, stop: Sequence[str]) -> int:
    """Where a text ends: at the first of its stop strings, or behind its last character.

    A stop string of white space alone ends a paragraph, and counts behind the first visible
    character: an answer that begins with blank lines is no empty one.
    """
    begin = len(text) - len(text.lstrip())
    found = [text.find(word, begin if word.isspace() else 0) for word in stop if word]
    return min((at for at in found if at >= 0), default=len(text))


def parts_of(text: str, stop: Sequence[str] = (), *, opened: bool = False) -> Parts:
    """Take reasoning out of a text, then cut the rest at the first stop string.

    ``opened``: the chat template has opened reasoning at the end of the prompt. White space
    around reasoning is dropped, except the indentation of the answer's first line. What follows
    the end of a turn is kept: how to read it is up to the scorers.
    Stop strings as in ``end_of``.
    """
    reply = split_reasoning(text, opened=opened)
    if not reply.closed:
        return Parts(reply.reasoning, "", closed=False)
    answer = reply.answer
    if reply.reasoning is not None:
        answer = _BLANK_LINES.sub("", answer)
    answer += reply.after
    length = end_of(answer, stop)
    return Parts(reply.reasoning, answer[:length], stopped=length < len(answer))


class Watch:
    """Reports, token by token, whether an answer has come to one of its stop strings.

    Only the last few tokens are decoded each time; what is found in them is confirmed on the
    whole text. Within reasoning stop strings mean nothing.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], stop: Sequence[str], *, opened: bool = False
    ) -> None:
        self._decode = decode
        self._stop = tuple(word for word in stop if word)
        self._opened = opened
        # None: the text so far may become the beginning of reasoning.
        self._reasoning: bool | None = True if opened else None
        self._window = max((len(word.encode()) for word in self._stop), default=0) + _MARGIN

    def stopped(self, tokens: Sequence[int]) -> bool:
        """Whether the answer, all of whose tokens are given, has reached a stop string.

        To be called after every token.
        """
        if not self._stop:
            return False
        if self._reasoning is None:
            self._reasoning = begins_reasoning(self._decode(tokens))
        if self._reasoning:
            worth_a_look = may_end_reasoning(self._decode(tokens[-LONGEST_MARK - _MARGIN :]))
        else:
            recent = self._decode(tokens[-self._window :])
            worth_a_look = any(word in recent for word in self._stop)
        if not worth_a_look:
            return False
        parts = parts_of(self._decode(tokens), self._stop, opened=self._opened)
        if self._reasoning is not None:
            self._reasoning = not parts.closed
        return parts.stopped
