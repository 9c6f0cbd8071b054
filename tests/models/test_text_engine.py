"""Generated text: the same as transformers', whatever is made beside it, failures included."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf import generation as text_module
from pytest_llmeval.models.hf import packed_attention
from pytest_llmeval.models.hf.generation import TextEngine
from pytest_llmeval.models.hf.loading import Loaded

LENGTH = 24


@pytest.fixture
def make(torch: Any, llama: Any, tokenizer: Any) -> Any:
    """``make(model, rows=8)``: an engine with the tiny model, or another."""

    def make(model: Any = llama, own_tokenizer: Any = tokenizer, **settings: Any) -> TextEngine:
        return TextEngine(Loaded(model, own_tokenizer, torch.device("cpu")), **settings)

    return make


@pytest.fixture
def asked(requests: list[Request]) -> list[Request]:
    """Ten prompts behind the same shots, and three that begin in ways of their own."""
    decoding = Decoding(max_tokens=LENGTH)
    shared = [replace(one, choices=(), decoding=decoding) for one in requests]
    own = [
        Request(f"own-{n}", Prompt("", (), f"{word} " * (n + 1)), decoding=decoding)
        for n, word in enumerate(("Once", "sea", "The sky is blue and"))
    ]
    return [*shared[:4], own[0], *shared[4:], *own[1:]]


def texts(engine: TextEngine, requests: list[Request]) -> dict[tuple[str, int], str]:
    found = {}
    for response in engine.answer(requests):
        assert response.error is None
        assert response.sample is not None
        assert response.text is not None
        found[response.id, response.sample] = response.text
    assert len(found) == len(requests)
    return found


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
    found = model.generate(
        torch.tensor([row]),
        attention_mask=torch.ones(1, len(row), dtype=torch.long),
        max_new_tokens=request.decoding.max_tokens,
        do_sample=False,
    )
    return list(found[0, len(row) :].tolist())


def plain(tokenizer: Any, tokens: list[int]) -> str:
    return str(tokenizer.decode(tokens, skip_special_tokens=True))


FAMILIES = ["Llama", "Qwen3", "GPT2", "Gemma3Text", "Gemma2", "Mistral", "Mamba"]


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_text_is_that_of_transformers(
    torch: Any, build: Any, tokenizer: Any, make: Any, asked: list[Request], family: str
) -> None:
    """By shared prefixes where that works; Gemma2 (softcap), Mistral (a window shorter than the
    prompts) and Mamba (no keys at all) go the other way.
    """
    own = {
        "Qwen3": {"head_dim": 8},
        "Gemma3Text": {"head_dim": 8},
        "Gemma2": {"head_dim": 8, "sliding_window": 64},
        "Mistral": {"sliding_window": 40},
        "Mamba": {"state_size": 4},
    }
    model = build(family, **own.get(family, {}))
    responses = {response.id: response for response in make(model).answer(asked)}
    for request in asked:
        expected = by_transformers(model, tokenizer, torch, request)
        response = responses[request.id]
        assert response.error is None
        assert response.text == plain(tokenizer, expected)
        assert response.completion_tokens == len(expected)
        assert response.finish_reason == ("stop" if expected[-1] == 1 else "length")


def test_the_window_of_attention_decides_text_by_text(
    build: Any, make: Any, asked: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build("Mistral", sliding_window=60)
    engine = make(model)
    whole: list[int] = []
    finish = text_module.WholeTexts.finish
    monkeypatch.setattr(
        text_module.WholeTexts,
        "finish",
        lambda self, batch: (whole.append(len(batch)), finish(self, batch))[1],
    )
    texts(engine, asked)
    assert engine._decoder is not None
    assert sum(whole) == 10


@pytest.mark.parametrize("rows", [1, 2, 8])
@pytest.mark.parametrize("budget", [1, 1000])
def test_text_does_not_depend_on_batches_order_or_selection(
    make: Any, asked: list[Request], rows: int, budget: int
) -> None:
    """Greedy and sampled, on a tiny model in float32: not one token differs."""
    sampled = Decoding(max_tokens=LENGTH, temperature=1.0, top_p=0.9)
    both = [*asked, *(replace(one, id=f"s-{one.id}", decoding=sampled) for one in asked)]
    expected = texts(make(), both)
    assert texts(make(rows=rows, batch_tokens=budget), both) == expected
    if rows == 8:
        assert texts(make(rows=rows), both[::-1]) == expected
        assert texts(make(rows=rows), both[::3]).items() <= expected.items()


def test_what_other_devices_compute_gives_the_same(
    make: Any, asked: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the CPU's fused kernel: prompts padded side by side, steps written out."""
    expected = texts(make(), asked)
    monkeypatch.setattr(packed_attention, "_flash", None)
    engine = make(rows=4)
    assert engine._packed is not None
    assert engine._packed.pads
    assert texts(engine, asked) == expected


