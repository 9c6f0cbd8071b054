"""Models: anything that answers requests. ``load_model`` opens one from a spec."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import nearest
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.models.base import Model
from pytest_llmeval.models.custom import as_model

__all__ = ["Model", "as_model", "backends", "load_model"]


def load_model(spec: str, **options: Any) -> Model:
    """Open the model that a spec names: ``hf:…``, ``openai:NAME``, ``replay:FILE``, ``demo``.

    The part before the first colon names a module of this package, whose ``open_model`` parses
    the rest. Opening checks the spec and is cheap; the first ``answer`` loads the weights.
    Each backend receives only the ``options`` that its ``open_model`` accepts (``base_url`` for
    an endpoint), because one session may evaluate several kinds of model.

    Raises ConfigError, in one line, for an unknown scheme and for every error of the backend
    (missing extra, missing folder, unknown option).
    """
    scheme, _, rest = spec.partition(":")
    if scheme not in _modules() or not _is_backend(scheme):
        raise ConfigError(_unknown_scheme(spec, scheme, backends()))
    backend = importlib.import_module(f"{__name__}.{scheme}")
    parameters = inspect.signature(backend.open_model).parameters
    accepted = {name: value for name, value in options.items() if name in parameters}
    return as_model(backend.open_model(rest, **accepted))


def backends() -> list[str]:
    """Return the schemes of all backends: the part of a spec before the colon."""
    return [name for name in _modules() if _is_backend(name)]


def _modules() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def _is_backend(name: str) -> bool:
    try:
        return hasattr(importlib.import_module(f"{__name__}.{name}"), "open_model")
    except ImportError:  # a backend whose extra is not installed
        return False


def _unknown_scheme(spec: str, scheme: str, schemes: list[str]) -> str:
    hint = suggestion(scheme, schemes)
    if nearest(scheme, schemes) is None and ("/" in spec or spec.endswith(".gguf")):
        hint = f"; did you mean 'hf:{spec}'?"
    return f"--llm-model {spec}: unknown kind of model {scheme!r}{hint}"
