"""A user's own system as a Model: any object with ``answer``, or a function from prompt to text."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import get_args

import pytest

from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.models.base import Model


def as_model(value: object) -> Model:
    """Make a Model of what a user's ``model`` fixture returned.

    A Model is used as it is. An object with ``answer(requests)`` becomes one, with defaults for
    what it leaves out. A function is called with the prompt's text and returns the answer's text.

    Raises ConfigError for anything else.
    """
    answer = getattr(value, "answer", None)
    if callable(answer):
        _check(value, answer)
        return value if isinstance(value, Model) else CustomModel(value)
    if inspect.iscoroutinefunction(value):
        raise ConfigError(
            "the `model` fixture returned an async function: return one that waits for it, such as"
            f" lambda prompt: asyncio.run({value.__name__}(prompt))"
        )
    if callable(value):
        return FunctionModel(value)
    raise ConfigError(
        f"the `model` fixture returned {type(value).__name__}: return an object with"
        " answer(requests), or a function from prompt to text"
    )


def _check(value: object, answer: Callable[..., object]) -> None:
    """Raise ConfigError for an object that could answer no request at all."""
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    if isinstance(value, type):
        raise ConfigError(f"the `model` fixture returned the class {name}: return {name}(…)")
    if inspect.iscoroutinefunction(answer) or inspect.isasyncgenfunction(answer):
        raise ConfigError(
            f"{name}.answer of the `model` fixture is async: it has to return an iterator of"
            " responses"
        )
    asks = getattr(value, "asks", None)
    known = get_args(Ask)
    if asks is None:
        return
    if isinstance(asks, str) or not isinstance(asks, Collection) or not asks:
        raise ConfigError(
            f"{name}.asks of the `model` fixture is {asks!r}: write frozenset({{'text'}}), or"
            " 'choices', or both"
        )
    for ask in asks:
        if ask not in known:
            raise ConfigError(
                f"{name}.asks of the `model` fixture: unknown {ask!r}{suggestion(str(ask), known)}"
            )


def _attribute(kind: Any, *names: str) -> Any:
    """Property: the attribute of the user's object, if it is of this kind, else Model's default.

    ``names``: Model's name of it, then an earlier one. An attribute of another kind has nothing to
    do with this package, such as a method ``warnings`` that the object's own code calls.
    """

    def read(model: CustomModel) -> Any:
        for name in names:
            value = getattr(model.value, name, None)
            if isinstance(value, kind):
                return value
        return getattr(super(CustomModel, model), names[0])

    return property(read)


class CustomModel(Model):
    """A user's object with ``answer``, and the defaults of what it leaves out."""

    prefetch = _attribute(int, "prefetch", "wanted")
    request_modes = _attribute(Mapping, "request_modes", "ways")
    template_date = _attribute(str, "template_date")
    usage_by_benchmark = _attribute(Mapping, "usage_by_benchmark")
    warnings = _attribute(Collection, "warnings")
    billed_prompts = _attribute(Callable, "billed_prompts", "prompts_sent")
    close = _attribute(Callable, "close")

    def __init__(self, value: Any) -> None:
        self.value = value
        # A name is part of records, which earlier runs have too: that of an object with all three
        # attributes is kept as it is, another one is made safe for test ids.
        complete = all(hasattr(value, name) for name in ("name", "asks", "fingerprint"))
        name = getattr(value, "name", type(value).__name__)
        self.name = name if complete else safe_name(name)
        self.asks = frozenset(getattr(value, "asks", None) or Model.asks)

    @property
    def fingerprint(self) -> str | None:
        """The object's own, None where it has none."""
        return getattr(self.value, "fingerprint", None)

    def answer(self, requests: Iterable[Request]) -> Iterable[Response]:
        """Return what the object's ``answer`` returns."""
        responses: Iterable[Response] = self.value.answer(requests)
        return responses


class FunctionModel(Model):
    """A function from prompt text to answer text.

    An exception of the function is an error of that one item. The function cannot give
    log-likelihoods, so protocols that compare choices are asked as generated letters
    (``Protocol.with_generation``), under another scorer's name.
    """

    asks: frozenset[Ask] = frozenset({"text"})

    def __init__(self, function: Callable[[str], str]) -> None:
        self._function = function
        self.name = safe_name(getattr(function, "__name__", type(function).__name__))

    def answer(self, requests: Iterable[Request]) -> Iterator[Response]:
        for request in requests:
            start = time.perf_counter()
            try:
                text = self._function(request.prompt.text)
            except pytest.exit.Exception:
                raise  # the function wants the session to end
            # pytest.fail is what pytest-timeout ends a call with that hangs, and no Exception.
            except (Exception, pytest.fail.Exception) as error:
                message = f"{type(error).__name__}: {error}"
                yield Response(request.id, error=message, seconds=time.perf_counter() - start)
                continue
            if not isinstance(text, str):
                message = f"{self.name} returned {type(text).__name__}, not text"
                yield Response(request.id, error=message)
                continue
            yield Response(request.id, text=text, seconds=time.perf_counter() - start)


def safe_name(name: str) -> str:
    """A model's name as test ids and reports can carry it."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "model"
