"""Patches end to end: predictions are replayed, their trials are answered from records."""

from __future__ import annotations

import json

import pytest

from pytest_llmeval.sandbox.docker import connect
from support import recorded_trials
from support import swebench_data
from support.swebench_data import needs_recorded
from support.swebench_rows import log
from support.swebench_rows import patch
from support.swebench_rows import row

BENCHMARK = """
import pytest
from pytest_llmeval.catalog.swebench import swebench_rows

@pytest.mark.llmeval(swebench_rows("rows.jsonl", name="mini", exclude={exclude!r}))
def test_mini(answer):
    assert answer.correct
"""

# What the trials of the five instances give to a patch that is not the gold patch.
RESULTS = {
    1: {"log": log(), "exit_code": 0},
    2: {"log": log(new="FAILED", old="FAILED"), "exit_code": 1},
    3: {"status": "patch_failed", "detail": "calc/core.py: does not match"},
    4: {"status": "timeout", "log": "still running"},
    5: {"status": "error", "detail": "no image swebench/x: pull refused"},
}


class Patches:
    """A project with instances, predictions and recorded trials."""

    def __init__(self, project) -> None:
        self.project = project
        self.rows = [row(number) for number in range(1, 6)]
        self.predictions = [
            {"instance_id": row["instance_id"], "model_patch": patch(f"mine {row['instance_id']}")}
            for row in self.rows
        ]
        self.recorded = [
            {"instance_id": row["instance_id"], **RESULTS[number]}
            for number, row in enumerate(self.rows, start=1)
        ]
        self.gold = {"log": log(), "exit_code": 0}
        self.exclude: list[str] = []
        (project.path / "test_bench.py").unlink()

    def run(self, *arguments, predictions: str = "preds.jsonl"):
        self._lines("rows.jsonl", self.rows)
        if predictions == "preds.jsonl":
            self._lines(predictions, self.predictions)
        gold = [
            {"instance_id": row["instance_id"], "patch": row["patch"], **self.gold}
            for row in self.rows
        ]
        self._lines("recorded.jsonl", [*gold, *self.recorded])
        path = self.project.path
        (path / "test_mini.py").write_text(BENCHMARK.format(exclude=self.exclude))
        (path / "conftest.py").write_text(recorded_trials.CONFTEST)
        return self.project.run(f"--llm-model=replay:{predictions}", *arguments)

    def _lines(self, name: str, records: list[dict]) -> None:
        text = "".join(json.dumps(record) + "\n" for record in records)
        (self.project.path / name).write_text(text)

    @property
    def ran(self) -> list[dict]:
        """The trials that were run, in their order."""
        file = self.project.path / "ran.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def records(self, scorer: str = "resolved") -> dict[str, dict]:
        """The last record of every instance, by its number."""
        lines = (self.project.run_folder / "records.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        return {
            record["item"].rpartition("-")[2]: record
            for record in records
            if record["scorer"] == scorer
        }


@pytest.fixture
def patches(project) -> Patches:
    return Patches(project)


def test_outcomes_and_their_reasons(patches):
    patches.predictions.append({"instance_id": "mini__text-6", "model_patch": None})
    patches.rows.append(row(6))
    patches.rows.append(row(7))
    result = patches.run()
    records = patches.records()
    outcomes = {number: record["outcome"] for number, record in records.items()}
    assert outcomes == {
        "1": "correct",
        "2": "wrong",
        "3": "wrong",
        "4": "wrong",
        "5": "error",
        "6": "unparsed",
        "7": "error",
    }
    assert records["1"]["answer"] == "resolved"
    assert records["2"]["answer"] == (
        "1 of 2 FAIL_TO_PASS, 1 of 1 PASS_TO_PASS fail: t.py::new, t.py::old"
    )
    assert records["3"]["answer"] == "the patch does not apply: calc/core.py: does not match"
    assert records["4"]["answer"].startswith("timeout")
    assert records["5"]["error"] == "no image swebench/x: pull refused"
    assert records["7"]["error"] == "no recorded answer for mini__calc-7"
    assert "failing tests:\nt.py::new\nt.py::old" in records["2"]["log"]
    assert "FAILED t.py::new" in records["2"]["log"]
    metrics = patches.project.metrics()
    assert (metrics["correct"], metrics["errors"], metrics["accuracy"]) == (1, 2, None)
    assert metrics["resolved_rate"] == pytest.approx(1 / 7)
    result.stdout.fnmatch_lines(
        ["mini[[]resolved]: 1 of all 7 resolved (14.3%): the official rate,*"]
    )
    assert set(metrics["subjects"]) == {"mini/calc", "mini/text"}


