"""Trials of the miniature's patches, official and guarded, hostile ones, and failing machinery."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox.docker import LABEL
from pytest_llmeval.sandbox.docker import OWNER
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import owner
from pytest_llmeval.sandbox.swebench import Trial
from pytest_llmeval.sandbox.swebench import TrialResult
from pytest_llmeval.sandbox.swebench import Trials
from pytest_llmeval.sandbox.swebench import open_trials
from pytest_llmeval.sandbox.swebench import trials_identity
from pytest_llmeval.sandbox.types import IMAGE
from support import swebench_hostile as hostile
from support.swebench_miniature import clone
from support.swebench_miniature import miniature_image
from support.swebench_miniature import patch_of
from support.swebench_miniature import predictions
from support.swebench_miniature import row
from support.swebench_miniature import trial
from support.swebench_table import KINDS
from support.swebench_table import LIMITS
from support.swebench_table import check_guarded_verdicts
from support.swebench_table import check_official_verdicts
from support.swebench_table import hostile_trials
from support.swebench_table import is_resolved
from support.tiny_image import tiny_image

_others: set[str] = set()
"""Ids of the containers that this process had before: cells of sandboxes that other tests keep."""


@pytest.fixture(scope="module")
def image() -> str:
    image = miniature_image()
    _others.update(container.id for container in _containers())
    return image


@pytest.fixture(scope="module")
def trials(image: str) -> Iterator[Trials]:
    with open_trials(**LIMITS) as trials:
        yield trials
    assert _containers() == []


def _containers() -> list[Any]:
    """This process's, of trials."""
    client = connect()
    try:
        containers = client.containers.list(
            all=True,
            filters={"label": [f"{LABEL}=1", f"{OWNER}={owner()}"]},
            ignore_removed=True,
        )
        return [container for container in containers if container.id not in _others]
    finally:
        client.close()


def test_official_verdicts_are_those_of_swebench(trials: Trials, image: str) -> None:
    """One case of each kind; all of them are in tests/swebench."""
    check_official_verdicts(trials, image, "official", KINDS)


def test_guarded_verdicts_are_right(trials: Trials, image: str) -> None:
    check_guarded_verdicts(trials, image, KINDS)


@pytest.fixture(scope="module")
def repository(image: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clone(tmp_path_factory.mktemp("miniature") / "repository", runners=True)


def test_hostile_and_unusual_patches(trials: Trials, repository: Path) -> None:
    image = miniature_image(runners=True)
    cases = {**hostile.HOSTILE, **hostile.RIGHT}
    results = {each.id: each for each in trials.run(hostile_trials(cases, repository, image))}
    assert set(results) == set(cases)
    wrong = {
        case: (results[case].status, results[case].exit_code, results[case].detail)
        for case, wanted in cases.items()
        if results[case].status not in wanted.statuses
        or wanted.detail not in results[case].detail
        or is_resolved(results[case], guarded=True) != wanted.resolved
    }
    assert wrong == {}
    assert max(len(result.log) for result in results.values()) < 17_000_000


def test_configuration_that_the_gold_patch_touches_is_not_restored(
    trials: Trials, image: str, repository: Path
) -> None:
    def marks(folder: Path) -> None:
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --co\n")

    patch = patch_of(repository, marks)
    guarded, touched = (
        next(trials.run([trial("x", patch, image, guarded=True, patch=gold)]))
        for gold in (row()["patch"], patch)
    )
    assert "3 failed" in guarded.log
    assert "8 tests collected" in touched.log


def test_a_result_names_the_image_and_the_time(trials: Trials, image: str) -> None:
    (result,) = trials.run([trial("gold", predictions()["gold"] or "", image, guarded=True)])
    assert result.image_digest is not None
    assert result.image_digest.startswith("sha256:")
    assert result.seconds is not None
    assert 0 < result.seconds < 60
    assert (result.exit_code, result.detail) == (0, "")


def test_a_command_of_the_setup_that_fails_is_named(trials: Trials, image: str) -> None:
    script = row()["eval_script"].replace("git status\n", "git status\nmake no-such-target\n", 1)
    gold = trial("gold", predictions()["gold"] or "", image, guarded=True, eval_script=script)
    (result,) = trials.run([gold])
    assert result.status == "finished"
    assert result.detail == "setup failed: make no-such-target (exit 127)"
    assert is_resolved(result, guarded=True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"eval_script": "pytest"}, "the row's eval_script does not apply its test patch"),
        ({"test_patch": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}, "x"),
        ({"base_commit": "0" * 40}, "the test files cannot be reset"),
    ],
    ids=["script", "test patch", "base commit"],
)
def test_a_row_that_does_not_fit_is_an_error(
    trials: Trials, image: str, changes: dict[str, str], reason: str
) -> None:
    broken = trial("gold", predictions()["gold"] or "", image, guarded=True, **changes)
    (result,) = trials.run([broken])
    assert result.status == "error"
    assert reason in result.detail


def test_an_image_that_is_no_instance_is_an_error(trials: Trials) -> None:
    (result,) = trials.run([trial("gold", "x", IMAGE, guarded=True)])
    assert (result.status, result.detail) == ("error", "the image has no folder /testbed")


_TOOLS = ("cmp", "find", "git", "patch", "tar", "xargs")


@pytest.mark.parametrize(
    ("bash", "tools", "lacking"),
    [(False, (), "bash"), (True, (), "cmp"), (True, _TOOLS, "timeout")],
    ids=["nothing", "only bash", "all but one"],
)
def test_an_image_without_a_tool_is_an_error(
    trials: Trials, bash: bool, tools: tuple[str, ...], lacking: str
) -> None:
    client = connect()
    try:
        with tiny_image(client, bash=bash, tools=tools) as reference:
            (result,) = trials.run([trial("gold", "x", reference, guarded=True)])
    finally:
        client.close()
    assert (result.status, result.detail) == ("error", f"the image has no {lacking}")


