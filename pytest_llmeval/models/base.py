"""Base class of all models, and protocols of the iterators that they return.

A backend is a module or package of ``pytest_llmeval.models`` with a function ``open_model(rest)``.
The scheme of a spec is its name (``hf:…`` → ``models/hf``).
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
from typing import Any
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
    keys: Collection[str],
    hint: Callable[[str, Collection[str]], str] = suggestion,
) -> dict[str, str]:
    """Parse the query of a spec, ``key=value&…``.

    ``text``: the spec as messages show it. ``keys``: the valid keys. ``hint``: the suggestion that
    is appended to the message about an unknown key.

    Raises ConfigError for an unknown key, a key that is repeated or has no value, and a ``name``
    with characters that are not valid in test ids and reports.
    """
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in keys:
            raise ConfigError(f"{text}: unknown option {key!r}{hint(key, keys)}")
        if key in options:
            raise ConfigError(f"{text}: option {key!r} is given twice")
        if not value:
            raise ConfigError(f"{text}: option {key!r} has no value; write {key}=…")
        options[key] = value
    if "name" in options and not _NAME.fullmatch(options["name"]):
        raise ConfigError(f"{text}: name {options['name']!r}: use letters, digits, '_', '.', '-'")
    return options


class Model(ABC):
    """Base class of all models; only ``answer`` has no default.

    A class attribute, an instance attribute or a property overrides a default. Constructing a
    model is cheap; the first ``answer`` loads the weights.
    """

    #: Short name for test ids and reports. By default the name of the class.
    name: str = ""
    #: Kinds of request that the model supports.
    asks: frozenset[Ask] = frozenset({"choices", "text"})
    #: True if the model of a spec may run as several copies on other machines.
    replicable: bool = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.name:
            cls.name = cls.__name__

    @abstractmethod
    def answer(self, requests: Iterable[Request]) -> Iterable[Response]:
        """Return one response per request, in any order.

        An iterator yields each response as it is completed; one that is filled by threads of the
        model implements ``ArrivingResponses``. A collection, such as a list, is written to disk at
        once. A bad request never stops the others: its Response has ``error``.

        Raises ModelError only when the model cannot be used at all.
        """

    @cached_property
    def fingerprint(self) -> str | None:
        """Identity of weights, revision, dtype and chat template, without loading the weights.

        None if unknown: runs of such a model cannot be resumed after they have finished.
        """
        return None

    @cached_property
    def dtype(self) -> str:
        """Data type of the weights, such as ``bfloat16``; empty if unknown."""
        return ""

    @cached_property
    def prefetch(self) -> int:
        """Number of pending requests that keeps the model busy.

        Positive for models with worker threads: ``answer`` is then called for the next chunk
        before all responses of the previous one have been consumed.
        """
        return 0

    @cached_property
    def request_modes(self) -> Mapping[Ask, str]:
        """Mode in which each kind of request is sent, for backends with several modes."""
        return {}

    @cached_property
    def additions(self) -> Mapping[str, Any]:
        """Fields and names of headers that are added to every request, for ``run.json``."""
        return {}

    @cached_property
    def template_date(self) -> str:
        """Date that the chat template prints (``2024-07-26``); empty if it prints no date."""
        return ""

    @cached_property
    def usage_by_benchmark(self) -> Mapping[str, Usage]:
        """Requests, tokens and cost so far. Any thread may read it while ``answer`` updates it."""
        return {}

    @property
    def recorded_items(self) -> Collection[str]:
        """Items that answers were recorded for, where that is known: those unknown are warned of."""
        return ()

    @cached_property
    def warnings(self) -> Sequence[str]:
        """Problems of the model as a whole, one line each, for the terminal summary."""
        return ()

    def billed_prompts(self, request: Request) -> int:
        """Return the number of times that the prompt of a request is sent and billed."""
        return 1

    def close(self) -> None:  # noqa: B027 - most models hold no resources
        """Release connections and threads at the end of the session."""


@runtime_checkable
class ArrivingResponses(Protocol):
    """Iterator over responses that are completed in threads of the model."""

    @property
    def available(self) -> bool:
        """True if ``next`` would not block: a response is ready, or the iterator is exhausted."""
        ...

    def listen(self, arrived: Callable[[], None]) -> None:
        """Call ``arrived``, from any thread, whenever ``available`` may have changed."""
        ...

    def __next__(self) -> Response: ...


@runtime_checkable
class CloseableResponses(Protocol):
    """Iterator that holds resources until it is exhausted or closed, as a generator does."""

    def close(self) -> None: ...


class ResponseStore(Protocol):
    """Cache of responses, implemented by ``storage.response_cache``.

    ``fingerprint``: that of the model. Used by several threads.
    """

    def get(self, fingerprint: str, request: Request) -> Response | None: ...

    def put(self, fingerprint: str, answered: Sequence[tuple[Request, Response]]) -> None: ...
