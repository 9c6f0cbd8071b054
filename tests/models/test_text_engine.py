"""Generated text: the same as transformers', whatever is made beside it, failures included."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Request

pytest.importorskip("torch", reason="the extra hf is not installed")


pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf import generation as text_module
from pytest_llmeval.models.hf import packed_attention
from support.text_generation import LENGTH
from support.text_generation import plain
from support.text_generation import texts


def by_transformers(model: Any, tokenizer: Any, torch: Any, request: Request) -> list[int]:
    """The tokens of ``generate``, greedy, for one prompt alone, up to the EOS."""
    if request.chat:
        prompt = tokenizer.apply_chat_template(
            request.prompt.messages(), add_generation_prompt=True, tokenize=False
        )
        row = tokenizer(prompt + request.prompt.prefix, add_special_tokens=False).input_ids
    else:
        row = tokenizer(request.prompt.text).input_ids
    # Without a mask it would take the BOS, which is the padding token here, for padding.
    generated = model.generate(
        torch.tensor([row]),
        attention_mask=torch.ones(1, len(row), dtype=torch.long),
        max_new_tokens=request.decoding.max_tokens,
        do_sample=False,
    )
    return list(generated[0, len(row) :].tolist())


FAMILIES = ["Llama", "Qwen3", "GPT2", "Gemma3Text", "Gemma2", "Mistral", "Mamba"]


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_text_is_that_of_transformers(
    torch: Any,
    build: Any,
    tokenizer: Any,
    make_text_engine: Any,
    text_requests: list[Request],
    family: str,
) -> None:
    """By shared prefixes where that works; Gemma2 (softcap), Mistral (a window shorter than the
    prompts) and Mamba (no keys at all) take the other path.
    """
    own = {
        "Qwen3": {"head_dim": 8},
        "Gemma3Text": {"head_dim": 8},
        "Gemma2": {"head_dim": 8, "sliding_window": 64},
        "Mistral": {"sliding_window": 40},
        "Mamba": {"state_size": 4},
    }
    model = build(family, **own.get(family, {}))
    responses = {
        response.id: response for response in make_text_engine(model).answer(text_requests)
    }
    for request in text_requests:
        expected = by_transformers(model, tokenizer, torch, request)
        response = responses[request.id]
        assert response.error is None
        assert response.text == plain(tokenizer, expected)
        assert response.completion_tokens == len(expected)
        assert response.finish_reason == ("stop" if expected[-1] == 1 else "length")


def test_the_window_of_attention_decides_text_by_text(
    build: Any, make_text_engine: Any, text_requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build("Mistral", sliding_window=60)
    engine = make_text_engine(model)
    whole: list[int] = []
    finish = text_module.GenerateFallback.finish
    monkeypatch.setattr(
        text_module.GenerateFallback,
        "finish",
        lambda self, batch: (whole.append(len(batch)), finish(self, batch))[1],
    )
    texts(engine, text_requests)
    assert engine._decoder is not None
    assert sum(whole) == 10


@pytest.mark.parametrize("rows", [1, 2, 8])
@pytest.mark.parametrize("budget", [1, 1000])
def test_text_does_not_depend_on_batches_order_or_selection(
    make_text_engine: Any, text_requests: list[Request], rows: int, budget: int
) -> None:
    """Greedy and sampled, on a tiny model in float32: not one token differs."""
    sampled = Decoding(max_tokens=LENGTH, temperature=1.0, top_p=0.9)
    both = [
        *text_requests,
        *(replace(request, id=f"s-{request.id}", decoding=sampled) for request in text_requests),
    ]
    expected = texts(make_text_engine(), both)
    assert texts(make_text_engine(rows=rows, batch_tokens=budget), both) == expected
    if rows == 8:
        assert texts(make_text_engine(rows=rows), both[::-1]) == expected
        assert texts(make_text_engine(rows=rows), both[::3]).items() <= expected.items()


def test_code_for_other_devices_gives_the_same_text(
    make_text_engine: Any, text_requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the CPU's fused kernel: prompts padded side by side, steps written out."""
    expected = texts(make_text_engine(), text_requests)
    monkeypatch.setattr(packed_attention, "_flash", None)
    engine = make_text_engine(rows=4)
    assert engine._packed is not None
    assert engine._packed.pads
    assert texts(engine, text_requests) == expected


