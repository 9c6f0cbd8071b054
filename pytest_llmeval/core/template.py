"""Template, a published prompt format, and Prompt, its text for one item."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace

from pytest_llmeval.core.items import Item


@dataclass(frozen=True)
class Template:
    """The text of a published prompt format.

    Hashing uses only the name.
    """

    name: str
    #: Subject → text at the beginning of the prompt.
    description: Callable[[str], str]
    #: Item → text up to the beginning of the answer.
    question: Callable[[Item], str]
    #: Item → texts whose log-likelihoods are compared.
    choices: Callable[[Item], tuple[str, ...]]
    #: Item → answer of a shot; None: the gold choice.
    answer: Callable[[Item], str] | None = None
    #: Text between question and answer.
    delimiter: str = " "
    #: Text after every shot.
    separator: str = "\n\n"
    #: Item → text with which the answer is made to begin.
    prefix: Callable[[Item], str] | None = None
    #: Item → one text per choice that is appended to the question and not scored. For partial
    #: evaluation, in which the choices fill a blank and the text after the blank is scored.
    given: Callable[[Item], tuple[str, ...]] | None = None
    #: Item → complete prompt with shots, instead of ``description``, ``question`` and the pool. For
    #: prompts that another tool rendered: number of shots and order of options are fixed.
    prompt: Callable[[Item], Prompt] | None = None

    def __hash__(self) -> int:
        return hash(self.name)

    def shot_question(self, item: Item) -> str:
        """Return the question of a few-shot example."""
        suffix = self.given(item)[item.gold] if self.given and isinstance(item.gold, int) else ""
        return self.question(item) + suffix

    def shot_answer(self, item: Item) -> str:
        """Return the answer of a few-shot example, without the delimiter."""
        if self.answer is not None:
            return self.answer(item)
        return self.choices(item)[item.gold] if isinstance(item.gold, int) else item.gold


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt in parts, so that a model can drop whole shots or build a chat.

    ``shots`` are (question, answer) pairs. ``prefix`` is text with which the answer is made to
    begin. ``shots_as_text``: in a chat, shots and question are one turn of the user.
    ``keep_description``: in a chat, the system message is the description with its trailing white
    space.
    """

    description: str
    shots: tuple[tuple[str, str], ...]
    question: str
    delimiter: str = " "
    separator: str = "\n\n"
    prefix: str = ""
    shots_as_text: bool = False
    keep_description: bool = False

    @property
    def text(self) -> str:
        """The prompt as one string, up to the beginning of the answer."""
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
        """Return the prompt without its last shot (Hendrycks et al. drop from the end)."""
        return replace(self, shots=self.shots[:-1])

    def with_question_suffix(self, text: str) -> Prompt:
        """Return the prompt with text appended to its question."""
        return replace(self, question=self.question + text)

    def messages(self) -> list[dict[str, str]]:
        """Return the prompt as chat messages, with the description as system message.

        A shot is one turn of the user and one of the assistant; with ``shots_as_text`` all shots
        are in the user's turn, before the question. ``prefix`` is the beginning of the assistant's
        turn and is not among the messages.
        """
        messages = []
        if self.description:
            system = self.description if self.keep_description else self.description.rstrip()
            messages.append({"role": "system", "content": system})
        if self.shots_as_text:
            return [*messages, {"role": "user", "content": self._shots_text + self.question}]
        for question, answer in self.shots:
            messages.append({"role": "user", "content": question})
            messages.append({"role": "assistant", "content": answer})
        messages.append({"role": "user", "content": self.question})
        return messages
