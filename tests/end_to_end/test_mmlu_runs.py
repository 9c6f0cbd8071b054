"""MMLU through the whole plugin: recorded answers, and a run that is killed and resumed."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_llmeval.catalog.mmlu import TEST_ROWS

RECORDED = "outputs/mmlu/llama-2-7b-hf_5shot_predictions.jsonl.gz"

TEST = """
import pytest
from pytest_llmeval.catalog import mmlu

@pytest.mark.llmeval(mmlu())
def test_mmlu(answer):
    assert answer.correct
"""


@pytest.fixture
def mmlu_project(project):
    (project.path / "test_bench.py").write_text(TEST)
    (project.path / "conftest.py").unlink()
    return project


def test_recorded_answers_of_llama_2_give_their_published_count(mmlu_project, data):
    """5,791 of 12,343: the recording lacks two subjects, whose items are errors, not wrong."""
    arguments = (f"--llm-data={data}", f"--llm-model=replay:{data / RECORDED}")
    result = mmlu_project.run(*arguments, "--llm-protocol=hendrycks")
    assert result.ret == 1
    metrics = mmlu_project.metrics()
    assert (metrics["correct"], metrics["answered"], metrics["errors"]) == (5791, 12343, 1699)
    assert metrics["unparsed"] == 2
    assert metrics["accuracy"] is None

    # The same answers were not given to the prompts of the other protocol.
    result = mmlu_project.run(*arguments, "--llm-protocol=lmeval", "-k", "anatomy")
    assert result.ret == 1
    assert mmlu_project.metrics()["subjects"]["anatomy"]["errors"] == 135
    result.stdout.fnmatch_lines(["*recorded for another*"])


@pytest.fixture(scope="module")
def synthetic_mmlu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete tree in the official layout with made-up rows."""
    root = tmp_path_factory.mktemp("data")
    for split in ("dev", "test"):
        folder = root / "mmlu" / split
        folder.mkdir(parents=True)
        for subject, rows in TEST_ROWS.items():
            with (folder / f"{subject}_{split}.csv").open("w") as file:
                for row in range(5 if split == "dev" else rows):
                    file.write(f"{subject} {split} {row}?,one,two,three,four,{'ABCD'[row % 4]}\n")
    return root


SLOW_MODEL = """
import pytest
from pytest_llmeval.testing import FakeModel

@pytest.fixture(scope="session")
def model():
    return FakeModel(lambda request: (-1.0, -1.5, -2.0, -2.5), delays=0.004)
"""


def test_a_run_of_three_subjects_survives_kill_9(mmlu_project, synthetic_mmlu):
    """At a random moment, as a machine that goes down would choose it."""
    (mmlu_project.path / "conftest.py").write_text(SLOW_MODEL)
    subjects = ("anatomy", "astronomy", "virology")
    mmlu_project.thresholds(
        "".join(f"[benchmarks.mmlu.subjects.{name}]\naccuracy = 0.2\n" for name in subjects)
    )
    arguments = [f"--llm-data={synthetic_mmlu}", "-k", " or ".join(subjects)]
    assert mmlu_project.run(*arguments, "--llm-runs=other").ret == 0
    (undisturbed,) = (mmlu_project.path / "other").glob("*/")
    items = sum(TEST_ROWS[name] for name in subjects)
    assert (undisturbed / "records.jsonl").read_bytes().count(b"\n") == items

    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    process = subprocess.Popen(
        command, cwd=mmlu_project.path, stdout=subprocess.DEVNULL, start_new_session=True
    )
    runs = mmlu_project.path / "runs"
    while not list(runs.glob("*/records.jsonl")):
        time.sleep(0.01)
        assert process.poll() is None
    time.sleep(random.uniform(0, 1.5))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (mmlu_project.run_folder / "metrics.json").exists()

    result = mmlu_project.run(*arguments, "--llm-resume")
    assert result.ret == 0
    assert len(list(runs.glob("*/"))) == 1
    for name in ("metrics.json", "gates.json"):
        assert (mmlu_project.run_folder / name).read_text() == (undisturbed / name).read_text()


def test_an_incomplete_copy_is_refused_before_anything_runs(mmlu_project, synthetic_mmlu, tmp_path):
    (mmlu_project.path / "conftest.py").write_text(SLOW_MODEL)
    for split in ("dev", "test"):
        folder = tmp_path / "mmlu" / split
        folder.mkdir(parents=True)
        for file in (synthetic_mmlu / "mmlu" / split).iterdir():
            if not file.name.startswith("virology"):
                (folder / file.name).symlink_to(file)
    result = mmlu_project.run(f"--llm-data={tmp_path}")
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line]
    assert "virology" in line
    assert not (mmlu_project.path / "runs").exists()


def test_a_recording_of_ours_can_be_replayed(mmlu_project, synthetic_mmlu):
    (mmlu_project.path / "conftest.py").write_text(SLOW_MODEL)
    arguments = (f"--llm-data={synthetic_mmlu}", "--llm-limit=2")
    mmlu_project.run(*arguments)
    first = mmlu_project.metrics()
    (mmlu_project.path / "conftest.py").unlink()
    records = mmlu_project.run_folder / "records.jsonl"
    mmlu_project.run(*arguments, f"--llm-model=replay:{records}")
    second = mmlu_project.metrics()
    assert second.pop("model") != first.pop("model")
    assert second == first


def test_the_recorded_format_is_that_of_the_readme(mmlu_project, synthetic_mmlu):
    with gzip.open(mmlu_project.path / "answers.jsonl.gz", "wt") as file:
        for row in range(100):
            line = {"subject": "virology", "row": row, "prediction": "A"}
            file.write(json.dumps(line) + "\n")
    result = mmlu_project.run(
        f"--llm-data={synthetic_mmlu}", "--llm-model=replay:answers.jsonl.gz", "-k", "virology-00"
    )
    assert result.ret == 0
    assert mmlu_project.metrics()["subjects"]["virology"]["correct"] == 25