def test_samples_differ_and_can_be_had_again(make: Any, asked: list[Request]) -> None:
    sampled = Decoding(max_tokens=LENGTH, temperature=1.0)
    many = [
        replace(one, sample=sample, decoding=sampled) for one in asked[:3] for sample in range(5)
    ]
    expected = texts(make(), many)
    assert len(set(expected.values())) == 15
    assert texts(make(rows=2), many) == expected
    assert texts(make(), [many[7]]) == {(many[7].id, many[7].sample): expected["q-1", 2]}
    other = texts(make(), [replace(one, seed=1) for one in many])
    assert not set(other.values()) & set(expected.values())
    # Low temperature is nearly greedy: what is drawn follows the logits.
    cold = Decoding(max_tokens=LENGTH, temperature=1e-4)
    greedy = texts(make(), asked[:3])
    assert texts(make(), [replace(one, decoding=cold) for one in asked[:3]]) == greedy


def test_samples_read_their_prompt_once_and_the_shots_too(make: Any, asked: list[Request]) -> None:
    engine = make(rows=4)
    assert engine._packed is not None
    read: list[int] = []
    forward = engine._packed._forward

    def counting(segments: Any, *rest: Any) -> Any:
        read.append(sum(len(segment.tokens) for segment in segments))
        return forward(segments, *rest)

    engine._packed._forward = counting
    sampled = Decoding(max_tokens=4, temperature=1.0)
    some = asked[:3]
    many = [replace(one, sample=n, decoding=sampled) for one in some for n in range(6)]
    lengths = {response.id: response.prompt_tokens for response in engine.answer(many)}
    prefix = read[0]
    assert prefix > 60
    assert sum(read) == prefix + sum(length - prefix for length in lengths.values())


def test_stop_strings_cut_the_text_wherever_tokens_end(
    torch: Any, llama: Any, tokenizer: Any, make: Any, asked: list[Request]
) -> None:
    """From every text, pieces that straddle two tokens, that are within one, and that are two."""
    engine = make()
    for request in asked[:5]:
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
    torch: Any, build: Any, tokenizer: Any, make: Any, asked: list[Request]
) -> None:
    model = build("Llama")
    tokens = by_transformers(model, tokenizer, torch, asked[0])
    model.generation_config.eos_token_id = [1, tokens[5]]
    (response,) = make(model).answer([asked[0]])
    first = tokens.index(tokens[5])
    assert response.text == plain(tokenizer, tokens[:first])
    assert response.completion_tokens == first + 1
    assert response.finish_reason == "stop"


def test_a_stop_string_that_is_a_special_token_ends_the_text(
    torch: Any, llama: Any, tokenizer: Any, make: Any, asked: list[Request]
) -> None:
    """Special tokens have no text: "<|im_end|>" would never be seen in it."""
    tokens = by_transformers(llama, tokenizer, torch, asked[0])
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
    engine = make(own_tokenizer=Hiding())
    (response,) = engine.answer([replace(asked[0], decoding=decoding)])
    assert response.text == plain(tokenizer, tokens[:first])
    assert response.finish_reason == "stop"
    assert len(texts(engine, asked)) == len(asked)


def test_chat_with_system_message_shots_and_a_prefix(
    torch: Any, llama: Any, tokenizer: Any, make: Any, asked: list[Request]
) -> None:
    chats = [replace(one, chat=True) for one in asked]
    begun = replace(chats[0], id="begun", prompt=replace(chats[0].prompt, prefix="Answer: A"))
    responses = {response.id: response for response in make().answer([*chats, begun])}
    for request in (*chats, begun):
        expected = by_transformers(llama, tokenizer, torch, request)
        assert responses[request.id].text == plain(tokenizer, expected)
    assert responses["begun"].text != responses["q-0"].text


