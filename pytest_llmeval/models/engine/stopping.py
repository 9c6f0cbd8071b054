"""Where a generated answer begins and ends: thoughts before it, stop strings after it."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass

MARKS = {"<think>": "</think>", "[THINK]": "[/THINK]", "◁think▷": "◁/think▷"}
"""How models mark where a thought begins and ends: most of them, Mistral's, Kimi's."""

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


def end_of(text: str, stop: Sequence[str]) -> int:
    """Where a text ends: at the first of its stop strings, or behind its last character.

    A stop string of white space alone ends a paragraph, and counts behind the first visible
    character: an answer that begins with blank lines is no empty one.
    """
    begin = len(text) - len(text.lstrip())
    found = [text.find(word, begin if word.isspace() else 0) for word in stop if word]
    return min((at for at in found if at >= 0), default=len(text))


def parts_of(text: str, stop: Sequence[str] = (), *, opened: bool = False) -> Parts:
    """Split a thought off the beginning of a text, then cut the rest at the first stop string.

    A thought begins with one of ``MARKS`` as the text's first word, or has begun in the prompt
    (``opened``: the chat template wrote it), and ends with the mark's other half, which is enough
    of a sign by itself: some templates write the first half without a trace. White space around
    a thought belongs to nothing. An unclosed thought has no answer. Stop strings as in ``end_of``.
    """
    reasoning, answer = None, text
    begun = next((mark for mark in MARKS if text.lstrip().startswith(mark)), None)
    ends = [MARKS[begun]] if begun else [mark for mark in MARKS.values() if mark in text]
    if begun or opened or ends:
        thought = text.lstrip().removeprefix(begun) if begun else text
        end = min((mark for mark in ends if mark in thought), key=thought.find, default=None)
        if end is None:
            return Parts(thought.strip(), "", closed=False)
        thought, _, answer = thought.partition(end)
        reasoning, answer = thought.strip(), answer.lstrip()
    length = end_of(answer, stop)
    return Parts(reasoning, answer[:length], stopped=length < len(answer))


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
        # None: the text so far may become the beginning of a thought.
        self._thinking: bool | None = True if opened else None
        longest = max(len(word.encode()) for word in (*self._stop, *MARKS.values()))
        self._window = longest + _MARGIN

    def stopped(self, tokens: Sequence[int]) -> bool:
        """Whether the answer, all of whose tokens are given, has reached a stop string.

        To be asked after every token.
        """
        if not self._stop:
            return False
        if self._thinking is None:
            begin = self._decode(tokens).lstrip()
            if begin.startswith(tuple(MARKS)):
                self._thinking = True
            elif not any(mark.startswith(begin) for mark in MARKS):
                self._thinking = False
        recent = self._decode(tokens[-self._window :])
        if not any(word in recent for word in (MARKS.values() if self._thinking else self._stop)):
            return False
        parts = parts_of(self._decode(tokens), self._stop, opened=self._opened)
        if self._thinking and parts.closed:
            self._thinking = False
        return parts.stopped
