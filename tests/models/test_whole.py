"""Texts by transformers' own loop: padded where that changes nothing, one by one where it does."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_llmeval.core import Decoding

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf.batching import EncodedPrompt
from pytest_llmeval.models.hf.generate_fallback import GenerateFallback
from pytest_llmeval.models.hf.generation_state import Generation
from pytest_llmeval.models.stopping import StopWatcher


def text(prompt: tuple[int, ...], limit: int, ends: frozenset[int] = frozenset()) -> Generation:
    watch = StopWatcher(lambda ids: " ".join(map(str, ids)), ())
    return Generation(EncodedPrompt(0, prompt, limit), Decoding(), ends, watch, b"")


def greedy(torch: Any, model: Any, prompt: tuple[int, ...], count: int) -> list[int]:
    """The definition: the whole row through the model for every token."""
    row = list(prompt)
    for _ in range(count):
        with torch.inference_mode():
            row.append(int(model(torch.tensor([row])).logits[0, -1].argmax()))
    return row[len(prompt) :]


PROMPTS = [(5, 6, 7), tuple(range(40, 60)), (9,)]


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("Gemma2", {"head_dim": 8, "sliding_window": 16}),
        ("Mistral", {"sliding_window": 16}),
        ("Mamba", {"state_size": 4}),
        ("Llama", {}),
    ],
)
def test_a_batch_gives_what_each_text_gives_alone(
    torch: Any, build: Any, family: str, settings: dict[str, int]
) -> None:
    """Unequal prompts and limits, beyond the window that attention slides over."""
    model = build(family, **settings)
    whole = GenerateFallback(model, torch.device("cpu"))
    texts = [text(prompt, 12 + 3 * n) for n, prompt in enumerate(PROMPTS)]
    for batch in [texts] if whole.pads else [[single] for single in texts]:
        whole.finish(batch)
    for generation, prompt in zip(texts, PROMPTS, strict=True):
        assert generation.tokens == greedy(torch, model, prompt, generation.prompt.limit)
        assert generation.finish == "length"


def test_a_text_that_is_begun_is_continued(torch: Any, llama: Any) -> None:
    """What a failed batch leaves behind is not made again."""
    expected = greedy(torch, llama, PROMPTS[0], 12)
    begun, other = text(PROMPTS[0], 12), text(PROMPTS[1], 4)
    for token in expected[:5]:
        begun.add(token)
    GenerateFallback(llama, torch.device("cpu")).finish([other, begun])
    assert begun.tokens == expected
    assert len(other.tokens) == 4


def test_a_text_that_ended_is_left_alone(torch: Any, llama: Any) -> None:
    expected = greedy(torch, llama, PROMPTS[0], 12)
    place = next(n for n in range(1, 12) if expected[n] not in expected[:n])
    ended = text(PROMPTS[0], 12, frozenset({expected[place]}))
    other = text(PROMPTS[1], 12)
    GenerateFallback(llama, torch.device("cpu")).finish([ended, other])
    assert ended.tokens == expected[: place + 1]
    assert ended.finish == "stop"
    assert other.tokens == greedy(torch, llama, PROMPTS[1], 12)


def test_padding_that_is_seen_is_found_out(
    torch: Any, build: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A model that does not look at the mask takes padding for text."""
    model = build("Llama")
    assert GenerateFallback(model, torch.device("cpu")).pads
    forward = model.forward

    def careless(*args: Any, attention_mask: Any = None, **options: Any) -> Any:
        options.pop("position_ids", None)
        return forward(*args, attention_mask=torch.ones_like(attention_mask), **options)

    monkeypatch.setattr(model, "forward", careless)
    assert not GenerateFallback(model, torch.device("cpu")).pads
    assert "one by one" in caplog.text
