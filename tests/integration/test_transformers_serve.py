"""A dozen items end to end against a server that is not ours. Run by ``tox -e integration``.

``transformers serve`` with the demo model, over HTTP: every record holds what transformers itself
generates for the same chat.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import starter
from pytest_llmeval.core import LETTER_DECODING
from pytest_llmeval.models.stopping import stop_position
from support.served import demo_folder
from support.served import running

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
    return demo_folder(tmp_path_factory.mktemp("weights") / "demo")


@pytest.fixture(scope="session")
def url(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server."""
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder)]
    command += ["--device", "cpu", "--dtype", "float32"]
    with running(command, tmp_path_factory.mktemp("server") / "log") as address:
        yield address


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


def test_a_server_that_takes_no_echo_ends_the_run(
    pytester: pytest.Pytester, folder: Path, url: str
) -> None:
    pytester.makepyfile(test_starter=TEST)
    spec = f"openai:{folder}?base_url={url}&name=served&choices=echo"
    result = pytester.runpytest_subprocess("--llm-model", spec, "--llm-shots", "0")
    assert result.ret == 1
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*choices=echo cannot be used: *prompt must be a string*"])


def generated(model: Any, tokenizer: Any, text: str) -> tuple[str, int]:
    """The greedy answer to a user's message, and the number of tokens of the prompt."""
    tokens = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    length = tokens["input_ids"].shape[1]
    whole = model.generate(**tokens, max_new_tokens=LETTER_DECODING.max_tokens, do_sample=False)
    answer = tokenizer.decode(whole[0, length:], skip_special_tokens=True)
    return answer[: stop_position(answer, LETTER_DECODING.stop)], length
