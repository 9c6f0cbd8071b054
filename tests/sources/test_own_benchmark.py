"""A user's own jsonl benchmark."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import check_dataset
from pytest_llmeval.prompts import LMEVAL_MMLU
from pytest_llmeval.sources import benchmark_folder
from pytest_llmeval.sources import jsonl


@pytest.fixture(autouse=True)
def no_data_folder_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLMEVAL_DATA", raising=False)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(**changes: Any) -> dict[str, Any]:
    base = {"question": "q?", "options": ["x", "y"], "answer": "B", "subject": "tea"}
    return {**base, **changes}


def test_letters_and_numbers_are_answers(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", [row(), row(answer=0), row(answer=1, subject="milk")])
    dataset = jsonl(path)(None)
    check_dataset("mine", dataset)
    assert [item.gold for item in dataset.items] == [1, 0, 1]
    assert [item.id for item in dataset.items] == ["tea-0000", "tea-0001", "milk-0000"]


def test_a_benchmark_in_a_dozen_lines(tmp_path: Path) -> None:
    write(tmp_path / "mine.jsonl", [row()])
    write(tmp_path / "shots.jsonl", [row(question="shot?")])
    benchmark = Benchmark(
        "mine",
        source=jsonl("mine.jsonl", shots="shots.jsonl"),
        protocols=(Protocol("letter", LMEVAL_MMLU, scorer="letter", shots=1),),
    )
    dataset = benchmark.source(tmp_path)
    item = dataset.items[0]
    text = benchmark.protocols[0].render(item, dataset.pool["tea"]).text
    assert text.endswith("shot?\nA. x\nB. y\nAnswer: B\n\nq?\nA. x\nB. y\nAnswer:")


def test_without_options_the_answer_is_text(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": "1,000"}, {"question": "r", "answer": 18}]
    dataset = jsonl(write(tmp_path / "sums.jsonl", rows))(None)
    # The text is not taken apart.
    assert [item.gold for item in dataset.items] == ["1,000", "18"]
    assert [item.subject for item in dataset.items] == ["sums", "sums"]


@pytest.mark.parametrize(
    "written",
    ["-1", "0", "3.5", "3.50", "-0.25", "1e3", "0.1000000000000000055", "12345678901234567890"],
)
def test_a_number_without_options_is_kept_as_it_is_written(tmp_path: Path, written: str) -> None:
    path = tmp_path / "sums.jsonl"
    path.write_text(f'{{"question": "q", "answer": {written}}}\n')
    dataset = jsonl(path)(None)
    check_dataset("sums", dataset)
    assert dataset.items[0].gold == written


def usage_rows(answers: list[Any], **changes: Any) -> list[dict[str, Any]]:
    return [row(question=f"q{n}?", answer=a, **changes) for n, a in enumerate(answers)]


FIVE = ["v", "w", "x", "y", "z"]


def test_numbers_that_count_from_one_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", usage_rows([1, 2, 3, 4, 4], options=FIVE[:4]))
    with pytest.raises(DataError) as caught:
        jsonl(path)(None)
    assert str(caught.value) == (
        f"{path}, line 4, 5: the answer is the number of options, and no answer is 0: numbers in"
        " field 'answer' count from 0, not from 1 (or write letters)"
    )
    # With a 0 among them, one answer is wrong and not the counting.
    path = write(tmp_path / "g.jsonl", usage_rows([0, 2, 3, 4], options=FIVE[:4]))
    with pytest.raises(DataError, match="line 4: gold 4 is outside the 4 options"):
        jsonl(path)(None)


def test_numbers_that_may_count_from_one_are_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", usage_rows([1, 2, 3, 4], options=FIVE))
    assert jsonl(path)(None).warnings == (
        "f.jsonl: no answer of 4 is 0, the number of the first option: do they count from 1?"
        " (lines 1, 2, 3 and 1 more)",
    )
    assert not jsonl(write(tmp_path / "g.jsonl", usage_rows([0, 1, 2, 3, 4], options=FIVE)))(
        None
    ).warnings


def test_letters_beside_numbers_are_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", usage_rows(["A", 0, "B", "B"]))
    assert jsonl(path)(None).warnings == (
        "f.jsonl: answers are letters and numbers, 1 of 4 are numbers (line 2)",
    )


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        # The letter of the first option, the text of the second.
        (
            [(["B", "A", "C"], "A")],
            "every answer is a letter and the text of an option as well, of another one in 1 of 1 (line 1)",
        ),
        (
            [(["1", "2", "3"], 1), (["0", "1"], 0)],
            "every answer is a number and the text of an option as well, of another one in 1 of 2 (line 1)",
        ),
        (
            [(["3", "1", "2"], 1), (["1", "0"], 0)],
            "every answer is a number and the text of an option as well, of another one in 1 of 2 (line 2)",
        ),
        ([(["A", "B", "C"], "B")], None),
        ([(["0", "1", "2"], 0), (["0", "1", "2"], 2)], None),
        # Another row shows that letters and numbers are meant.
        ([(["B", "A", "C"], "A"), (["x", "y"], "B")], None),
        ([(["1", "2", "3"], 1), (["x", "y"], 0)], None),
    ],
)
def test_answers_that_may_be_texts_of_options(
    tmp_path: Path, rows: list[tuple[list[str], Any]], line: str | None
) -> None:
    made = [row(question=f"q{n}?", options=o, answer=a) for n, (o, a) in enumerate(rows)]
    warnings = jsonl(write(tmp_path / "f.jsonl", made))(None).warnings
    assert warnings == (() if line is None else (f"f.jsonl: {line}",))


def test_doubts_name_the_lines(tmp_path: Path) -> None:
    rows = [
        row(options=["x", "x "], answer="A"),
        row(question="r?", options=["x", "y", ""], answer="A"),
        row(question="s?", answer="A"),
        row(question="s? ", answer="B"),
    ]
    path = write(tmp_path / "f.jsonl", rows)
    path.write_text("\n" + path.read_text())
    assert jsonl(path)(None).warnings == (
        "f.jsonl: 1 item has equal options, in 1 of them the right one (tea-0000 in line 2)",
        "f.jsonl: 1 item has an empty option (tea-0001 in line 3)",
        "f.jsonl: 1 question has keys that contradict each other"
        " (tea-0002 in line 4 = tea-0003 in line 5)",
    )


def test_answers_without_options_that_contradict_each_other(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", [{"question": "q", "answer": n} for n in (1, 2)])
    (warning,) = jsonl(path)(None).warnings
    assert "1 question has keys that contradict each other" in warning


def test_secret_answers_of_a_whole_file_are_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", [{"question": f"q{n}", "answer": -1} for n in range(9)])
    (warning,) = jsonl(path)(None).warnings
    assert warning.startswith("f.jsonl: the answer of all 9 items is '-1'")


def test_shots_are_held_to_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", [row()])
    shots = write(tmp_path / "s.jsonl", usage_rows([1, 2], options=FIVE))
    assert [w[:24] for w in jsonl(path, shots=shots)(None).warnings] == ["s.jsonl: no answer of 2 "]
    write(shots, usage_rows([1, 2]))
    with pytest.raises(DataError, match="count from 0"):
        jsonl(path, shots=shots)(None)


def test_a_key_that_occurs_twice_in_a_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"question": "q", "answer": "A", "options": ["x", "y"], "answer": "B"}\n')
    with pytest.raises(DataError, match=r"line 1: not valid JSON \(key 'answer' occurs twice\)"):
        jsonl(path)(None)


def test_fields_may_have_other_names(tmp_path: Path) -> None:
    rows = [{"stem": "q", "choices": ["x", "y"], "key": "A", "topic": "t", "uid": "set/7"}]
    source = jsonl(
        write(tmp_path / "f.jsonl", rows),
        question="stem",
        options="choices",
        answer="key",
        subject="topic",
        id="uid",
    )
    item = source(None).items[0]
    assert (item.id, item.subject, item.gold) == ("set_7", "t", 0)


def test_ids_do_not_depend_on_later_order_or_limit(tmp_path: Path) -> None:
    # Numbered in the file, before anything is shuffled or limited.
    rows = [row(question=f"r{number}") for number in range(4)]
    items = list(jsonl(write(tmp_path / "f.jsonl", rows))(None).items)
    random.Random(7).shuffle(items)
    assert {item.question: item.id for item in items[:2]}.items() <= {
        f"r{number}": f"tea-000{number}" for number in range(4)
    }.items()


def test_shots_without_subject_serve_every_subject(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", [row(), row(subject="milk")])
    shot = {"question": "s", "options": ["x", "y"], "answer": "A"}
    shots = write(tmp_path / "s.jsonl", [shot, row(question="t")])
    pool = jsonl(path, shots=shots)(None).pool
    assert [item.question for item in pool["tea"]] == ["s", "t"]
    assert [item.question for item in pool["milk"]] == ["s"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": "C"}, "gold 'C' is outside the 2 options"),
        ({"answer": 2}, "gold 2 is outside the 2 options"),
        ({"answer": -2}, "gold -2 is outside the 2 options"),
        ({"answer": "x"}, "answer 'x' is neither a letter A to B nor a 0-based number"),
        ({"answer": "1"}, "answer '1' is neither a letter A to B nor a 0-based number"),
        ({"answer": True}, "answer True is neither"),
        # A split without public answers.
        ({"answer": ""}, "no gold label in this split"),
        ({"answer": None}, "no gold label in this split"),
        ({"answer": -1}, "no gold label in this split"),
        ({"options": ["x", 2]}, "field 'options' must be a list of texts"),
        ({"options": "xy"}, "field 'options' must be a list of texts"),
        ({"options": ["x"]}, "1 options"),
        ({"options": None, "answer": True}, "field 'answer' must be text or a number, not True"),
        ({"options": None, "answer": [1]}, "field 'answer' must be text or a number, not [1]"),
        ({"options": None, "answer": ""}, "no gold label in this split"),
        ({"options": None, "answer": None}, "no gold label in this split"),
        ({"options": None, "answer": math.nan}, "field 'answer' must be text or a number, not nan"),
        ({"options": None, "answer": -math.inf}, "field 'answer' must be text or a number"),
        ({"options": ["", "y"], "answer": 0}, "gold 0 points to an empty option"),
        ({"options": ["x", " \t"], "answer": "B"}, "gold 'B' points to an empty option"),
        ({"answer": "y"}, "answer 'y' is neither a letter A to B nor a 0-based number; write 'B'"),
        ({"options": ["y", "y"], "answer": "y"}, "answer 'y' is neither a letter A to B nor a 0-"),
        ({"answer": 1.0}, "answer 1.0 is neither a letter A to B nor a 0-based number"),
        ({"question": " \n"}, "the question is empty (field 'question')"),
        ({"question": None}, "no text in field 'question'"),
        ({"subject": 3}, "field 'subject' is not text"),
    ],
)
def test_unusable_rows_name_file_and_line(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "f.jsonl", [row(), row(**changes)])
    with pytest.raises(DataError) as caught:
        jsonl(path)(None)
    assert str(caught.value).startswith(f"{path}, line 2: {message}")


def test_duplicate_ids_name_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", [row(id="a b"), row(id="c"), row(id="a_b")])
    with pytest.raises(DataError, match=r"line 3: item id 'a_b' occurs twice \(first in line 1\)"):
        jsonl(path, id="id")(None)


def test_empty_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        jsonl(write(tmp_path / "f.jsonl", []))(None)
    with pytest.raises(DataError, match=r"no such file; did you mean 'f\.jsonl'"):
        jsonl(tmp_path / "g.jsonl")(None)
    with pytest.raises(DataError, match="no such file, neither in"):
        jsonl("nothing.jsonl")(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        jsonl(tmp_path)(None)


def test_the_data_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder / "f.jsonl", [row(question="there")])
    write(tmp_path / "f.jsonl", [row(question="here")])
    monkeypatch.chdir(tmp_path)
    assert jsonl("f.jsonl")(folder).items[0].question == "there"
    assert jsonl("f.jsonl")(None).items[0].question == "here"
    monkeypatch.setenv("LLMEVAL_DATA", str(folder))
    assert jsonl("f.jsonl")(None).items[0].question == "there"


def test_find_looks_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    assert benchmark_folder("mine", tmp_path) == tmp_path / "mine"
    assert benchmark_folder("other", tmp_path) is None
    assert benchmark_folder("mine") is None
    monkeypatch.setenv("LLMEVAL_DATA", str(tmp_path))
    assert benchmark_folder("mine") == tmp_path / "mine"
    monkeypatch.setenv("LLMEVAL_DATA", str(tmp_path / "mime"))
    with pytest.raises(DataError, match=r"mime \(LLMEVAL_DATA\) does not exist; did you mean"):
        benchmark_folder("mine")
