"""How answers were extracted, in the measurement of a result."""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.core import Outcome
from support.report_runs import PROTOCOL
from support.report_runs import planned
from support.report_runs import question
from support.report_runs import run_of
from support.report_runs import written


def test_unparsed_answers_are_unread_and_errors_are_not_answers(tmp_path):
    protocol = replace(PROTOCOL.with_generation(), scorer="matched", samples=2)
    samples = {
        "art-0": [("stated text", Outcome.CORRECT), ("", Outcome.UNPARSED)],
        "art-1": [("", Outcome.UNPARSED), ("stated text", Outcome.WRONG)],
        "art-2": [("", Outcome.UNPARSED), ("", Outcome.UNPARSED)],
        "art-3": [("", Outcome.ERROR), ("stated text", Outcome.CORRECT)],
    }
    records = [
        replace(
            written(question(item), "B", False, protocol),
            sample=sample,
            detail=detail,
            outcome=outcome,
        )
        for item, answers in samples.items()
        for sample, (detail, outcome) in enumerate(answers)
    ]
    run = run_of(tmp_path, [planned({"art": 4}, protocol)], records)
    (measurement,) = run.measurements()
    shown = measurement.reading()
    assert shown["extraction"] == {
        "unread": {"answers": 4, "correct": 0},
        "stated text": {"answers": 3, "correct": 2},
    }
    assert (shown["reading"]["answers"], shown["reading"]["unread"]) == (7, 4)
