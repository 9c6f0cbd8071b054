"""The base class of all models, and the types of the responses that they return.

A backend is one module in this folder; nothing outside it knows its name. A module is found
through the scheme of the spec (``hf:…`` → ``models/hf``) and has ``open_model(rest)``.
"""

from __future__ import annotations

import re
from abc import ABC
from abc import abstractmethod
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol
from typing import runtime_checkable
from urllib.parse import parse_qsl

from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.usage import Usage

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def read_query(
    text: str,
    query: str,
    known: Collection[str],
    hint: Callable[[str, Collection[str]], str] = suggestion,
) -> dict[str, str]:
    """The keys and values of a spec's query; ``text`` is the spec in messages.

    Raises ConfigError for a key that is not known (``hint`` says what was meant), given twice or
    without a value, and for a ``name`` that reports could not carry.
    """
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in known:
            raise ConfigError(f"{text}: unknown option {key!r}{hint(key, known)}")
        if key in options:
            raise ConfigError(f"{text}: option {key!r} is given twice")
        if not value:
            raise ConfigError(f"{text}: option {key!r} has no value; write {key}=…")
        options[key] = value
    if "name" in options and not _NAME.fullmatch(options["name"]):
        raise ConfigError(f"{text}: name {options['name']!r}: use letters, digits, '_', '.', '-'")
    return options


class Model(ABC):
    """Base class of everything that answers requests; only ``answer`` has no default.

    Each default is overridden by a class attribute, an instance attribute or a property.
    Constructing a model is cheap; weights are loaded by the first ``answer``.
    """

    #: Short and readable, part of test ids and reports. By default the name of the class.
    name: str = ""
    #: The kinds of request that the model can answer.
    asks: frozenset[Ask] = frozenset({"choices", "text"})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.name:
            cls.name = cls.__name__

    @abstractmethod
    def answer(self, requests: Iterable[Request]) -> Iterable[Response]:
        """Return one response per request, in any order.

        An iterator yields each as it is completed (``ArrivingResponses``, where that happens in
        threads of the model). A collection, such as a list, is written to disk at once. One bad
        request never stops the others: it becomes a Response with ``error``.

        Raises ModelError only when the model cannot be used at all.
        """

    @cached_property
    def fingerprint(self) -> str | None:
        """Identity of weights, revision, dtype and chat template, without loading the weights.

        None where it is unknown: finished runs of such a model are not continued.
        """
        return None

    @cached_property
    def prefetch(self) -> int:
        """The number of requests that the model should have at any time, to be kept busy.

        Above 0 where it works in threads of its own: ``answer`` is then called for the next chunk
        before the responses of the last one have all been taken.
        """
        return 0

    @cached_property
    def request_modes(self) -> Mapping[Ask, str]:
        """How each kind of request is sent, where a backend has several modes."""
        return {}

    @cached_property
    def template_date(self) -> str:
        """The date that the chat template writes, as ``2024-07-26``; empty where it writes none."""
        return ""

    @cached_property
    def usage_by_benchmark(self) -> Mapping[str, Usage]:
        """Requests, tokens and cost so far. Read in any thread, while ``answer`` adds to it."""
        return {}

    @cached_property
    def warnings(self) -> Sequence[str]:
        """Problems of the model as a whole, a line each, for the summary of the session."""
        return ()

    def billed_prompts(self, request: Request) -> int:
        """Return how many times the prompt of a request is sent and billed."""
        return 1

    def close(self) -> None:  # noqa: B027 - most models hold nothing
        """Release connections and threads, at the end of the session."""


@runtime_checkable
class ArrivingResponses(Protocol):
    """Iterator over responses that are completed in threads of the model."""

    @property
    def available(self) -> bool:
        """True when ``next`` would not wait: a response, or the end, is here."""
        ...

    def listen(self, arrived: Callable[[], None]) -> None:
        """Have ``arrived`` called, in any thread, whenever ``available`` may have changed."""
        ...

    def __next__(self) -> Response: ...


@runtime_checkable
class CloseableResponses(Protocol):
    """Iterator that keeps resources until its end or its ``close``, as a generator does."""

    def close(self) -> None: ...


class ResponseStore(Protocol):
    """Store of responses, so that no request is sent twice: ``storage.response_cache``.

    ``fingerprint`` is the model's. Used from several threads.
    """

    def get(self, fingerprint: str, request: Request) -> Response | None: ...

    def put(self, fingerprint: str, answered: Sequence[tuple[Request, Response]]) -> None: ...