def scripted(engine: TextEngine, tokenizer: Any, words: list[str], torch: Any) -> None:
    """Let the engine's model say these words, whatever it is asked."""
    tokens = [i for word in words for i in tokenizer(word, add_special_tokens=False).input_ids]
    decoder = engine._decoder
    assert decoder is not None
    said: list[int] = []

    def logits(count: int) -> Any:
        found = torch.zeros(count, len(tokenizer))
        found[:, tokens[len(said)] if len(said) < len(tokens) else 1] = 9.0
        said.append(0)
        return found

    begin, step = decoder.begin, decoder.step
    decoder.begin = lambda rows, prefix: logits(len(begin(rows, prefix)))  # type: ignore[method-assign]
    decoder.step = lambda tokens: logits(len(step(tokens)))  # type: ignore[method-assign]


def test_a_thought_is_told_apart_from_the_answer(
    torch: Any, tokenizer: Any, make: Any, asked: list[Request]
) -> None:
    decoding = Decoding(max_tokens=80, stop=("\n\n",))
    request = replace(asked[0], decoding=decoding)
    engine = make()
    scripted(engine, tokenizer, ["<think>", "One.\n\nTwo.", "</think>\n\n", "A\n\nB"], torch)
    (response,) = engine.answer([request])
    assert (response.reasoning, response.text) == ("One.\n\nTwo.", "A")
    assert response.finish_reason == "stop"
    cut = replace(request, decoding=replace(decoding, max_tokens=6))
    engine = make()
    scripted(engine, tokenizer, ["<think>", "One. Two. Three. Four"], torch)
    (response,) = engine.answer([cut])
    assert response.text == ""
    assert response.reasoning is not None
    assert response.finish_reason == "length"


