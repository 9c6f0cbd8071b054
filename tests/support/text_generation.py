"""Texts that an engine generates."""

from __future__ import annotations

from typing import Any

from pytest_llmeval.core import Request

LENGTH = 24


def texts(engine: Any, requests: list[Request]) -> dict[tuple[str, int], str]:
    """The texts of a ``TextEngine`` by request and sample, none of which may be an error."""
    by_request = {}
    for response in engine.answer(requests):
        assert response.error is None
        assert response.sample is not None
        assert response.text is not None
        by_request[response.id, response.sample] = response.text
    assert len(by_request) == len(requests)
    return by_request


def plain(tokenizer: Any, tokens: list[int]) -> str:
    return str(tokenizer.decode(tokens, skip_special_tokens=True))
