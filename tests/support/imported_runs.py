"""Logs of other harnesses imported by tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.log import Log
from pytest_llmeval.interop.reading import read_log
from pytest_llmeval.interop.run_writer import write_run
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import load_run

PLAIN = ImportOptions()


def outcomes(log: Log, scorer: str) -> list[Outcome]:
    (benchmark,) = log.benchmarks
    return [answer.scores[scorer].outcome for answer in benchmark.answers]


def imported(folder: Path, out: Path, options: ImportOptions = PLAIN) -> Run:
    write_run(read_log(folder, options), out, str(folder))
    return load_run(out)


def counts(run: Run) -> dict[str, tuple[int, int, int, int]]:
    """Scorer → right, answered, unparsed, errors."""
    return {
        result.scorer: (
            result.counts.correct,
            result.counts.answered,
            result.counts.unparsed,
            result.counts.error,
        )
        for result in run.results()
    }


def refusal(folder: Path, options: ImportOptions = PLAIN) -> str:
    with pytest.raises(ConfigError) as error:
        read_log(folder, options)
    text = str(error.value)
    assert "\n" not in text
    return text
