"""What a finished session tells others: GitHub's job, and whoever ``--llm-notify`` names."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_llmeval.reports.ci import github
from pytest_llmeval.reports.ci.webhooks import notify
from pytest_llmeval.reports.ci.webhooks import payload
from pytest_llmeval.reports.ci.workflow_commands import is_github
from pytest_llmeval.reports.markdown.run import run_markdown
from pytest_llmeval.runs.judged import JudgedRun
from pytest_llmeval.runs.judged import used


class Told(NamedTuple):
    """What is left to print: notes for people, and workflow commands for GitHub."""

    notes: list[str]
    commands: list[str]


def tell(read: Callable[[], JudgedRun], target: str | None, environment: Mapping[str, str]) -> Told:
    """Tell of the run that ``read`` gives, where anybody listens; what fails becomes a note."""
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if not (target or summary or is_github(environment)):
        return Told([], [])
    run, link = read(), github.job_link(environment)
    notes = []
    if summary:
        try:
            github.append_summary(Path(summary), run_markdown(run, link, used(run)))
        except OSError as error:
            notes.append(f"GITHUB_STEP_SUMMARY cannot be written: {error.strerror or error}")
    if target:
        problem = notify(target, payload(run, link))
        notes += [] if problem is None else [problem]
    return Told(notes, github.annotate(run) if is_github(environment) else [])
