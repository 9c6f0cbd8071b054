"""Rows that grow behind shared prefixes: what every step predicts is what the model predicts."""

from __future__ import annotations

import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf import packed_attention
from pytest_llmeval.models.hf.decoder import Decoder
from pytest_llmeval.models.hf.decoder import RowCache
from pytest_llmeval.models.hf.forward import PackedForward
from pytest_llmeval.models.hf.self_check import find_paths
from pytest_llmeval.models.hf.self_check import verify_decoder

WORDS = 300


def words(rng: random.Random, count: int) -> tuple[int, ...]:
    return tuple(rng.randrange(WORDS) for _ in range(count))


def by_the_model(torch: Any, model: Any, row: tuple[int, ...]) -> Any:
    """Logits after a row: the model by itself, nothing shared, nothing kept."""
    with torch.inference_mode():
        return model(torch.tensor([row])).logits[0, -1]


class Rows:
    """A decoder and, beside it, the tokens that each of its rows should hold."""

    def __init__(self, torch: Any, model: Any, decoder: Decoder) -> None:
        self.torch, self.model, self.decoder = torch, model, decoder
        self.tokens: list[tuple[int, ...]] = []

    def check(self, logits: Any, first: int = 0) -> None:
        for row, predicted in zip(self.tokens[first:], logits, strict=True):
            expected = by_the_model(self.torch, self.model, row)
            assert (predicted - expected).abs().max() <= 1e-4

    def begin(self, rows: list[tuple[int, ...]], prefix: tuple[int, ...]) -> None:
        first = len(self.tokens)
        logits = self.decoder.begin(rows, prefix)
        self.tokens += rows
        self.check(logits, first)

    def step(self, rng: random.Random) -> None:
        tokens = words(rng, len(self.tokens))
        logits = self.decoder.step(tokens)
        self.tokens = [(*row, token) for row, token in zip(self.tokens, tokens, strict=True)]
        self.check(logits)

    def drop(self, row: int) -> None:
        self.decoder.drop(row)
        last = self.tokens.pop()
        if row < len(self.tokens):
            self.tokens[row] = last


