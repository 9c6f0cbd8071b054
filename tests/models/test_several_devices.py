"""Layers of one model on several devices: choice of GPUs, distribution, and equal results.

Only the CPU is needed: layers are read from the disk at every step, or tensors are on ``meta``.
"""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Request

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")
pytest.importorskip("accelerate", reason="the extra hf is not installed")

from accelerate import dispatch_model

from pytest_llmeval.models.hf import loading
from pytest_llmeval.models.hf import packed_attention
from pytest_llmeval.models.hf.decoder import AttachedPrefix
from pytest_llmeval.models.hf.decoder import StepAttention
from pytest_llmeval.models.hf.loading import LoadedModel
from pytest_llmeval.models.hf.loglikelihood import ChoiceEngine
from pytest_llmeval.models.hf.packed_attention import PackedLayout
from pytest_llmeval.models.hf.spec import parse_spec
from support.text_generation import texts


@pytest.fixture
def scattered(llama: Any, tmp_path: Path) -> Any:
    """The model with its second layer and its head on the disk, from which they are read."""
    places = {
        "model.embed_tokens": "cpu",
        "model.rotary_emb": "cpu",
        "model.layers.0": "cpu",
        "model.layers.1": "disk",
        "model.norm": "cpu",
        "lm_head": "disk",
    }
    return dispatch_model(copy.deepcopy(llama), places, main_device="cpu", offload_dir=tmp_path)


@pytest.mark.parametrize("pads", [False, True])
def test_choices_are_those_of_one_device(
    torch: Any,
    llama: Any,
    scattered: Any,
    tokenizer: Any,
    requests: list[Request],
    monkeypatch: pytest.MonkeyPatch,
    pads: bool,
) -> None:
    if pads:  # the code for GPUs
        monkeypatch.setattr(packed_attention, "_flash", None)

    def logprobs(model: Any) -> list[float]:
        engine = ChoiceEngine(LoadedModel(model, tokenizer, torch.device("cpu")))
        assert engine._packed is not None
        return [value for response in engine.answer(requests) for value in response.logprobs]

    assert logprobs(scattered) == pytest.approx(logprobs(llama), abs=1e-5)


def test_texts_are_those_of_one_device(
    make_text_engine: Any, scattered: Any, text_requests: list[Request]
) -> None:
    engine = make_text_engine(scattered)
    assert engine._decoder is not None
    assert texts(engine, text_requests) == texts(make_text_engine(), text_requests)


def heads(torch: Any, device: str, count: int, tokens: int) -> Any:
    return torch.zeros(1, count, tokens, 8, device=device)


def test_a_step_runs_where_its_layer_is(torch: Any) -> None:
    """Everything that a step shares between layers is on the CPU, and the layer is not."""
    rows, columns = 3, 5
    cache = (torch.zeros(rows, 2, columns, 8, device="meta"),) * 2
    prefix = (heads(torch, "meta", 2, 4),) * 2
    plan = StepAttention(
        [cache],
        places=torch.tensor([1, 2, 4]),
        longest=columns,
        mask=torch.zeros(rows, 1, 1, columns),
        shared=(AttachedPrefix([prefix], torch.tensor([0, 2])),),
    )
    query, key = heads(torch, "meta", 4, rows), heads(torch, "meta", 2, rows)
    out = plan.attend(0, query, key, key, 1.0)
    assert (out.device.type, out.shape) == ("meta", (1, rows, 4, 8))


def test_a_padded_batch_is_copied_once_per_device(torch: Any) -> None:
    spans, masks = ((0, 2), (2, 5)), (None, torch.zeros(1, 1, 3, 3))
    batch = packed_attention.pad_batch(spans, masks, 4, torch.device("cpu"))
    layout = PackedLayout(
        spans, masks, prefix=[(heads(torch, "meta", 2, 4),) * 2], padded_batch=batch
    )
    query, key = heads(torch, "meta", 4, 5), heads(torch, "meta", 2, 5)
    out = layout.attend(0, query, key, key, 1.0)
    assert (out.device.type, out.shape) == ("meta", (1, 5, 4, 8))
    assert batch.on(torch.device("cpu")) is batch
    assert batch.on(torch.device("meta")) is batch.on(torch.device("meta"))


@pytest.mark.parametrize(
    ("worker", "expected"), [("gw0", ["cuda:0", "cuda:1"]), ("gw1", ["cuda:2", "cuda:3"])]
)
def test_a_worker_takes_its_group_of_gpus(
    torch: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, worker: str, expected: list[str]
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [*map(str, loading.choose_devices(parse_spec(f"{folder}?devices=2")))] == expected


def test_too_few_gpus_are_one_line(
    torch: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "1")
    with pytest.raises(ModelError, match=r"devices=8: 8 GPUs are needed; this machine has 4$"):
        loading.load(parse_spec(f"{folder}?devices=8"))
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    with pytest.raises(ModelError, match="2 GPUs for each of 3 workers are needed; this machine h"):
        loading.load(parse_spec(f"{folder}?devices=2"))


@pytest.mark.parametrize("places", [{"": "cpu"}, {"model": "cpu", "lm_head": "cpu"}])
def test_weights_are_loaded_onto_their_devices(
    torch: Any, folder: Path, llama: Any, places: dict[str, str]
) -> None:
    options = {"dtype": torch.float32, "device_map": places}
    model, _ = loading._load(parse_spec(str(folder)), options)
    tokens = torch.tensor([[0, 5, 7, 9]])
    assert torch.equal(model(tokens).logits, llama(tokens).logits)


def test_weights_beside_the_gpus_are_one_line(folder: Path) -> None:
    spec = parse_spec(f"{folder}?devices=2")
    loading._check_distribution(spec, SimpleNamespace())  # on one device, transformers keeps no map
    loading._check_distribution(spec, SimpleNamespace(hf_device_map={"layers.0": 0, "head": 1}))
    partly = SimpleNamespace(hf_device_map={"layers.0": 0, "head": "disk"})
    with pytest.raises(ModelError, match="the weights do not fit on 2 GPUs: use more devices or"):
        loading._check_distribution(spec, partly)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("devices=0", "devices '0'; use a whole number above 0"),
        ("devices=two", "devices 'two'; use a whole number above 0"),
        ("devices=2&device=cpu", "devices=2 is for GPUs: leave out device=cpu"),
        ("devices=2&device=cuda:1", "devices=2 is for GPUs: leave out device=cuda:1"),
    ],
)
def test_a_mistake_in_the_specification_is_one_line(folder: Path, query: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_spec(f"{folder}?{query}")
