"""``llmeval import``, and every command for stored runs on what it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_llmeval import cli
from support.foreign_logs import copy_log
from support.foreign_logs import edit_json
from support.foreign_logs import edit_lines
from support.foreign_logs import lm_eval_log
from support.foreign_logs import results_of
from support.foreign_logs import sample_log
from support.foreign_logs import samples_of

THRESHOLDS = """
version = 1
[benchmarks.lmeval_mini]
required = true
accuracy = 0.5
normalized_gain = { min = 0.1 }
max_errors = 0
[benchmarks.lmeval_mini.every_subject]
accuracy = 0.2
[benchmarks.lmeval_mini.subjects.mini_art]
accuracy = 0.3
[benchmarks.lmeval_mini.regression]
max_drop = 0.1
"""
GOOD = {"mini_art": [1, 1, 1, 0] * 5, "mini_law": [1, 0, 1, 1] * 5}
WORSE = {"mini_art": [1, 1, 1, 0] * 5, "mini_law": [0, 0, 0, 1] * 5}


def llmeval(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    capsys.readouterr()
    code = cli.main([str(argument) for argument in arguments])
    output, errors = capsys.readouterr()
    return code, output, errors


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with thresholds, a good log and a worse one."""
    monkeypatch.chdir(tmp_path)
    Path("thresholds.toml").write_text(THRESHOLDS)
    lm_eval_log(tmp_path / "good", GOOD, group="mini")
    lm_eval_log(tmp_path / "worse", WORSE, group="mini", model="org/worse")
    return tmp_path


def test_from_two_logs_to_a_red_gate(folder, capsys):
    code, output, _ = llmeval(capsys, "import", "good", "--out", "runs/good")
    assert code == 0
    assert "lmeval_mini[lmeval_acc]  40  0.7500" in output
    assert "imported from good, a log of lm-eval 0.4.13" in output
    code, output, _ = llmeval(capsys, "gate", "runs/good", "--baseline", "none")
    assert code == 0
    assert "PASS lmeval_mini::normalized_gain" in output
    assert llmeval(capsys, "baseline", "runs/good", "release")[0] == 0

    llmeval(capsys, "import", "worse", "--out", "runs/worse")
    code, output, _ = llmeval(capsys, "gate", "runs/worse", "--baseline", "release")
    assert code == 1
    assert "FAIL lmeval_mini::regression::max_drop: 0.2500" in output
    code, output, _ = llmeval(capsys, "compare", "release", "runs/worse")
    assert code == 0
    assert "10 newly wrong, 0 newly right" in output
    code, output, _ = llmeval(capsys, "history")
    assert "lmeval_mini[lmeval_acc]" in output


def test_every_command_reads_an_imported_run(folder, capsys):
    llmeval(capsys, "import", "good", "--out", "runs/good")
    code, output, _ = llmeval(capsys, "show", "latest")
    assert code == 0
    assert "model org/model (evaluated by lm-eval 0.4.13)" in output
    assert '"harness_version": "0.4.13"' in llmeval(capsys, "show", "--protocol")[1]
    for kind in ("html", "markdown", "codequality"):
        assert llmeval(capsys, "report", "runs/good", "--format", kind)[0] == 0
    page = Path("runs/good/report.html").read_text(encoding="utf-8")
    assert "Prompts and verdicts are those of lm-eval 0.4.13" in page
    assert llmeval(capsys, "export", "runs/good")[0] == 0
    rows = json.loads(Path("runs/good/export.json").read_text())["answers"]
    assert len(rows) == 40
    assert {row["model"] for row in rows} == {"org/model"}


def test_the_origin_is_stored(folder, capsys):
    llmeval(capsys, "import", "good", "--out", "runs/good")
    manifest = json.loads(Path("runs/good/run.json").read_text())
    imported = manifest["imported"]
    assert (imported["from"], imported["harness"]) == ("good", "lm-eval 0.4.13")
    first = imported["sha256"]
    edit_json(results_of(folder / "good"), lambda r: r.update(date=5.0))
    llmeval(capsys, "import", "good", "--out", "runs/again")
    again = json.loads(Path("runs/again/run.json").read_text())["imported"]["sha256"]
    assert len(first) == len(again) == 64
    assert first != again


def test_an_imported_run_is_not_merged_and_its_folder_not_replaced(folder, capsys):
    llmeval(capsys, "import", "good", "--out", "runs/good")
    code, _, errors = llmeval(capsys, "merge", "runs/good", "--out", "runs/merged")
    assert code == 4
    assert errors == (
        "llmeval: runs/good was imported from lm-eval 0.4.13: only shards of one run are merged\n"
    )
    code, _, errors = llmeval(capsys, "import", "worse", "--out", "runs/good")
    assert (code, errors) == (4, "llmeval: runs/good exists already\n")
    assert sorted(path.name for path in Path("runs").iterdir()) == ["good"]


def test_an_imported_run_is_not_resumed(project, capsys):
    lm_eval_log(project.path / "log", GOOD, group="mini")
    llmeval(capsys, "import", project.path / "log", "--out", project.path / "runs" / "imported")
    result = project.run("--llm-runs=runs", "--llm-resume")
    result.stdout.fnmatch_lines(["*nothing to resume: imported was imported from lm-eval 0.4.13*"])
    assert len(list((project.path / "runs").glob("*/run.json"))) == 2


