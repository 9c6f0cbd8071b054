"""Where a generated answer begins and ends: reasoning before it, stop strings after it."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmeval.core.reasoning import LONGEST_MARK
from pytest_llmeval.core.reasoning import begins_reasoning
from pytest_llmeval.core.reasoning import may_end_reasoning
from pytest_llmeval.core.reasoning import split_reasoning

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
