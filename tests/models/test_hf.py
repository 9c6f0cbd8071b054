"""The backend as the plugin uses it: opening, requests, devices."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models import Model
from pytest_llmeval.models import demo
from pytest_llmeval.models import load_model
from pytest_llmeval.models.hf.spec import parse_spec

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")

from pytest_llmeval.models.hf import loading


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)


def test_a_folder_answers(folder: Path, requests: list[Request]) -> None:
    model = load_model(f"hf:{folder}?device=cpu")
    assert isinstance(model, Model)
    assert model.name == "tiny"
    assert model.asks == {"choices", "text"}
    assert model.fingerprint is not None
    assert list(model.answer([])) == []
    responses = list(model.answer(iter(requests)))
    assert {response.id for response in responses} == {request.id for request in requests}
    assert not any(response.error for response in responses)
    again = {response.id: response.logprobs for response in model.answer(requests)}
    for response in responses:
        assert again[response.id] == pytest.approx(response.logprobs, abs=1e-5)


def test_a_folder_answers_both_kinds_at_once(folder: Path, requests: list[Request]) -> None:
    """What loading took is spread over all of them."""
    model = load_model(f"hf:{folder}?device=cpu")
    decoding = Decoding(max_tokens=3)
    mixed = [
        replace(request, choices=(), decoding=decoding) if number % 2 else request
        for number, request in enumerate(requests)
    ]
    responses = {response.id: response for response in model.answer(mixed)}
    assert responses.keys() == {request.id for request in requests}
    for request in mixed:
        response = responses[request.id]
        assert response.error is None
        assert len(response.logprobs) == len(request.choices)
        assert (response.text is None) == (request.ask == "choices")
    loading_share = min(response.seconds or 0.0 for response in responses.values())
    again = sum(response.seconds or 0.0 for response in model.answer(mixed))
    assert loading_share > 0.0
    assert again < sum(response.seconds or 0.0 for response in responses.values())


def test_bfloat16_can_be_requested(torch: Any, folder: Path) -> None:
    loaded = loading.load(parse_spec(f"{folder}?device=cpu&dtype=bf16"))
    assert loaded.model.dtype == torch.bfloat16
    assert loading.load(parse_spec(f"{folder}?device=cpu")).model.dtype == torch.float32


def test_weights_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = load_model(f"hf:{tmp_path}?device=cpu")
    request = Request("q", Prompt("", (), "?"), ("A", "B"))
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        list(model.answer([request]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after"), [(None, "false"), ("true", "true"), ("false", "false")]
)
def test_tokenizers_parallelism_is_set_only_when_unset(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, after: str
) -> None:
    """Off guards against a deadlock after fork; the user's choice is kept."""
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "x")  # so that it is restored
    if before is None:
        monkeypatch.delenv("TOKENIZERS_PARALLELISM")
    else:
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", before)
    loading.load(parse_spec(f"{folder}?device=cpu"))
    assert os.environ["TOKENIZERS_PARALLELISM"] == after


@pytest.mark.parametrize(
    ("worker", "devices", "query", "expected"),
    [
        ("gw0", 2, "", "cuda:0"),
        ("gw3", 2, "", "cuda:1"),
        ("gw3", 2, "?device=cuda", "cuda:1"),
        ("gw3", 2, "?device=cuda:0", "cuda:0"),
        ("gw3", 2, "?device=cpu", "cpu"),
        ("gw3", 0, "", "cpu"),
    ],
)
def test_workers_share_the_devices(
    torch: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    worker: str,
    devices: int,
    query: str,
    expected: str,
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: devices > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    assert [*map(str, loading.choose_devices(parse_spec(f"{folder}{query}")))] == [expected]


@pytest.mark.parametrize(("cpus", "workers", "threads"), [(8, 3, 2), (2, 4, 1), (16, 2, 8)])
def test_workers_share_the_cpus(
    torch: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    cpus: int,
    workers: int,
    threads: int,
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", str(workers))
    monkeypatch.setattr(loading, "_available_cpus", lambda: cpus)
    seen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    loading.choose_devices(parse_spec(f"{folder}?device=cpu"))
    assert seen == [threads]


def test_a_device_that_is_not_there_is_one_line(
    torch: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match="no device cuda:7; this machine has 0 CUDA devices"):
        loading.choose_devices(parse_spec(f"{folder}?device=cuda:7"))


@pytest.mark.skipif(demo.weights() is None, reason=f"no demo model; {demo.INSTALL}")
def test_the_demo_model_knows_a_few_things() -> None:
    pytest.importorskip("gguf", reason="the extra hf is not installed")
    model = load_model("demo")
    assert model.name == "demo"
    assert model.fingerprint == load_model("demo").fingerprint
    facts = {
        "The capital of France is": ("Paris", "Tokyo"),
        "The sun rises in the": ("east", "kitchen"),
        "Two plus two equals": ("four", "Monday"),
        "Fish live in the": ("water", "sky above the clouds"),
    }
    requests = [
        Request(f"fact-{n}", Prompt("", (), fact), choices)
        for n, (fact, choices) in enumerate(facts.items())
    ]
    responses = list(model.answer(requests))
    assert [response.error for response in responses] == [None] * 4
    assert all(response.logprobs[0] > response.logprobs[1] for response in responses)


@pytest.mark.skipif(demo.weights() is None, reason=f"no demo model; {demo.INSTALL}")
def test_the_demo_model_talks() -> None:
    pytest.importorskip("gguf", reason="the extra hf is not installed")
    model = load_model("demo")
    decoding = Decoding(max_tokens=12, stop=("\n",))
    plain = Request("plain", Prompt("", (), "The capital of France is"), decoding=decoding)
    prompt = Prompt("You answer in one word.", (), "What is the capital of France?", "")
    chat = Request("chat", prompt, chat=True, decoding=Decoding(max_tokens=30))
    by_id = {response.id: response for response in model.answer([plain, chat])}
    assert all("Paris" in str(response.text) for response in by_id.values())
    assert by_id["chat"].finish_reason == "stop"
