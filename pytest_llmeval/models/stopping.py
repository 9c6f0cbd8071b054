"""Stop strings, and separation of reasoning from answers: the parts of a generated text."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmeval.core.reasoning import LONGEST_MARK
from pytest_llmeval.core.reasoning import begins_reasoning
from pytest_llmeval.core.reasoning import may_end_reasoning
from pytest_llmeval.core.reasoning import split_reasoning

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