FAMILIES = ["Llama", "Qwen3", "Mixtral", "GPT2", "OPT", "Gemma3Text"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kernel", ["fused", "written out"])
def test_every_row_predicts_as_if_alone(
    torch: Any, build: Any, monkeypatch: pytest.MonkeyPatch, family: str, kernel: str
) -> None:
    """Prefixes shared, changed and absent; rows of unequal length, added and taken out."""
    model = build(family, head_dim=8) if family in ("Qwen3", "Gemma3Text") else build(family)
    if kernel == "written out":
        # What other devices compute, on the CPU; prompts are then padded, too.
        monkeypatch.setattr(packed_attention, "_flash", None)
    device = torch.device("cpu")
    decoder = Decoder(PackedForward(model, device), device)
    rng = random.Random(5)
    prefix, other = words(rng, 30), words(rng, 11)
    decoder.open(8, 70)
    rows = Rows(torch, model, decoder)
    rows.begin([prefix + words(rng, 7), prefix + words(rng, 2), prefix + words(rng, 9)], prefix)
    for _ in range(3):
        rows.step(rng)
    rows.begin([other + words(rng, 20)], other)
    rows.begin([words(rng, 4)], ())
    for _ in range(2):
        rows.step(rng)
    rows.drop(1)
    rows.drop(3)
    rows.step(rng)
    rows.begin([prefix + words(rng, 1)] * 2, prefix)
    rows.step(rng)
    decoder.truncate(2)
    rows.tokens = rows.tokens[:2]
    rows.step(rng)


def test_rows_of_one_length_need_no_mask(torch: Any, llama: Any) -> None:
    device = torch.device("cpu")
    decoder = Decoder(PackedForward(llama, device), device)
    rng = random.Random(6)
    decoder.open(3, 20)
    rows = Rows(torch, llama, decoder)
    rows.begin([words(rng, 5), words(rng, 5), words(rng, 5)], ())
    rows.step(rng)
    rows.step(rng)


def test_equal_prompts_are_read_once_also_over_calls(torch: Any, llama: Any) -> None:
    """The samples of an item: their prompt is read for the first of them."""
    device = torch.device("cpu")
    packed = PackedForward(llama, device)
    read: list[int] = []
    begin = packed.begin
    packed.begin = (  # type: ignore[method-assign]
        lambda rows, prefix: (read.append(len(rows)), begin(rows, prefix))[1]
    )
    decoder = Decoder(packed, device)
    read.clear()
    rng = random.Random(7)
    prefix = words(rng, 10)
    first, second = prefix + words(rng, 5), prefix + words(rng, 6)
    decoder.open(8, 30)
    rows = Rows(torch, llama, decoder)
    rows.begin([first, first, second, second], prefix)
    rows.step(rng)
    rows.begin([second, second], prefix)
    assert read == [2]
    rows.step(rng)
    rows.begin([first], prefix)
    assert read == [2, 1]


def test_a_step_attends_to_a_prefix_once_for_all_rows(
    torch: Any, llama: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One product a layer over the queries of all rows, not one a row."""
    device = torch.device("cpu")
    decoder = Decoder(PackedForward(llama, device), device)
    rng = random.Random(8)
    prefix = words(rng, 40)
    decoder.open(6, 30)
    decoder.begin([prefix + words(rng, 3 + n) for n in range(4)], prefix)
    decoder.begin([prefix + words(rng, 7 + n) for n in range(2)], prefix)
    seen: list[tuple[int, ...]] = []
    compute = packed_attention.with_log_sum_exp

    def counting(query: Any, key: Any, *rest: Any) -> Any:
        seen.append((*query.shape[:3], key.shape[2]))
        return compute(query, key, *rest)

    monkeypatch.setattr("pytest_llmeval.models.hf.decoder.with_log_sum_exp", counting)
    decoder.step([1] * 6)
    layers = llama.config.num_hidden_layers
    # Two key heads, each shared by two query heads.
    assert seen == [(6, 2, 2, 9), (1, 2, 12, 40)] * layers


def test_uninitialised_memory_does_not_enter(torch: Any, llama: Any) -> None:
    """NaN behind the end of a row, times a weight of zero, would be NaN."""
    device = torch.device("cpu")
    decoder = Decoder(PackedForward(llama, device), device)
    rng = random.Random(9)
    decoder.open(4, 200)
    with torch.inference_mode():
        for layer in decoder._cache.layers:
            for x in layer:
                x.fill_(torch.nan)
    rows = Rows(torch, llama, decoder)
    rows.begin([words(rng, 3)], ())
    rows.begin([words(rng, 130)], ())
    rows.step(rng)


def test_cleared_columns_keep_what_was_written(torch: Any) -> None:
    like = [(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4))]
    cache = RowCache(like, 3, 300)
    kept = [(torch.ones(1, 2, 70, 4), torch.full((1, 2, 70, 4), 2.0))]
    cache.append(kept, 0, 60)
    cache.append(kept, 5, 70)
    cache.clear_to(200)
    keys, values = cache.layers[0]
    assert cache.lengths == [60, 65]
    assert keys[0, :, :60].eq(1).all()
    assert values[1, :, :65].eq(2).all()
    assert keys[0, :, 60:200].eq(0).all()
    assert keys[2, :, :200].eq(0).all()
    cache.drop(0)
    assert cache.lengths == [65]
    assert values[0, :, :65].eq(2).all()


def test_memory_of_a_token(torch: Any, llama: Any) -> None:
    device = torch.device("cpu")
    decoder = Decoder(PackedForward(llama, device), device)
    # 2 layers, keys and values, 2 heads of 8 floats.
    assert decoder.bytes_per_token == 2 * 2 * 2 * 8 * 4


def test_a_model_earns_its_decoder(torch: Any, build: Any, caplog: Any) -> None:
    device = torch.device("cpu")
    for family in FAMILIES:
        model = build(family, head_dim=8) if family in ("Qwen3", "Gemma3Text") else build(family)
        paths = find_paths(model, device)
        assert verify_decoder(model, device, paths) is not None
        assert paths.packed is not None
        assert paths.packed.live_length((1, 2)) == 0
    for family, settings in (("Gemma2", {"head_dim": 8}), ("Mamba", {"state_size": 4})):
        model = build(family, **settings)
        assert verify_decoder(model, device, find_paths(model, device)) is None


def test_a_decoder_that_predicts_something_else_is_found_out(
    torch: Any, llama: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    device = torch.device("cpu")
    paths = find_paths(llama, device)
    step = PackedForward.step
    monkeypatch.setattr(
        PackedForward,
        "step",
        lambda self, tokens, positions, plan: step(self, tokens, [p + 1 for p in positions], plan),
    )
    assert verify_decoder(llama, device, paths) is None
    assert "generated by transformers" in caplog.text


def test_a_decoder_that_fails_is_not_used(
    torch: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor with weights of NaN, which agree with nothing and contradict nothing."""
    device = torch.device("cpu")
    monkeypatch.setattr(PackedForward, "step", lambda *_: 1 / 0)
    for spoil in (False, True):
        model = build("Llama")
        if spoil:
            model.model.norm.weight.data.fill_(float("nan"))
        assert verify_decoder(model, device, find_paths(model, device)) is None
