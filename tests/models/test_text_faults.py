"""Text generation with too little memory, too long prompts and models that fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response

pytest.importorskip("torch", reason="the extra hf is not installed")


pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf import generation as text_module
from support.text_generation import LENGTH
from support.text_generation import texts


def test_prompts_that_are_too_long_lose_shots_and_report_it(
    build: Any, make_text_engine: Any, tokenizer: Any, text_requests: list[Request]
) -> None:
    """The window holds the prompt and what is to be generated; a question alone takes the rest."""
    engine = make_text_engine(build("Llama", max_position_embeddings=100))
    question = next(q for n in range(99) if len(tokenizer(q := "sea " * n).input_ids) > 85)
    long = replace(text_requests[0], id="long", prompt=Prompt("", (), question))
    hopeless = replace(text_requests[0], id="hopeless", prompt=Prompt("", (), "word " * 200))
    by_id = {response.id: response for response in engine.answer([*text_requests, long, hopeless])}
    assert by_id["q-0"].dropped_shots > 0
    assert by_id["q-0"].error is None
    assert by_id["q-0"].prompt_tokens + LENGTH <= 100
    assert by_id["long"].error is None
    assert by_id["long"].completion_tokens == 100 - by_id["long"].prompt_tokens < LENGTH
    assert by_id["long"].finish_reason == "length"
    assert "window is 100" in str(by_id["hopeless"].error)


def test_out_of_memory_goes_on_with_fewer_texts(
    torch: Any,
    make_text_engine: Any,
    text_requests: list[Request],
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = texts(make_text_engine(), text_requests)
    engine = make_text_engine()
    assert engine._decoder is not None
    step = engine._decoder.step
    rows: list[int] = []

    def failing(tokens: Any) -> Any:
        rows.append(len(tokens))
        if len(tokens) > 4:
            step(tokens)  # it may fail when everything is written
            raise torch.OutOfMemoryError("CUDA out of memory")
        return step(tokens)

    engine._decoder.step = failing
    assert texts(engine, text_requests) == expected
    assert rows[:3] == [13, 6, 3]
    assert max(rows[2:]) == 3
    assert "3 texts at a time" in caplog.text


def test_sampled_text_survives_a_failure_unchanged(
    torch: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    sampled = [
        replace(request, decoding=Decoding(LENGTH, temperature=1.0)) for request in text_requests
    ]
    expected = texts(make_text_engine(), sampled)
    engine = make_text_engine()
    assert engine._decoder is not None
    step = engine._decoder.step
    calls: list[int] = []

    def failing(tokens: Any) -> Any:
        calls.append(len(tokens))
        if len(calls) in (5, 9):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return step(tokens)

    engine._decoder.step = failing
    assert texts(engine, sampled) == expected


def test_prompts_that_cannot_be_read_together_are_read_apart(
    torch: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    expected = texts(make_text_engine(), text_requests)
    engine = make_text_engine()
    assert engine._decoder is not None
    begin = engine._decoder.begin

    def failing(rows: Any, prefix: Any) -> Any:
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return begin(rows, prefix)

    engine._decoder.begin = failing
    assert texts(engine, text_requests) == expected


def test_only_a_prompt_that_fails_alone_is_an_error(
    make_text_engine: Any, tokenizer: Any, text_requests: list[Request]
) -> None:
    expected = texts(make_text_engine(), text_requests)
    engine = make_text_engine()
    assert engine._decoder is not None
    begin = engine._decoder.begin
    poison = next(
        tokenizer(request.prompt.text).input_ids
        for request in text_requests
        if request.id == "own-1"
    )

    def failing(rows: Any, prefix: Any) -> Any:
        if tuple(poison) in rows:
            raise IndexError("index out of range in self")
        return begin(rows, prefix)

    engine._decoder.begin = failing
    by_id = {response.id: response for response in engine.answer(text_requests)}
    failed = [name for name, response in by_id.items() if response.error]
    assert failed == ["own-1"]
    assert by_id["own-1"].error == "IndexError: index out of range in self"
    assert by_id["own-1"].text is None
    for name, response in by_id.items():
        if name != "own-1":
            assert response.text == expected[name, 0]


def test_a_prefix_that_cannot_be_read_is_done_without(
    torch: Any,
    make_text_engine: Any,
    text_requests: list[Request],
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = texts(make_text_engine(), text_requests)
    engine = make_text_engine(rows=4)
    assert engine._packed is not None
    read = engine._packed.read

    def failing(tokens: tuple[int, ...]) -> None:
        if tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")
        read(tokens)

    engine._packed.read = failing
    assert texts(engine, text_requests) == expected
    assert "continuing without" in caplog.text


def test_a_model_full_of_nan_gives_errors(
    build: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    model = build("Llama")
    model.model.norm.weight.data.fill_(float("nan"))
    responses = list(make_text_engine(model).answer(text_requests))
    assert len(responses) == len(text_requests)
    assert all("NaN" in str(response.error) for response in responses)
    assert all(response.text is None for response in responses)


def test_little_memory_means_fewer_rows(
    make_text_engine: Any, text_requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_text_engine()
    assert engine._decoder is not None
    expected = texts(engine, text_requests)
    opened: list[tuple[int, int]] = []
    open_rows = engine._decoder.open
    engine._decoder.open = lambda rows, capacity: (
        opened.append((rows, capacity)),
        open_rows(rows, capacity),
    )[1]
    texts(engine, text_requests)
    ((rows, capacity),) = opened
    assert rows == len(text_requests)
    each = capacity * engine._decoder.bytes_per_token
    monkeypatch.setattr(text_module, "available_memory", lambda device: 7 * each)
    assert texts(engine, text_requests) == expected
    assert opened[1] == (3, capacity)


def test_rows_that_cannot_be_had_are_halved(
    torch: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    expected = texts(make_text_engine(), text_requests)
    engine = make_text_engine()
    assert engine._decoder is not None
    asked_for: list[int] = []
    open_rows = engine._decoder.open

    def failing(rows: int, capacity: int) -> None:
        asked_for.append(rows)
        if rows > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        open_rows(rows, capacity)

    engine._decoder.open = failing
    assert texts(engine, text_requests) == expected
    assert asked_for == [13, 6, 3]


@pytest.mark.parametrize("family", ["Gemma2", "Mamba"])
def test_texts_by_transformers_fail_one_by_one_too(
    build: Any,
    make_text_engine: Any,
    text_requests: list[Request],
    monkeypatch: pytest.MonkeyPatch,
    family: str,
) -> None:
    settings = {"Gemma2": {"head_dim": 8, "sliding_window": 64}, "Mamba": {"state_size": 4}}
    engine = make_text_engine(build(family, **settings[family]))
    expected = texts(engine, text_requests)
    finish = text_module.GenerateFallback.finish

    def failing(self: Any, batch: Any) -> None:
        if any(generation.prompt.index == 6 for generation in batch):
            raise RuntimeError("no")
        finish(self, batch)

    monkeypatch.setattr(text_module.GenerateFallback, "finish", failing)
    responses: list[Response] = list(engine.answer(text_requests))
    assert [response.id for response in responses if response.error] == [text_requests[6].id]
    for response in responses:
        if not response.error:
            assert response.text == expected[response.id, 0]