def test_a_thought_may_be_opened_by_the_chat_template(
    torch: Any, tokenizer: Any, make: Any, asked: list[Request]
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
    request = replace(asked[0], decoding=decoding, chat=True)
    engine = make(own_tokenizer=Thinking())
    scripted(engine, tokenizer, ["One.\n\nTwo.", "</think>\n\n", "A\n\nB"], torch)
    (response,) = engine.answer([request])
    assert (response.reasoning, response.text) == ("One.\n\nTwo.", "A")


def test_a_thought_between_special_tokens_is_seen(
    torch: Any, build: Any, tokenizer: Any, make: Any, asked: list[Request]
) -> None:
    own = copy.deepcopy(tokenizer)
    own.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    request = replace(asked[0], decoding=Decoding(max_tokens=80, stop=("\n\n",)))
    engine = make(build("Llama", vocab_size=len(own)), own)
    scripted(engine, own, ["<think>", "One.\n\nTwo.", "</think>", "A , B\n\nC"], torch)
    (response,) = engine.answer([request])
    assert (response.reasoning, response.text) == ("One.\n\nTwo.", "A , B")


def test_a_token_that_is_a_stop_string_means_nothing_within_a_thought(
    torch: Any, build: Any, tokenizer: Any, make: Any, asked: list[Request]
) -> None:
    """Some tokenizers have line breaks among the tokens added to their vocabulary."""
    own = copy.deepcopy(tokenizer)
    own.add_tokens(["\n\n"])
    request = replace(asked[0], decoding=Decoding(max_tokens=80, stop=("\n\n",)))
    engine = make(build("Llama", vocab_size=len(own)), own)
    scripted(engine, own, ["<think>", "One.", "\n\n", "Two.", "</think>", "A", "\n\n", "B"], torch)
    (response,) = engine.answer([request])
    assert (response.reasoning, response.text) == ("One.\n\nTwo.", "A")


# --- what comes when


def test_a_long_text_does_not_hold_up_the_others(make: Any, asked: list[Request]) -> None:
    """Short ones behind a long one are answered before it, and its row's neighbour is refilled."""
    short, long = Decoding(max_tokens=3), Decoding(max_tokens=60)
    mixed = [replace(one, decoding=long if n == 0 else short) for n, one in enumerate(asked)]
    engine = make(rows=2)
    assert engine._decoder is not None
    rows: list[int] = []
    step = engine._decoder.step
    engine._decoder.step = lambda tokens: (rows.append(len(tokens)), step(tokens))[1]
    order = [response.id for response in engine.answer(mixed)]
    assert order[-1] == "q-0"
    # Two at a time until nothing waits.
    assert rows[:20] == [2] * 20


def test_responses_come_while_others_are_made(make: Any, asked: list[Request]) -> None:
    engine = make(rows=2)
    assert engine._decoder is not None
    steps: list[int] = []
    step = engine._decoder.step
    engine._decoder.step = lambda tokens: (steps.append(len(tokens)), step(tokens))[1]
    answers = engine.answer(asked)
    next(answers)
    assert len(steps) == LENGTH - 1
    assert len(list(answers)) == len(asked) - 1


def test_seconds_add_up_to_what_it_took(make: Any, asked: list[Request]) -> None:
    responses = list(make().answer(asked, setup_seconds=130.0))
    assert all(response.seconds and response.seconds > 10.0 for response in responses)
    assert 130.0 < sum(response.seconds or 0.0 for response in responses) < 190.0


def test_prompts_that_are_too_long_lose_shots_and_say_so(
    build: Any, make: Any, tokenizer: Any, asked: list[Request]
) -> None:
    """The window holds the prompt and what is to be generated; a question alone takes the rest."""
    engine = make(build("Llama", max_position_embeddings=100))
    question = next(q for n in range(99) if len(tokenizer(q := "sea " * n).input_ids) > 85)
    long = replace(asked[0], id="long", prompt=Prompt("", (), question))
    hopeless = replace(asked[0], id="hopeless", prompt=Prompt("", (), "word " * 200))
    found = {response.id: response for response in engine.answer([*asked, long, hopeless])}
    assert found["q-0"].dropped_shots > 0
    assert found["q-0"].error is None
    assert found["q-0"].prompt_tokens + LENGTH <= 100
    assert found["long"].error is None
    assert found["long"].completion_tokens == 100 - found["long"].prompt_tokens < LENGTH
    assert found["long"].finish_reason == "length"
    assert "window is 100" in str(found["hopeless"].error)


# --- failures


def test_out_of_memory_goes_on_with_fewer_texts(
    torch: Any, make: Any, asked: list[Request], caplog: pytest.LogCaptureFixture
) -> None:
    expected = texts(make(), asked)
    engine = make()
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
    assert texts(engine, asked) == expected
    assert rows[:3] == [13, 6, 3]
    assert max(rows[2:]) == 3
    assert "3 texts at a time" in caplog.text


def test_sampled_text_survives_a_failure_unchanged(
    torch: Any, make: Any, asked: list[Request]
) -> None:
    sampled = [replace(one, decoding=Decoding(LENGTH, temperature=1.0)) for one in asked]
    expected = texts(make(), sampled)
    engine = make()
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
    torch: Any, make: Any, asked: list[Request]
) -> None:
    expected = texts(make(), asked)
    engine = make()
    assert engine._decoder is not None
    begin = engine._decoder.begin

    def failing(rows: Any, prefix: Any) -> Any:
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return begin(rows, prefix)

    engine._decoder.begin = failing
    assert texts(engine, asked) == expected


def test_what_fails_alone_is_an_error_and_nothing_else_is(
    make: Any, tokenizer: Any, asked: list[Request]
) -> None:
    expected = texts(make(), asked)
    engine = make()
    assert engine._decoder is not None
    begin = engine._decoder.begin
    poison = next(tokenizer(one.prompt.text).input_ids for one in asked if one.id == "own-1")

    def failing(rows: Any, prefix: Any) -> Any:
        if tuple(poison) in rows:
            raise IndexError("index out of range in self")
        return begin(rows, prefix)

    engine._decoder.begin = failing
    found = {response.id: response for response in engine.answer(asked)}
    failed = [name for name, response in found.items() if response.error]
    assert failed == ["own-1"]
    assert found["own-1"].error == "IndexError: index out of range in self"
    assert found["own-1"].text is None
    for name, response in found.items():
        if name != "own-1":
            assert response.text == expected[name, 0]


def test_a_prefix_that_cannot_be_read_is_done_without(
    torch: Any, make: Any, asked: list[Request], caplog: pytest.LogCaptureFixture
) -> None:
    expected = texts(make(), asked)
    engine = make(rows=4)
    assert engine._packed is not None
    read = engine._packed.read

    def failing(tokens: tuple[int, ...]) -> None:
        if tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")
        read(tokens)

    engine._packed.read = failing
    assert texts(engine, asked) == expected
    assert "going on without" in caplog.text


