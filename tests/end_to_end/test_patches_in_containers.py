"""Patches end to end in containers: a gate, a planted regression, and a session that is killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.sandbox.docker import LABEL
from pytest_llmeval.sandbox.docker import OWNER
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import owner
from support.interrupting import kill
from support.interrupting import start
from support.interrupting import wait_until
from support.swebench_miniature import miniature_image
from support.swebench_miniature import predictions
from support.swebench_miniature import row

BENCHMARK = """
import pytest
from pytest_llmeval.catalog.swebench import swebench_rows

@pytest.mark.llmeval(swebench_rows("rows.jsonl", name="mini"))
def test_swebench(answer):
    assert answer.correct
"""
THRESHOLDS = """
[benchmarks.mini]
resolved_rate = 0.8
{regression}
"""
REGRESSION = """
[benchmarks.mini.regression]
max_drop = 0
alpha = 0.2
"""
"""Four of five that are newly wrong have p = 0.125."""
INSTANCES = [f"mini__calc-{number}" for number in range(1, 6)]
REGRESSED = INSTANCES[1:]
OPTIONS = ("--llm-trials=workers=6,pull=no,memory_mb=512", "-n", "2")
SLOW = """\
diff --git a/calc/__init__.py b/calc/__init__.py
--- a/calc/__init__.py
+++ b/calc/__init__.py
@@ -1 +1,3 @@
 \"\"\"A tiny calculator.\"\"\"
+import time
+time.sleep(4)
"""
"""It repairs nothing, and its tests still run when those of the other patches have ended."""


@pytest.fixture
def miniature(project) -> Any:
    """A project with copies of the miniature's instance and two files of predictions."""
    image = miniature_image()
    instances = [row("fixed") | {"instance_id": name, "image": image} for name in INSTANCES]
    gold = dict.fromkeys(INSTANCES, row()["patch"])
    worse = [predictions()[case] for case in ("wrong", "partly", "breaks_p2p")]
    path = project.path
    (path / "conftest.py").unlink()
    (path / "test_bench.py").write_text(BENCHMARK)
    _write_lines(path / "rows.jsonl", instances)
    _write_predictions(path / "good.jsonl", gold)
    _write_predictions(
        path / "worse.jsonl", gold | dict(zip(REGRESSED, [*worse, SLOW], strict=True))
    )
    return project


def _write_predictions(path: Path, patches: dict[str, str]) -> None:
    _write_lines(
        path, [{"instance_id": name, "model_patch": patch} for name, patch in patches.items()]
    )


def _write_lines(path: Path, values: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def test_a_killed_session_goes_on_to_the_verdict_of_an_undisturbed_one(miniature):
    miniature.thresholds(THRESHOLDS.format(regression=""))
    good = miniature.run("--llm-model=replay:good.jsonl", "--llm-runs=old", *OPTIONS)
    assert good.ret == 0
    good.stdout.fnmatch_lines(["mini[[]resolved]: 5 of all 5 resolved (100.0%)*"])
    (baseline,) = (miniature.path / "old").glob("*/")

    miniature.thresholds(THRESHOLDS.format(regression=REGRESSION))
    command = ("--llm-model=replay:worse.jsonl", f"--llm-baseline={baseline}", *OPTIONS)
    undisturbed = miniature.run(*command, "--llm-runs=whole")
    _assert_red(undisturbed)
    (whole,) = (miniature.path / "whole").glob("*/")
    # Five gold patches, one of which is a prediction too, and four others.
    assert len(_jobs(whole)) == 9

    process = start(miniature, *command)
    wait_until(miniature, lambda: _candidates_have_begun(miniature))
    owners = set(_owners(process.pid))
    wait_until(miniature, lambda: bool(_containers(owners, "running")))
    kill(process)
    before = _jobs(miniature.run_folder)
    assert 5 < len(before) < 9
    deadline = time.monotonic() + 20
    while left := _containers(owners, "running"):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)

    resumed = miniature.run(*command, "--llm-resume")
    _assert_red(resumed)
    # Also none that had been created and not yet started.
    assert _containers(owners) == []
    jobs = _jobs(miniature.run_folder)
    assert jobs[: len(before)] == before
    assert len(jobs) == len(set(jobs)) == 9
    assert miniature.document("metrics.json") == json.loads((whole / "metrics.json").read_text())
    assert miniature.document("gates.json") == json.loads((whole / "gates.json").read_text())
    assert _outcomes(miniature.run_folder) == _outcomes(whole)


def _assert_red(result: pytest.RunResult) -> None:
    assert result.ret == 1
    text = result.stdout.str()
    assert "FAIL mini::resolved_rate" in text
    assert "FAIL mini::regression::max_drop" in text
    assert "4 newly wrong, 0 newly right" in text
    assert f"newly wrong: {' '.join(REGRESSED)}" in text


def _jobs(folder: Path) -> list[str]:
    """Digests of the trials that have a verdict, in their order."""
    lines = (folder / "verdicts.jsonl").read_text().splitlines(keepends=True)
    return [json.loads(line)["job"] for line in lines if line.endswith("\n")]


def _candidates_have_begun(project: Any) -> bool:
    """Whether all gold patches and a candidate's patch have a verdict."""
    files = list((project.path / "runs").glob("*/verdicts.jsonl"))
    return bool(files) and len(_jobs(files[0].parent)) > len(INSTANCES)


def _outcomes(folder: Path) -> dict[str, tuple[str, str]]:
    """Outcome and reason by instance, of the last records."""
    lines = map(json.loads, (folder / "records.jsonl").read_text().splitlines())
    return {line["item"]: (line["outcome"], line["answer"]) for line in lines}


def _owners(group: int) -> Iterator[str]:
    """Labels of the containers that processes of a group make."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == group:
                yield owner(int(folder.name))
        except ProcessLookupError:
            continue


def _containers(owners: set[str], status: str | None = None) -> list[str]:
    client = connect()
    try:
        containers = client.containers.list(
            all=True, filters={"label": f"{LABEL}=1"}, ignore_removed=True
        )
        return [
            each.id
            for each in containers
            if each.labels.get(OWNER) in owners and status in (None, each.status)
        ]
    finally:
        client.close()