def test_the_gates_of_an_imported_run_are_unknown_to_a_session(project):
    """Its tables need ``required = false``, or an earlier run of that benchmark."""
    (project.path / "thresholds.toml").write_text(
        "version = 1\n[benchmarks.lmeval_mini]\naccuracy = 0.5\n"
    )
    result = project.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*unknown benchmark 'lmeval_mini'*required = false*"])


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("lmeval_mini", "mini", "unknown benchmark 'mini'"),
        ("mini_art", "mini_arts", "has no subject 'mini_arts'; did you mean 'mini_art'?"),
    ],
)
def test_names_in_thresholds_are_checked(old, new, line, folder, capsys):
    Path("thresholds.toml").write_text(THRESHOLDS.replace(old, new))
    llmeval(capsys, "import", "good", "--out", "runs/good")
    code, _, errors = llmeval(capsys, "gate", "runs/good")
    assert code == 4
    assert line in errors


def test_a_generated_answer_has_no_chance_level(folder, capsys):
    lm_eval_log(folder / "text", {"mini": [1, 0, 1]}, text=True)
    llmeval(capsys, "import", "text", "--out", "runs/text")
    Path("thresholds.toml").write_text(THRESHOLDS.partition("[benchmarks.lmeval_mini.every")[0])
    code, _, errors = llmeval(capsys, "gate", "runs/text")
    assert code == 4
    assert "benchmark 'lmeval_mini' has no chance level" in errors


def test_gates_of_a_limited_log_are_undecided(folder, capsys):
    lm_eval_log(folder / "part", GOOD, group="mini", original=50)
    llmeval(capsys, "import", "part", "--out", "runs/part")
    code, output, _ = llmeval(capsys, "gate", "runs/part", "--baseline", "none")
    assert code == 1
    assert "UNDECIDED lmeval_mini::accuracy" in output
    assert "only 40 of 100 items were run" in output
    llmeval(capsys, "import", "part", "--out", "runs/whole", "--selection-is-benchmark")
    assert llmeval(capsys, "gate", "runs/whole", "--baseline", "none")[0] == 0


def test_an_answer_without_verdict_fails_its_gates(folder, capsys):
    edit_json(
        results_of(folder / "good"),
        lambda r: r["configs"]["mini_art"]["metric_list"][0].update(aggregation="other"),
    )
    edit_lines(samples_of(folder / "good"), lambda lines: lines[3].pop("acc"))
    code, output, _ = llmeval(capsys, "import", "good", "--out", "runs/good")
    assert code == 0
    assert "ERROR mini_art-0003: the log has no verdict on this answer" in output
    code, output, _ = llmeval(capsys, "gate", "runs/good", "--baseline", "none")
    assert code == 1
    assert "incomplete: 1 error (max_errors 0)" in output


def test_mistakes_are_one_line(folder, capsys):
    for arguments, line in (
        (["nothing"], "llmeval: nothing: no such log"),
        (["good", "--scorer", "ac"], "has no scorer 'ac'; did you mean 'acc'?"),
        (["good", "--subject", "x"], "--subject: the subjects of lm-eval are the tasks of a group"),
        (["good", "--model", " "], "--model is empty"),
    ):
        code, output, errors = llmeval(capsys, "import", *arguments, "--out", "runs/x")
        assert code == 4
        assert line in errors
        assert errors.count("\n") == 1
        assert output == ""
    assert not Path("runs/x").exists()


def test_the_recorded_pair(tmp_path, monkeypatch, capsys):
    """From 42 to 26 of 75: the drop fails with the exact p; other prompts and shots are refused."""
    monkeypatch.chdir(tmp_path)
    Path("thresholds.toml").write_text(
        "version = 1\n"
        '[benchmarks.lmeval_local_gsm8k_zero.scorers."lmeval_exact_match_flexible-extract".regression]\n'
        "max_drop = 0.01\n"
    )
    for size in ("175b", "6b"):
        source = sample_log("lm_eval", f"recorded_gsm8k_{size}_verification")
        copy_log(source, tmp_path / size)
        llmeval(capsys, "import", size, "--out", f"runs/{size}", "--selection-is-benchmark")
    llmeval(capsys, "baseline", "runs/175b", "large")
    code, output, _ = llmeval(capsys, "gate", "runs/6b", "--baseline", "large")
    assert code == 1
    assert "0.5600 -> 0.3467 over 75 items, 21 newly wrong, 5 newly right, p = 0.00249" in output

    edit_lines(
        samples_of(tmp_path / "6b"),
        lambda lines: [
            line["arguments"]["gen_args_0"].update(arg_0="Q: another?")
            for line in lines
            if line["doc_id"] == 0
        ],
    )
    edit_json(results_of(tmp_path / "6b"), lambda r: r["n-shot"].update(local_gsm8k_zero=5))
    llmeval(capsys, "import", "6b", "--out", "runs/changed", "--selection-is-benchmark")
    code, _, errors = llmeval(capsys, "gate", "runs/changed", "--baseline", "large")
    assert code == 4
    assert "cannot be compared" in errors
    assert "shots 0 against 5" in errors
    assert "requests.local_gsm8k_zero" in errors
