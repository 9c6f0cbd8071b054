"""``replay:``: recorded answers, given to the prompt that they were recorded for."""

from __future__ import annotations

import gzip
import json
import re
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import gsm8k
from pytest_llmeval.catalog import mmlu_pro
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.models.base import Model
from pytest_llmeval.models.replay import open_model
from pytest_llmeval.sources import safe_id


def write(path: Path, *rows: dict[str, Any], end: bytes = b"") -> Path:
    content = b"".join(json.dumps(row).encode() + b"\n" for row in rows) + end
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_packed(path: Path, *rows: dict[str, Any]) -> Path:
    """The rows by the file's name: lines or one list, gzipped or in a zip file."""
    whole = json.dumps(rows, indent=1).encode()
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("__MACOSX/._answers.json", "x")
            archive.writestr("folder/", "")
            archive.writestr("folder/answers.json", whole)
        return path
    data = lines if ".jsonl" in path.suffixes else whole
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
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
    assert ask(path, request("tea-0001")) == [Response("tea-0001", text="B", sample=0, arm="")]


def test_numbers_are_recorded_texts_too(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"id": "HumanEval/0", "prediction": 18})
    assert ask(path, request("HumanEval_0"))[0].text == "18"


def test_log_probabilities(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"item": "i", "text": None, "logprobs": [-1, -2.5]})
    assert open_model(str(path)).asks == {"choices"}
    assert ask(path, request("i", choices=("A", "B")))[0].logprobs == (-1.0, -2.5)
    assert ask(path, request("i"))[0].error is not None


def test_asks_is_derived_from_the_file(tmp_path: Path) -> None:
    text, both = {"item": "i", "text": "B"}, {"item": "j", "logprobs": [-1.0, -2.0]}
    assert open_model(str(write(tmp_path / "a.jsonl", text))).asks == {"text"}
    assert open_model(str(write(tmp_path / "b.jsonl", text, both))).asks == {"text", "choices"}
    assert isinstance(open_model(str(tmp_path / "a.jsonl")), Model)


PACKED = ["f.jsonl", "f.jsonl.gz", "f.json", "f.json.gz", "f.zip"]


@pytest.mark.parametrize("name", PACKED)
def test_every_kind_of_file(tmp_path: Path, name: str) -> None:
    rows = [{"item": f"i{n}", "text": f"answer {n} é\u2028"} for n in range(20)]
    model = open_model(str(write_packed(tmp_path / name, *rows)))
    assert (model.name, model.asks) == ("f", {"text"})
    for _ in range(2):  # requested twice, and not in the order of the file
        answers = list(model.answer([request("i17"), request("i0"), request("i99")]))
        assert [answer.text for answer in answers] == [
            "answer 17 é\u2028",
            "answer 0 é\u2028",
            None,
        ]


