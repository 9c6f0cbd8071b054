"""``llmeval export`` for other tools, read again as these tools read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_llmeval import cli
from pytest_llmeval.reports.flat_metrics import flat_metrics
from pytest_llmeval.reports.flat_metrics import flat_parameters
from pytest_llmeval.reports.flat_metrics import flat_tags
from pytest_llmeval.runs.judging import read_judged_run
from support.foreign_logs import lm_eval_log


def llmeval(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    capsys.readouterr()
    code = cli.main([str(argument) for argument in arguments])
    output, errors = capsys.readouterr()
    return code, output, errors


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A run of two subjects, 60 of 80 right, in a working folder."""
    monkeypatch.chdir(tmp_path)
    lm_eval_log(Path("log"), {"a": [1, 1, 1, 0] * 10, "b": [1, 0, 1, 1] * 10}, group="faq")
    assert llmeval(capsys, "import", "log", "--out", "runs/x")[0] == 0
    return Path("runs/x")


def test_results_of_lm_eval(run, capsys):
    code, output, _ = llmeval(capsys, "export", run, "--format", "lm-eval")
    assert code == 0
    assert output == "wrote runs/x/lm_eval_results.json (1 kB)\n"
    results = json.loads((run / "lm_eval_results.json").read_text())
    own = results["results"]["lmeval_faq"]
    assert own["lmeval_acc,none"] == 0.75
    assert own["lmeval_acc_stderr,none"] == pytest.approx((0.75 * 0.25 / 79) ** 0.5)
    assert results["n-samples"] == {"lmeval_faq": {"original": 80, "effective": 80}}
    assert results["model_name"] == "org/model"
    assert results["higher_is_better"] == {"lmeval_faq": {"lmeval_acc": True}}
    assert results["n-shot"] == {"lmeval_faq": 0}


def test_results_of_a_model_card(run, capsys):
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the file")
    data_set = "lmeval_faq=org/faq:default"
    code, *_ = llmeval(capsys, "export", run, "--format", "model-card", "--dataset", data_set)
    assert code == 0
    (entry,) = yaml.safe_load((run / "eval_results.yaml").read_text())
    assert entry["dataset"] == {"id": "org/faq", "task_id": "default"}
    assert entry["value"] == 0.75
    assert entry["notes"].startswith("lmeval_faq[lmeval_acc], 60 of 80 correct, 95 % interval 0.64")
    hub = pytest.importorskip("huggingface_hub", reason="the hub's own reader")
    if not hasattr(hub, "parse_eval_result_entries"):
        pytest.skip("this huggingface_hub has no reader of results")
    (read,) = hub.parse_eval_result_entries([entry])
    assert (read.dataset_id, read.task_id, read.value) == ("org/faq", "default", 0.75)


def test_a_run_of_mlflow(run, capsys, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="an extra")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "file:./mlruns")
    code, output, _ = llmeval(capsys, "export", run, "--format", "mlflow")
    assert code == 0
    assert output.startswith("logged run ")
    (logged,) = mlflow.search_runs(output_format="list")
    assert logged.data.metrics["lmeval_faq.lmeval_acc/accuracy"] == 0.75
    assert logged.data.metrics["lmeval_faq.lmeval_acc/subjects/a"] == 0.75
    assert len(logged.data.params["lmeval_faq.lmeval_acc/protocol_fingerprint"]) == 16
    assert logged.data.tags["llmeval.verdict"] == "not gated"
    files = mlflow.MlflowClient().list_artifacts(logged.info.run_id, "llmeval")
    assert {"llmeval/metrics.json", "llmeval/run.json"} <= {file.path for file in files}


def test_a_run_of_wandb(run, capsys, monkeypatch, tmp_path):
    pytest.importorskip("wandb", reason="an extra")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    code, output, _ = llmeval(capsys, "export", run, "--format", "wandb")
    assert code == 0
    assert output.startswith("logged run ")
    (table,) = tmp_path.rglob("answers_*.table.json")
    assert len(json.loads(table.read_text())["data"]) == 80


def test_names_and_values_for_trackers(run):
    judged = read_judged_run(run)
    metrics = flat_metrics(judged)
    assert metrics["lmeval_faq.lmeval_acc/accuracy"] == 0.75
    assert metrics["lmeval_faq.lmeval_acc/accuracy_low95"] == pytest.approx(0.645, abs=1e-3)
    assert metrics["lmeval_faq.lmeval_acc/errors"] == 0
    assert set(flat_parameters(judged)) == {
        f"lmeval_faq.lmeval_acc/{name}"
        for name in ("protocol", "protocol_fingerprint", "data_hash")
    }
    assert flat_tags(judged)["llmeval.imported"] == "lm-eval 0.4.13"


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_tracker_that_is_not_installed(name, run, capsys, monkeypatch):
    monkeypatch.setattr("pytest_llmeval.cli.export.find_spec", lambda module: None)
    code, _, errors = llmeval(capsys, "export", run, "--format", name)
    assert code == 4
    assert f"[{name}]" in errors
    code, _, errors = llmeval(capsys, "export", run, "--format", name, "--out", "x")
    assert errors == f"llmeval: --out: {name} writes no file\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--format", "model-card"], "--dataset BENCHMARK=ORG/NAME:TASK (lmeval_faq)"),
        (
            ["--format", "model-card", "--dataset", "lmeval_fak=a/b:c"],
            "has no benchmark 'lmeval_fak'; did you mean 'lmeval_faq'?",
        ),
        (
            ["--format", "model-card", "--dataset", "lmeval_faq=b"],
            "--dataset lmeval_faq=b: write BENCHMARK=ORG/NAME:TASK",
        ),
        (["--dataset", "a=b/c:d"], "--dataset belongs to --format model-card"),
    ],
)
def test_mistakes(arguments, line, run, capsys):
    code, _, errors = llmeval(capsys, "export", run, *arguments)
    assert code == 4
    assert line in errors
    assert errors.count("\n") == 1
