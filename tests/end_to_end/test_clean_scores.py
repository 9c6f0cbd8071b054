"""Scores without the items of a corpus: session, stored runs, reports, and reports of other data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_llmeval.cli import main
from support.page_blocks import block

BENCHMARK = """
import pytest
from pytest_llmeval import Benchmark, Protocol
from pytest_llmeval.prompts import LMEVAL_MMLU
from pytest_llmeval.sources import jsonl

FAQ = Benchmark("faq", jsonl("faq.jsonl"), (Protocol("letter", LMEVAL_MMLU, scorer="letter"),))

@pytest.mark.llmeval(FAQ)
def test_faq(answer):
    assert answer.correct
"""

MODEL = """
import pytest
from pytest_llmeval import Response

class Leaked:
    name = "leaked"
    fingerprint = "weights-1"
    asks = frozenset({"choices"})

    def answer(self, requests):
        for request in requests:
            right_items = int(request.id.rpartition("-")[2]) % 2 == 0
            yield Response(request.id, logprobs=(-1.0, -2.0) if right_items else (-2.0, -1.0))

@pytest.fixture(scope="session")
def model():
    return Leaked()
"""

ITEMS = 20
THRESHOLDS = """
version = 1
[benchmarks.faq]
accuracy = 0.5
[benchmarks.faq.clean]
accuracy = 0.3
max_gain = 0.2
[benchmarks.faq.contamination]
max_overlap = 0.2
"""


def question(number: int) -> str:
    words = [f"word{number}x{k}" for k in range(12)]
    return f"Which of these is true of {' '.join(words)}?"


@pytest.fixture
def faq(project, monkeypatch):
    """A project whose model knows the even items; items 0 to 7 are in the corpus, 0 to 6 as a whole."""
    path = project.path
    monkeypatch.chdir(path)
    monkeypatch.delenv("LLMEVAL_DATA", raising=False)
    project.model(MODEL)
    (path / "test_bench.py").write_text(BENCHMARK)
    (path / "thresholds.toml").write_text(THRESHOLDS)
    questions = [question(number) for number in range(ITEMS - 1)] + ["Too short?"]
    rows = [{"question": text, "options": ["yes", "no"], "answer": "A"} for text in questions]
    write_lines(path / "faq.jsonl", rows)
    # Even items and one odd item, so that the score is too high by them.
    right_items = [0, 2, 4, 6, 8, 1]
    texts = [f"Forum: {question(n)} yes, no. <b>Really</b>" for n in right_items]
    write_lines(path / "corpus.jsonl", [{"text": text} for text in [*texts, "other"]])
    assert overlap() == 0
    return project


def write_lines(path: Path, rows: list) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def overlap(out: str = "seen") -> int:
    return main(
        ["overlap", "faq.jsonl", "--corpus", "corpus.jsonl", "--out", out, "--workers", "1"]
    )


def statuses(project) -> dict[str, str]:
    return {gate["id"]: gate["status"] for gate in project.document("gates.json")["gates"]}


def test_a_session_reports_the_scores_without_overlap(faq):
    outcome = faq.run("--llm-overlap", "seen", "--llm-report", "html,markdown")
    assert outcome.ret == 1
    assert statuses(faq) == {
        "faq::accuracy": "pass",
        "faq::clean::accuracy": "pass",
        "faq::clean::max_gain": "pass",
        "faq::contamination::max_overlap": "fail",
    }
    entry = faq.metrics()["overlap"]
    assert (entry["items"], entry["judged"], entry["overlapping"]) == (20, 19, 6)
    assert entry["clean"]["correct"], entry["clean"]["answered"] == (5, 13)
    assert entry["overlap"]["accuracy"] == pytest.approx(5 / 6)
    assert entry["gain"] == pytest.approx(10 / 19 - 5 / 13)
    line = "faq[letter]: 6 of 19 judged items overlap with the corpus; 0.3846 without them, 0.8333"
    assert line in outcome.stdout.str()
    assert line.partition(": ")[2] in (faq.run_folder / "report.md").read_text()
    assert "6 of 19 items overlap" in (faq.run_folder / "report.md").read_text()


def test_the_page_marks_items_with_passage_and_document(faq):
    faq.run("--llm-overlap", "seen", "--llm-report", "html")
    page = (faq.run_folder / "report.html").read_text()
    assert "6 of 19 judged items overlap with the corpus" in page
    (index,) = block(page, "data-index")
    assert index["corpus"] == "ooo-o-o-o----------n"
    entries = block(page, "data-0-0")
    assert entries[4]["overlap"]["document"] == "corpus.jsonl:3"
    assert entries[4]["overlap"]["passage"].startswith("Which of these is true of word4x0")
    assert entries[4]["overlap"]["words"] == "20 of 20 words in a row, 13 of 13 windows"
    assert "overlap" not in entries[3]


def test_a_stored_run_is_judged_and_reported_later(faq, capsys):
    assert faq.run().ret == 1
    assert statuses(faq)["faq::clean::accuracy"] == "undecided"
    run = str(faq.run_folder)
    assert main(["gate", run, "--overlap", "seen"]) == 1
    out = capsys.readouterr().out
    assert "PASS faq::clean::accuracy: 0.3846 (bound >= 0.3)" in out
    assert "FAIL faq::contamination::max_overlap: 0.3158 (bound <= 0.2)" in out
    assert "on them: a gain of +0.1417" in " ".join(out.split())
    assert main(["report", run, "--overlap", "seen"]) == 0
    page = (faq.run_folder / "report.html").read_text()
    assert block(page, "data-index")[0]["corpus"].count("o") == 6


def test_the_run_keeps_what_its_session_used(faq, capsys):
    faq.run("--llm-overlap", "seen")
    (faq.path / "seen" / "overlap.json").unlink()
    capsys.readouterr()
    assert main(["gate", str(faq.run_folder)]) == 1
    assert "PASS faq::clean::accuracy: 0.3846" in capsys.readouterr().out


def test_a_report_of_other_data_is_refused(faq, capsys):
    rows = (faq.path / "faq.jsonl").read_text().replace("yes", "Yes")
    (faq.path / "faq.jsonl").write_text(rows)
    outcome = faq.run("--llm-overlap", "seen")
    assert outcome.ret == 4
    assert "seen is about other data of 'faq'" in outcome.stderr.str()
    assert not (faq.path / "runs").exists()
    faq.run()
    assert main(["gate", str(faq.run_folder), "--overlap", "seen"]) == 4
    assert "seen is about other data of 'faq'" in capsys.readouterr().err


def test_a_report_without_the_benchmark_decides_nothing(faq, capsys):
    assert main(["overlap", "starter", "--corpus", "corpus.jsonl", "--out", "other"]) == 0
    faq.run("--llm-overlap", "other")
    gates = {gate["id"]: gate for gate in faq.document("gates.json")["gates"]}
    assert gates["faq::clean::accuracy"]["status"] == "undecided"
    assert "the overlap report has no benchmark 'faq'" in gates["faq::clean::accuracy"]["reason"]


def test_an_incomplete_report_decides_nothing(faq):
    with (faq.path / "corpus.jsonl").open("a") as file:
        file.write("{")
    assert overlap() == 1
    faq.run("--llm-overlap", "seen")
    gates = {gate["id"]: gate for gate in faq.document("gates.json")["gates"]}
    assert gates["faq::contamination::max_overlap"]["status"] == "undecided"
    assert "incomplete: 1 of 1 files" in gates["faq::contamination::max_overlap"]["reason"]


@pytest.mark.parametrize("name", ["nothing", "faq.jsonl"])
def test_a_missing_report_is_one_line(faq, name):
    outcome = faq.run("--llm-overlap", name)
    assert outcome.ret == 4
    assert f"{name} is not a folder of llmeval overlap" in outcome.stderr.str()


def test_clean_gates_need_all_items_of_a_sequential_run(faq):
    (faq.path / "thresholds.toml").write_text(THRESHOLDS + "[sequential]\nwave = 5\n")
    outcome = faq.run("--llm-overlap", "seen", "--llm-sequential", "-v")
    assert "all items are needed by faq::clean::accuracy" in outcome.stdout.str()
    assert statuses(faq)["faq::clean::accuracy"] == "pass"
