"""Request to a model, its decoding parameters, and the response."""

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
    """Parameters of text generation.

    Temperature 0 is greedy; ``top_k`` 0 keeps the whole vocabulary. A text ends before the first
    stop string; a stop string of white space counts only after the first visible character.
    Raises ConfigError for a value outside its range.
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
"""The finish reason of a reply or a prompt that a content filter blocked."""

REFUSED = "refusal"
"""The finish reason of a reply that the server marks as the model's refusal to answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request for the log-likelihood of each choice, or, without choices, for a text.

    The samples of an item are consecutive requests that differ only in ``sample``, so that a model
    can process the prompt once. Random numbers for a request depend on ``seed``, ``id``,
    ``sample`` and ``arm``, never on other requests. Raises ValueError unless ``given`` has one
    text per choice.
    """

    id: str
    prompt: Prompt
    choices: tuple[str, ...] = ()
    chat: bool = False
    decoding: Decoding = Decoding()
    sample: int = 0
    seed: int = 0
    #: The benchmark to which the cost is attributed; it does not change the answer.
    benchmark: str = ""
    #: If not empty, one text per choice that is appended to the question for that choice.
    given: tuple[str, ...] = ()
    #: Name of the arm of a bias audit (``cyclic@1``, ``free@N/A``); empty for the original item.
    arm: str = ""

    def __post_init__(self) -> None:
        if self.given and len(self.given) != len(self.choices):
            raise ValueError(f"given has {len(self.given)} texts for {len(self.choices)} choices")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt before each choice: the same for all, unless ``given`` has texts."""
        if not self.given:
            return (self.prompt,) * len(self.choices)
        return tuple(self.prompt.with_question_suffix(text) for text in self.given)

    @property
    def ask(self) -> Ask:
        """The kind of answer that is requested: ``choices`` or ``text``."""
        return "choices" if self.choices else "text"


@dataclass(frozen=True, slots=True)
class Response:
    """The response of a model to the request with the same id.

    Numbers of other libraries (NumPy scalars) are converted to Python's. An invalid value sets
    ``error`` instead of raising, so that other items are not affected.
    """

    id: str
    #: One natural-log probability per choice, in the order of the request.
    logprobs: tuple[float, ...] = ()
    #: The answer, without reasoning.
    text: str | None = None
    #: ``stop``; ``length`` (the text ended at the token limit, or within reasoning);
    #: ``content_filter`` (``FILTERED``); ``refusal`` (``REFUSED``: ``text`` is the refusal, from
    #: which no answer is extracted); or another reason that the server reports.
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    #: Shots left out because the prompt exceeded the model's context window.
    dropped_shots: int = 0
    #: This request's share of its batch's time.
    seconds: float | None = None
    #: If set, the machinery failed and there is no answer.
    error: str | None = None
    #: The request's sample; if None, the answers to an item are taken in order.
    sample: int | None = None
    #: The reasoning before the answer.
    reasoning: str | None = None
    #: Choices that were encoded separately from the prompt, because their text would have merged
    #: with its end into one token.
    encoded_apart: int = 0
    #: The request's arm; if None although there are several arms, the model has to answer all
    #: requests in their order.
    arm: str | None = None

    def __post_init__(self) -> None:
        # Converted once here, so that code that writes or sends responses need not check.
        for name, convert in _CONVERSIONS.items():
            value = getattr(self, name)
            if value is None:
                continue
            try:
                object.__setattr__(self, name, convert(value))
            except (TypeError, ValueError) as error:
                object.__setattr__(self, name, () if name == "logprobs" else None)
                object.__setattr__(self, "error", f"{name} of the response: {error}")


def replace_lone_surrogates(text: str) -> str:
    """Return the text with ``?`` for lone surrogates, which UTF-8 cannot encode.

    Raises TypeError for other types.
    """
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} is not text")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    return number


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "error": replace_lone_surrogates,
    "text": replace_lone_surrogates,
    "reasoning": replace_lone_surrogates,
    "finish_reason": replace_lone_surrogates,
    "arm": replace_lone_surrogates,
    "logprobs": lambda values: tuple(float(value) for value in values),
    "prompt_tokens": int,
    "completion_tokens": int,
    "dropped_shots": int,
    "encoded_apart": int,
    "sample": int,
    "seconds": _finite,
}
