"""Where a generated answer begins and ends: thoughts before it, stop strings after it."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass

OPEN, CLOSE = "<think>", "</think>"

# Tokens looked back on beyond one for every byte of a stop string: a character of which the
# window holds the end only, and tokens without a text.
_MARGIN = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """A generated text taken apart. ``reasoning``: None where there is no thought.

    ``closed``: no thought is open at the end. ``stopped``: a stop string was found; ``answer``
    ends before the first of them.
    """

    reasoning: str | None
    answer: str
    closed: bool = True
    stopped: bool = False


def parts_of(text: str, stop: Sequence[str] = (), *, opened: bool = False) -> Parts:
    """Split a thought off the beginning of a text, then cut the rest at the first stop string.

    A thought begins with ``<think>`` as the text's first word, or has begun in the prompt
    (``opened``: the chat template wrote the tag), and ends with ``</think>``, which is enough of
    a sign by itself: some templates write the opening tag without a trace. White space around a
    thought belongs to nothing. An unclosed thought has no answer.
    """
    reasoning, answer = None, text
    begins = text.lstrip().startswith(OPEN)
    if begins or opened or CLOSE in text:
        thought = text.lstrip().removeprefix(OPEN) if begins else text
        thought, closed, answer = thought.partition(CLOSE)
        reasoning, answer = thought.strip(), answer.lstrip()
        if not closed:
            return Parts(reasoning, "", closed=False)
    ends = [at for word in stop if word and (at := answer.find(word)) >= 0]
    return Parts(reasoning, answer[: min(ends, default=len(answer))], stopped=bool(ends))


class Watch:
    """Tells, token by token, whether an answer has come to one of its stop strings.

    Only the last few tokens are decoded each time; what is found in them is confirmed on the
    whole text. Within a thought stop strings mean nothing.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], stop: Sequence[str], *, opened: bool = False
    ) -> None:
        self._decode = decode
        self._stop = tuple(word for word in stop if word)
        self._opened = opened
        # None: the text so far may become <think>.
        self._thinking: bool | None = True if opened else None
        longest = max((len(word.encode()) for word in (*self._stop, CLOSE)), default=0)
        self._window = longest + _MARGIN

    def stopped(self, tokens: Sequence[int]) -> bool:
        """Whether the answer, all of whose tokens are given, has reached a stop string.

        To be asked after every token.
        """
        if not self._stop:
            return False
        if self._thinking is None:
            begin = self._decode(tokens).lstrip()
            if begin.startswith(OPEN):
                self._thinking = True
            elif not OPEN.startswith(begin):
                self._thinking = False
        recent = self._decode(tokens[-self._window :])
        if not any(word in recent for word in ((CLOSE,) if self._thinking else self._stop)):
            return False
        parts = parts_of(self._decode(tokens), self._stop, opened=self._opened)
        if self._thinking and parts.closed:
            self._thinking = False
        return parts.stopped
