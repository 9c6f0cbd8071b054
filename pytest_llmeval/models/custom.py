"""Custom models: objects with ``answer``, and functions from prompt to text."""

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
    """Convert the value of a ``model`` fixture to a Model.

    A Model is returned unchanged. An object with ``answer(requests)`` is wrapped, with defaults
    for missing attributes. A function receives the text of a prompt and returns the text of the
    answer.

    Raises ConfigError for any other value, for async functions and for invalid ``asks``.
    """
    answer = getattr(value, "answer", None)
    if callable(answer):
        _check(value, answer)
        return value if isinstance(value, Model) else CustomModel(value)
    if inspect.iscoroutinefunction(value):
        raise ConfigError(
            "the `model` fixture returned an async function: return a"
            f" synchronous one, such as lambda prompt: asyncio.run({value.__name__}(prompt))"
        )
    if callable(value):
        return FunctionModel(value)
    raise ConfigError(
        f"the `model` fixture returned {type(value).__name__}: return an object with"
        " answer(requests), or a function from prompt to text"
    )


def _check(value: object, answer: Callable[..., object]) -> None:
    """Raise ConfigError for an object that cannot answer any request."""
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    if isinstance(value, type):
        raise ConfigError(f"the `model` fixture returned the class {name}: return {name}(…)")
    if inspect.iscoroutinefunction(answer) or inspect.isasyncgenfunction(answer):
        raise ConfigError(
            f"{name}.answer of the `model` fixture is async: make it a synchronous method that"
            " returns an iterator of responses"
        )
    asks = getattr(value, "asks", None)
    kinds = get_args(Ask)
    if asks is None:
        return
    if isinstance(asks, str) or not isinstance(asks, Collection) or not asks:
        raise ConfigError(
            f"{name}.asks of the `model` fixture is {asks!r}: write frozenset({{'text'}}), or"
            " 'choices', or both"
        )
    for ask in asks:
        if ask not in kinds:
            raise ConfigError(
                f"{name}.asks of the `model` fixture: unknown {ask!r}{suggestion(str(ask), kinds)}"
            )


def _attribute(kind: Any, *names: str) -> Any:
    """Return a property that reads an attribute of the user's object, else Model's default.

    ``names``: the name in Model, then the name in earlier versions. ``kind``: the required type.
    An attribute of another type is unrelated to this package (a method ``warnings`` of the user's
    code, for example) and is ignored.
    """

    def read(model: CustomModel) -> Any:
        for name in names:
            value = getattr(model.value, name, None)
            if isinstance(value, kind):
                return value
        return getattr(super(CustomModel, model), names[0])

    return property(read)


class CustomModel(Model):
    """Wrapper of a user's object with ``answer``; missing attributes have Model's defaults."""

    prefetch = _attribute(int, "prefetch", "wanted")
    request_modes = _attribute(Mapping, "request_modes", "ways")
    template_date = _attribute(str, "template_date")
    usage_by_benchmark = _attribute(Mapping, "usage_by_benchmark")
    warnings = _attribute(Collection, "warnings")
    billed_prompts = _attribute(Callable, "billed_prompts", "prompts_sent")
    close = _attribute(Callable, "close")

    def __init__(self, value: Any) -> None:
        self.value = value
        # Records of earlier runs contain the name. An object with all three attributes has always
        # kept its name unchanged; other names are made valid for test ids.
        complete = all(hasattr(value, name) for name in ("name", "asks", "fingerprint"))
        name = getattr(value, "name", type(value).__name__)
        self.name = name if complete else safe_name(name)
        self.asks = frozenset(getattr(value, "asks", None) or Model.asks)

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the object; None if it has none."""
        return getattr(self.value, "fingerprint", None)

    def answer(self, requests: Iterable[Request]) -> Iterable[Response]:
        """Return the responses of the object's ``answer``."""
        responses: Iterable[Response] = self.value.answer(requests)
        return responses


class FunctionModel(Model):
    """Model from a function that maps prompt text to answer text.

    An exception in the function becomes the error of that item. A function returns no
    log-likelihoods: protocols that compare choices run as generated letters instead
    (``Protocol.with_generation``), under the name of another scorer.
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
                raise  # the function requests the end of the session
            # pytest-timeout ends a call that hangs with pytest.fail, which is not an Exception.
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
    """Return the name with invalid characters for test ids and reports replaced by ``-``."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "model"