def test_samples_differ_and_can_be_had_again(
    make_text_engine: Any, text_requests: list[Request]
) -> None:
    sampled = Decoding(max_tokens=LENGTH, temperature=1.0)
    many = [
        replace(request, sample=sample, decoding=sampled)
        for request in text_requests[:3]
        for sample in range(5)
    ]
    expected = texts(make_text_engine(), many)
    assert len(set(expected.values())) == 15
    assert texts(make_text_engine(rows=2), many) == expected
    assert texts(make_text_engine(), [many[7]]) == {
        (many[7].id, many[7].sample): expected["q-1", 2]
    }
    other = texts(make_text_engine(), [replace(request, seed=1) for request in many])
    assert not set(other.values()) & set(expected.values())
    # Low temperature is nearly greedy: what is drawn follows the logits.
    cold = Decoding(max_tokens=LENGTH, temperature=1e-4)
    greedy = texts(make_text_engine(), text_requests[:3])
    assert (
        texts(
            make_text_engine(), [replace(request, decoding=cold) for request in text_requests[:3]]
        )
        == greedy
    )


def test_samples_read_their_prompt_once_and_the_shots_too(
    make_text_engine: Any, text_requests: list[Request]
) -> None:
    engine = make_text_engine(rows=4)
    assert engine._packed is not None
    read: list[int] = []
    forward = engine._packed._forward

    def counting(segments: Any, *rest: Any) -> Any:
        read.append(sum(len(segment.tokens) for segment in segments))
        return forward(segments, *rest)

    engine._packed._forward = counting
    sampled = Decoding(max_tokens=4, temperature=1.0)
    some = text_requests[:3]
    many = [replace(request, sample=n, decoding=sampled) for request in some for n in range(6)]
    lengths = {response.id: response.prompt_tokens for response in engine.answer(many)}
    prefix = read[0]
    assert prefix > 60
    assert sum(read) == prefix + sum(length - prefix for length in lengths.values())


