"""Packed behind a prefix, in full, or one row at a time: the same numbers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.batching import build_tree

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf.forward import FullForward
from pytest_llmeval.models.hf.forward import PackedForward
from pytest_llmeval.models.hf.model_limits import context_window
from pytest_llmeval.models.hf.model_limits import packed_reach
from pytest_llmeval.models.hf.self_check import verify_packed_forward

WORDS = 300


def question(context: tuple[int, ...], *choices: tuple[int, ...], index: int = 0) -> Question:
    rows = tuple(context + choice for choice in choices)
    return Question(index, rows, (len(context),) * len(rows), build_tree(rows), len(context))


def words(rng: random.Random, count: int) -> tuple[int, ...]:
    return tuple(rng.randrange(WORDS) for _ in range(count))


@pytest.fixture(scope="module")
def prefix() -> tuple[int, ...]:
    return words(random.Random(1), 20)


@pytest.fixture(scope="module")
def questions(prefix: tuple[int, ...]) -> list[Question]:
    """One-token choices, longer ones, choices that share a beginning, and both mixed."""
    rng = random.Random(2)
    return [
        question(prefix + words(rng, 9), *(words(rng, 1) for _ in range(4)), index=0),
        question(prefix + words(rng, 5), words(rng, 3), words(rng, 1), words(rng, 6), index=1),
        question(prefix + words(rng, 30), words(rng, 1), words(rng, 2), index=2),
        question(prefix + words(rng, 1), (1, 2, 3), (1, 2, 4), (1, 5), (1, 2, 3), index=3),
    ]


def one_by_one(torch: Any, model: Any, questions: list[Question]) -> list[list[float]]:
    """The definition: each row through the model by itself, all logits, no batching."""
    scores = []
    for each in questions:
        values = []
        for row, start in zip(each.rows, each.starts, strict=True):
            with torch.inference_mode():
                logprobs = model(torch.tensor([row])).logits[0].log_softmax(-1)
            values.append(sum(logprobs[i - 1, row[i]].item() for i in range(start, len(row))))
        scores.append(values)
    return scores


def difference(a: list[list[float]], b: list[list[float]]) -> float:
    return max(
        abs(x - y)
        for left, right in zip(a, b, strict=True)
        for x, y in zip(left, right, strict=True)
    )


CPU_FAMILIES = ["Llama", "Qwen3", "Mixtral", "GPT2", "OPT", "Gemma3Text"]


@pytest.mark.parametrize("family", CPU_FAMILIES)
def test_packed_equals_full_equals_one_by_one(
    torch: Any, build: Any, questions: list[Question], prefix: tuple[int, ...], family: str
) -> None:
    model = build(family, head_dim=8) if family in ("Qwen3", "Gemma3Text") else build(family)
    expected = one_by_one(torch, model, questions)
    full = FullForward(model, torch.device("cpu"))
    assert difference(full.score(questions), expected) <= 1e-5
    packed = verify_packed_forward(model, torch.device("cpu"), full)
    assert packed is not None
    assert packed_reach(model) >= 60
    for shared in (prefix, prefix[:7], ()):
        assert difference(packed.score(questions, shared), expected) <= 1e-5


def test_gathered_attention_equals_merged(
    torch: Any, llama: Any, questions: list[Question], prefix: tuple[int, ...]
) -> None:
    """What GPUs compute, computed on the CPU: with masks, without, and without a prefix."""
    packed = PackedForward(llama, torch.device("cpu"))
    for batch in (questions, questions[:1], questions[:1] * 3):
        expected = one_by_one(torch, llama, batch)
        for shared in (prefix, ()):
            packed._merges = True
            assert difference(packed.score(batch, shared), expected) <= 1e-5
            packed.forget()
            packed._merges = False
            assert difference(packed.score(batch, shared), expected) <= 1e-5
            packed.forget()


def test_row_i_predicts_token_i_plus_one(torch: Any, llama: Any) -> None:
    """Context 0 1, choice 2 3: token 2 is read off row 1, token 3 off row 2, by every path."""
    single = question((0, 1), (2, 3))
    with torch.inference_mode():
        rows = llama(torch.tensor([[0, 1, 2, 3]])).logits[0].log_softmax(-1)
    right = (rows[1, 2] + rows[2, 3]).item()
    shifted = (rows[2, 2] + rows[3, 3]).item()
    assert abs(right - shifted) > 1e-3
    cpu = torch.device("cpu")
    for forward in (FullForward(llama, cpu), PackedForward(llama, cpu)):
        ((values,),) = list(forward.score([single]))
        assert values == pytest.approx(right, abs=1e-5)


def test_results_do_not_depend_on_the_batch(torch: Any, llama: Any) -> None:
    """Sequences 5 6 7 and 5 6 7 8 9 10, alone and together, by every path; 1e-4 is allowed."""
    batch = [question((5, 6), (7,), index=0), question((5, 6), (7, 8, 9, 10), index=1)]
    device = torch.device("cpu")
    for forward in (FullForward(llama, device), PackedForward(llama, device)):
        together = forward.score(batch)
        alone = [forward.score([each])[0] for each in batch]
        assert difference(together, alone) <= 1e-4
        assert difference(together, one_by_one(torch, llama, batch)) <= 1e-4


def test_the_live_prefix_is_extended_shortened_and_replaced(
    torch: Any, llama: Any, prefix: tuple[int, ...]
) -> None:
    rng = random.Random(3)
    packed = PackedForward(llama, torch.device("cpu"))
    other = prefix[:8] + words(rng, 12)
    for shared in (prefix[:5], prefix, prefix[:11], other, prefix, words(rng, 9), ()):
        batch = [question(shared + words(rng, 6), words(rng, 1), words(rng, 3))]
        expected = one_by_one(torch, llama, batch)
        assert difference(packed.score(batch, shared), expected) <= 1e-5


def test_a_live_prefix_is_not_read_again(
    torch: Any, llama: Any, prefix: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next chunk of a subject finds its shots computed."""
    packed = PackedForward(llama, torch.device("cpu"))
    batch = [question((*prefix, 9), (1,), (2,))]
    packed.score(batch, prefix)
    sizes = []
    monkeypatch.setattr(
        packed,
        "_forward",
        lambda segments, *rest, forward=packed._forward: (
            sizes.append(sum(len(s.tokens) for s in segments)),
            forward(segments, *rest),
        )[1],
    )
    packed.score(batch, prefix)
    assert sizes == [1]