def test_a_zip_of_lines(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "f.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("answers.jsonl", '{"item": "i", "text": "A"}\n{"item": "j", "text": "B"}')
    assert [response.text for response in ask(tmp_path / "f.zip", request("j"), request("i"))] == [
        "B",
        "A",
    ]


@pytest.mark.parametrize("name", PACKED)
def test_a_mapping_names_the_fields(tmp_path: Path, name: str) -> None:
    rows = [
        {
            "question_id": 70 + n,
            "category": "computer science",
            "by": {"large": {"solution": f"{n}!"}},
        }
        for n in (0, 1)
    ]
    path = write_packed(tmp_path / name, *rows)
    model = open_model(
        f"{path}?text=by.large.solution&item={{category}}-{{question_id:04d}}&name=large"
    )
    assert model.name == "large"
    responses = model.answer([request("computer_science-0071"), request("computer_science-0070")])
    assert [answer.text for answer in responses] == ["1!", "0!"]


def test_items_may_be_numbered_by_field_or_by_place(tmp_path: Path) -> None:
    rows = [{"idx": 12, "out": "a"}, {"idx": "7", "out": "b"}]
    path = write_packed(tmp_path / "f.json", *rows)
    for pattern, names in (
        ("gsm8k-{idx:04d}", ("gsm8k-0012", "gsm8k-0007")),
        ("gsm8k-{idx}", ("gsm8k-12", "gsm8k-7")),
        ("gsm8k-{#:04d}", ("gsm8k-0000", "gsm8k-0001")),
        ("idx", ("12", "7")),
        ("a+b {idx}", (safe_id("a+b 12"), safe_id("a+b 7"))),
    ):
        responses = ask_with(f"{path}?text=out&item={pattern}", *map(request, names))
        assert [response.text for response in responses] == ["a", "b"], (pattern, responses)


def ask_with(spec: str, *requests: Request) -> list[Response]:
    return list(open_model(spec).answer(requests))


@pytest.mark.parametrize("key", ["samples", "text", "response"])
def test_a_list_of_texts_are_the_samples(tmp_path: Path, key: str) -> None:
    path = write(tmp_path / "f.jsonl", {"item": "i", key: ["a", 2, None]}, {"item": "j", key: []})
    sampled = [replace(request("i"), sample=n) for n in (2, 0, 1, 3)]
    none, first, second, missing = ask(path, *sampled)
    assert (first.text, first.sample, second.text, second.sample) == ("a", 0, "2", 1)
    assert none.error == f"{path}, line 1: no text was recorded"
    assert missing.error == "no recorded answer for i, sample 3"
    assert ask(path, request("j"))[0].error == f"{path}, line 2: no text was recorded"


def test_lists_in_lists_and_a_first_sample(tmp_path: Path) -> None:
    """lm-eval logs ``resps`` as a list of lists; a record may hold the later samples only."""
    path = write(
        tmp_path / "f.jsonl",
        {"doc_id": 3, "resps": [["a"]]},
        {"doc_id": 3, "resps": [["b"], ["c"]], "n": 1},
    )
    spec = f"{path}?text=resps&item=gsm8k-{{doc_id:04d}}&sample=n"
    responses = ask_with(spec, *(replace(request("gsm8k-0003"), sample=n) for n in range(3)))
    assert [response.text for response in responses] == ["a", "b", "c"]


def test_a_mapping_of_log_probabilities_and_finish_reasons(tmp_path: Path) -> None:
    row = {"item": "i", "scores": [-1, -2], "out": "B", "why": "length", "prompt_sha256": "zz"}
    spec = f"{write(tmp_path / 'f.jsonl', row)}?logprobs=scores&text=out&finish_reason=why"
    choices, text = ask_with(
        f"{spec}&prompt_sha256=hash", request("i", choices=("A", "B")), request("i")
    )
    assert choices.logprobs == (-1.0, -2.0)
    assert (text.text, text.finish_reason) == ("B", "length")


def test_a_mapping_makes_another_model(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"item": "i", "a": "A", "b": "B"})
    specs = [f"{path}?text=a", f"{path}?text=b", f"{path}?text=a&name=other"]
    prints = [open_model(spec).fingerprint for spec in specs]
    assert prints[0] == prints[2] != prints[1]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("txt=out", "unknown key 'txt'; did you mean 'text'"),
        ("text=", "text names no field"),
        ("text=out&text=b", "text is given twice"),
        ("text=ou", "no record holds text in field 'ou'; did you mean 'out'"),
        ("name=a b", "name 'a b': use letters"),
        ("text=out&item={id", r"item '{id': write {field} or, for a number with leading zeros"),
        ("text=out&item={id:4d}", "item '{id:4d}': write"),
    ],
)
def test_an_impossible_mapping_is_reported_in_one_line(
    tmp_path: Path, query: str, message: str
) -> None:
    path = write(tmp_path / "f.jsonl", {"id": "i", "out": "B"})
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        open_model(f"{path}?{query}")
    assert "\n" not in str(caught.value)


def test_a_mapped_item_that_a_record_lacks_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"id": "i", "out": "B"}, {"out": "C"})
    for pattern, message in (("id", "(field 'id')"), ("q-{id}", "(no field 'id')")):
        with pytest.raises(DataError, match=re.escape(f"line 2: names no item {message}")):
            ask_with(f"{path}?text=out&item={pattern}", request("i"))


def test_packed_files_that_are_no_recording_are_one_line(tmp_path: Path) -> None:
    for name, content, message in (
        ("a.json", b"{", "a.json is not valid JSON"),
        (
            "b.json",
            b'{"item": "i"}',
            "b.json is neither a list of records nor records by id, but dict",
        ),
        ("c.json", b"[1]", "line 1: a JSON object was expected, not int"),
        ("d.json", b"[]", "no recorded answers"),
        ("e.zip", b"PK", "cannot be read"),
        ("f.json.gz", b"x", "cannot be read"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match=message):
            open_model(str(tmp_path / name))
    for names in ([], ["a.json", "b.jsonl"]):
        with zipfile.ZipFile(tmp_path / "g.zip", "w") as archive:
            for name in ["readme.txt", *names]:
                archive.writestr(name, "[]")
        with pytest.raises(DataError, match=f"{len(names)} files of answers where one"):
            open_model(str(tmp_path / "g.zip"))


def test_published_outputs_are_read_as_they_are(data: Path) -> None:
    """Every recorded answer of three layouts is found under the benchmark's own ids."""
    by_id = "item={category}-{question_id:04d}"
    outputs = data / "mmlu_pro_outputs"
    for benchmark, spec, missing in (
        (
            mmlu_pro(),
            f"{outputs}/model_outputs_Llama-2-7b-hf_5shots.zip?text=generated_text&{by_id}",
            0,
        ),
        (
            mmlu_pro(),
            f"{outputs}/model_outputs_gemini-1.5-flash-002_5shots.zip?text=model_outputs&{by_id}",
            20,
        ),
        (
            gsm8k(),
            f"{data}/gsm8k/example_model_solutions.jsonl.gz"
            "?text=175b_verification.solution&item=gsm8k-{#:04d}",
            0,
        ),
    ):
        items = benchmark.source(data).items
        answers = ask_with(spec, *(request(item.id) for item in items))
        assert sum(answer.text is None for answer in answers) == missing


def test_an_item_that_was_not_recorded_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"item": "i", "text": "B"})
    missing, recorded = ask(path, request("j"), request("i"))
    assert missing.error == "no recorded answer for j"
    assert (recorded.id, recorded.text) == ("i", "B")


