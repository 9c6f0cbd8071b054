"""What stands in a prompt: the format that was published, and what it makes of an item."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace

from pytest_llmeval.core.items import Item


@dataclass(frozen=True)
class Template:
    """The text of a published prompt format.

    ``description`` opens the prompt (given the subject); ``question`` renders an item up to
    where the answer starts; ``choices`` are the texts whose likelihood is compared;
    ``answer`` is what a shot shows as its answer (by default the gold choice). ``delimiter``
    stands between question and answer, ``separator`` after every shot. ``prefix`` is text that
    the answer to an item is made to begin with, where that depends on the item. ``given`` is
    what each choice adds to the end of the question, read and not scored (in partial evaluation,
    where the choices fill a blank and what follows the blank is scored).
    """

    name: str
    description: Callable[[str], str]
    question: Callable[[Item], str]
    choices: Callable[[Item], tuple[str, ...]]
    answer: Callable[[Item], str] | None = None
    delimiter: str = " "
    separator: str = "\n\n"
    prefix: Callable[[Item], str] | None = None
    given: Callable[[Item], tuple[str, ...]] | None = None

    def __hash__(self) -> int:
        return hash(self.name)

    def shot_question(self, item: Item) -> str:
        """What a few-shot example shows as its question."""
        given = self.given(item)[item.gold] if self.given and isinstance(item.gold, int) else ""
        return self.question(item) + given

    def shot_answer(self, item: Item) -> str:
        """What a few-shot example shows as its answer, without the delimiter."""
        if self.answer is not None:
            return self.answer(item)
        return self.choices(item)[item.gold] if isinstance(item.gold, int) else item.gold


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt, kept in parts so that a model can drop whole shots or build a chat.

    ``shots`` are (question, answer) pairs. ``prefix`` is text the answer is made to start with.
    ``shots_as_text``: in a chat, shots and question are one turn of the user.
    """

    description: str
    shots: tuple[tuple[str, str], ...]
    question: str
    delimiter: str = " "
    separator: str = "\n\n"
    prefix: str = ""
    shots_as_text: bool = False

    @property
    def text(self) -> str:
        """The prompt as one string, up to where the answer starts."""
        prefix = f"{self.delimiter}{self.prefix}" if self.prefix else ""
        return f"{self.description}{self._shots_text}{self.question}{prefix}"

    @property
    def _shots_text(self) -> str:
        return "".join(f"{q}{self.delimiter}{a}{self.separator}" for q, a in self.shots)

    @property
    def sha256(self) -> str:
        """SHA-256 of ``text`` in UTF-8, in hexadecimal."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def without_last_shot(self) -> Prompt:
        """The same prompt with its last shot left out (Hendrycks et al. drop from the end)."""
        return replace(self, shots=self.shots[:-1])

    def ending_in(self, text: str) -> Prompt:
        """The same prompt with more text at the end of its question."""
        return replace(self, question=self.question + text)

    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages: description as system, every shot as a turn of its own.

        With ``shots_as_text`` they stand before the question instead, in one turn. A ``prefix``
        is the beginning of the assistant's turn and is not among the messages.
        """
        messages = []
        if self.description:
            messages.append({"role": "system", "content": self.description.rstrip()})
        if self.shots_as_text:
            return [*messages, {"role": "user", "content": self._shots_text + self.question}]
        for question, answer in self.shots:
            messages.append({"role": "user", "content": question})
            messages.append({"role": "assistant", "content": answer})
        messages.append({"role": "user", "content": self.question})
        return messages
