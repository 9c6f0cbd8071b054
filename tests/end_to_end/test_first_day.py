"""The first day in a repository, as a user types it and as a runner of CI runs the workflow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.init_files import record
from support.init_files import step

ORDINARY = "def test_right(): pass\ndef test_wrong(): assert False\n"


class Shell:
    """A shell in the repository, with the commands of this environment."""

    def __init__(self) -> None:
        commands = Path(sys.executable).parent
        if shutil.which("llmeval", path=commands) is None:
            pytest.skip("needs the command llmeval beside this Python: install the plugin")
        self.environment = {
            **os.environ,
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:cacheprovider",
        }
        self.output = ""

    def run(self, script: str, **environment: str) -> int:
        """Run a script as GitHub's runners do, and return its exit code."""
        process = subprocess.run(
            ["bash", "-e", "-c", script],
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        self.output = process.stdout
        return process.returncode

    def ordinary_tests(self) -> list[str]:
        """The results of a plain ``pytest`` in the files that are none of the plugin's."""
        assert self.run("pytest -v") == 1
        lines = [line.split() for line in self.output.splitlines()]
        return [" ".join(line[:2]) for line in lines if line and "test_mine.py::" in line[0]]


def test_from_an_empty_repository_to_a_red_gate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell = Shell()
    Path("test_mine.py").write_text(ORDINARY)
    before = shell.ordinary_tests()
    model = record(tmp_path / "answers.jsonl", 300)

    assert shell.run("git init --quiet --initial-branch=main") == 0
    assert shell.run(f"llmeval init --model {model}") == 0
    first, save = shell.output.partition("next:\n")[2].splitlines()
    # The third command of the user's gives the first verdict.
    assert shell.run(first) == 0
    assert "PASS starter::accuracy: 0.8152" in shell.output
    # Also after another attempt: the run to save is the last one.
    assert shell.run(first) == 0
    assert shell.run(save) == 0
    assert "baselines/last-release.json" in shell.output
    assert shell.ordinary_tests() == before
    assert before == ["test_mine.py::test_right PASSED", "test_mine.py::test_wrong FAILED"]

    # A clone, as CI has it: runs are not in git.
    assert shell.run("git status --short --untracked-files=all") == 0
    assert "runs/" not in shell.output
    shutil.rmtree("runs")
    on_github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    assert shell.run(step("evaluate")["run"], **on_github) == 0
    assert shell.run(step("baseline")["run"], **on_github) == 0
    saved = Path("baselines/last-release.json").read_bytes()
    assert len(Path("new-baseline/last-release.json").read_bytes()) == len(saved)
    assert Path("junit.xml").is_file()
    assert list(Path("runs").glob("*/report.html"))

    record(tmp_path / "answers.jsonl", 250)
    assert shell.run(step("evaluate")["run"], **on_github) == 1
    assert "FAIL starter::regression::max_drop: 0.1359" in shell.output
    assert "::error" in shell.output
    assert "starter::regression::max_drop" in Path("summary.md").read_text()
    assert shell.ordinary_tests() == before