def test_stop_strings_cut_the_text_wherever_tokens_end(
    torch: Any, llama: Any, tokenizer: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    """From every text, pieces that straddle two tokens, that are within one, and that are two."""
    engine = make_text_engine()
    for request in text_requests[:5]:
        tokens = by_transformers(llama, tokenizer, torch, request)
        whole = plain(tokenizer, tokens)
        for place in (3, 9, 15):
            before = plain(tokenizer, tokens[:place])
            if not whole.startswith(before) or len(before) < 2:
                continue  # half a character
            for stop in (whole[len(before) - 1 : len(before) + 1], whole[len(before) - 2 :][:3]):
                decoding = Decoding(max_tokens=LENGTH, stop=("never there", stop))
                (response,) = engine.answer([replace(request, decoding=decoding)])
                assert response.text == whole[: whole.index(stop)]
                assert response.finish_reason == "stop"
                assert response.completion_tokens is not None
                # Not a token more than it took.
                needed = response.completion_tokens
                assert stop in plain(tokenizer, tokens[:needed])
                assert stop not in plain(tokenizer, tokens[: needed - 1])


def test_end_tokens_are_those_of_the_generation_config(
    torch: Any, build: Any, tokenizer: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    model = build("Llama")
    tokens = by_transformers(model, tokenizer, torch, text_requests[0])
    model.generation_config.eos_token_id = [1, tokens[5]]
    (response,) = make_text_engine(model).answer([text_requests[0]])
    first = tokens.index(tokens[5])
    assert response.text == plain(tokenizer, tokens[:first])
    assert response.completion_tokens == first + 1
    assert response.finish_reason == "stop"


def test_a_stop_string_that_is_a_special_token_ends_the_text(
    torch: Any, llama: Any, tokenizer: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    """Special tokens have no text: "<|im_end|>" would never be seen in it."""
    tokens = by_transformers(llama, tokenizer, torch, text_requests[0])
    first = tokens.index(tokens[4])

    class Hiding:
        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

        def __call__(self, *args: Any, **options: Any) -> Any:
            return tokenizer(*args, **options)

        @property
        def added_tokens_decoder(self) -> dict[int, Any]:
            return {tokens[4]: SimpleNamespace(content="<|im_end|>", special=True)}

    decoding = Decoding(max_tokens=LENGTH, stop=("<|im_end|>",))
    engine = make_text_engine(own_tokenizer=Hiding())
    (response,) = engine.answer([replace(text_requests[0], decoding=decoding)])
    assert response.text == plain(tokenizer, tokens[:first])
    assert response.finish_reason == "stop"
    assert len(texts(engine, text_requests)) == len(text_requests)


def test_chat_with_system_message_shots_and_a_prefix(
    torch: Any, llama: Any, tokenizer: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    chats = [replace(request, chat=True) for request in text_requests]
    begun = replace(chats[0], id="begun", prompt=replace(chats[0].prompt, prefix="Answer: A"))
    responses = {response.id: response for response in make_text_engine().answer([*chats, begun])}
    for request in (*chats, begun):
        expected = by_transformers(llama, tokenizer, torch, request)
        assert responses[request.id].text == plain(tokenizer, expected)
    assert responses["begun"].text != responses["q-0"].text


def test_a_long_text_does_not_hold_up_the_others(
    make_text_engine: Any, text_requests: list[Request]
) -> None:
    """Short ones behind a long one are answered before it, and its row's neighbour is refilled."""
    short, long = Decoding(max_tokens=3), Decoding(max_tokens=60)
    mixed = [
        replace(request, decoding=long if n == 0 else short)
        for n, request in enumerate(text_requests)
    ]
    engine = make_text_engine(rows=2)
    assert engine._decoder is not None
    rows: list[int] = []
    step = engine._decoder.step
    engine._decoder.step = lambda tokens: (rows.append(len(tokens)), step(tokens))[1]
    order = [response.id for response in engine.answer(mixed)]
    assert order[-1] == "q-0"
    # Two at a time until nothing waits.
    assert rows[:20] == [2] * 20


def test_responses_come_while_others_are_made(
    make_text_engine: Any, text_requests: list[Request]
) -> None:
    engine = make_text_engine(rows=2)
    assert engine._decoder is not None
    steps: list[int] = []
    step = engine._decoder.step
    engine._decoder.step = lambda tokens: (steps.append(len(tokens)), step(tokens))[1]
    answers = engine.answer(text_requests)
    next(answers)
    assert len(steps) == LENGTH - 1
    assert len(list(answers)) == len(text_requests) - 1


def test_seconds_add_up_to_what_it_took(
    make_text_engine: Any, text_requests: list[Request]
) -> None:
    responses = list(make_text_engine().answer(text_requests, setup_seconds=130.0))
    assert all(response.seconds and response.seconds > 10.0 for response in responses)
    assert 130.0 < sum(response.seconds or 0.0 for response in responses) < 190.0


def test_two_calls_may_be_answered_by_turns(
    make_text_engine: Any, text_requests: list[Request]
) -> None:
    """Tests of two chunks that are not run in order: neither call disturbs the other."""
    engine = make_text_engine(rows=3)
    expected = texts(make_text_engine(), text_requests)
    first, second = engine.answer(text_requests[:7]), engine.answer(text_requests[7:])
    by_turns = {}
    for answers in (first, second, first, second, first, first, second):
        response = next(answers)
        by_turns[response.id, 0] = response.text
    for response in (*first, *second):
        by_turns[response.id, 0] = response.text
    assert by_turns == expected
    # A call that is left unfinished gives its rows back.
    third = engine.answer(text_requests)
    next(third)
    third.close()
    assert engine._decoder is not None
    assert not engine._decoder.is_open


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(
    torch: Any, build: Any, make_text_engine: Any, text_requests: list[Request], dtype: str
) -> None:
    """The masks of unequal rows are of the model's dtype, the logits are compared in float32."""
    engine = make_text_engine(build("Llama").to(getattr(torch, dtype)))
    assert engine._decoder is not None
    assert all(text for text in texts(engine, text_requests).values())


def test_texts_by_transformers_are_sampled_alike(
    build: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    """Both paths draw the same random numbers."""
    sampled = [
        replace(request, decoding=Decoding(LENGTH, temperature=1.0)) for request in text_requests
    ]
    model = build("Llama")
    expected = texts(make_text_engine(model), sampled)
    engine = make_text_engine(model)
    engine._decoder = None
    assert texts(engine, sampled) == expected


def test_settings_of_the_generation_config_do_not_enter(
    build: Any, make_text_engine: Any, text_requests: list[Request]
) -> None:
    """The protocol decides how text is made: a checkpoint's repetition penalty is not part of it."""
    model = build("Llama")
    engine = make_text_engine(model)
    expected = texts(engine, text_requests)
    model.generation_config.repetition_penalty = 5.0
    before = model.generation_config
    engine._decoder = None
    assert texts(engine, text_requests) == expected
    assert model.generation_config is before
