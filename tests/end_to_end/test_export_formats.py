"""``llmeval export`` for other tools, read again as these tools read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_llmeval import cli
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