def test_an_answer_to_another_prompt_is_refused(tmp_path: Path) -> None:
    original = request("i", "the prompt")
    row = {"item": "i", "text": "B", "prompt_sha256": original.prompt.sha256}
    path = write(tmp_path / "f.jsonl", row)
    right, wrong = ask(path, original, request("i", "another prompt"))
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
    original = request("i", choices=("A", "B"))
    common = {"benchmark": "mine", "prompt_sha256": original.prompt.sha256, "text": None}
    rows = [
        {"item": "i", **common, "logprobs": [], "error": "out of memory"},
        {"item": "i", **common, "logprobs": [-0.5, -1.5], "error": None},
        {"item": "j", **common, "logprobs": [], "error": "out of memory"},
    ]
    path = write(tmp_path / "records.jsonl", *rows, end=b'{"item": "i", "logpr')
    good, bad = ask(path, original, request("j", choices=("A", "B")))
    assert good.logprobs == (-0.5, -1.5)
    assert bad.error == "out of memory"


def test_records_in_other_orders_are_found_by_their_arm(tmp_path: Path) -> None:
    """Also where two of them show the same: a gold at A is moved to A."""
    original = request("i", choices=("A", "B"))
    common = {"item": "i", "benchmark": "mine", "prompt_sha256": original.prompt.sha256}
    names = ("test@A", "both@A")
    new = [
        {**common, "protocol": "p", "logprobs": [-1.0, -2.0]},
        *(
            {**common, "protocol": arm_fingerprint("p", name), "order": "AB", "arm": name}
            | {"logprobs": [-1.0, -3.0 - number]}
            for number, name in enumerate(names)
        ),
    ]
    # Format 2: the number of the arm is the sample, and its name is nowhere.
    old = [
        {k: v for k, v in row.items() if k != "arm"} | {"sample": n} for n, row in enumerate(new)
    ]
    for rows in (new, old):
        path = write(tmp_path / "records.jsonl", *rows)
        requests = [replace(original, arm=name) for name in ("both@A", "", "test@A", "shots@A")]
        both, plain, test, none = ask(path, *requests)
        assert [response.logprobs[1] for response in (plain, test, both)] == [-2.0, -3.0, -4.0]
        assert [entry.arm for entry in (both, plain, test, none)] == [
            entry.arm for entry in requests
        ]
        assert none.error == "no recorded answer for i, shots@A"


def test_an_order_of_another_tool_is_no_arm(tmp_path: Path) -> None:
    row = {"item": "i", "text": "B", "order": 3, "arm": "control"}
    path = write(tmp_path / "f.jsonl", row)
    assert ask(path, request("i"))[0].text == "B"
    assert ask(path, replace(request("i"), arm="cyclic@1"))[0].error is not None


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


def test_a_file_without_named_answers_is_reported_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "answers.jsonl", {"id": "a", "output": "4"})
    with pytest.raises(ConfigError, match=r"text=FIELD\); known: id, output$"):
        open_model(str(path))
    path = write(tmp_path / "errors.jsonl", {"id": "a", "error": "timed out"})
    assert ask(path, request("a"))[0].error == "timed out"


def test_name_and_fingerprint(tmp_path: Path) -> None:
    model = open_model(str(write(tmp_path / "my model.v2.jsonl.gz", {"item": "i", "text": "B"})))
    two = open_model(str(write(tmp_path / "two.jsonl", {"item": "i", "text": "C"})))
    assert model.name == "my_model.v2"
    assert len(model.fingerprint) == 16
    assert model.fingerprint != two.fingerprint


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
