"""The same verdict beside plugins that many projects have, on a terminal (`tox -e plugins`)."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pytest_sugar", reason="tox -e plugins installs the plugins")

PROJECT = """
import time

import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Response, Template

ITEMS = tuple(Item(f"{s}-{n}", s, f"{s} {n}?", 1, ("one", "two")) for s in "ab" for n in range(8))
TEMPLATE = Template("plain", lambda s: "", lambda i: i.question, lambda i: ("A", "B"))
BENCH = Benchmark(
    "bench", lambda folder: Dataset(ITEMS), (Protocol("plain", TEMPLATE, scorer="letter"),)
)


@pytest.fixture(scope="session")
def model():
    class Scripted:
        name, fingerprint, asks = "scripted", "weights", frozenset({"choices"})

        def answer(self, requests):
            time.sleep(1.5)  # loads its weights
            for request in requests:
                right = not request.id.startswith("a-0")
                yield Response(request.id, logprobs=(-2.0, -1.0) if right else (-1.0, -2.0))

    return Scripted()


@pytest.mark.llmeval(BENCH)
def test_bench(answer):
    assert answer.correct


def test_ordinary():
    pass
"""
PLUGINS = {
    "none": (),
    "sugar": ("-p", "sugar"),
    "html": ("-p", "metadata", "-p", "html", "--html=report.html", "--self-contained-html"),
    "cov": ("-p", "pytest_cov", "--cov=."),
    "randomly": ("-p", "randomly"),
    "timeout": ("-p", "timeout", "--timeout=1"),
    "instafail": ("-p", "instafail", "--instafail"),
    "reportlog": ("-p", "pytest_reportlog", "--report-log=log.jsonl"),
    "split": ("-p", "pytest-split", "--splits=1", "--group=1"),
    "rerunfailures": ("-p", "rerunfailures", "--reruns=1"),
    "allure": ("-p", "allure_pytest", "--alluredir=allure"),
}
ALL = tuple(argument for arguments in PLUGINS.values() for argument in arguments)

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run pytest in a new project on a pseudo-terminal: its exit code and what it printed."""
    (tmp_path / "test_project.py").write_text(PROJECT)
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "TERM": "xterm",
        "COLUMNS": "100",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }

    def start(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-p", "pytest_llmeval.plugin", *arguments]
        main, terminal = pty.openpty()
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdin=terminal, stdout=terminal, stderr=terminal
        )
        os.close(terminal)
        printed = b""
        try:
            while piece := os.read(main, 1 << 16):
                printed += piece
        except OSError:  # Linux reports the end of a terminal this way
            pass
        os.close(main)
        text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", printed).decode(errors="replace")
        return process.wait(), text.replace("\r", "\n")

    return start


WITHOUT_SPLIT = tuple(
    argument for name, arguments in PLUGINS.items() if name != "split" for argument in arguments
)
XDIST = ("-p", "xdist", "-n", "2")
CASES = {
    **PLUGINS,
    "all": ALL,
    "sugar and xdist": (*PLUGINS["sugar"], *XDIST),
    "all but split, and xdist": (*WITHOUT_SPLIT, *XDIST),
}


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES)
def test_verdict_and_counts_are_those_without_the_plugin(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "thresholds.toml").write_text(
        "version = 1\n[benchmarks.bench]\naccuracy = 0.9\nmax_errors = 0\nmacro_accuracy = 0.95\n"
    )
    code, text = run(*arguments)
    assert code == 1, text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    assert re.search(r"^FAIL bench::macro_accuracy: 0\.9375 ", text, re.MULTILINE), text
    assert re.search(r"^PASS bench::accuracy: 0\.9375 ", text, re.MULTILINE), text
    (folder,) = (tmp_path / "runs").glob("*/")
    (result,) = json.loads((folder / "metrics.json").read_text())["results"]
    assert (result["items"], result["correct"], result["errors"]) == (16, 15, 0)
    gates = json.loads((folder / "gates.json").read_text())
    assert [gate["status"] for gate in gates["gates"]] == ["pass", "fail", "pass"]


@pytest.mark.parametrize("arguments", [PLUGINS["sugar"], ALL], ids=["sugar", "all"])
def test_green_is_green(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "thresholds.toml").write_text(
        textwrap.dedent("version = 1\n[benchmarks.bench]\naccuracy = 0.9\n")
    )
    code, text = run(*arguments)
    assert code == 0, text
    assert "Traceback" not in text


def test_reports_of_plugins_hold_the_gates(run: Run, tmp_path: Path) -> None:
    (tmp_path / "thresholds.toml").write_text(
        "version = 1\n[benchmarks.bench]\naccuracy = 0.9\nmacro_accuracy = 0.95\n"
    )
    run(*ALL, "--junitxml=junit.xml", "-p", "junitxml")
    named = "thresholds.toml::bench::accuracy"
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    outcomes = {entry["nodeid"]: entry["outcome"] for entry in log if entry.get("when") == "call"}
    assert outcomes[named] == "passed"
    assert outcomes["thresholds.toml::bench::macro_accuracy"] == "failed"
    assert "macro_accuracy" in (tmp_path / "junit.xml").read_text()
    assert "macro_accuracy" in (tmp_path / "report.html").read_text()
