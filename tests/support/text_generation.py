"""Texts that an engine generates."""

from __future__ import annotations

from typing import Any

from pytest_llmeval.core import Request

LENGTH = 24


def texts(engine: Any, requests: list[Request]) -> dict[tuple[str, int], str]:
    """The texts of a ``TextEngine`` by request and sample, none of which may be an error."""
    found = {}
    for response in engine.answer(requests):
        assert response.error is None
        assert response.sample is not None
        assert response.text is not None
        found[response.id, response.sample] = response.text
    assert len(found) == len(requests)
    return found


def plain(tokenizer: Any, tokens: list[int]) -> str:
    return str(tokenizer.decode(tokens, skip_special_tokens=True))
