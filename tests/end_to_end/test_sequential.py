"""Runs that stop when their gates are decided: the same verdicts, fewer items, nothing mixed up."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.core.seeded_random import order_key
from pytest_llmeval.runs import load_run
from support.wave_project import GATES
from support.wave_project import RULE
from support.wave_project import SIZES
from support.wave_project import gates
from support.wave_project import order


@pytest.fixture
def waves(project):
    """Three hundred items in three subjects, 80 % right, under one gate."""
    project.benchmark(**SIZES)
    project.model(respond=RULE.format(digits="19"))
    project.thresholds(GATES.format(accuracy=0.6))
    return project


def test_a_run_stops_at_the_end_of_a_wave(waves):
    result = waves.run("--llm-sequential")
    assert result.ret == 0
    requested = waves.requested
    assert 0 < len(requested) < 200
    assert len(requested) % 32 == 0
    assert set(requested) == set(order(waves)[: len(requested)])
    gate = gates(waves)["bench::accuracy"]
    assert gate["status"] == "pass"
    assert gate["n"] == len(requested)
    assert gate["sequential"]["population"] == 300
    assert gate["interval"][0] >= 0.6
    assert f"{300 - len(requested):,} not needed" in gate["reason"]
    assert gates(waves)["bench::max_errors"]["status"] == "pass"
    result.stdout.fnmatch_lines(
        [
            "PASS bench::accuracy: 0.7969 (bound >= 0.6) [[]0.6200, 0.9133]",
            f"*{300 - len(requested)} not needed; another verdict than a full run's with*",
            f"*stopped at {len(requested):,} of 300 items*",
            f"*{300 - len(requested)} not needed*",
        ],
        consecutive=False,
    )


def test_workers_change_no_decision(waves):
    waves.run("--llm-sequential")
    alone = waves.document("gates.json"), sorted(waves.requested)
    (waves.path / "asked.txt").unlink()
    waves.run("--llm-sequential", "-n", "2")
    assert (waves.document("gates.json"), sorted(waves.requested)) == alone


def test_the_order_is_that_of_the_key(waves):
    waves.run("--llm-sequential")
    manifest = waves.document("run.json")
    (result,) = manifest["results"]
    fingerprint = result["ways"][0]["fingerprint"]
    key = (0, result["data_hash"], fingerprint, manifest["models"][0])
    items = [f"{s}-{n:04d}" for s, size in SIZES.items() for n in range(size)]
    assert order(waves) == sorted(items, key=lambda item: order_key(*key, item))


def test_the_oracle_of_the_order():
    digits = {
        "a-0000": "986ffeb0b785122a",
        "a-0001": "caccdc2d211e78da",
        "a-0002": "a9d581bbc0f2f185",
        "b-0000": "b990fb973894db85",
        "b-0001": "de9f308f7d380068",
    }
    for item, first in digits.items():
        assert order_key(0, "dddddddd", "pppppppp", "demo", item).hex()[:16] == first


def test_the_verdict_is_that_of_the_full_run(waves):
    for accuracy, expected in ((0.6, "pass"), (0.93, "fail")):
        waves.thresholds(GATES.format(accuracy=accuracy))
        waves.run("--llm-sequential")
        assert gates(waves)["bench::accuracy"]["status"] == expected
        assert waves.metrics()["missing"] > 0
        waves.run()
        assert gates(waves)["bench::accuracy"]["status"] == expected
        assert waves.metrics()["missing"] == 0


def test_a_gate_at_the_truth_needs_nearly_all_items(waves):
    """The verdict after all items is the full run's, not an early one."""
    waves.thresholds(GATES.format(accuracy=0.8))
    waves.run("--llm-sequential")
    full = gates(waves)["bench::accuracy"]
    assert (full["status"], full["measured"]) == ("pass", 0.8)
    assert waves.metrics()["missing"] <= 12  # the last wave


def test_junit_has_the_reason(waves):
    waves.run("--llm-sequential", "--junitxml=out.xml")
    suite = ET.parse(waves.path / "out.xml").getroot()[0]
    cases = [case for case in suite if "test_bench" in case.attrib["name"]]
    assert len(cases) == 300
    reasons = [c[0].attrib["message"] for c in cases if len(c) and c[0].tag == "skipped"]
    needed = [reason for reason in reasons if "every gate was decided after" not in reason]
    requested = len(waves.requested)
    assert len(reasons) - len(needed) == 300 - requested
    assert f"every gate was decided after {requested} of 300 items" in reasons


def test_resuming_repeats_no_answer_and_changes_no_verdict(waves):
    waves.run("--llm-sequential")
    alone, requested = waves.document("gates.json"), sorted(waves.requested)
    (waves.path / "asked.txt").unlink()
    waves.model(
        respond=RULE.format(digits="19").replace(
            "    wrong", "    if sum(1 for _ in open('asked.txt')) == 40: raise KeyboardInterrupt\n    wrong", 1
        )
    )  # fmt: skip
    waves.pytester.runpytest_inprocess(
        *("-p", "no:cacheprovider", "-p", "no:hypothesispytest"),
        "--llm-sequential",
        no_reraise_ctrlc=True,
    )
    cut = gates(waves)["bench::accuracy"]
    assert cut["status"] == "undecided"
    assert "undecided after 32 of 300 items" in cut["reason"]
    waves.model(respond=RULE.format(digits="19"))
    waves.run("--llm-sequential", "--llm-resume")
    assert waves.document("gates.json")["gates"] == alone["gates"]
    # The request that was interrupted is sent again.
    assert sorted(set(waves.requested)) == requested
    assert len(waves.requested) == len(requested) + 1


