"""``llmeval overlap``: from benchmarks and files to the report, and mistakes of the user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_llmeval.catalog import starter
from pytest_llmeval.cli import main
from pytest_llmeval.core import Item

QUESTIONS = [
    "Which river flows through the old town of the capital of Austria today",
    "Which metal is liquid at room temperature and is used in old thermometers",
    "What is 2 + 2?",
]


def question_file(folder: Path, name: str = "faq.jsonl") -> Path:
    rows = [{"question": q, "options": ["yes", "no"], "answer": "A"} for q in QUESTIONS]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / name


def corpus_file(folder: Path, *texts: str, name: str = "c.jsonl") -> Path:
    (folder / name).write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return folder / name


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LLMEVAL_DATA", raising=False)
    return tmp_path


def overlap(*arguments: str | Path) -> int:
    return main(["overlap", *map(str, arguments), "--workers", "1"])


def test_a_planted_question_is_found(here, capsys):
    question_file(here)
    corpus_file(here, "nothing", f"Quiz!\n{QUESTIONS[1]}? Mercury.")
    assert overlap("faq.jsonl", "--corpus", "c.jsonl", "--out", "out") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "c.jsonl: 2 documents, 16 words, matches of 1 item"
    assert lines[1] == "corpus: 1 file, 2 documents, 16 words"
    assert lines[2].startswith("faq: 1 of 2 judged items overlap (50.00%)")
    assert lines[3].startswith("faq: 1 item not judged (33.3%, more than 5%)")
    assert lines[4] == (
        f"  faq-0001 13 of 15 words in a row, 6 of 8 windows, in c.jsonl:2: {QUESTIONS[1]}"
    )
    assert lines[-1] == "wrote out/overlap.json"
    # The same command has nothing left to do.
    assert overlap("faq.jsonl", "--corpus", "c.jsonl", "--out", "out") == 0
    assert capsys.readouterr().out.splitlines() == lines[1:]


def test_several_benchmarks(here, capsys):
    question_file(here)
    (here / "test_other.py").write_text(
        "import pytest\n"
        "from dataclasses import replace\n"
        "from pytest_llmeval import Benchmark\n"
        "from pytest_llmeval.catalog import starter\n"
        "from pytest_llmeval.sources import jsonl\n"
        "OTHER = Benchmark('other', jsonl('faq.jsonl'), starter().protocols, exclude=['faq-0000'])\n"
        "@pytest.mark.llmeval(OTHER)\n"
        "def test_other(answer):\n    assert answer.correct\n"
    )
    item: Item = starter().source(None).items[0]
    corpus_file(here, "\n".join((item.question, *item.options)), *QUESTIONS)
    arguments = ("starter", "faq.jsonl", "test_other.py", "--corpus", "c.jsonl", "--out", "out")
    assert overlap(*arguments) == 0
    parts = {
        part["benchmark"]: part
        for part in json.loads((here / "out" / "overlap.json").read_text())["benchmarks"]
    }
    assert parts.keys() == {"starter", "faq", "other"}
    assert parts["faq"]["matches"].keys() == {"faq-0000", "faq-0001"}
    assert parts["other"]["matches"].keys() == {"faq-0001"}
    assert parts["other"]["data_hash"] != parts["faq"]["data_hash"]
    assert item.id in parts["starter"]["matches"] or item.id in parts["starter"]["unjudged"]
    assert parts["starter"]["data_hash"] == starter().source(None).content_hash()


def test_a_damaged_file_fails_the_command(here, capsys):
    question_file(here)
    corpus_file(here, QUESTIONS[0])
    (here / "d.jsonl").write_text('{"text": "a"}\n{"text":')
    assert overlap("faq.jsonl", "--corpus", "[cd].jsonl", "--out", "out") == 1
    out = capsys.readouterr().out
    assert "ERROR d.jsonl, line 2: not valid JSON" in out
    assert "incomplete: 1 file not read to the end; the same command" in out


def test_text_with_encoded_lines_is_warned_of(here, capsys):
    question_file(here)
    corpus_file(here, "some\ntext", name="dump.txt")
    assert overlap("faq.jsonl", "--corpus", "dump.txt", "--out", "out") == 0
    assert "warning: dump.txt: the text begins with JSON" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["mmlux", "--corpus", "c.jsonl"], "unknown benchmark 'mmlux'; did you mean 'mmlu'?"),
        (["fak.jsonl", "--corpus", "c.jsonl"], "fak.jsonl: no such file; did you mean 'faq.jsonl'"),
        (["test_no.py", "--corpus", "c.jsonl"], "test_no.py: no such test module"),
        (["test_bad.py", "--corpus", "c.jsonl"], "cannot be imported (ZeroDivisionError: division"),
        (
            ["test_empty.py", "--corpus", "c.jsonl"],
            "test_empty.py: no test with @pytest.mark.llmeval",
        ),
        (["faq.jsonl", "--corpus", "no.jsonl"], "--corpus no.jsonl: no such file"),
        (["faq.jsonl", "--corpus", "c.csv"], "--corpus c.csv: not a known format"),
        (["faq.jsonl", "--corpus", "c.jsonl", "--workers", "0"], "--workers 0: at least one"),
        (["faq.jsonl"], "the following arguments are required: --corpus"),
        (["faq.jsonl", "--corpus", "c.jsonl", "--out", "c.csv"], "--out c.csv: File exists"),
    ],
)
def test_a_mistake_is_one_line(here, capsys, arguments, line):
    question_file(here)
    corpus_file(here, "text")
    (here / "c.csv").touch()
    (here / "test_bad.py").write_text("1 / 0")
    (here / "test_empty.py").write_text("")
    try:
        code = main(["overlap", "--out", "out", *arguments])
    except SystemExit as stopped:  # of the parser
        code = stopped.code
    assert code == 4
    assert line in capsys.readouterr().err