def test_the_official_quotient_is_a_gate(patches):
    patches.recorded = patches.recorded[:4]
    patches.rows = patches.rows[:4]
    patches.predictions = patches.predictions[:4]
    patches.project.thresholds("[benchmarks.mini]\nresolved_rate = 0.25")
    assert patches.run().ret == 0
    patches.project.thresholds("[benchmarks.mini]\nresolved_rate = 0.5")
    result = patches.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*mini::resolved_rate*0.25*"])


def test_the_official_quotient_of_another_benchmark_is_refused(project):
    project.thresholds("[benchmarks.bench]\nresolved_rate = 0.5")
    result = project.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*resolved_rate*no patches to resolve: write accuracy"])


def test_gold_runs_first_and_equal_patches_run_once(patches):
    patches.rows, patches.recorded = patches.rows[:1], patches.recorded[:1]
    patches.predictions = [
        {"instance_id": "mini__calc-1", "model_patch": text, "sample": sample}
        for sample, text in enumerate((patch("a"), patch("a"), patches.rows[0]["patch"]))
    ]
    assert patches.run("--llm-samples=3").ret == 0
    # One run of the gold patch, which is the third prediction, and one of the two equal ones.
    assert [trial["gold"] for trial in patches.ran] == [True, False]
    assert patches.project.metrics()["pass@k"]["1"]["value"] == 1.0


def test_both_scorers_run_every_patch_once_each(patches):
    patches.rows, patches.recorded = patches.rows[:2], patches.recorded[:2]
    patches.predictions = patches.predictions[:2]
    patches.recorded[0] |= {"log": log(ends=False)}
    assert patches.run("--llm-protocol=both").ret == 0
    assert sum(trial["guarded"] for trial in patches.ran) == 4
    assert len(patches.ran) == 8
    guarded, official = patches.records("resolved"), patches.records("resolved_official")
    assert guarded["1"]["answer"].startswith("all tests pass, and the runner did not end")
    assert official["1"]["outcome"] == "correct"
    assert guarded["2"]["outcome"] == official["2"]["outcome"] == "wrong"


def test_an_instance_whose_gold_fails_is_an_error_and_is_named(patches):
    numbers = range(1, 13)
    patches.rows = [row(number) for number in numbers]
    patches.rows[6]["patch"] = patch("gold that fails")
    patches.predictions = [
        {"instance_id": row["instance_id"], "model_patch": patch("mine")} for row in patches.rows
    ]
    patches.recorded = [
        {"instance_id": row["instance_id"], "log": log(), "exit_code": 0} for row in patches.rows
    ]
    broken = {"log": log(also="FAILED"), "exit_code": 1}
    patches.recorded.append(
        {"instance_id": "mini__calc-7", "patch": patch("gold that fails"), **broken}
    )
    result = patches.run()
    assert result.ret == 1
    records = patches.records()
    assert records["7"]["outcome"] == "error"
    assert records["7"]["error"] == (
        "its own solution fails here: 1 of 2 FAIL_TO_PASS fails: t.py::also"
    )
    assert sum(record["outcome"] == "correct" for record in records.values()) == 11
    result.stdout.fnmatch_lines(["*reference solution mini__calc-7: 1 of 2 FAIL_TO_PASS fails*"])


def test_too_many_failing_gold_patches_measure_nothing(patches):
    patches.gold = {"status": "error", "detail": "no image"}
    result = patches.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the sandbox fails 5 of 5 reference solutions*: no image*"])


def test_only_gold_of_selected_instances_is_run(patches):
    assert patches.run("-k", "mini__calc-1").ret == 0
    assert {trial["instance"] for trial in patches.ran} == {"mini__calc-1"}


def test_a_resumed_run_runs_no_trial_again(patches):
    patches.predictions.pop()
    patches.rows.pop()
    assert patches.run().ret == 0
    before, ran = patches.project.metrics(), len(patches.ran)
    assert patches.run("--llm-resume").ret == 0
    assert len(patches.ran) == ran
    assert patches.project.metrics() == before
    # As a run leaves it that is killed while trials run: responses without a verdict.
    file = patches.project.run_folder / "records.jsonl"
    left = [line for line in file.read_text().splitlines() if "has not been run" in line]
    assert len(left) == 4
    file.write_text("\n".join(left) + "\n")
    assert patches.run("--llm-resume").ret == 0
    assert len(patches.ran) == ran
    assert patches.project.metrics() == before