def test_an_image_that_is_not_here_is_an_error(image: str) -> None:
    gold = trial("gold", "x", "sweb.eval.x86_64.no_1776_such-1:latest", guarded=True)
    with open_trials(pull=False) as trials:
        (result,) = trials.run([gold])
    assert result.status == "error"
    assert result.detail.startswith("no image sweb.eval.x86_64.no_1776_such-1:latest here")


def _hanging(image: str, count: int = 1, timeout: float = 600.0) -> Iterator[Trial]:
    for number in range(count):
        yield trial(str(number), predictions()["hangs"] or "", image, guarded=True, timeout=timeout)


def _running(count: int) -> list[Any]:
    """This process's containers, once there are `count` and tests run in each."""
    containers: list[Any] = []

    def run() -> bool:
        containers[:] = _containers()
        return len(containers) == count and all(map(_tests_run, containers))

    assert _eventually(run)
    return containers


def _tests_run(container: Any) -> bool:
    with contextlib.suppress(docker.errors.APIError):  # It has not started, or has ended.
        return any("pytest" in word for row in container.top()["Processes"] for word in row)
    return False


def test_a_container_that_is_ended_from_outside_is_tried_again_and_then_an_error(
    image: str,
) -> None:
    results: list[TrialResult] = []
    with open_trials(workers=1) as trials:
        thread = threading.Thread(target=lambda: results.extend(trials.run(_hanging(image))))
        thread.start()
        (first,) = _running(1)
        first.kill()
        assert _eventually(lambda: first.id not in [each.id for each in _running(1)])
        (second,) = _running(1)
        second.kill()
        thread.join(60)
    assert [(each.status, each.detail) for each in results] == [
        ("error", "the container was ended from outside")
    ]


def test_closing_ends_what_runs(image: str) -> None:
    results: list[TrialResult] = []
    trials = open_trials(workers=2)
    thread = threading.Thread(target=lambda: results.extend(trials.run(_hanging(image, 5))))
    thread.start()
    _running(2)
    trials.close()
    thread.join(30)
    assert not thread.is_alive()
    assert {each.status for each in results} == {"error"}
    assert _containers() == []


def test_leaving_the_results_ends_what_runs(image: str) -> None:
    def both() -> Iterator[Trial]:
        yield trial("first", predictions()["no_diff"] or "", image, guarded=True)
        yield from _hanging(image, 3)

    with open_trials(workers=2) as trials:
        results = trials.run(both())
        assert next(results).status == "patch_failed"
        began = time.monotonic()
        results.close()  # type: ignore[attr-defined]
        assert time.monotonic() - began < 30
        assert _containers() == []


_HOLD = """
import sys
sys.path[:0] = [sys.argv[1]]
from support.swebench_miniature import predictions, trial
from pytest_llmeval.sandbox.swebench import open_trials
with open_trials(workers=2) as trials:
    list(trials.run(
        trial(str(number), predictions()["hangs"], sys.argv[2], guarded=True, timeout=600.0)
        for number in range(2)
    ))
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_behind_a_killed_session(image: str, end: signal.Signals) -> None:
    tests = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, tests, image],
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    client = connect()
    label = {"label": f"{OWNER}={owner(process.pid)}"}

    def left() -> list[Any]:
        return client.containers.list(all=True, filters=label, ignore_removed=True)

    try:
        assert _eventually(lambda: len(left()) == 2)
        time.sleep(1.0)
        process.send_signal(end)
        process.wait(30)
        assert _eventually(lambda: not left())
    finally:
        process.kill()
        process.wait()
        client.close()


def test_what_a_killed_session_had_not_started_is_removed(image: str) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        gone = owner(process.pid)
        process.kill()
    client = connect()
    left, used = (
        client.containers.create(image, command="true", labels={LABEL: "1", OWNER: label})
        for label in (gone, owner())
    )
    try:
        open_trials().close()
        assert [each.id for each in _containers()] == [used.id]
        with pytest.raises(docker.errors.NotFound):
            left.reload()
    finally:
        used.remove()
        client.close()


def test_an_engine_that_goes_away_is_an_error(
    image: str, forwarded_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{forwarded_engine.path}")
    results: list[TrialResult] = []
    trials = open_trials(workers=1)
    thread = threading.Thread(target=lambda: results.extend(trials.run(_hanging(image))))
    thread.start()
    monkeypatch.delenv("DOCKER_HOST")
    _running(1)
    forwarded_engine.close()
    thread.join(60)
    trials.close()
    assert [each.status for each in results] == ["error"]
    assert "Docker" in results[0].detail or "no container starts" in results[0].detail
    assert _eventually(lambda: not _containers())


def _eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_the_identity_has_what_moves_a_verdict(trials: Trials) -> None:
    assert trials.identity == trials_identity(**LIMITS)
    assert "no network" in trials.identity
    for name, value in (("network", True), ("memory_mb", 1), ("disk_mb", 1), ("processes", 1)):
        assert trials_identity(**{**LIMITS, name: value}) != trials.identity
    assert trials_identity(**{**LIMITS, "workers": 9}) == trials.identity


def test_an_unknown_runtime_is_one_line(image: str) -> None:
    with pytest.raises(ConfigError, match="sandbox runtime 'none-such': Docker knows "):
        open_trials(runtime="none-such")


def test_an_unknown_limit_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"no limit 'memory'.*memory_mb"):
        trials_identity(memory=1)
