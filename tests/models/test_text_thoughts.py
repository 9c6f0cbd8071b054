"""Thoughts of reasoning models, apart from the answers that follow them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Request

pytest.importorskip("torch", reason="the extra hf is not installed")


pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf.generation import TextEngine


def scripted(engine: TextEngine, tokenizer: Any, words: list[str], torch: Any) -> None:
    """Make the engine's model generate these words for any request."""
    tokens = [i for word in words for i in tokenizer(word, add_special_tokens=False).input_ids]
    decoder = engine._decoder
    assert decoder is not None
    steps: list[int] = []

    def logits(count: int) -> Any:
        logits_of_step = torch.zeros(count, len(tokenizer))
        logits_of_step[:, tokens[len(steps)] if len(steps) < len(tokens) else 1] = 9.0
        steps.append(0)
        return logits_of_step

    begin, step = decoder.begin, decoder.step
    decoder.begin = lambda rows, prefix: logits(len(begin(rows, prefix)))  # type: ignore[method-assign]
    decoder.step = lambda tokens: logits(len(step(tokens)))  # type: ignore[method-assign]


def test_a_thought_is_separated_from_the_answer(
    torch: Any, tokenizer: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    decoding = Decoding(max_tokens=80, stop=("\n\n",))
    request = replace(text_requests[0], decoding=decoding)
    engine = make_text_engine()
    scripted(engine, tokenizer, ["<think>", "One.\n\nTwo.", "</think>\n\n", "A\n\nB"], torch)
    (response,) = engine.answer([request])
    assert (response.reasoning, response.text) == ("One.\n\nTwo.", "A")
    assert response.finish_reason == "stop"
    cut = replace(request, decoding=replace(decoding, max_tokens=6))
    engine = make_text_engine()
    scripted(engine, tokenizer, ["<think>", "One. Two. Three. Four"], torch)
    (response,) = engine.answer([cut])
    assert response.text == ""
    assert response.reasoning is not None
    assert response.finish_reason == "length"


def test_a_thought_may_be_opened_by_the_chat_template(
    torch: Any, tokenizer: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    class Thinking:
        chat_template = "opens a thought"

        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

        def __call__(self, *args: Any, **options: Any) -> Any:
            return tokenizer(*args, **options)

        def apply_chat_template(self, *args: Any, **options: Any) -> str:
            return str(tokenizer.apply_chat_template(*args, **options)) + "<think>\n"

    decoding = Decoding(max_tokens=80, stop=("\n\n",))
    request = replace(text_requests[0], decoding=decoding, chat=True)
    engine = make_text_engine(own_tokenizer=Thinking())
    scripted(engine, tokenizer, ["One.\n\nTwo.", "</think>\n\n", "A\n\nB"], torch)
    (response,) = engine.answer([request])
    assert (response.reasoning, response.text) == ("One.\n\nTwo.", "A")


def test_a_thought_between_special_tokens_is_seen(
    torch: Any, build: Any, tokenizer: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    own = copy.deepcopy(tokenizer)
    own.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    request = replace(text_requests[0], decoding=Decoding(max_tokens=80, stop=("\n\n",)))
    engine = make_text_engine(build("Llama", vocab_size=len(own)), own)
    scripted(engine, own, ["<think>", "One.\n\nTwo.", "</think>", "A , B\n\nC"], torch)
    (response,) = engine.answer([request])
    assert (response.reasoning, response.text) == ("One.\n\nTwo.", "A , B")


def test_a_stop_token_is_ignored_within_a_thought(
    torch: Any, build: Any, tokenizer: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    """Some tokenizers have line breaks among the tokens added to their vocabulary."""
    own = copy.deepcopy(tokenizer)
    own.add_tokens(["\n\n"])
    request = replace(text_requests[0], decoding=Decoding(max_tokens=80, stop=("\n\n",)))
    engine = make_text_engine(build("Llama", vocab_size=len(own)), own)
    scripted(engine, own, ["<think>", "One.", "\n\n", "Two.", "</think>", "A", "\n\n", "B"], torch)
    (response,) = engine.answer([request])
    assert (response.reasoning, response.text) == ("One.\n\nTwo.", "A")
