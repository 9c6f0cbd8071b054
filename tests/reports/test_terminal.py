"""The summary is readable at 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.reports.terminal.summary import print_parts
from pytest_llmeval.reports.terminal.summary import summary_parts

SUBJECTS = {
    f"subject_{number:02d}": Counts(250, correct=100 + number, wrong=150 - number)
    for number in range(57)
}


def rendered(*results: Result, thresholds: str | None = None) -> list[str]:
    verdicts = None
    if thresholds is not None:
        models = [result.model for result in results]
        verdicts = judge(parse_thresholds(thresholds), results, models, ["mmlu"])
    console = Console(width=80, file=None, highlight=False)
    with console.capture() as capture:
        for part in summary_parts(results, verdicts, ["a note"], Path("runs/x")):
            console.print(part, soft_wrap=isinstance(part, Text))
    return capture.get().splitlines()


def test_the_table_fits_eighty_columns():
    result = Result("demo", "mmlu", "letter", "lmeval", 0.25, SUBJECTS)
    table = rendered(result)[:3]
    assert max(map(len, table)) <= 80
    assert table[2].split() == [
        "mmlu[letter]", "14,250", "0.5120", "±", "0.0042", "0.5120", "+0.3493", "0", "0",
    ]  # fmt: skip


def test_weakest_subjects_and_notes():
    lines = rendered(Result("demo", "mmlu", "letter", "lmeval", 0.25, SUBJECTS))
    assert "weakest of 57 subjects, mmlu[letter]:" in lines
    assert any(line.startswith("  subject_00 ") and "0.4000" in line for line in lines)
    assert lines[-2:] == ["a note", "run: runs/x"]


def test_errors_are_shown_with_both_denominators():
    counts = {"s": Counts(10, correct=6, wrong=2, error=2)}
    lines = rendered(Result("demo", "mmlu", "letter", "lmeval", 0.25, counts))
    assert (
        "mmlu[letter] is incomplete: 2 errors; 6 correct of 8 answered (10 including errors)"
        in lines
    )


def test_passed_gates_of_every_subject_are_one_line():
    thresholds = "version = 1\n[benchmarks.mmlu.every_subject]\naccuracy = 0.405\n"
    result = Result("demo", "mmlu", "letter", "lmeval", 0.25, SUBJECTS)
    lines = rendered(result, thresholds=thresholds)
    (passed,) = [n for n, line in enumerate(lines) if line.startswith("PASS mmlu::every_subject::")]
    assert lines[passed + 1].startswith("     worst of 55 subjects: subject_02")
    assert sum(line.startswith("FAIL mmlu::every_subject::") for line in lines) == 2


def test_one_item_is_written_in_the_singular() -> None:
    counts = {"s": Counts(10, correct=5, wrong=4, error=1, truncated=1)}
    lines = rendered(Result("m", "mmlu", "letter", "lmeval", 0.25, counts, dropped_shots=1, ties=1))
    for words in ("1 answer (11.1%) was cut", "1 error;", "1 item was run", "1 tie, the first"):
        assert any(words in line for line in lines)


def test_dropped_shots_and_ties_are_reported():
    counts = {"s": Counts(10, correct=6, wrong=4)}
    lines = rendered(Result("m", "mmlu", "letter", "lmeval", 0.25, counts, dropped_shots=3, ties=2))
    assert any("3 items were run with fewer shots" in line for line in lines)
    assert any("2 ties" in line for line in lines)


def test_choices_encoded_apart_are_counted():
    counts = {"s": Counts(10, correct=6, wrong=4)}
    lines = rendered(Result("m", "mmlu", "letter", "lmeval", 0.25, counts, encoded_apart=3))
    assert any("3 items were scored with choices encoded separately" in line for line in lines)


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\u202eb", "a\x00b", "a\n::error::b", "a\rb"])
def test_names_cannot_control_the_terminal(name, capsys):
    counts = Counts(4, correct=1, wrong=3)
    result = Result("demo", "mmlu", "letter", "p", 0.25, {name: counts, "zoo": counts})
    other = Result(name, "mmlu", "letter", "p", 0.25, {name: counts, "zoo": counts})
    gates = parse_thresholds("version = 1\n[benchmarks.mmlu.every_subject]\naccuracy = 0.5\n")
    verdicts = judge(gates, [result, other], ["demo", name], ["mmlu"])
    notes = [f"a note of {name}"[:12]]
    print_parts(summary_parts([result, other], verdicts, notes, Path("runs/x")))
    shown = capsys.readouterr().out
    assert "zoo" in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert not any(line.startswith("::") for line in shown.splitlines())
