"""Mistakes in the command line of ``llmeval``: one line and exit code 4, whatever is given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_llmeval.cli import main

LONG = "n" * 300
"""More than a file's name may have."""


@pytest.fixture
def run(project, monkeypatch):
    """A run in ``run/``, and the working folder beside it."""
    assert project.run("--llm-runs=.").ret == 0
    (folder,) = project.path.glob("*-model")
    monkeypatch.chdir(project.path)
    return folder.rename(project.path / "run")


def mistake(capsys: pytest.CaptureFixture[str], command: str) -> str:
    capsys.readouterr()
    assert main(command.split()) == 4
    (line,) = capsys.readouterr().err.splitlines()
    return line.replace(LONG, "LONG")


@pytest.mark.parametrize(
    "command",
    [
        f"show {LONG}",
        f"gate {LONG}",
        f"gate run {LONG}",
        f"gate run thresholds.toml --baseline {LONG}",
        f"compare {LONG} run",
        f"baseline run {LONG}",
        f"merge run --out {LONG}",
        f"report run --out {LONG}",
        f"export run --out {LONG}",
        f"history {LONG}",
        f"history . --html {LONG}",
        f"history . --baselines {LONG}",
        f"cache info {LONG}",
        f"init {LONG}",
    ],
)
def test_a_name_that_the_file_system_refuses(run, capsys, command):
    if command.startswith("report"):
        pytest.importorskip("jinja2", reason="the HTML report needs it")
    Path("thresholds.toml").write_text("version = 1\n[benchmarks.bench]\naccuracy = 0.5\n")
    assert "File name too long" in mistake(capsys, command)


@pytest.mark.parametrize("command", ["show run/run.json", "gate run/run.json", "compare run x/y"])
def test_a_folder_that_is_not_a_run(run, capsys, command):
    line = mistake(capsys, command)
    assert "Errno" not in line
    expected = "run/run.json is not a run folder: it is a file"
    assert (expected in line) is ("run.json" in command)


def test_a_baseline_may_be_called_by_its_file(run, capsys):
    assert main(["baseline", "run", "first.json"]) == 0
    assert [file.name for file in Path("baselines").iterdir()] == ["first.json"]
    for name in ("first", "first.json", "baselines/first.json"):
        assert main(["compare", name, "run"]) == 0


def test_a_closed_pipe_ends_a_command_without_a_traceback(run):
    """As under ``| head -1``; a verdict that was not printed is not green."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-c",
        "from pytest_llmeval.cli import main; raise SystemExit(main())",
    ]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        [*command, "show", "run"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")
