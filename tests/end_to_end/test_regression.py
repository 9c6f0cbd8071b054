"""Regression gates against a baseline, over the whole of MMLU and over the small benchmark."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_llmeval.catalog.mmlu import TEST_ROWS

TEST = """
import pytest
from pytest_llmeval.catalog import mmlu

@pytest.mark.llmeval(mmlu())
def test_mmlu(answer):
    assert answer.correct
"""
WORSE = "college_mathematics"
THRESHOLDS = """
[benchmarks.mmlu.regression]
max_drop = 0.01
max_subject_drop = 0.05
"""


@pytest.fixture
def mmlu_project(project):
    """MMLU's subjects and sizes with made-up rows, gold always B."""
    (project.path / "test_bench.py").write_text(TEST)
    (project.path / "conftest.py").unlink()
    for split in ("dev", "test"):
        folder = project.path / "data" / "mmlu" / split
        folder.mkdir(parents=True)
        for subject, rows in TEST_ROWS.items():
            with (folder / f"{subject}_{split}.csv").open("w", newline="") as file:
                for row in range(5 if split == "dev" else rows):
                    csv.writer(file).writerow([f"{subject} {split} {row}?", *"wxyz", "B"])
    project.thresholds(THRESHOLDS)
    return project


def write_answers(file: Path, right: Mapping[tuple[str, int], bool]) -> None:
    with file.open("w") as lines:
        for (subject, row), good in right.items():
            answer = {"subject": subject, "row": row, "prediction": "B" if good else "C"}
            lines.write(json.dumps(answer) + "\n")


def planted(seed: int) -> tuple[dict[tuple[str, int], bool], dict[tuple[str, int], bool]]:
    """A model at 60 % everywhere, and one that is 0.5 points better but 15 worse in one subject."""
    rng = random.Random(seed)
    before, after = {}, {}
    for subject, rows in TEST_ROWS.items():
        right = round(0.6 * rows)
        moved = -15 if subject == WORSE else round(0.005 * rows)
        order = rng.sample(range(rows), rows)
        for place, row in enumerate(order):
            before[subject, row] = place < right
            after[subject, row] = place < right + moved
    return before, after


def test_one_subject_that_got_worse_is_named_although_the_average_rose(mmlu_project):
    """Of 14,042 items 15 got worse, in one subject, and some 70 better, in all others."""
    before, after = planted(seed=20)
    for name, right in (("before", before), ("after", after)):
        write_answers(mmlu_project.path / f"{name}.jsonl", right)
    arguments = ["--llm-data=data"]
    result = mmlu_project.run(*arguments, "--llm-model=replay:before.jsonl", "--llm-runs=old")
    # Without a baseline a regression gate is undecided, which is red.
    result.stdout.fnmatch_lines(["UNDECIDED mmlu::regression:*", "*no baseline to compare with*"])
    assert result.ret == 1
    (baseline,) = (mmlu_project.path / "old").glob("*/")

    result = mmlu_project.run(
        *arguments, "--llm-model=replay:after.jsonl", f"--llm-baseline={baseline}"
    )
    assert result.ret == 1
    old = json.loads((baseline / "metrics.json").read_text())["results"][0]
    assert mmlu_project.metrics()["accuracy"] > old["accuracy"]
    verdicts = {gate["id"]: gate for gate in mmlu_project.document("gates.json")["gates"]}
    assert len(verdicts) == 58
    failed = [gate for gate in verdicts.values() if gate["status"] == "fail"]
    assert [gate["subject"] for gate in failed] == [WORSE]
    assert failed[0]["measured"] == pytest.approx(0.15)
    assert verdicts["mmlu::regression::max_drop"]["status"] == "pass"
    (line,) = {line for line in result.outlines if line.startswith("FAIL mmlu")}
    assert WORSE in line

    # The stored run is judged the same without a model, also against a named baseline.
    llmeval = mmlu_project.pytester.run
    assert llmeval("llmeval", "baseline", baseline, "last-release").ret == 0
    size = (mmlu_project.path / "baselines" / "last-release.json").stat().st_size
    assert size < 150_000
    judged = llmeval("llmeval", "gate", mmlu_project.run_folder, "--baseline", "last-release")
    assert judged.ret == 1
    assert [text for text in judged.outlines if text.startswith("FAIL ")] == [line]
    compared = llmeval("llmeval", "compare", baseline, mmlu_project.run_folder)
    assert compared.ret == 0
    compared.stdout.fnmatch_lines([f"*{WORSE}*0.6000*0.4500*"])


