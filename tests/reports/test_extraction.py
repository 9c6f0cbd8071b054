"""``llmeval extract``, and the rule behind an answer in the report."""

from __future__ import annotations

import io

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.reports.extraction import extraction_reason
from support.report_runs import compared
from support.report_runs import question


def printed(capsys, *arguments):
    assert main(["extract", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_answer_is_printed(capsys, tmp_path, monkeypatch):
    reply = "A is tempting.\nThe answer is (C)."
    assert printed(capsys, reply) == ["C"]
    (tmp_path / "reply.txt").write_text(reply, encoding="utf-8")
    assert printed(capsys, str(tmp_path / "reply.txt")) == ["C"]
    monkeypatch.setattr("sys.stdin", io.StringIO(reply))
    assert printed(capsys, "-") == ["C"]
    assert printed(capsys, "I am not sure.") == ["no answer"]
    assert printed(capsys, "x" * 5000) == ["no answer"]  # too long for the name of a file


def test_candidates_are_printed_in_order(capsys):
    lines = printed(capsys, "--explain", "Option B is correct.\nThe answer is (C).")
    assert lines == [
        "C",
        "1. C  announced (announced by 'answer is (')",
        "   at 36: …B is correct. The answer is ( ⟦C⟧ ).",
        "2. B  verdict (called correct)",
        "   at 7: Option ⟦B⟧ is correct. The answer is (C)…",
    ]
    assert printed(capsys, "--explain", "Hm.") == ["no answer", "no candidates"]
    assert printed(capsys, "--explain", "The answer is A or B.")[1].startswith("1. none  announced")


def test_options_labels_and_numbers(capsys):
    assert printed(capsys, "It is zinc.", "--options", "iron", "zinc") == ["B"]
    assert printed(capsys, "Answer: W", "--labels", "VW") == ["W"]
    assert printed(capsys, "The answer is 7, not 8.", "--number") == ["7"]
    assert printed(capsys, "Es sind 1.234 Euro.", "--number", "--language", "de") == ["1234"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["B", "--labels", "AB", "--options", "x", "y", "z"], "--labels: 2 letters for 3 options"),
        (["7", "--number", "--labels", "AB"], "--labels: a number has none"),
        (["B", "--language", "de"], "--language: read with --number only"),
    ],
)
def test_mistakes(capsys, arguments, message):
    assert main(["extract", *arguments]) == 4
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_text(capsys, tmp_path):
    (tmp_path / "reply.bin").write_bytes(b"\xff\xfe")
    assert main(["extract", str(tmp_path / "reply.bin")]) == 4
    assert "not UTF-8" in capsys.readouterr().err


def record(text, answer, scorer):
    return compared(question("art-0"), True, text=text, answer=answer, scorer=scorer)


def test_the_rule_is_that_of_the_recorded_answer():
    listed = "What rusts?\nA. zinc\nB. iron\nAnswer:"
    stated = record("The answer is B.", "B", "choice")
    assert extraction_reason(stated, None) == "announced (announced by 'answer is')"
    assert extraction_reason(record("iron", "B", "choice"), listed) == (
        "whole reply (the reply is the option's text)"
    )
    assert (
        extraction_reason(record("iron", "B", "choice"), None) is None
    )  # the options are not known
    assert extraction_reason(record("So it is 7.", "7", "number"), None) is not None
    assert extraction_reason(record("So it is 7.", "8", "number"), None) is None
    assert extraction_reason(record("The answer is B.", "B", "letter"), None) is None
    assert extraction_reason(record(None, "B", "choice"), None) is None
