"""``llmeval init``: the first gate of a repository, as three small files that run as written."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.models.demo import INSTALL

COMMAND = "pytest benchmarks --llm-model demo --llm-thresholds thresholds.toml"
"""What the workflow runs, and what a person runs to see the same."""

_THRESHOLDS = """\
version = 1

# The bounds that a run must keep. A gate that fails, or that could not be decided, is red.
[benchmarks.starter]
accuracy = 0.50                 # short for { min = 0.50 }
max_errors = 0                  # an error is not an answer

# Uncomment when a baseline is kept (llmeval baseline RUN last-release):
# [benchmarks.starter.regression]
# max_drop = 0.05               # of the accuracy, where chance cannot explain it
# max_subject_drop = 0.20       # of any subject's
"""

_TEST = '''\
"""One test for every question. A wrong answer is a measurement; the gates decide."""

import pytest

from pytest_llmeval.catalog import starter


@pytest.mark.llmeval(starter(), protocol="cloze")
def test_starter(answer):
    assert answer.correct
'''

_WORKFLOW = f"""\
name: llmeval
on:
  pull_request:
  workflow_dispatch:
permissions:
  contents: read
jobs:
  evaluate:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: install
        run: |
          python -m pip install 'pytest-llmeval[hf]'
          {INSTALL}
      - name: evaluate
        run: {COMMAND} --junitxml junit.xml
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: llmeval
          path: |
            runs/
            junit.xml
"""

FILES: Mapping[str, str] = {
    "thresholds.toml": _THRESHOLDS,
    "benchmarks/test_starter.py": _TEST,
    ".github/workflows/llmeval.yml": _WORKFLOW,
}
"""Path in the repository → what ``init`` writes there."""


def add_commands(commands: Any) -> None:
    """Add ``init`` to the subparsers of ``llmeval``."""
    init = commands.add_parser("init", help="write thresholds, a benchmark test and a workflow")
    init.add_argument("folder", type=Path, nargs="?", default=Path(), metavar="DIR")
    init.set_defaults(command=_init)


def _init(options: argparse.Namespace) -> int:
    kept = []
    for name, text in FILES.items():
        file = options.folder / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as made:
                made.write(text)
        except FileExistsError:
            if not file.is_file():
                raise ConfigError(f"cannot write {file}: a folder or file is in its way") from None
            kept.append(name)
            print(f"kept  {file} (it exists)")
        except OSError as error:
            raise ConfigError(f"cannot write {file}: {error.strerror or error}") from None
        else:
            print(f"wrote {file}")
    if len(kept) < len(FILES):
        there = "" if options.folder == Path() else f"cd {shlex.quote(str(options.folder))} && "
        print(f"next: {there}{COMMAND}")
    return 0