def test_resuming_without_the_option_completes_the_run(waves):
    waves.run("--llm-sequential")
    first = waves.run_folder
    result = waves.run("--llm-resume")
    assert waves.run_folder == first
    assert result.ret == 0
    assert waves.metrics()["missing"] == 0
    assert "stopped" not in waves.metrics()
    assert gates(waves)["bench::accuracy"]["measured"] == 0.8
    assert "sequential" not in gates(waves)["bench::accuracy"]
    assert sorted(waves.requested) == sorted(set(waves.requested))


def test_other_gates_start_another_run(waves):
    waves.run("--llm-sequential")
    first = waves.run_folder
    waves.thresholds(GATES.format(accuracy=0.65))
    result = waves.run("--llm-sequential", "--llm-resume")
    assert waves.run_folder != first
    result.stdout.fnmatch_lines(["nothing to resume:*other gates, alpha or waves*"])


def test_a_stored_run_is_judged_again(waves, monkeypatch, capsys):
    monkeypatch.chdir(waves.path)
    waves.run("--llm-sequential")
    expected = gates(waves)["bench::accuracy"]
    assert main(["gate", "latest"]) == 0
    assert expected["reason"] in " ".join(capsys.readouterr().out.split())
    # A bound that was chosen later is decided by the confidence sequence, or not at all.
    waves.thresholds(GATES.format(accuracy=0.3))
    assert main(["gate", "latest"]) == 0
    waves.thresholds(GATES.format(accuracy=0.78))
    assert main(["gate", "latest"]) == 1
    assert "UNDECIDED bench::accuracy" in capsys.readouterr().out


def test_a_stopped_run_is_no_baseline(waves, monkeypatch, capsys):
    monkeypatch.chdir(waves.path)
    waves.run("--llm-sequential")
    assert main(["baseline", "latest", "release"]) == 4
    assert "complete it first, with --llm-resume" in capsys.readouterr().err
    waves.run("--llm-resume")
    assert main(["baseline", "latest", "release"]) == 0


def test_a_stopped_run_is_compared_without_a_verdict(waves, monkeypatch, capsys):
    monkeypatch.chdir(waves.path)
    waves.run()
    full = waves.run_folder
    waves.run("--llm-sequential")
    main(["compare", str(full), "latest"])
    text = capsys.readouterr()
    assert "a run stopped before all items: no verdict: answers 'all' against" in text.out


def test_stopped_runs_are_not_ranked_and_not_in_the_history(waves, monkeypatch, capsys):
    monkeypatch.chdir(waves.path)
    waves.run()
    full = waves.run_folder
    waves.run("--llm-sequential")
    main(["compare", str(full), str(full), "latest"])
    assert "not ranked with complete runs" in capsys.readouterr().out
    main(["history", "runs"])
    out = " ".join(capsys.readouterr().out.split())
    assert "at 64 of 300 items" in out
    assert "accuracy (plain" in out
    assert "0.8000 (bound >= 0.6)" in out  # a line of one run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--llm-limit=5"], "--llm-sequential and --llm-limit cannot be combined"),
        (["--llm-shard=1/2"], "--llm-sequential and --llm-shard cannot be combined"),
        (["-k", "law"], "100 of 300 items of bench are selected"),
        (["--llm-thresholds=empty.toml"], "empty.toml has no gates for the benchmarks of this run"),
    ],
)
def test_mistakes(waves, arguments, message):
    (waves.path / "empty.toml").write_text("version = 1\n")
    result = waves.run("--llm-sequential", *arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{message}*"])
    assert waves.requested == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("alpha = 0.5", "thresholds.toml: sequential.alpha: alpha = 0.5 is not between 0 and 0.5"),
        ("wave = 0", "thresholds.toml: sequential.wave*"),
        (
            "waves = 3",
            "thresholds.toml: sequential.waves: unknown key 'waves'; did you mean 'wave'[?]",
        ),
    ],
)
def test_mistakes_in_the_table(waves, table, message):
    waves.thresholds(f"[sequential]\n{table}\n[benchmarks.bench]\naccuracy = 0.5")
    result = waves.run("--llm-sequential")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{message}*"])


def test_without_a_thresholds_file(waves):
    (waves.path / "thresholds.toml").unlink()
    result = waves.run("--llm-sequential")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*there is no thresholds.toml*"])


def records(project) -> Sequence[Any]:
    return load_run(project.run_folder).records


def test_reports_are_marked(waves):
    waves.run("--llm-sequential", "--llm-report=html,markdown,json")
    folder = waves.run_folder
    stopped = f"topped at {len(waves.requested)} of 300 items"
    for name in ("report.html", "report.md"):
        assert stopped in (folder / name).read_text(), name
    assert len(records(waves)) == len(waves.requested)
    (entry,) = json.loads((folder / "metrics.json").read_text())["results"]
    assert entry["stopped"] == {"asked": len(waves.requested), "population": 300}
    low, high = entry["wilson95"]
    assert low < entry["accuracy"] < high
    assert high - low > 0.1  # the confidence sequence, which is wider than Wilson's interval


def test_a_dry_run_estimates_the_share(waves):
    result = waves.run("--llm-sequential", "--llm-dry-run")
    assert result.ret == 0
    text = " ".join(result.stdout.str().split())
    assert (
        "bench: at 1, 2, 5, 10 points above its accuracy gate a sequential run needs about" in text
    )
    shares = [int(part) for part in re.findall(r"(\d+)% \(~", text)]
    assert len(shares) == 4
    assert shares == sorted(shares, reverse=True)
    assert shares[3] < 70
    assert waves.requested == []