def test_a_model_full_of_nan_gives_errors(build: Any, make: Any, asked: list[Request]) -> None:
    model = build("Llama")
    model.model.norm.weight.data.fill_(float("nan"))
    responses = list(make(model).answer(asked))
    assert len(responses) == len(asked)
    assert all("NaN" in str(response.error) for response in responses)
    assert all(response.text is None for response in responses)


def test_little_memory_means_fewer_rows(
    make: Any, asked: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()
    assert engine._decoder is not None
    expected = texts(engine, asked)
    opened: list[tuple[int, int]] = []
    open_rows = engine._decoder.open
    engine._decoder.open = lambda rows, capacity: (
        opened.append((rows, capacity)),
        open_rows(rows, capacity),
    )[1]
    texts(engine, asked)
    ((rows, capacity),) = opened
    assert rows == len(asked)
    each = capacity * engine._decoder.bytes_per_token
    monkeypatch.setattr(text_module, "available", lambda device: 7 * each)
    assert texts(engine, asked) == expected
    assert opened[1] == (3, capacity)


def test_rows_that_cannot_be_had_are_halved(torch: Any, make: Any, asked: list[Request]) -> None:
    expected = texts(make(), asked)
    engine = make()
    assert engine._decoder is not None
    asked_for: list[int] = []
    open_rows = engine._decoder.open

    def failing(rows: int, capacity: int) -> None:
        asked_for.append(rows)
        if rows > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        open_rows(rows, capacity)

    engine._decoder.open = failing
    assert texts(engine, asked) == expected
    assert asked_for == [13, 6, 3]


def test_two_calls_may_be_answered_by_turns(make: Any, asked: list[Request]) -> None:
    """Tests of two chunks that are not run in order: neither call disturbs the other."""
    engine = make(rows=3)
    expected = texts(make(), asked)
    first, second = engine.answer(asked[:7]), engine.answer(asked[7:])
    found = {}
    for answers in (first, second, first, second, first, first, second):
        response = next(answers)
        found[response.id, 0] = response.text
    for response in (*first, *second):
        found[response.id, 0] = response.text
    assert found == expected
    # A call that is left unfinished gives its rows back.
    third = engine.answer(asked)
    next(third)
    third.close()
    assert engine._decoder is not None
    assert not engine._decoder.is_open


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(
    torch: Any, build: Any, make: Any, asked: list[Request], dtype: str
) -> None:
    """The masks of unequal rows are of the model's dtype, the logits are compared in float32."""
    engine = make(build("Llama").to(getattr(torch, dtype)))
    assert engine._decoder is not None
    assert all(text for text in texts(engine, asked).values())


@pytest.mark.parametrize("family", ["Gemma2", "Mamba"])
def test_texts_by_transformers_fail_one_by_one_too(
    build: Any,
    make: Any,
    asked: list[Request],
    monkeypatch: pytest.MonkeyPatch,
    family: str,
) -> None:
    settings = {"Gemma2": {"head_dim": 8, "sliding_window": 64}, "Mamba": {"state_size": 4}}
    engine = make(build(family, **settings[family]))
    expected = texts(engine, asked)
    finish = text_module.WholeTexts.finish

    def failing(self: Any, batch: Any) -> None:
        if any(one.opening.index == 6 for one in batch):
            raise RuntimeError("no")
        finish(self, batch)

    monkeypatch.setattr(text_module.WholeTexts, "finish", failing)
    found: list[Response] = list(engine.answer(asked))
    assert [response.id for response in found if response.error] == [asked[6].id]
    for response in found:
        if not response.error:
            assert response.text == expected[response.id, 0]


def test_texts_by_transformers_are_sampled_alike(
    build: Any, make: Any, asked: list[Request]
) -> None:
    """The same numbers are drawn whichever way a text is made."""
    sampled = [replace(one, decoding=Decoding(LENGTH, temperature=1.0)) for one in asked]
    model = build("Llama")
    expected = texts(make(model), sampled)
    engine = make(model)
    engine._decoder = None
    assert texts(engine, sampled) == expected


def test_settings_of_the_generation_config_do_not_enter(
    build: Any, make: Any, asked: list[Request]
) -> None:
    """The protocol says how text is made: a checkpoint's repetition penalty is not part of it."""
    model = build("Llama")
    engine = make(model)
    expected = texts(engine, asked)
    model.generation_config.repetition_penalty = 5.0
    before = model.generation_config
    engine._decoder = None
    assert texts(engine, asked) == expected
    assert model.generation_config is before
