"""``replay:``: recorded answers, given to the prompt that they were recorded for."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.base import Model
from pytest_llmeval.models.replay import open_model


def write(path: Path, *rows: dict[str, Any], end: bytes = b"") -> Path:
    content = b"".join(json.dumps(row).encode() + b"\n" for row in rows) + end
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def request(name: str, text: str = "q", choices: tuple[str, ...] = ()) -> Request:
    return Request(name, Prompt("", (), text), choices)


def ask(path: Path, *requests: Request) -> list[Response]:
    return list(open_model(str(path)).answer(requests))


@pytest.mark.parametrize(
    "row",
    [
        {"item": "tea-0001", "text": "B"},
        {"id": "tea-0001", "response": "B"},
        {"subject": "tea", "row": 1, "prediction": "B"},
        {"item": "tea-0001", "text": "B", "prompt_sha256": None},
    ],
)
@pytest.mark.parametrize("name", ["f.jsonl", "f.jsonl.gz"])
def test_spellings_of_a_recorded_text(tmp_path: Path, row: dict[str, Any], name: str) -> None:
    path = write(tmp_path / name, row)
    assert ask(path, request("tea-0001")) == [Response("tea-0001", text="B", sample=0)]


def test_numbers_are_recorded_texts_too(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"id": "HumanEval/0", "prediction": 18})
    assert ask(path, request("HumanEval_0"))[0].text == "18"


def test_log_probabilities(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"item": "i", "text": None, "logprobs": [-1, -2.5]})
    assert open_model(str(path)).asks == {"choices"}
    assert ask(path, request("i", choices=("A", "B")))[0].logprobs == (-1.0, -2.5)
    assert ask(path, request("i"))[0].error is not None


def test_asks_is_what_the_file_holds(tmp_path: Path) -> None:
    text, both = {"item": "i", "text": "B"}, {"item": "j", "logprobs": [-1.0, -2.0]}
    assert open_model(str(write(tmp_path / "a.jsonl", text))).asks == {"text"}
    assert open_model(str(write(tmp_path / "b.jsonl", text, both))).asks == {"text", "choices"}
    assert isinstance(open_model(str(tmp_path / "a.jsonl")), Model)


def test_an_item_that_was_not_recorded_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"item": "i", "text": "B"})
    missing, found = ask(path, request("j"), request("i"))
    assert missing.error == "no recorded answer for j"
    assert (found.id, found.text) == ("i", "B")


def test_an_answer_to_another_prompt_is_refused(tmp_path: Path) -> None:
    asked = request("i", "the prompt")
    row = {"item": "i", "text": "B", "prompt_sha256": asked.prompt.sha256}
    path = write(tmp_path / "f.jsonl", row)
    right, wrong = ask(path, asked, request("i", "another prompt"))
    assert right.text == "B"
    assert wrong.text is None
    assert wrong.error is not None
    assert wrong.error.startswith("recorded for another prompt: ")


def test_one_answer_is_kept_for_every_prompt_and_the_last_line_counts(tmp_path: Path) -> None:
    first, second = request("i", "first"), request("i", "second")
    rows = [
        {"item": "i", "text": "A", "prompt_sha256": first.prompt.sha256},
        {"item": "i", "text": "B", "prompt_sha256": second.prompt.sha256},
        {"item": "i", "text": "C", "prompt_sha256": first.prompt.sha256},
        {"item": "i", "text": "D"},
    ]
    path = write(tmp_path / "f.jsonl", *rows)
    answers = ask(path, first, second, request("i", "third"))
    assert [answer.text for answer in answers] == ["C", "B", "D"]


def test_records_of_a_run_can_be_replayed(tmp_path: Path) -> None:
    asked = request("i", choices=("A", "B"))
    common = {"benchmark": "mine", "prompt_sha256": asked.prompt.sha256, "text": None}
    rows = [
        {"item": "i", **common, "logprobs": [], "error": "out of memory"},
        {"item": "i", **common, "logprobs": [-0.5, -1.5], "error": None},
        {"item": "j", **common, "logprobs": [], "error": "out of memory"},
    ]
    path = write(tmp_path / "records.jsonl", *rows, end=b'{"item": "i", "logpr')
    good, bad = ask(path, asked, request("j", choices=("A", "B")))
    assert good.logprobs == (-0.5, -1.5)
    assert bad.error == "out of memory"


def test_finish_reason_travels_along(tmp_path: Path) -> None:
    row = {"item": "i", "text": "B", "finish_reason": "length", "completion_tokens": 16}
    response = ask(write(tmp_path / "f.jsonl", row), request("i"))[0]
    assert (response.finish_reason, response.completion_tokens) == ("length", 16)


def test_a_null_log_probability_is_not_a_number(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"item": "i", "logprobs": [None, -1.0]})
    first, second = ask(path, request("i", choices=("A", "B")))[0].logprobs
    assert first != first
    assert second == -1.0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{broken\n", "not valid JSON"),
        (b'{"text": "B"}\n', "names no item"),
        (b'{"item": "i", "prompt_sha256": "xyz"}\n', "prompt_sha256 is not a hash"),
    ],
)
def test_a_bad_line_names_file_and_line(tmp_path: Path, line: bytes, message: str) -> None:
    good = {"item": "i", "text": "B", "logprobs": [-1.0]}
    path = write(tmp_path / "f.jsonl", good, end=line + b'{"item": "j", "text": "B"}\n')
    with pytest.raises(DataError, match=rf"f\.jsonl, line 2: {message}"):
        ask(path, request("i"))


def test_a_spec_that_is_no_recording_is_one_line(tmp_path: Path) -> None:
    write(tmp_path / "answers.jsonl", {"item": "i", "text": "B"})
    with pytest.raises(ConfigError, match=r"no such file; did you mean 'answers\.jsonl'\?"):
        open_model(str(tmp_path / "answer.jsonl"))
    with pytest.raises(ConfigError, match="a folder"):
        open_model(str(tmp_path))
    with pytest.raises(ConfigError, match="names no file"):
        open_model("")
    with pytest.raises(ConfigError, match="no recorded answers"):
        open_model(str(write(tmp_path / "empty.jsonl")))
    (tmp_path / "no.jsonl.gz").write_bytes(b"not gzip")
    with pytest.raises(ConfigError, match="cannot be read"):
        open_model(str(tmp_path / "no.jsonl.gz"))


def test_name_and_fingerprint(tmp_path: Path) -> None:
    one = open_model(str(write(tmp_path / "my model.v2.jsonl.gz", {"item": "i", "text": "B"})))
    two = open_model(str(write(tmp_path / "two.jsonl", {"item": "i", "text": "C"})))
    assert one.name == "my_model.v2"
    assert len(one.fingerprint) == 16
    assert one.fingerprint != two.fingerprint


@pytest.mark.parametrize("name", ["f.jsonl", "f.jsonl.gz"])
def test_memory_does_not_grow_with_the_answers(tmp_path: Path, name: str) -> None:
    rows = (
        {
            "item": f"high_school_mathematics-{n:06d}",
            "text": "x" * 2000,
            "prompt_sha256": f"{n:064x}",
        }
        for n in range(5000)
    )
    model = open_model(str(write(tmp_path / name, *rows)))
    tracemalloc.start()
    try:
        (response,) = model.answer([request("nothing")])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert response.error is not None
    # 10 MB of answers; 100,000 of any length stay far below 100 MB.
    assert peak < 5_000_000
