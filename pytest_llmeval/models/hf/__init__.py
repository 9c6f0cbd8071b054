"""``hf:NAME_OR_FOLDER_OR_GGUF[?key=value&…]``: models that transformers loads.

Keys: ``device`` (cpu, cuda, cuda:N, mps), ``devices`` (number of GPUs over which the layers are
distributed), ``dtype`` (float32, bfloat16, float16), ``revision`` (of a hub name), ``batch_tokens``
(tokens per batch), ``date`` (YYYY-MM-DD, the current date for chat templates that print it;
2024-07-26 by default), ``name`` (in test ids and reports). Defaults: float32 on a CPU, bfloat16 on
a GPU, one GPU per xdist worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_llmeval.core import Ask
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.base import Model
from pytest_llmeval.models.hf.spec import HfSpec
from pytest_llmeval.models.hf.spec import check_installed
from pytest_llmeval.models.hf.spec import parse_spec
from pytest_llmeval.models.hf.weights_fingerprint import dtype_used
from pytest_llmeval.models.hf.weights_fingerprint import fingerprint
from pytest_llmeval.models.hf.weights_fingerprint import template_date

if TYPE_CHECKING:
    from pytest_llmeval.models.hf.engine import Engine

log = logging.getLogger("pytest_llmeval.models.hf")


def open_model(rest: str) -> HfModel:
    """Return the model of the spec ``hf:<rest>``, without loading it or importing torch.

    Raises ConfigError for a missing extra and for an invalid spec.
    """
    spec = parse_spec(rest)
    modules = ["torch", "transformers"]
    modules += ["gguf"] if spec.kind == "gguf" else []
    modules += ["accelerate"] if spec.devices > 1 else []
    check_installed(spec.text, modules)
    return HfModel(spec)


class LoadingTimer:
    """Timer of the seconds that this process spends on loading weights."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since: float | None = None

    @property
    def is_running(self) -> bool:
        """True while weights are being loaded."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """Seconds spent on loading so far; 0 before the first load."""
        since = self._since
        return self._before + (0.0 if since is None else time.monotonic() - since)

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Add the time spent in the context."""
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._before, self._since = self.seconds, None


LOADING = LoadingTimer()


class HfModel(Model):
    """Causal language model that the first ``answer`` loads: log-likelihoods and text."""

    asks: frozenset[Ask] = frozenset({"choices", "text"})
    replicable = True

    def __init__(self, spec: HfSpec) -> None:
        self._spec = spec
        self._engine: Engine | None = None
        self.name = spec.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._spec.text}>"

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits for weights, tokenizer, chat template with its date, revision and dtype."""
        return fingerprint(self._spec)

    @cached_property
    def dtype(self) -> str:
        """Data type of the weights."""
        return dtype_used(self._spec)

    @cached_property
    def template_date(self) -> str:
        """Date that the chat template reads (``2024-07-26``); empty if it reads no date."""
        return template_date(self._spec)

    def answer(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield one response per request as it is completed, choices before text.

        Raises ModelError if the weights cannot be loaded.
        """
        pending = list(requests)
        if not pending:
            return
        setup_seconds = 0.0
        if self._engine is None:
            started = time.perf_counter()
            with LOADING.measure():
                self._engine = self._load()
            setup_seconds = time.perf_counter() - started
            log.info("%s ready after %.2f s", self._spec.text, setup_seconds)
        yield from self._engine.answer(pending, setup_seconds)

    def _load(self) -> Engine:
        from pytest_llmeval.models.hf.engine import Engine
        from pytest_llmeval.models.hf.loading import load

        return Engine(load(self._spec), self._spec.batch_tokens)
