"""``llmeval init --from``: the workflow's steps as written, with recorded logs of the harness."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_llmeval.cli import init as init_command
from pytest_llmeval.cli import main
from pytest_llmeval.cli.init_files import REQUIREMENTS_FILE
from pytest_llmeval.cli.init_files import THRESHOLDS_FILE
from pytest_llmeval.cli.init_files import WORKFLOW_FILE
from pytest_llmeval.core.installation import Origin
from pytest_llmeval.gates import parse_thresholds
from support.foreign_logs import copy_log
from support.foreign_logs import edit_json
from support.foreign_logs import edit_lines
from support.foreign_logs import inspect_archive
from support.foreign_logs import inspect_log
from support.foreign_logs import lm_eval_log
from support.foreign_logs import results_of
from support.foreign_logs import sample_log
from support.foreign_logs import samples_of
from support.init_files import step

FILES = [THRESHOLDS_FILE, REQUIREMENTS_FILE, WORKFLOW_FILE]
URL = "git+https://example.com/o/pytest-llmeval@abc"
FIRST = "${{ inputs.first_run && '--baseline none' || '' }}"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """An empty repository to work in; the plugin is installed from a git repository."""
    monkeypatch.setattr(init_command, "origin", lambda: Origin(url=URL, commit="abc"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], check=True)
    return tmp_path


def init(*arguments: str) -> None:
    assert main(["init", *arguments]) == 0


def run_step(name: str, first: bool = False) -> int:
    """Run the commands of a step as the workflow has them, but not the harness."""
    script = step(name)["run"].replace(FIRST, "--baseline none" if first else "")
    codes = [main(shlex.split(line)[1:]) for line in script.splitlines()]
    return max(codes)


def job(first: bool = False) -> list[int]:
    """Import and gate of a fresh checkout; the harness has written its log."""
    shutil.rmtree("runs", ignore_errors=True)
    return [run_step("import"), run_step("gate", first)]


def accept() -> None:
    """Save the baseline, and commit the file of the artifact."""
    assert run_step("baseline") == 0
    assert run_step("report") == 0
    shutil.copytree("new-baseline", "baselines", dirs_exist_ok=True)


def test_written_files_and_next_steps(repository, capsys):
    init("--from", "lm-eval", "--task", "gsm8k", "--model", "hf:org/name")
    command = (
        "lm_eval --model hf --model_args pretrained=org/name --tasks gsm8k --log_samples"
        " --output_path logs"
    )
    assert capsys.readouterr().out.splitlines() == [
        *(f"wrote {name}" for name in FILES),
        "next:",
        f"  {command}",
        "  llmeval import logs --out runs/today",
        "  llmeval gate runs/today --baseline none",
        "  llmeval baseline runs/today last-release",
    ]
    assert step("evaluate")["run"].strip() == command
    assert Path(REQUIREMENTS_FILE).read_text().splitlines() == [
        f"pytest-llmeval[report] @ {URL}",
        "lm-eval[hf]==0.4.13",
    ]
    parse_thresholds(Path(THRESHOLDS_FILE).read_text())
    text = Path(WORKFLOW_FILE).read_text()
    assert re.findall(r"uses: \S+@(?![0-9a-f]{40} )", text) == []
    assert "pip install pytest-llmeval" not in text


def test_a_workflow_over_lm_eval(repository, capsys):
    """First run, baseline, an equal run, a worse one, and one with other prompts."""
    init("--from", "lm-eval", "--task", "faq")
    lm_eval_log(Path("logs/model"), {"a": [1] * 20, "b": [1] * 20}, group="faq")
    assert job(first=True) == [0, 0]
    accept()
    assert job() == [0, 0]
    capsys.readouterr()
    lm_eval_log(Path("logs/model"), {"a": [1] * 20, "b": [0] * 10 + [1] * 10}, group="faq")
    assert job() == [0, 1]
    assert "FAIL lmeval_faq::regression::max_drop: 0.2500" in capsys.readouterr().out
    edit_json(results_of(Path("logs/model")), lambda r: r["n-shot"].update(a=5, b=5))
    assert job() == [0, 4]
    assert "shots 0 against 5" in capsys.readouterr().err


def test_without_a_baseline_the_job_is_red(repository, capsys):
    init("--from", "lm-eval", "--task", "faq")
    lm_eval_log(Path("logs/model"), {"faq": [1] * 20})
    assert job() == [0, 4]
    assert "'last-release'" in capsys.readouterr().err


def test_a_workflow_over_inspect(repository, capsys):
    init("--from", "inspect", "--task", "evals/lab.py@sums", "--model", "openai:gpt")
    good = {f"s{number}": ["C"] for number in range(20)}
    worse = {name: ["I" if number < 8 else "C"] for number, name in enumerate(good)}
    inspect_archive(inspect_log(repository / "a.json", good), repository / "logs" / "1.eval")
    assert job(first=True) == [0, 0]
    accept()
    inspect_archive(inspect_log(repository / "b.json", worse), repository / "logs" / "1.eval")
    assert job() == [0, 1]
    assert "FAIL inspect_sums::regression::max_drop: 0.4000" in capsys.readouterr().out
    assert step("evaluate")["run"].strip() == (
        "inspect eval evals/lab.py@sums --model openai/gpt --log-dir logs"
    )
    assert "pytest-llmeval[inspect,report] @" in Path(REQUIREMENTS_FILE).read_text()


def test_a_workflow_over_recorded_logs(repository, capsys):
    """42 of 75 in the release, 26 of 75 today; the first 75 of 1,319 documents are the benchmark."""
    large = sample_log("lm_eval", "recorded_gsm8k_175b_verification")
    small = sample_log("lm_eval", "recorded_gsm8k_6b_verification")
    init(
        *("--from", "lm-eval", "--task", "local_gsm8k_zero"),
        *("--scorer", "exact_match_flexible-extract"),
    )
    workflow = Path(WORKFLOW_FILE)
    workflow.write_text(
        workflow.read_text().replace(
            "import logs --out", "import logs --selection-is-benchmark --out"
        )
    )
    copy_log(large, repository / "logs")
    assert job(first=True) == [0, 0]
    accept()
    shutil.rmtree("logs")
    copy_log(small, repository / "logs")
    assert job() == [0, 1]
    output = capsys.readouterr().out
    assert "42 of 75 correct" in output
    assert "21 newly wrong, 5 newly right, p = 0.00249" in output
    edit_lines(
        samples_of(repository / "logs"),
        lambda lines: lines[0]["arguments"]["gen_args_0"].update(arg_0="Another prompt"),
    )
    assert job()[0] == 4  # the two filters of a document now have two prompts
    assert not os.path.exists("runs/today")


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (
            ["lm-eval", "openai:gpt"],
            "lm_eval --model openai-chat-completions --model_args model=gpt --apply_chat_template",
        ),
        (
            ["lm-eval", "openai:q", "http://h/v1/"],
            "lm_eval --model local-chat-completions --model_args"
            " model=q,base_url=http://h/v1/chat/completions --apply_chat_template",
        ),
        (["inspect", "hf:o/n"], "inspect eval t --model hf/o/n"),
        (
            ["inspect", "openai:q", "http://h/v1"],
            "inspect eval t --model openai/q --log-dir logs --model-base-url http://h/v1",
        ),
    ],
)
def test_models(arguments, command, repository):
    harness, model, *url = arguments
    init(
        *("--from", harness, "--task", "t", "--model", model),
        *(["--base-url", *url] if url else []),
    )
    assert step("evaluate")["run"].startswith(command)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--from", "lm-eval"], "--from lm-eval: name what it evaluates: --task TASK"),
        (
            ["--from", "inspect", "--task", "t", "--model", "demo"],
            "--from inspect: --model demo: write hf:ORG/NAME or openai:NAME",
        ),
        (["--task", "t"], "--task belongs to --from: add --from lm-eval"),
        (["--scorer", "t"], "--scorer belongs to --from: add --from lm-eval"),
        (
            ["--from", "lm-eval", "--task", "${{ x }}"],
            "--task '${{ x }}': characters that a workflow cannot hold",
        ),
        (
            ["--from", "lm-eval", "--task", "t", "--base-url", "http://h"],
            "--base-url is the address of an openai: endpoint",
        ),
    ],
)
def test_mistakes(arguments, line, repository, capsys):
    assert main(["init", *arguments]) == 4
    assert line in capsys.readouterr().err
    assert not Path(THRESHOLDS_FILE).exists()


def test_existing_files_are_kept(repository, capsys):
    Path(THRESHOLDS_FILE).write_text("version = 1\n")
    init("--from", "lm-eval", "--task", "faq")
    assert f"kept  {THRESHOLDS_FILE} (it exists)" in capsys.readouterr().out
    assert Path(THRESHOLDS_FILE).read_text() == "version = 1\n"


def test_the_name_of_an_inspect_task(repository):
    for task, name in (
        ("inspect_evals/gsm8k", "inspect_gsm8k"),
        ("evals/sums.py", "inspect_sums"),
    ):
        shutil.rmtree(".github", ignore_errors=True)
        Path(THRESHOLDS_FILE).unlink(missing_ok=True)
        init("--from", "inspect", "--task", task)
        assert f"[benchmarks.{name}]" in Path(THRESHOLDS_FILE).read_text()
