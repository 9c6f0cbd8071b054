"""Reports for CI services: annotations and job summaries of GitHub, code quality of GitLab."""

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
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.reports.formatting import is_github
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import truncate
from pytest_llmeval.reports.formatting import visible
from pytest_llmeval.reports.markdown import run_markdown
from pytest_llmeval.reports.wording import failed_items_words
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import SubjectRegression
from pytest_llmeval.runs.judging import run_resource_use

_SHOWN = 10
"""Number of annotations of a kind that GitHub shows for one step."""

_MESSAGE = 1000


class JobReport(NamedTuple):
    """Lines to print: notes for the user, and GitHub's workflow commands."""

    notes: list[str]
    annotations: list[str]


def report_to_job(read: Callable[[], JudgedRun], environment: Mapping[str, str]) -> JobReport:
    """Append the run's summary to the job's page and return its annotations.

    ``read`` returns the run and is called in a job of GitHub Actions only. A summary that cannot be
    written becomes a note and does not change the verdict.
    """
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if not (summary or is_github(environment)):
        return JobReport([], [])
    run = read()
    notes = []
    if summary:
        try:
            append_summary(
                Path(summary), run_markdown(run, job_link(environment), run_resource_use(run))
            )
        except OSError as error:
            notes.append(f"GITHUB_STEP_SUMMARY cannot be written: {error.strerror or error}")
    return JobReport(notes, annotate(run) if is_github(environment) else [])


def job_link(environment: Mapping[str, str]) -> str | None:
    """Return the address of GitHub's page of the workflow run; None elsewhere."""
    server, repository, run = (
        environment.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")
    )
    if server and repository and run:
        return f"{server}/{repository}/actions/runs/{run}"
    return None


def annotate(run: JudgedRun) -> list[str]:
    """Return ``::error`` for failed gates and items, ``::warning`` for other gates and subjects.

    These are undecided gates, gates that passed with a warning, and subjects that got worse.
    """
    errors = [("gate failed", verdict_line(gate)) for gate in run.failed]
    if run.items_failed:
        errors.append(("items failed", failed_items_words(run.items_failed)))
    warnings = [("gate undecided", verdict_line(gate)) for gate in run.undecided]
    warnings += [("gate warned", verdict_line(gate)) for gate in run.warned]
    warnings += [(f"{worse.subject} got worse", worse.words) for worse in run.regressions()]
    return [*_commands("error", errors), *_commands("warning", warnings)]


def _commands(level: str, entries: list[tuple[str, str]]) -> Iterator[str]:
    fitting = entries if len(entries) <= _SHOWN else entries[: _SHOWN - 1]
    for title, message in fitting:
        yield command(level, f"llmeval: {title}", message)
    if len(fitting) < len(entries):
        rest = f"and {len(entries) - len(fitting):,} more, listed in the log and the summary"
        yield command(level, "llmeval", rest)


def command(level: str, title: str, message: str) -> str:
    """Return a workflow command, such as ``::error title=gate failed::mmlu%3A …``.

    The escapes are those of GitHub's toolkit: ``%``, CR and LF in the message, and in a property
    also ``:`` and ``,``.
    """
    text = visible(truncate(message, _MESSAGE, "full text in the log"))
    return f"::{level} title={_property(visible(title[:200]))}::{_data(text)}"


def append_summary(file: Path, markdown: str) -> None:
    """Append the text to the step's summary; raises OSError if it cannot be written."""
    with file.open("a", encoding="utf-8") as summary:
        summary.write(f"{markdown}\n")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_DESCRIPTION = 1000


def code_quality(run: JudgedRun, file: str) -> list[dict[str, Any]]:
    """Return an entry for every failed or undecided gate and every significantly worse subject.

    ``file``: path of the thresholds file from the root of the project. The location is the line of
    the gate, for a subject that of a regression gate of its benchmark, or else line 1.

    The fields are those of GitLab's documentation of code quality reports: ``description``,
    ``check_name``, ``fingerprint``, ``severity``, and ``location`` with ``path`` and ``lines.begin``.
    GitLab compares the fingerprints of two branches, so that none depends on measured values.
    """
    gates = [("failed", "critical", gate) for gate in run.failed]
    gates += [("undecided", "major", gate) for gate in run.undecided]
    return [
        *(
            _entry(
                f"llmeval: gate {kind}",
                severity,
                verdict_line(gate),
                ("gate", gate.id),
                file,
                gate.line,
            )
            for kind, severity, gate in gates
        ),
        *(_worse(subject, run, file) for subject in run.regressions()),
    ]


def _worse(worse: SubjectRegression, run: JudgedRun, file: str) -> dict[str, Any]:
    model = [worse.model] if len(run.models) > 1 else []
    key = ("subject", worse.result, worse.subject, *model)
    line = next((gate.line for gate in run.verdicts if _covers(gate, worse)), None)
    return _entry("llmeval: subject got worse", "minor", worse.words, key, file, line)


def _covers(gate: Verdict, worse: SubjectRegression) -> bool:
    """Return True for a regression gate of the subject or of its whole result."""
    same = worse.result == f"{gate.benchmark}[{gate.scorer}]" and gate.model == worse.model
    return same and gate.subject in (None, worse.subject) and gate.metric in _REGRESSION


_REGRESSION = ("max_drop", "max_subject_drop")


def _entry(
    check: str, severity: str, text: str, key: tuple[str, ...], file: str, line: int | None
) -> dict[str, Any]:
    return {
        "description": truncate(one_line(text), _DESCRIPTION, "full text in the log"),
        "check_name": check,
        "fingerprint": hashlib.sha256(json.dumps(key).encode()).hexdigest(),
        "severity": severity,
        "location": {"path": file, "lines": {"begin": line or 1}},
    }


def project_path(file: Path, environment: Mapping[str, str]) -> str:
    """Return the path of a file from the root of the project of a GitLab job.

    Elsewhere, and for a file outside of the project, the path is returned unchanged.
    """
    root = environment.get("CI_PROJECT_DIR")
    absolute = file.resolve()
    if root and absolute.is_relative_to(Path(root).resolve()):
        file = absolute.relative_to(Path(root).resolve())
    return file.as_posix()
