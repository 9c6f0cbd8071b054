"""Verdicts of a session are read back from its folder, or refused as damaged."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_llmeval.core import RunError
from pytest_llmeval.runs.judging import read_judged_run
from support.judged_runs import items
from support.judged_runs import judged
from support.judged_runs import write_documents
from support.stored_runs import make_run
from support.stored_runs import store

SUBJECTS = {"art": "cccw", "law": "ccww"}


@pytest.fixture
def run(tmp_path):
    judged_run = judged(tmp_path, SUBJECTS)
    store(make_run(tmp_path, "run", items(SUBJECTS)))
    write_documents(judged_run)
    return judged_run


def test_verdicts_are_read_back(run):
    read_back = read_judged_run(run.path)
    assert read_back.verdicts == run.verdicts
    assert read_back.results == json.loads(json.dumps(run.results))
    assert (read_back.verdict, read_back.thresholds, read_back.models) == (
        "pass",
        "thresholds.toml",
        ["demo"],
    )


def test_a_gate_with_more_than_this_version_knows(run):
    write_documents(replace(run, verdicts=run.verdicts[:1]))
    file = run.path / "gates.json"
    document = json.loads(file.read_text())
    document["gates"][0]["mood"] = "good"
    file.write_text(json.dumps(document))
    with pytest.raises(RunError, match=r"gates\.json: damaged, or of another version: .*'mood'"):
        read_judged_run(run.path)
