"""The README's files run as they are printed."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from support.paths import REPOSITORY

README = REPOSITORY / "README.md"
FILE = re.compile(r'^( *)```\w+ title="([^"]+)"\n(.*?)^ *```$', re.MULTILINE | re.DOTALL)


@pytest.fixture
def files(pytester: pytest.Pytester) -> Path:
    for _, name, text in FILE.findall(README.read_text()):
        (pytester.path / name).write_text(textwrap.dedent(text))
    return pytester.path


def test_the_benchmark_and_the_function_of_the_readme(pytester: pytest.Pytester, files: Path):
    with (files / "thresholds.toml").open("a") as file:
        file.write("\n[benchmarks.faq]\naccuracy = 1.0\n")
    result = pytester.runpytest_inprocess("test_faq.py", "-p", "no:hypothesispytest")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["faq?choice?*1.0000*", "PASS faq::accuracy*", "NOT RUN mmlu*"], consecutive=False
    )
    (folder,) = (files / "runs").glob("*/")
    (metrics,) = json.loads((folder / "metrics.json").read_text())["results"]
    assert metrics["correct"] == 3


def test_the_mmlu_test_of_the_readme_is_collected(pytester: pytest.Pytester, files: Path):
    """Without data and network, one line names all places."""
    # In a process of its own: `datasets`, which it looks for, can be imported only once.
    result = pytester.runpytest_subprocess(
        "test_mmlu.py", "--llm-data=.", "-p", "no:hypothesispytest"
    )
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line.startswith("ERROR")]
    assert "mmlu" in line


def test_every_option_is_in_the_readme(pytester: pytest.Pytester):
    result = pytester.runpytest_inprocess("--help", "-p", "no:hypothesispytest")
    options = set(re.findall(r"--llm-[a-z-]+", result.stdout.str()))
    assert len(options) >= 10
    assert options <= set(re.findall(r"--llm-[a-z-]+", README.read_text()))
