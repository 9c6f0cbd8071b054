"""Engine of one loaded model for both kinds of request."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence

from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.hf.generation import TextEngine
from pytest_llmeval.models.hf.loading import LoadedModel
from pytest_llmeval.models.hf.loglikelihood import ChoiceEngine
from pytest_llmeval.models.hf.self_check import find_paths


class Engine:
    """Dispatcher to a ChoiceEngine and a TextEngine, each created by the first request for it."""

    def __init__(self, loaded: LoadedModel, batch_tokens: int | None = None) -> None:
        self._loaded = loaded
        self._batch_tokens = batch_tokens
        self._paths = find_paths(loaded.model, loaded.device)
        self._choices: ChoiceEngine | None = None
        self._text: TextEngine | None = None

    def answer(self, requests: Sequence[Request], setup_seconds: float = 0.0) -> Iterator[Response]:
        """Yield one response per request; ``setup_seconds`` is divided equally among them."""
        choices = [request for request in requests if request.ask == "choices"]
        texts = [request for request in requests if request.ask == "text"]
        each = setup_seconds / max(1, len(requests))
        if choices:
            if self._choices is None:
                self._choices = ChoiceEngine(self._loaded, self._batch_tokens, self._paths)
            yield from self._choices.answer(choices, each * len(choices))
        if texts:
            if self._text is None:
                self._text = TextEngine(self._loaded, self._batch_tokens, self._paths)
            yield from self._text.answer(texts, each * len(texts))
