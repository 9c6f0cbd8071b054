"""What a model is asked, and what it gave."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal

from pytest_llmeval.core.errors import ConfigError
from pytest_llmeval.core.template import Prompt


@dataclass(frozen=True, slots=True)
class Decoding:
    """How text is generated. Temperature 0 is greedy; ``top_k`` 0 keeps the whole vocabulary.

    A text ends before the first of ``stop``; one of white space alone counts behind the first
    visible character.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, lowest in (("max_tokens", 1), ("temperature", 0), ("top_k", 0)):
            if getattr(self, name) < lowest:
                raise ConfigError(f"decoding: {name} = {getattr(self, name)} is below {lowest}")
        for name in ("top_p", "min_p"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"decoding: {name} = {getattr(self, name)} is outside [0, 1]")


Ask = Literal["choices", "text"]

FILTERED = "content_filter"
"""The finish reason of a reply that a filter withheld, or of a prompt that it did not let through."""

REFUSED = "refusal"
"""The finish reason of a reply that the server marks as the model's refusal to answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked: the log-likelihood of each choice, or, without choices, text.

    Several samples of an item are several requests that differ in ``sample`` alone and follow
    one another, so that a model may read the prompt once. ``arm``: the name of the arm of a
    permutation audit or of the content-free input whose prompt this is (``cyclic@1``, ``free@N/A``);
    empty: the item as it is. What is drawn at random for a request depends on ``seed``, ``id``,
    ``sample`` and ``arm``, never on other requests. ``benchmark`` is what its cost is attributed
    to, and changes no answer. ``given``, if not empty, has one text a choice that ends the
    question where that choice is requested (``prompts``).
    """

    id: str
    prompt: Prompt
    choices: tuple[str, ...] = ()
    chat: bool = False
    decoding: Decoding = Decoding()
    sample: int = 0
    seed: int = 0
    benchmark: str = ""
    given: tuple[str, ...] = ()
    arm: str = ""

    def __post_init__(self) -> None:
        if self.given and len(self.given) != len(self.choices):
            raise ValueError(f"{len(self.given)} texts given for {len(self.choices)} choices")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """What is read before each choice: the same prompt, unless something is ``given``."""
        if not self.given:
            return (self.prompt,) * len(self.choices)
        return tuple(self.prompt.ending_in(text) for text in self.given)

    @property
    def ask(self) -> Ask:
        """``choices`` or ``text``."""
        return "choices" if self.choices else "text"


@dataclass(frozen=True, slots=True)
class Response:
    """What a model gave for the request with the same id.

    ``sample`` and ``arm``: those of the request. Where a model leaves out the sample, the answers to
    an item are taken in order; where it leaves out the arm of one of several, it has to answer all
    requests in the order in which it was given them.
    ``logprobs``: one natural-log probability per choice, in the request's order.
    ``finish_reason``: ``length`` where the text ended at the token limit, or within reasoning.
    ``reasoning``: the thought before the answer, which ``text`` does not hold.
    ``finish_reason``: ``stop``, ``length`` (cut off at the token limit), ``content_filter``
    (``FILTERED``), ``refusal`` (``REFUSED``; ``text`` is that of the refusal, and no answer is read
    from it), or another reason that the server gives.
    ``dropped_shots``: shots left out because the prompt exceeded the model's window.
    ``encoded_apart``: choices that were encoded apart from the prompt, with whose end their text
    would have merged into one token.
    ``seconds``: this request's share of what its batch cost. ``error`` set: the machinery
    failed and there is no answer. Numbers of other libraries become Python's; what cannot be
    an answer (a text that is no text) becomes an ``error``, so that it costs no other item.
    """

    id: str
    logprobs: tuple[float, ...] = ()
    text: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    dropped_shots: int = 0
    seconds: float | None = None
    error: str | None = None
    sample: int | None = None
    reasoning: str | None = None
    encoded_apart: int = 0
    arm: str | None = None

    def __post_init__(self) -> None:
        # Here, at the border, once, rather than in everything that writes or sends responses.
        for name, convert in _CONVERSIONS.items():
            value = getattr(self, name)
            if value is None:
                continue
            try:
                object.__setattr__(self, name, convert(value))
            except (TypeError, ValueError) as error:
                object.__setattr__(self, name, () if name == "logprobs" else None)
                object.__setattr__(self, "error", f"{name} of the response: {error}")


def mend(text: str) -> str:
    """The text without lone surrogates, which can neither be written as UTF-8 nor be sent."""
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} is not text")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    return number


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "error": mend,
    "text": mend,
    "reasoning": mend,
    "finish_reason": mend,
    "arm": mend,
    "logprobs": lambda values: tuple(float(value) for value in values),
    "prompt_tokens": int,
    "completion_tokens": int,
    "dropped_shots": int,
    "encoded_apart": int,
    "sample": int,
    "seconds": _finite,
}
