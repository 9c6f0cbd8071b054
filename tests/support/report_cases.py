"""Runs whose reports look different, by name: sizes, scripts of the world, verdicts, kinds of answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.mmlu import TEST_ROWS
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.reports.html import Sources
from pytest_llmeval.reports.html import html_report
from pytest_llmeval.reports.html.history import history_html
from pytest_llmeval.reports.terminal.history import Point
from pytest_llmeval.reports.terminal.history import Series
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import compare
from support.report_runs import PROTOCOL
from support.report_runs import graded
from support.report_runs import planned
from support.report_runs import prompt_of
from support.report_runs import question
from support.report_runs import run_of
from support.report_runs import sources
from support.report_runs import written

GATES = """
version = 1
[benchmarks.mmlu]
accuracy = { min = 0.9, confidence = 0.95 }
macro_accuracy = 0.1
max_errors = 0
[benchmarks.mmlu.every_subject]
accuracy = 0.1
[benchmarks.mmlu.regression]
max_drop = 0.01
max_subject_drop = 0.05
[benchmarks.absent]
accuracy = 0.5
"""
UNDECIDED = "version = 1\n[benchmarks.mmlu]\naccuracy = { min = 0.5, confidence = 0.95 }\n"

MMLU = tuple(sorted(TEST_ROWS))
LONG = "a_very_long_name_of_a_subject_that_continues_" * 5
UNBROKEN = "x" * 300
RIGHT_TO_LEFT = ("תולדות_ישראל", "الأدب العربي في العصر العباسي", "ریاضیات mixed with English 42")
CJK = ("中国古代文学史与现代汉语语法", "日本の歴史と文化の概要", "한국어 문법과 어휘의 이해")
LOG = (
    "$ python -m pytest -q tests/test_sum.py\n" + "F" * 260 + "\n\x1b[31mE  assert 1 == 2\x1b[0m\n"
)


def letters(names: tuple[str, ...], size: int = 20) -> dict[str, str]:
    """Return subject → outcomes of its items, with a different accuracy in each."""
    return {
        name: "c" * (1 + n % size) + "w" * (size - 1 - n % size) for n, name in enumerate(names)
    }


def gates_of(run: Run, text: str, comparison: Any = None) -> dict[str, Any]:
    """Judge a run; return the document of its gates."""
    gated = {} if comparison is None else comparison.for_gates()
    verdicts = judge(parse_thresholds(text), run.results(), ["demo"], ["mmlu"], gated)
    statuses = {verdict.status for verdict in verdicts}
    verdict = "pass" if statuses <= {"pass"} else "fail"
    gates = [asdict(verdict) for verdict in verdicts]
    return {"thresholds": "thresholds.toml", "verdict": verdict, "gates": gates}


def prompts_of(run: Run) -> dict[Any, Any]:
    """Return a stored prompt for every record."""
    return {
        ("mmlu", record.protocol, record.item): prompt_of(question(record.item))
        for record in run.records
    }


def compared_sources(path: Path, names: tuple[str, ...]) -> Sources:
    """A run whose first subject is worse than in its baseline, with gates."""
    before = graded(path / "before", letters(names))
    after = graded(path / "after", letters(names) | {names[0]: "w" * 20})
    comparison = compare(before, after)
    gates = gates_of(after, GATES, comparison)
    prompts = prompts_of(after) if len(names) < 10 else {}
    return sources(after, gates, comparison.as_json(), baseline=before, prompts=prompts)


def passing(path: Path) -> Sources:
    """A run of one subject that passes its gate."""
    run = graded(path, {"anatomy": "c" * 28 + "w" * 2})
    return sources(run, gates_of(run, "version = 1\n[benchmarks.mmlu]\naccuracy = 0.5\n"))


def undecided(path: Path) -> Sources:
    """A run with too few items for the confidence of its gate."""
    run = graded(path, {"anatomy": "c" * 16 + "w" * 8})
    return sources(run, gates_of(run, UNDECIDED))


def nothing(path: Path) -> Sources:
    """A run that was interrupted before its first answer."""
    return sources(run_of(path, [planned({"anatomy": 30})], [], status="interrupted"))


def no_results(path: Path) -> Sources:
    """A run in which nothing was planned."""
    return sources(run_of(path, [], [], status="finished"))


def failing(path: Path) -> Sources:
    """A run with errors of two kinds, texts without an answer, and texts that were cut off."""
    protocol = replace(PROTOCOL.with_generation(), scorer="choice")
    reason = f"HTTP 503 from https://example.org/v1/chat/completions?{UNBROKEN}: try again later"
    records = []
    for n in range(40):
        item = question(f"anatomy-{n:04d}")
        record = written(item, f"I think it is B. {n}", n % 2 == 0, protocol, finish_reason="stop")
        if n % 10 == 1:
            record = replace(record, outcome=Outcome.UNPARSED, answer=None, finish_reason="length")
        if n % 10 in (3, 5):
            error = reason if n % 10 == 3 else "timeout"
            record = replace(record, outcome=Outcome.ERROR, answer=None, text=None, error=error)
        records.append(replace(record, seconds=0.4, completion_tokens=210, prompt_tokens=88))
    used = {"requests": 40, "prompt_tokens": 3520, "completion_tokens": 8400, "cached_tokens": 0}
    run = run_of(
        path, [planned({"anatomy": 40}, protocol)], records, usage=[["demo", "mmlu", used]]
    )
    return sources(run, gates_of(run, GATES))


def code(path: Path) -> Sources:
    """Patches that were run, with the output of their tests."""
    protocol = replace(PROTOCOL.with_generation(), scorer="resolved")
    patch = "diff --git a/sum.py b/sum.py\n--- a/sum.py\n+++ b/sum.py\n-    return a\n+    return a + b\n"
    records = [_patch(n, patch, protocol) for n in range(12)]
    return sources(run_of(path, [planned({"astropy__astropy": 12}, protocol)], records))


def _patch(n: int, patch: str, protocol: Any) -> Record:
    item = question(f"astropy__astropy-{n}")
    more = {"log": LOG, "reasoning": "The sum lacks b.", "finish_reason": "stop", "gold": ""}
    return written(item, patch + UNBROKEN, n % 3 == 0, protocol, answer=None, **more)


def audited(path: Path) -> Sources:
    """A run with the audit of a model that prefers A."""
    made = sources(graded(path, letters(MMLU[:5])))
    values = ((0.55, 0.21, 1e-9), (0.15, 0.27, 0.3), (0.2, 0.25, 0.4), (0.1, 0.27, 1e-6))
    positions = [
        {"position": "ABCD"[n], "share": share, "expected": expected, "recall": 0.4, "p_value": p}
        for n, (share, expected, p) in enumerate(values)
    ]
    arms = [
        {"name": name, "accuracy": 0.4 + n / 20, "interval": [0.3, 0.5 + n / 20]}
        for n, name in enumerate(("original", "cyclic 1", "cyclic 2", "cyclic 3", "reversed"))
    ]
    families = [{"name": name, "items": 100, "positions": positions} for name in ("all", "cyclic")]
    audit = {"arms": arms, "families": families, "diagnosis": "prefers position A"}
    results = [{**entry, "audit": audit} for entry in json.loads(json.dumps(made.judged.results))]
    return replace(made, judged=replace(made.judged, results=results))


def texts(path: Path, subjects: tuple[str, ...]) -> Sources:
    """A run whose subjects, model, texts and warnings are those given."""
    protocol = replace(PROTOCOL.with_generation(), scorer="choice")
    words = " ".join(subjects)
    records, prompts = [], {}
    for n, subject in enumerate(subjects * 4):
        item = replace(question(f"{subject}-{n}", f"{words} {n}"), subject=subject)
        prompt = prompt_of(item, protocol)
        more = {"answer": words[:200], "gold": words[:200], "model": words[:200]}
        record = written(item, f"{words}\n" * 3, n % 2 == 0, protocol, **more)
        records.append(replace(record, prompt_sha256=prompt.prompt.sha256, reasoning=words))
        prompts["mmlu", record.protocol, item.id] = prompt
    result = planned(dict.fromkeys(subjects, 4), protocol, warnings=(words,))
    run = run_of(path, [result], records, run=words[:200], command=[words], git=UNBROKEN)
    gates = gates_of(run, "version = 1\n[benchmarks.mmlu.every_subject]\naccuracy = 0.9\n")
    return sources(run, gates, prompts=prompts)


CASES: Mapping[str, Callable[[Path], Sources]] = {
    "one subject": passing,
    "few subjects": lambda path: compared_sources(path, MMLU[:3]),
    "57 subjects": lambda path: compared_sources(path, MMLU),
    "300 subjects": lambda path: compared_sources(
        path, tuple(f"subject_{n:03d}" for n in range(300))
    ),
    "long texts": lambda path: texts(path, (LONG, UNBROKEN, "short")),
    "right to left": lambda path: texts(path, RIGHT_TO_LEFT),
    "cjk": lambda path: texts(path, CJK),
    "nothing": nothing,
    "no results": no_results,
    "undecided": undecided,
    "errors": failing,
    "audit": audited,
    "code": code,
}


def write_report(name: str, folder: Path) -> Path:
    """Write the report of a case; return the file."""
    file = folder / "report.html"
    file.write_text(html_report(CASES[name](folder / "run")), encoding="utf-8")
    return file


def write_history(folder: Path, size: int) -> Path:
    """Write the history of so many runs in two series; return the file."""
    verdicts = ("pass", "fail", "undecided")
    points = tuple(
        Point(
            f"run-{n}-{'x' * 60 if n == 2 else ''}",
            f"2026-03-{1 + n % 28:02d}T10:00:00",
            "demo",
            0.6 + n % 7 / 50,
            (0.5, 0.8),
            368,
            verdicts[n % 3],
            baseline="main" if n == 1 else None,
        )
        for n in range(size)
    )
    series = [
        Series(title, "cloze", "f", "d", None, "accuracy", points)
        for title in ("starter[cloze]", f"中国[choice] {LONG}")
    ]
    file = folder / "history.html"
    file.write_text(history_html("History", series if size else []), encoding="utf-8")
    return file
