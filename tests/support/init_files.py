"""What ``llmeval init`` wrote, read by tests, and answers for its models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_llmeval.catalog import starter
from pytest_llmeval.cli.init import WORKFLOW_FILE


def record(file: Path, right: int) -> str:
    """A file of recorded answers, so many of them right; its spec."""
    items = starter().source(None).items
    answers = [
        {"item": item.id, "text": "ABCD"[(item.gold + (n >= right)) % 4]}
        for n, item in enumerate(items)
    ]
    file.write_text("".join(f"{json.dumps(answer)}\n" for answer in answers))
    return f"replay:{file.name}"


def job() -> dict:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads workflows")
    (job,) = yaml.safe_load(Path(WORKFLOW_FILE).read_text())["jobs"].values()
    return job


def step(name: str) -> dict:
    (job_step,) = [step for step in job()["steps"] if step.get("name") == name]
    return job_step
