"""Run folders of other tools and versions, cut short or edited: one line, and exit code 4."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.cli import main

COMMANDS = (
    ("show", "RUN"),
    ("show", "RUN", "--protocol"),
    ("report", "RUN", "--out", "out.html"),
    ("export", "RUN", "--out", "out.json"),
    ("gate", "RUN"),
    ("history", "."),
    ("compare", "RUN", "RUN"),
    ("baseline", "RUN", "kept"),
)
READERS = (COMMANDS[2], COMMANDS[3], COMMANDS[5])
WRONG: tuple[Any, ...] = (None, "x", [1])


@pytest.fixture
def run(project, monkeypatch):
    """A judged run in ``run/``."""
    project.thresholds("[benchmarks.bench]\naccuracy = 0.5\nmax_errors = 0\n")
    assert project.run("--llm-runs=.").ret == 0
    (folder,) = project.path.glob("*-model")
    monkeypatch.chdir(project.path)
    return folder.rename(project.path / "run")


def error_lines(capsys, commands=COMMANDS) -> dict[str, str]:
    """Run a command that must fail by one line, and return that line."""
    errors = {}
    for command in commands:
        code = main(["run" if word == "RUN" else word for word in command])
        output = capsys.readouterr()
        assert code in (0, 1, 4), command
        lines = output.err.splitlines()
        assert len(lines) == (code == 4), (command, lines)
        if lines:
            errors[" ".join(command)] = lines[0]
    return errors


def entry_of(document: Any) -> dict[str, Any]:
    """The first entry of the list that a document is about, or the document."""
    return next((document[name][0] for name in ("results", "gates") if name in document), document)


@pytest.mark.parametrize("name", ["run.json", "metrics.json", "gates.json"])
def test_a_field_that_is_missing_or_of_another_kind(run, capsys, name):
    pytest.importorskip("jinja2", reason="the HTML report needs it")
    good = json.loads((run / name).read_text())
    refused = set()
    for inner in (False, True):
        for key in entry_of(good) if inner else good:
            for wrong in ("missing", *WRONG):
                document = json.loads(json.dumps(good))
                place = entry_of(document) if inner else document
                if wrong == "missing":
                    del place[key]
                else:
                    place[key] = wrong
                (run / name).write_text(json.dumps(document))
                if error_lines(capsys, READERS):
                    refused.add(key)
    assert {
        "run.json": {"models", "results", "versions", "chance", "ways"},
        "metrics.json": {"results", "errors", "accuracy"},
        "gates.json": {"gates", "status", "interval"},
    }[name] <= refused


def test_a_record_whose_field_is_of_another_kind(run, capsys):
    refused = set()
    first, *rest = (run / "records.jsonl").read_text().splitlines()
    for key in json.loads(first):
        for wrong in WRONG:
            line = json.dumps({**json.loads(first), key: wrong})
            (run / "records.jsonl").write_text("\n".join([line, *rest]) + "\n")
            if any(errors := error_lines(capsys, COMMANDS[:1])):
                assert "records.jsonl" in errors["show RUN"]
                refused.add(key)
    assert refused == set(json.loads(first))


@pytest.mark.parametrize("name", ["run.json", "metrics.json", "gates.json", "records.jsonl"])
@pytest.mark.parametrize("how", ["cut", "nested", "bytes", "folder", "list"])
def test_a_missing_or_damaged_file(run, capsys, name, how):
    file: Path = run / name
    text = file.read_text()
    file.unlink()
    if how == "folder":
        file.mkdir()
    elif how == "bytes":
        file.write_bytes(b"\xff\xfe\x00\n")
    else:
        nested = "[" * 100_000 + "]" * 100_000
        file.write_text(
            {"cut": text[:-9], "nested": f'{{"format": 2, "a": {nested}}}\n', "list": "[]\n"}[how]
        )
    errors = error_lines(capsys)
    if name != "run.json":
        errors.pop("history .", None)
    assert errors or (name, how) == ("records.jsonl", "folder")
    assert all(name in line or "answers of its run.json" in line for line in errors.values())


def test_a_run_that_is_not_there_has_a_name_near_it(run, project, capsys):
    kept = project.path / "runs" / "20261130-081502-demo"
    run.rename((kept.parent.mkdir(), kept)[1])
    for wrong, meant in (
        ("runs/20261130-081502-dmo", "; did you mean 'runs/20261130-081502-demo'?"),
        ("20261130-081502-demo", "; did you mean 'runs/20261130-081502-demo'?"),
        ("runs", "; did you mean its newest, 'runs/20261130-081502-demo'?"),
        ("elsewhere/nothing", "it has no run.json"),
    ):
        assert main(["show", wrong]) == 4
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(meant)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("words", [("history", "."), ("compare", "run", "run")])
def test_an_output_that_lacks_a_character_ends_no_command(run, encoding, words):
    program = "import sys; from pytest_llmeval.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"bench[letter]" in done.stdout


def test_one_bad_run_costs_a_history_no_other(run, project, capsys):
    (project.path / "bad").mkdir()
    for file in run.iterdir():
        if file.is_file():
            (project.path / "bad" / file.name).write_bytes(file.read_bytes())
    document = json.loads((run / "metrics.json").read_text())
    del document["results"][0]["data_hash"]
    (project.path / "bad" / "metrics.json").write_text(json.dumps(document))
    assert main(["history", "."]) == 0
    shown = capsys.readouterr().out
    assert "bench[letter] accuracy" in shown
    assert "bad/metrics.json: damaged, or of another version: results.0.data_hash: Field" in shown