def test_an_error_of_the_machinery_is_run_again(patches):
    assert patches.run().ret == 1
    patches.recorded[4] = {"instance_id": "mini__calc-5", "log": log(), "exit_code": 0}
    ran = len(patches.ran)
    assert patches.run("--llm-resume").ret == 0
    assert [trial["instance"] for trial in patches.ran[ran:]] == ["mini__calc-5"]
    assert patches.records()["5"]["outcome"] == "correct"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_workers_share_what_was_run(patches, workers):
    patches.predictions.pop()
    patches.rows.pop()
    assert patches.run("-n", workers).ret == 0
    assert patches.project.metrics()["correct"] == 1
    assert len([trial for trial in patches.ran if trial["gold"]]) == 4
    assert len([trial for trial in patches.ran if not trial["gold"]]) == 4


def test_shards_merge_to_the_whole_run_and_run_only_their_own_gold(patches):
    patches.predictions.pop()
    patches.rows.pop()
    for part in (1, 2):
        before = len(patches.ran)
        assert patches.run(f"--llm-shard={part}/2").ret == 0
        ran = patches.ran[before:]
        own = {each["instance"] for each in ran if not each["gold"]}
        assert len(own) == 2
        assert {each["instance"] for each in ran if each["gold"]} == own
    folder = patches.project.path
    shards = sorted((folder / "runs").glob("*/"))
    merged = patches.project.pytester.run("llmeval", "merge", *shards, "--out", "whole")
    assert merged.ret == 0
    assert patches.run("--llm-runs=undivided").ret == 0
    (undivided,) = (folder / "undivided").glob("*/")
    assert json.loads((folder / "whole" / "metrics.json").read_text()) == json.loads(
        (undivided / "metrics.json").read_text()
    )


def test_a_list_and_an_object_by_id_are_predictions_too(patches):
    folder = patches.project.path
    for name, value in (
        ("list.json", patches.predictions[:4]),
        (
            "object.json",
            {prediction["instance_id"]: prediction for prediction in patches.predictions[:4]},
        ),
    ):
        patches.rows = patches.rows[:4]
        (folder / name).write_text(json.dumps(value))
        assert patches.run(predictions=name).ret == 0
        assert patches.project.metrics()["correct"] == 1


def test_repeated_and_unknown_predictions_are_warned_of(patches):
    patches.predictions.insert(0, {"instance_id": "mini__calc-1", "model_patch": "no patch at all"})
    patches.predictions.append({"instance_id": "mini__calc-99", "model_patch": patch("x")})
    patches.exclude = ["mini__calc-5"]
    result = patches.run()
    assert result.ret == 0
    assert patches.records()["1"]["outcome"] == "correct"
    result.stdout.fnmatch_lines(
        [
            "preds.jsonl: several predictions for mini__calc-1: the last counts",
            "preds: 1 answers are recorded for items that no benchmark of the run has:"
            " mini__calc-99",
        ]
    )


def test_a_runner_that_breaks_ends_the_session(patches):
    patches.recorded[1]["raises"] = "the engine is gone"
    result = patches.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*sandbox: RuntimeError: the engine is gone*"])
    assert patches.records()["2"]["outcome"] == "error"


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
def test_instances_need_docker(patches, kind):
    arguments = ["--llm-i-trust-this-code"] if kind == "none" else []
    # The real identity, which is asked before anything runs.
    result = patches.run(f"--llm-sandbox={kind}", *arguments)
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line]
    assert line.endswith(
        f"instances of SWE-bench are images of Docker: --llm-sandbox docker was expected, not {kind}"
    )


def test_limits_of_trials_are_part_of_the_protocol(patches):
    patches.rows, patches.predictions = patches.rows[:1], patches.predictions[:1]
    assert patches.run("--llm-trials=network=yes,workers=3").ret == 0
    (variant,) = patches.project.document("run.json")["results"][0]["ways"]
    assert "('network', True)" in variant["protocol"]["sandbox"]
    result = patches.run("--llm-trials=netwrk=yes")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*no limit 'netwrk'; did you mean 'network'?"])


def test_a_dry_run_tells_how_many_images_are_missing(patches):
    result = patches.run("--llm-dry-run")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["mini: 4 of 5 images are not here, about 10 GB"])
    assert patches.ran == []


def test_without_an_engine_one_line_is_printed_before_anything_runs(patches, monkeypatch):
    monkeypatch.setattr(recorded_trials, "_Engine", connect)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    result = patches.run()
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line]
    assert "test_mini.py::test_mini runs code that models wrote, and" in line
    assert "no Docker engine answers at unix:///nowhere/docker.sock" in line
    # Instances have no other sandbox.
    assert line.endswith(": start it")