def test_mamba_is_computed_in_full(torch: Any, build: Any, questions: list[Question]) -> None:
    """A state-space model has no keys and values to share; right padding must not reach it."""
    model = build("Mamba", state_size=4)
    assert packed_reach(model) == 0
    full = FullForward(model, torch.device("cpu"))
    assert difference(full.score(questions), one_by_one(torch, model, questions)) <= 1e-5


def test_a_sliding_window_bounds_what_is_packed(
    torch: Any, build: Any, questions: list[Question]
) -> None:
    """Behind a window of 16, packing 30 tokens would let them see too much."""
    model = build("Mistral", sliding_window=16)
    assert packed_reach(model) == 16
    expected = one_by_one(torch, model, questions)
    assert difference(FullForward(model, torch.device("cpu")).score(questions), expected) <= 1e-5
    packed = PackedForward(model, torch.device("cpu"))
    assert difference(packed.score(questions), expected) > 1e-2
    short = [question((3, 4, 5, 6), (7,), (8, 9))]
    assert difference(packed.score(short), one_by_one(torch, model, short)) <= 1e-5


def test_attention_with_a_softcap_is_computed_in_full(
    torch: Any, build: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = build("Gemma2", head_dim=8, sliding_window=64)
    assert packed_reach(model) == 64
    assert (
        verify_packed_forward(model, torch.device("cpu"), FullForward(model, torch.device("cpu")))
        is None
    )
    assert "computed in full" in caplog.text


def test_a_model_that_ignores_positions_is_found_out(
    torch: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe, not a list of names, decides who is packed."""
    model = build("Llama")
    original = model.model.rotary_emb.forward
    monkeypatch.setattr(
        model.model.rotary_emb,
        "forward",
        lambda x, position_ids: original(x, torch.arange(x.shape[1])[None]),
    )
    assert (
        verify_packed_forward(model, torch.device("cpu"), FullForward(model, torch.device("cpu")))
        is None
    )


def test_a_model_is_left_as_it_was(torch: Any, build: Any, questions: list[Question]) -> None:
    model = build("Llama")
    before = model.config._attn_implementation
    expected = one_by_one(torch, model, questions)
    packed = PackedForward(model, torch.device("cpu"))
    packed.score(questions)
    assert model.config._attn_implementation == before
    assert one_by_one(torch, model, questions) == expected


def test_half_precision_scores_in_float32(torch: Any, build: Any) -> None:
    """Log-softmax of bfloat16 logits, in bfloat16, would have a step of 1/16 at −10."""
    model = build("Llama").to(torch.bfloat16)
    batch = [question(tuple(range(20)), *((n,) for n in range(30, 60)))]
    for forward in (FullForward, PackedForward):
        (values,) = forward(model, torch.device("cpu")).score(batch)
        assert len({value * 16 % 1 for value in values}) > 2


def test_windows() -> None:
    class Config:
        max_position_embeddings = 2048

    class Tokenizer:
        model_max_length = 512

    class Unbounded:
        model_max_length = int(1e30)

    assert context_window(Config(), Tokenizer()) == 2048
    assert context_window(object(), Tokenizer()) == 512
    assert context_window(object(), Unbounded()) is None
