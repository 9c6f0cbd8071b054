"""Reports for CI services: annotations and summaries of GitHub Actions, code quality of GitLab.

GitHub Actions: annotations on standard output, a summary in the job's file.

The rules of a workflow command are those of GitHub's toolkit: ``%``, CR and LF are escaped in the
message, ``:`` and ``,`` too in a property.

A code quality report, which GitLab shows in merge requests: what it says that got worse.

The fields are those of GitLab's documentation of its code quality reports: ``description``,
``check_name``, ``fingerprint``, ``severity``, and ``location`` with ``path`` and ``lines.begin``.
GitLab compares the fingerprints of two branches, so none depends on what was measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import NamedTuple

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import describe
from pytest_llmeval.reports.formatting import cut
from pytest_llmeval.reports.formatting import is_github
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import visible
from pytest_llmeval.reports.markdown import run_markdown
from pytest_llmeval.reports.wording import failed_items_words
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import Regressed
from pytest_llmeval.runs.judging import used

_SHOWN = 10
"""How many annotations of a kind GitHub shows for one step; the last one tells of the others."""

_MESSAGE = 1000


class JobReport(NamedTuple):
    """Lines that are still to be printed: notes for people, and GitHub's workflow commands."""

    notes: list[str]
    annotations: list[str]


def report_to_job(read: Callable[[], JudgedRun], environment: Mapping[str, str]) -> JobReport:
    """Append the run's summary to the job's page and return its annotations.

    ``read`` gives the run, and is called in a job of GitHub Actions only. A summary that cannot be
    written becomes a note: it changes no verdict.
    """
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if not (summary or is_github(environment)):
        return JobReport([], [])
    run = read()
    notes = []
    if summary:
        try:
            append_summary(Path(summary), run_markdown(run, job_link(environment), used(run)))
        except OSError as error:
            notes.append(f"GITHUB_STEP_SUMMARY cannot be written: {error.strerror or error}")
    return JobReport(notes, annotate(run) if is_github(environment) else [])


def job_link(environment: Mapping[str, str]) -> str | None:
    """The address of GitHub's page of the workflow run; None elsewhere."""
    server, repository, run = (
        environment.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")
    )
    if server and repository and run:
        return f"{server}/{repository}/actions/runs/{run}"
    return None


def annotate(run: JudgedRun) -> list[str]:
    """``::error`` for failed gates and items, ``::warning`` for all else that is red or worse."""
    errors = [("gate failed", describe(one)) for one in run.failed]
    if run.items_failed:
        errors.append(("items failed", failed_items_words(run.items_failed)))
    warnings = [("gate undecided", describe(one)) for one in run.undecided]
    warnings += [("gate warned", describe(one)) for one in run.warned]
    warnings += [(f"{one.subject} got worse", one.words) for one in run.regressed()]
    return [*_commands("error", errors), *_commands("warning", warnings)]


def _commands(level: str, entries: list[tuple[str, str]]) -> Iterator[str]:
    fitting = entries if len(entries) <= _SHOWN else entries[: _SHOWN - 1]
    for title, message in fitting:
        yield command(level, f"llmeval: {title}", message)
    if len(fitting) < len(entries):
        rest = f"and {len(entries) - len(fitting):,} more; the log and the summary name them"
        yield command(level, "llmeval", rest)


def command(level: str, title: str, message: str) -> str:
    """One workflow command, such as ``::error title=gate failed::mmlu%3A …``."""
    shown = visible(cut(message, _MESSAGE, "whole in the log"))
    return f"::{level} title={_property(visible(title[:200]))}::{_data(shown)}"


def append_summary(file: Path, markdown: str) -> None:
    """Add the text to the step's summary. Raises OSError where that cannot be written."""
    with file.open("a", encoding="utf-8") as summary:
        summary.write(f"{markdown}\n")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_DESCRIPTION = 1000


def code_quality(run: JudgedRun, file: str) -> list[dict[str, Any]]:
    """An entry for every failed or undecided gate and every subject that is significantly worse.

    ``file``: the thresholds file as a path from the root of the project. The place is the line of
    the gate; of a subject, that of a regression gate of its benchmark; line 1 where none is known.
    """
    red = [("failed", "critical", one) for one in run.failed]
    red += [("undecided", "major", one) for one in run.undecided]
    return [
        *(
            _entry(
                f"llmeval: gate {kind}", severity, describe(one), ("gate", one.id), file, one.line
            )
            for kind, severity, one in red
        ),
        *(_worse(one, run, file) for one in run.regressed()),
    ]


def _worse(one: Regressed, run: JudgedRun, file: str) -> dict[str, Any]:
    about = ("subject", one.result, one.subject, *([one.model] if len(run.models) > 1 else []))
    line = next((gate.line for gate in run.verdicts if _watches(gate, one)), None)
    return _entry("llmeval: subject got worse", "minor", one.words, about, file, line)


def _watches(gate: Verdict, one: Regressed) -> bool:
    """Whether it is a regression gate of the subject, or of all of its result."""
    mine = one.result == f"{gate.benchmark}[{gate.scorer}]" and gate.model == one.model
    return mine and gate.subject in (None, one.subject) and gate.metric in _REGRESSION


_REGRESSION = ("max_drop", "max_subject_drop")


def _entry(
    check: str, severity: str, text: str, about: tuple[str, ...], file: str, line: int | None
) -> dict[str, Any]:
    return {
        "description": cut(one_line(text), _DESCRIPTION, "whole in the log"),
        "check_name": check,
        "fingerprint": hashlib.sha256(json.dumps(about).encode()).hexdigest(),
        "severity": severity,
        "location": {"path": file, "lines": {"begin": line or 1}},
    }


def in_project(file: Path, environment: Mapping[str, str]) -> str:
    """The path of a file from the root of the project that a job of GitLab works in.

    Elsewhere, and for a file outside of the project, the path as it is.
    """
    root = environment.get("CI_PROJECT_DIR")
    whole = file.resolve()
    if root and whole.is_relative_to(Path(root).resolve()):
        file = whole.relative_to(Path(root).resolve())
    return file.as_posix()
