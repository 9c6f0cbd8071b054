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

    The part before the first colon is a module of this folder, the rest is its business.
    Opening is cheap and checks the spec; weights are loaded by the first ``answer``. Of the
    ``options`` a backend is given those that it has (an endpoint its ``base_url``, say): one
    session may evaluate several kinds of model.

    Raises ConfigError, in one line, for an unknown scheme and for whatever the backend
    finds wrong (missing extra, missing folder, unknown option).
    """
    scheme, _, rest = spec.partition(":")
    if scheme not in _modules() or not _is_backend(scheme):
        raise ConfigError(_unknown(spec, scheme, backends()))
    backend = importlib.import_module(f"{__name__}.{scheme}")
    known = inspect.signature(backend.open_model).parameters
    own = {name: value for name, value in options.items() if name in known}
    return as_model(backend.open_model(rest, **own))


def backends() -> list[str]:
    """The kinds of models, as specs name them before the colon."""
    return [name for name in _modules() if _is_backend(name)]


def _modules() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def _is_backend(name: str) -> bool:
    try:
        return hasattr(importlib.import_module(f"{__name__}.{name}"), "open_model")
    except ImportError:  # an engine module whose extra is not installed
        return False


def _unknown(spec: str, scheme: str, schemes: list[str]) -> str:
    hint = suggestion(scheme, schemes)
    if nearest(scheme, schemes) is None and ("/" in spec or spec.endswith(".gguf")):
        hint = f"; did you mean 'hf:{spec}'?"
    return f"--llm-model {spec}: unknown kind of model {scheme!r}{hint}"