def test_the_page_shows_patch_and_log(patches):
    pytest.importorskip("jinja2")
    patches.rows, patches.predictions = patches.rows[:2], patches.predictions[:2]
    assert patches.run("--llm-report=html,json").ret == 0
    page = (patches.project.run_folder / "report.html").read_text()
    assert "1 of all 2 resolved (50.0%)" in page
    answers = patches.project.document("export.json")["answers"]
    assert any("failing tests:" in (answer["log"] or "") for answer in answers)


def test_a_resolved_patch_that_changes_comparisons_is_doubtful(patches):
    """In summary, metrics, Markdown and page; also where its verdict is read from the run folder."""
    pytest.importorskip("jinja2")
    patches.rows, patches.predictions = patches.rows[:2], patches.predictions[:2]
    for prediction in patches.predictions:  # One is resolved.
        prediction["model_patch"] = patch("    def __eq__(self, other):", "calc/core.py")
    reason = "calc/core.py changes comparisons"
    result = patches.run("--llm-report=html,markdown")
    assert result.ret == 0
    text = " ".join(result.stdout.str().split())
    assert (
        f"1 resolved instance has a doubtful patch, to be read before the result is used: mini__calc-1: {reason}"
        in text
    )
    assert patches.project.metrics()["doubtful"] == {"mini__calc-1": reason}
    assert "extraction" not in patches.project.metrics()
    for name in ("report.html", "report.md"):
        assert reason in (patches.project.run_folder / name).read_text().replace("\\_", "_")
    file = patches.project.run_folder / "records.jsonl"
    left = [line for line in file.read_text().splitlines() if "has not been run" in line]
    file.write_text("\n".join(left) + "\n")
    ran = len(patches.ran)
    assert patches.run("--llm-resume").ret == 0
    assert len(patches.ran) == ran
    assert patches.records()["1"]["detail"] == f"doubtful: {reason}"


# Recorded logs -------------------------------------------------------------------------


def _passing(row: dict) -> str:
    """A log in which all tests of a row pass, as its runner prints them."""
    lines = [
        *swebench_data.tests_of(row["FAIL_TO_PASS"]),
        *swebench_data.tests_of(row["PASS_TO_PASS"]),
    ]
    if row["log_parser"] == "parse_log_django":
        lines = [f"{test} ... ok" for test in lines]
    elif row["log_parser"] == "parse_log_sympy":
        lines = [f"{test} ok" for test in lines]
    else:
        lines = [f"PASSED {test}" for test in lines]
    return "\n".join((">>>>> Start Test Output", *lines, ">>>>> End Test Output", ""))


@needs_recorded
def test_the_predictions_of_vexp_get_their_recorded_verdicts(patches):
    """98 logs of the harness 4.x through the plugin, and the two predictions without a log."""
    read = pytest.importorskip("pyarrow.parquet").read_table
    verified = read(swebench_data.RECORDED / "rows" / "SWE-bench_Verified_test.parquet").to_pylist()
    summary = swebench_data.document("verified_vexp/summary.json")
    patches.rows = [row for row in verified if row["instance_id"] in summary["submitted_ids"]]
    patches.predictions = swebench_data.lines("verified_vexp/predictions.jsonl")
    logs = {
        line["instance_id"]: line["test_output"]
        for line in swebench_data.lines("verified_vexp/logs.jsonl.xz")
    }
    patches.predictions.append({"instance_id": "django__django-13513", "model_patch": ""})
    patches.recorded = [{"instance_id": name, "log": text} for name, text in logs.items()]
    patches.recorded.append(
        {"instance_id": "pydata__xarray-6992", "status": "error", "detail": "no log is recorded"}
    )
    patches.recorded += [
        {"instance_id": row["instance_id"], "patch": row["patch"], "log": _passing(row)}
        for row in patches.rows
    ]
    result = patches.run("--llm-protocol=official")
    metrics = patches.project.metrics()
    records = patches.records("resolved_official")
    assert metrics["resolved_rate"] == pytest.approx(0.73)
    resolved = {record["item"] for record in records.values() if record["outcome"] == "correct"}
    assert resolved == set(summary["resolved_ids"])
    assert (metrics["n_total"], metrics["wrong"], metrics["unparsed"]) == (100, 25, 1)
    assert records["6992"]["error"] == "no log is recorded"
    result.stdout.fnmatch_lines(["*73 of all 100 resolved (73.0%)*"])
