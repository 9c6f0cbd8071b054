"""Batches, memory, errors and timings of the engine, on a tiny model."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest

from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf.loading import LoadedModel
from pytest_llmeval.models.hf.loglikelihood import ChoiceEngine
from pytest_llmeval.models.hf.model_limits import is_out_of_memory


@pytest.fixture
def engine(torch: Any, llama: Any, tokenizer: Any) -> ChoiceEngine:
    return ChoiceEngine(LoadedModel(llama, tokenizer, torch.device("cpu")))


def scores(engine: ChoiceEngine, requests: list[Request]) -> dict[str, tuple[float, ...]]:
    responses = list(engine.answer(requests))
    assert not [response.error for response in responses if response.error]
    return {response.id: response.logprobs for response in responses}


def same(a: dict[str, tuple[float, ...]], b: dict[str, tuple[float, ...]]) -> bool:
    return a.keys() == b.keys() and all(a[key] == pytest.approx(b[key], abs=1e-5) for key in a)


def test_every_request_is_answered_in_the_order_of_asking(
    engine: ChoiceEngine, requests: list[Request]
) -> None:
    responses = list(engine.answer(requests))
    assert [response.id for response in responses] == [request.id for request in requests]
    for request, response in zip(requests, responses, strict=True):
        assert len(response.logprobs) == len(request.choices)
        assert all(value < 0 for value in response.logprobs)
        assert response.prompt_tokens
        assert response.seconds
        assert response.error is None


@pytest.mark.parametrize("budget", [1, 50, 100_000])
def test_results_do_not_depend_on_batches_chunks_or_order(
    torch: Any, llama: Any, tokenizer: Any, requests: list[Request], budget: int
) -> None:
    loaded = LoadedModel(llama, tokenizer, torch.device("cpu"))
    expected = scores(ChoiceEngine(loaded), requests)
    engine = ChoiceEngine(loaded, budget)
    assert same(scores(engine, requests), expected)
    assert same(scores(engine, requests[::-1]), expected)
    chunked: dict[str, tuple[float, ...]] = {}
    for request in requests:
        chunked |= scores(engine, [request])
    assert same(chunked, expected)


def test_both_paths_give_the_same(engine: ChoiceEngine, requests: list[Request]) -> None:
    expected = scores(engine, requests)
    assert engine._packed is not None
    engine._packed = None
    assert same(scores(engine, requests), expected)


def test_choices_with_contexts_of_their_own_are_read_after_them(
    engine: ChoiceEngine, requests: list[Request]
) -> None:
    """Together, and among others, choices get the values that each gets alone."""
    prompt = Prompt("", (("Which is deep?", "The sea"),), "The sky is blue because the ")
    after = "is longest."
    given = ("air", "sea and the sky")
    own_context = Request("given", prompt, (after, after), given=given)
    alone = [Request(text, prompt.with_question_suffix(text), (after, "is not.")) for text in given]
    apart = scores(engine, alone)
    expected = tuple(apart[text][0] for text in given)
    assert abs(expected[0] - expected[1]) > 1e-3
    assert scores(engine, [*requests, own_context])["given"] == pytest.approx(expected, abs=1e-5)
    engine._packed = None
    assert scores(engine, [own_context])["given"] == pytest.approx(expected, abs=1e-5)


def test_a_window_between_decides_question_by_question(
    torch: Any, build: Any, tokenizer: Any, requests: list[Request]
) -> None:
    """Sliding window: short questions packed, long ones in full, as if all were in full."""
    model = build("Mistral", sliding_window=40)
    engine = ChoiceEngine(LoadedModel(model, tokenizer, torch.device("cpu")))
    assert engine._reach == 40
    short = Request("short", Prompt("", (), "Is this short?\nAnswer:"), ("A", "B"))
    mixed = scores(engine, [*requests, short])
    engine._packed = None
    assert same(scores(engine, [*requests, short]), mixed)


def test_first_responses_come_before_the_last_batch(
    torch: Any, llama: Any, tokenizer: Any, requests: list[Request]
) -> None:
    engine = ChoiceEngine(LoadedModel(llama, tokenizer, torch.device("cpu")), 60)
    calls = count_calls(engine)
    answers = engine.answer(requests)
    next(answers)
    assert len(calls) == 1
    assert len(list(answers)) == len(requests) - 1
    assert len(calls) > 2


def test_seconds_add_up_to_what_it_took(engine: ChoiceEngine, requests: list[Request]) -> None:
    """Loading and prefix are spread over the items that needed them."""
    responses = list(engine.answer(requests, setup_seconds=100.0))
    assert all(response.seconds and response.seconds > 10.0 for response in responses)
    assert sum(response.seconds or 0 for response in responses) == pytest.approx(100, abs=5)


def count_calls(engine: ChoiceEngine) -> list[int]:
    """Sizes of the batches that are scored from now on."""
    assert engine._packed is not None
    sizes: list[int] = []
    score = engine._packed.score

    def counting(questions: Any, prefix: Any = ()) -> Any:
        sizes.append(len(questions))
        return score(questions, prefix)

    engine._packed.score = counting  # type: ignore[method-assign]
    return sizes


# --- memory


def test_out_of_memory_halves_the_batch(
    torch: Any, engine: ChoiceEngine, requests: list[Request], caplog: pytest.LogCaptureFixture
) -> None:
    """Eight prompts, no more than three fit, the sixth never does: one error, seven scored."""
    batch = requests[:8]
    expected = scores(engine, batch)
    assert engine._packed is not None
    score, sizes = engine._packed.score, []

    def failing(questions: Any, prefix: Any = ()) -> Any:
        sizes.append(len(questions))
        if len(questions) > 3 or any(question.index == 5 for question in questions):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return score(questions, prefix)

    engine._packed.score = failing  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING):
        responses = list(engine.answer(batch))
    assert [response.id for response in responses] == [request.id for request in batch]
    assert [bool(response.error) for response in responses] == [n == 5 for n in range(8)]
    assert "out of memory" in str(responses[5].error)
    assert responses[5].logprobs == ()
    for response in responses:
        if not response.error:
            assert response.logprobs == pytest.approx(expected[response.id], abs=1e-5)
    assert sizes[:3] == [8, 4, 2]
    assert "halved" in caplog.text
    # The next call starts with whole batches again.
    sizes.clear()
    list(engine.answer(batch[:4]))
    assert sizes[0] == 4


def test_batches_stay_smaller_after_out_of_memory(
    torch: Any, llama: Any, tokenizer: Any, requests: list[Request], caplog: Any
) -> None:
    engine = ChoiceEngine(LoadedModel(llama, tokenizer, torch.device("cpu")), 100)
    sizes = count_calls(engine)
    assert engine._packed is not None
    score = engine._packed.score

    def failing_once(questions: Any, prefix: Any = ()) -> Any:
        if len(sizes) == 0:
            sizes.append(len(questions))
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to…")
        return score(questions, prefix)

    engine._packed.score = failing_once  # type: ignore[method-assign]
    assert len([r for r in engine.answer(requests) if not r.error]) == len(requests)
    assert max(sizes[1:]) < sizes[0]
    assert "tokens at a time" in caplog.text


def test_a_prefix_that_does_not_fit_is_done_without(
    torch: Any, engine: ChoiceEngine, requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = scores(engine, requests)
    assert engine._packed is not None
    engine._packed.forget()
    read = engine._packed.read

    def failing(tokens: tuple[int, ...]) -> None:
        if tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")
        read(tokens)

    monkeypatch.setattr(engine._packed, "read", failing)
    assert same(scores(engine, requests), expected)


def test_any_other_failure_is_confined_to_its_item(
    engine: ChoiceEngine, requests: list[Request]
) -> None:
    assert engine._packed is not None
    score = engine._packed.score

    def failing(questions: Any, prefix: Any = ()) -> Any:
        if any(question.index == 2 for question in questions):
            raise IndexError("index out of range in self")
        return score(questions, prefix)

    engine._packed.score = failing  # type: ignore[method-assign]
    responses = list(engine.answer(requests))
    assert [n for n, response in enumerate(responses) if response.error] == [2]
    assert responses[2].error == "IndexError: index out of range in self"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA out of memory."), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_errors_that_count_as_out_of_memory(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected


# --- values that are none


def test_choices_without_any_probability_are_an_error(
    engine: ChoiceEngine, requests: list[Request]
) -> None:
    """The argmax of four −inf is the first choice: every item with gold A would be right."""
    assert engine._packed is not None
    values = {
        0: [-math.inf] * 4,
        1: [-1.0, math.nan, -2.0, -3.0],
        2: [-math.inf, -1.0, -2.0, -3.0],
    }
    engine._packed.score = (  # type: ignore[method-assign]
        lambda questions, prefix=(): [values[question.index] for question in questions]
    )
    zero, nan, partly = engine.answer(requests[:3])
    assert "probability zero" in str(zero.error)
    assert zero.logprobs == ()
    assert "NaN" in str(nan.error)
    assert nan.logprobs == ()
    assert partly.error is None
    assert partly.logprobs[0] == -math.inf


def test_a_model_full_of_nan_gives_errors(
    torch: Any, build: Any, tokenizer: Any, requests: list[Request]
) -> None:
    model = build("Llama")
    model.model.norm.weight.data.fill_(math.nan)
    engine = ChoiceEngine(LoadedModel(model, tokenizer, torch.device("cpu")))
    responses = list(engine.answer(requests))
    assert len(responses) == len(requests)
    assert all("NaN" in str(response.error) for response in responses)


def test_too_long_prompts_lose_shots_and_report_it(
    torch: Any, build: Any, tokenizer: Any, requests: list[Request]
) -> None:
    model = build("Llama", max_position_embeddings=90)
    engine = ChoiceEngine(LoadedModel(model, tokenizer, torch.device("cpu")))
    long = Request("long", Prompt("", (), "word " * 200), ("A", "B"))
    responses = {response.id: response for response in engine.answer([*requests, long])}
    assert len(responses) == len(requests) + 1
    assert responses["q-0"].dropped_shots > 0
    assert responses["q-0"].error is None
    assert responses["q-0"].prompt_tokens is not None
    assert responses["q-0"].prompt_tokens <= 90
    assert "window is 90" in str(responses["long"].error)


# --- an item whose options are shown in several orders


def in_orders(count: int = 6) -> list[Request]:
    """Every item in three orders of its options, as requests that differ in ``arm``."""
    made = []
    for number in range(count):
        for arm, order in (
            ("", "femur tibia ulna"),
            ("cyclic@1", "tibia ulna femur"),
            ("cyclic@2", "ulna femur tibia"),
        ):
            options = "".join(
                f"{label}. {o}\n" for label, o in zip("ABC", order.split(), strict=True)
            )
            text = f"Which of these {number} bones is longest in a man?\n{options}Answer:"
            prompt = Prompt("The following are questions.\n\n", (), text)
            made.append(Request(f"item-{number}", prompt, ("A", "B", "C"), arm=arm))
    return made


def by_arm(engine: ChoiceEngine, requests: list[Request]) -> dict[tuple[str, str], Any]:
    responses = list(engine.answer(requests))
    assert not [response.error for response in responses if response.error]
    return {(response.id, response.arm or ""): response.logprobs for response in responses}


def test_orders_are_answered_together_as_they_are_one_by_one(engine: ChoiceEngine) -> None:
    requests = in_orders()
    apart: dict[tuple[str, str], Any] = {}
    for request in requests:
        apart |= by_arm(engine, [request])
    calls = count_calls(engine)
    together = by_arm(engine, requests)
    assert sum(calls) == 6
    assert together.keys() == apart.keys()
    for key, values in apart.items():
        assert together[key] == pytest.approx(values, abs=1e-5)


def test_orders_that_fail_together_are_tried_one_by_one(engine: ChoiceEngine) -> None:
    requests = in_orders(1)
    assert engine._packed is not None
    score = engine._packed.score

    def failing(questions: Any, prefix: Any = ()) -> Any:
        if any(question.parts or question.index == 1 for question in questions):
            raise RuntimeError("no")
        return score(questions, prefix)

    engine._packed.score = failing  # type: ignore[method-assign]
    responses = list(engine.answer(requests))
    assert [(response.arm, bool(response.error)) for response in responses] == [
        ("", False),
        ("cyclic@1", True),
        ("cyclic@2", False),
    ]
