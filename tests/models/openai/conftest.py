"""Endpoint models of a stand-in server, which lose no time between two tries."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models import load_model
from pytest_llmeval.models import openai as backend
from pytest_llmeval.models.openai import EndpointModel
from pytest_llmeval.models.openai.client import RetryPolicy
from support.endpoint_server import Server

Opening = Callable[..., EndpointModel]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the environment is sent to the stand-in."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opening]:
    """``opened(server, "?api=completions", timeout=1)``: a model, closed after the test."""
    pytest.importorskip("openai", reason="the extra openai is not installed")
    monkeypatch.setattr(backend, "RetryPolicy", partial(RetryPolicy, first_wait=0.01))
    models: list[Any] = []

    def open_one(server: Server | str, query: str = "", **options: Any) -> EndpointModel:
        url = server if isinstance(server, str) else server.url
        model = load_model(f"openai:stand-in{query}", base_url=url, **options)
        assert isinstance(model, EndpointModel)
        models.append(model)
        return model

    yield open_one
    for model in models:
        model.close()


@pytest.fixture
def make() -> Callable[..., list[Request]]:
    """``make(5)``: requests for text; ``make(5, choices=tuple("ABCD"))``: for choices."""

    def requests(
        count: int, text: str = "question {}\nAnswer:", samples: int = 1, **fields: Any
    ) -> list[Request]:
        fields.setdefault("decoding", Decoding(max_tokens=16))
        return [
            Request(f"q-{number}", Prompt("", (), text.format(number)), sample=sample, **fields)
            for number in range(count)
            for sample in range(samples)
        ]

    return requests
