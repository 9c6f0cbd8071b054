"""A session in a job of GitHub Actions prints no commands but its own annotations."""

from __future__ import annotations

import pytest

from support.workflow_log import commands

HOSTILE = "a\\n::error::acts\\r::set-env name=x::y ##[warning]acts"

TALKS = f'''
import pytest
from pytest_llmeval.testing import FakeModel

@pytest.fixture(scope="session")
def model():
    return FakeModel(
        lambda request: "::error::B{HOSTILE}",
        errors={{f"zoo-{{n:04d}}": "{HOSTILE}" for n in range(4)}},
        name="::error::model ##[error]x",
    )
'''


@pytest.fixture
def hostile(project, monkeypatch):
    """A project whose model, questions, subjects and test print commands of the runner."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    project.model(TALKS)
    text = (project.path / "test_bench.py").read_text()
    text = text.replace('scorer="letter")', 'scorer="choice", ask="text")')
    text = text.replace('{row}?",', f'{{row}}?{HOSTILE}",')
    text = text.replace('row:04d}", subject,', 'row:04d}", f"::error::{subject} ##[error]x",')
    body = f'    print("{HOSTILE}")\n    if "art" in answer.item.id:\n        raise ValueError(answer.text)\n'
    text = text.replace("    assert answer.correct", f"{body}    assert answer.correct")
    (project.path / "test_bench.py").write_text(text)
    project.thresholds(
        "[benchmarks.bench]\naccuracy = 0.9\n[benchmarks.bench.every_subject]\naccuracy = 0.6\n"
    )
    return project


@pytest.mark.parametrize("more", ["-rA", "-v -rA --tb=native", "-n2 -rA", "--llm-wrong=fail"])
def test_only_annotations_are_commands(hostile, more):
    result = hostile.run(*more.split())
    assert result.ret == 1
    log = f"{result.stdout}\n{result.stderr}"
    assert "acts" in log
    assert "ValueError" in log
    printed = commands(log)
    assert printed
    assert [line for line in printed if not line.startswith("::error title=llmeval")] == []


def test_a_dry_run_shows_prompts_that_do_not_act(hostile):
    result = hostile.run("--llm-dry-run")
    assert result.ret == 0
    assert "acts" in str(result.stdout)
    assert commands(str(result.stdout)) == []