REGRESSION = """
[benchmarks.bench.regression]
max_drop = 0.1
"""


def test_a_drop_that_may_be_chance_warns_and_passes(project):
    project.benchmark(art=40)
    project.thresholds(REGRESSION)
    project.run("--llm-runs=old", "--llm-allow-undecided")
    (baseline,) = (project.path / "old").glob("*/")
    worse = """
    def respond(self, request):
        wrong = int(request.id[-4:]) < {wrong}
        scores = (-1.0, -2.0, -3.0, -4.0) if wrong else (-2.0, -1.0, -3.0, -4.0)
        return Response(request.id, logprobs=scores)
    """
    # Item 0 is wrong in the baseline: 5 newly wrong have p = 0.0625, 6 have 0.03125.
    project.model(respond=worse.format(wrong=6))
    result = project.run(f"--llm-baseline={baseline}")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["WARN bench::regression::max_drop: 0.1250*", "*but not*"])
    project.model(respond=worse.format(wrong=7))
    result = project.run(f"--llm-baseline={baseline}")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAIL bench::regression::max_drop: 0.1500*"])
    comparison = project.document("comparison.json")
    assert len(comparison["comparisons"][0]["newly_wrong"]) == 6


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"test": "--llm-shots=1"}, "shots 0 against 1"),
        ({"text": ('scorer="letter"', 'scorer="letter", prefix="So"')}, "prefix '' against 'So'"),
        ({"text": ("question {row}?", "question {row}!")}, "data "),
    ],
)
def test_another_protocol_or_other_data_is_refused_before_any_request(project, change, field):
    project.thresholds(REGRESSION)
    project.run("--llm-runs=old")
    (baseline,) = (project.path / "old").glob("*/")
    (project.path / "asked.txt").unlink()
    if "text" in change:
        test = project.path / "test_bench.py"
        test.write_text(test.read_text().replace(*change["text"]))
    arguments = [f"--llm-baseline={baseline}", *([change["test"]] if "test" in change else [])]
    result = project.run(*arguments)
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line]
    assert field in line
    assert "bench[letter]" in line
    assert project.requested == []
    assert not (project.path / "runs").exists()

    # On request by an option, the numbers are shown, and there is no verdict.
    result = project.run(*arguments, "--llm-allow-mismatch")
    assert result.ret == 1
    assert "differ" in result.stdout.str()
    (gate,) = project.document("gates.json")["gates"]
    assert gate["status"] == "undecided"


def test_an_invalid_baseline_is_reported_in_one_line(project):
    project.run("--llm-runs=old")
    (baseline,) = (project.path / "old").glob("*/")
    for wanted, part in [
        ("nowhere", "'nowhere'"),
        ("test_bench.py", "test_bench.py"),
        (str(baseline / "records.jsonl"), "records.jsonl"),
    ]:
        result = project.run(f"--llm-baseline={wanted}")
        assert result.ret == 4, wanted
        (line,) = [line for line in result.errlines if line]
        assert part in line


def test_a_baseline_of_a_part_leaves_the_whole_undecided(project):
    project.thresholds(REGRESSION + "max_subject_drop = 0.3\n")
    project.run("--llm-runs=old", "-k", "law or zoo")
    (baseline,) = (project.path / "old").glob("*/")
    result = project.run(f"--llm-baseline={baseline}")
    assert result.ret == 1
    verdicts = {gate["id"]: gate["status"] for gate in project.document("gates.json")["gates"]}
    assert verdicts == {
        "bench::regression::max_drop": "undecided",
        "bench::regression::every_subject::art::max_subject_drop": "undecided",
        "bench::regression::every_subject::law::max_subject_drop": "pass",
        "bench::regression::every_subject::zoo::max_subject_drop": "pass",
    }
