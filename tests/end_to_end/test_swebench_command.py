"""``llmeval swebench check``: gold patches several times, and the instances to be left out."""

from __future__ import annotations

import json
from itertools import cycle
from typing import ClassVar

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.evaluation import jobs
from pytest_llmeval.sandbox.swebench import TrialResult
from support.recorded_trials import RecordedTrials
from support.recorded_trials import answer_trials
from support.swebench_rows import log
from support.swebench_rows import row

GOOD = {"status": "finished", "log": log(), "exit_code": 0}
BAD = {"status": "finished", "log": log(old="FAILED"), "exit_code": 1}
BROKEN = {"status": "error", "detail": "no image"}


class Recurring(RecordedTrials):
    """Gives the results of an instance in turn, the last trial first."""

    results: ClassVar[dict[str, list[dict]]] = {}

    def run(self, trials):
        turns = {name: cycle(results) for name, results in self.results.items()}
        for trial in reversed(list(trials)):
            yield TrialResult(trial.id, **next(turns[trial.instance_id]))


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Run the command with these results of the instances; code, output and list of ids."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recorded.jsonl").touch()

    def run(*results: list[dict], arguments: tuple[str, ...] = ()):
        rows = [row(number) for number in range(1, len(results) + 1)]
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        names = [row["instance_id"] for row in rows]
        monkeypatch.setattr(Recurring, "results", dict(zip(names, results, strict=True)))
        code = main(["swebench", "check", "rows.jsonl", *arguments])
        output = capsys.readouterr()
        listed = tmp_path / "flaky.json"
        if code == 4:
            (line,) = output.err.splitlines()
            return code, line, None
        return code, output.out, json.loads(listed.read_text()) if listed.exists() else None

    answer_trials(monkeypatch)
    monkeypatch.setattr(jobs, "open_trials", Recurring)
    return run


def test_stable_instances(check):
    code, output, listed = check([GOOD], [GOOD], arguments=("-k", "2"))
    assert (code, listed) == (0, [])
    assert output == (
        "2 of 2 instances are resolved by their gold patch in all 2 runs; 0 to be excluded:"
        " flaky.json\n"
    )


def test_flaky_and_broken_instances(check):
    code, output, listed = check([GOOD, GOOD, BAD], [BAD], [GOOD], [BROKEN], [BAD, BROKEN])
    assert code == 1
    assert listed == ["mini__calc-1", "mini__calc-5", "mini__text-2"]
    reason = "1 of 1 PASS_TO_PASS fails: t.py::old"
    assert sorted(output.splitlines()) == sorted(
        [
            f"mini__calc-1: resolved in 2 of 3 runs: {reason}",
            f"mini__text-2: resolved in 0 of 3 runs: {reason}",
            "mini__text-4: resolved in 0 of 3 runs: no image",
            f"mini__calc-5: resolved in 0 of 3 runs: {reason}",
            "1 of 5 instances are resolved by their gold patch in all 3 runs; 3 to be excluded:"
            " flaky.json",
            "1 could not be run, and are not in the list",
        ]
    )


def test_the_list_is_what_exclude_takes(check):
    from pytest_llmeval.catalog.swebench import swebench_rows
    from pytest_llmeval.sources.exclusion import exclude_items

    _, _, listed = check([BAD], [GOOD])
    benchmark = swebench_rows("rows.jsonl", exclude=listed)
    rest, _ = exclude_items("swebench", benchmark.source(None), benchmark.exclusion)
    assert [item.id for item in rest.items] == ["mini__text-2"]


def test_some_instances_and_limits(check, monkeypatch):
    opened = []

    class Noting(Recurring):
        def __init__(self, **limits):
            opened.append(limits)
            super().__init__(**limits)

    monkeypatch.setattr(jobs, "open_trials", Noting)
    arguments = ("--only", "mini__text-2", "--trials", "workers=4,images=epoch", "-k", "1")
    code, output, listed = check([BAD], [GOOD], arguments=arguments)
    assert (code, listed) == (0, [])
    assert output.startswith("1 of 1 instances")
    assert opened == [{"workers": 4, "images": ("epoch",)}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "mini__calc-2"), "no such instance; did you mean 'mini__calc-1'?"),
        (("-k", "0"), "at least one run"),
        (("--trials", "worker=1"), "no limit 'worker'; did you mean 'workers'?"),
        (("--trials", "workers"), "workers=VALUE was expected"),
        (("--trials", "workers=none"), "workers: 'none' is not a number above 0"),
        (("--trials", "network=1"), "network is '1', neither yes nor no"),
        (("--trials", "pull=no,pull=no"), "pull is given twice"),
    ],
)
def test_mistakes_are_one_line(check, arguments, message):
    code, line, _ = check([GOOD], arguments=arguments)
    assert code == 4
    assert message in line


def test_rows_that_cannot_be_read_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["swebench", "check", "none.jsonl"]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert "none.jsonl: no such file" in line
