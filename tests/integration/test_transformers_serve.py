"""A dozen items end to end against a server that is not ours. Run by ``tox -e integration``.

``transformers serve`` with the demo model, over HTTP: every record holds what transformers itself
generates for the same chat.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import starter
from pytest_llmeval.core import LETTER_DECODING
from pytest_llmeval.models.engine.stopping import end_of

TEST = """
import pytest
from pytest_llmeval.catalog import starter

@pytest.mark.llmeval(starter(), protocol="letter")
def test_starter(answer):
    assert answer.correct
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model as the server takes it."""
    pytest.importorskip("fastapi", reason="transformers[serving] is not installed")
    pytest.importorskip("uvicorn", reason="transformers[serving] is not installed")
    from pytest_llmeval.models import demo
    from pytest_llmeval.models.engine.loading import load
    from pytest_llmeval.models.engine.spec import parse_spec

    path = demo.weights()
    if path is None:
        pytest.skip(f"no demo model; {demo.INSTALL}")
    loaded = load(parse_spec(f"{path}?device=cpu&dtype=float32"))
    loaded.model.hf_quantizer = None
    if hasattr(loaded.model.config, "quantization_config"):
        del loaded.model.config.quantization_config
    weights: Path = tmp_path_factory.mktemp("weights") / "demo"
    loaded.model.save_pretrained(weights)
    loaded.tokenizer.save_pretrained(weights)
    return weights


@pytest.fixture(scope="session")
def url(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    with log.open("w") as output:
        # Several requests at a time, each with as many threads as there are cores, only wait.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
    try:
        until = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def test_a_dozen_items(pytester: pytest.Pytester, folder: Path, url: str) -> None:
    pytester.makepyfile(test_starter=TEST)
    from transformers import AutoModelForCausalLM
    from transformers import AutoTokenizer

    spec = f"openai:{folder}?base_url={url}&name=served"
    result = pytester.runpytest_subprocess(
        "--llm-model", spec, "--llm-limit", "1", "--llm-shots", "0"
    )
    assert result.ret == 0
    (records,) = pytester.path.glob("runs/*/records.jsonl")
    rows = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    assert len({row["item"] for row in rows}) == len(rows) == 12
    benchmark = starter()
    dataset = benchmark.source(None)
    items = {item.id: item for item in dataset.items}
    protocol = replace(benchmark.protocols[0].with_generation(), shots=0)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for row in rows:
        item = items[row["item"]]
        prompt = protocol.render(item, ())
        assert row["scorer"] == "choice"
        assert (row["text"], row["prompt_tokens"]) == generated(model, tokenizer, prompt.text)


def generated(model: Any, tokenizer: Any, text: str) -> tuple[str, int]:
    """The greedy answer to a user's message, and the number of tokens asked."""
    tokens = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    asked = tokens["input_ids"].shape[1]
    whole = model.generate(**tokens, max_new_tokens=LETTER_DECODING.max_tokens, do_sample=False)
    said = tokenizer.decode(whole[0, asked:], skip_special_tokens=True)
    return said[: end_of(said, LETTER_DECODING.stop)], asked
