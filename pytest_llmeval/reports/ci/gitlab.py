"""A code quality report, which GitLab shows in merge requests: what it says that got worse.

The fields are those of GitLab's documentation of its code quality reports: ``description``,
``check_name``, ``fingerprint``, ``severity``, and ``location`` with ``path`` and ``lines.begin``.
GitLab compares the fingerprints of two branches, so none depends on what was measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import describe
from pytest_llmeval.reports.formatting import cut
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.runs.judged import JudgedRun
from pytest_llmeval.runs.judged import Regressed

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
