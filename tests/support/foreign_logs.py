"""Small logs in the formats of other harnesses, written here, and changes to logs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.paths import DATA

DATE = "2026-11-30T21-13-14.855677"
LOGS = DATA / "outputs" / "logs"

Edit = Callable[[dict], Any]


def sample_log(*parts: str) -> Path:
    """A recorded log of the shared data; skips the test where there is none."""
    path = LOGS.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no recorded logs: {path} does not exist (set LLMEVAL_DATA)")
    return path


def copy_log(source: Path, target: Path) -> Path:
    """A copy that may be changed."""
    shutil.copytree(source, target)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755)
    return target


def edit_json(file: Path, edit: Edit) -> None:
    """Change a JSON document in place."""
    value = json.loads(file.read_text(encoding="utf-8"))
    edit(value)
    file.write_text(json.dumps(value), encoding="utf-8")


def edit_lines(file: Path, edit: Callable[[list[dict]], Any]) -> None:
    """Change the lines of a file of samples in place."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    edit(lines)
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def results_of(folder: Path) -> Path:
    (file,) = folder.glob("results_*.json")
    return file


def samples_of(folder: Path) -> Path:
    return sorted(folder.glob("samples_*.jsonl"))[0]


# lm-evaluation-harness ---------------------------------------------------------------------


def lm_eval_log(
    folder: Path,
    outcomes: Mapping[str, Sequence[Any]],
    *,
    group: str | None = None,
    metric: str = "acc",
    filters: Sequence[str] = ("none",),
    text: bool = False,
    original: int | None = None,
    shots: int = 0,
    model: str = "org/model",
    aggregation: str = "mean",
    unparsed: Sequence[int] = (),
) -> Path:
    """A log of lm-eval 0.4.13; ``outcomes``: task → the metric's value for each document."""
    folder.mkdir(parents=True, exist_ok=True)
    means = {
        task: {
            f"{metric},{key}": sum(values) / len(values) if aggregation == "mean" else 0.5
            for key in filters
        }
        for task, values in outcomes.items()
    }
    configs = {task: _lm_eval_config(task, metric, filters, text, aggregation) for task in outcomes}
    results = {
        "results": means,
        "group_subtasks": {group: list(outcomes)} if group else {task: [] for task in outcomes},
        "configs": configs,
        "versions": dict.fromkeys(outcomes, 1.0),
        "n-shot": dict.fromkeys(outcomes, shots),
        "n-samples": {
            task: {"original": original or len(values), "effective": len(values)}
            for task, values in outcomes.items()
        },
        "config": {
            "model": "hf",
            "model_sha": "",
            "limit": None,
            "gen_kwargs": {},
            "random_seed": 0,
            "numpy_seed": 1234,
            "torch_seed": 1234,
            "fewshot_seed": 1234,
        },
        "date": 1796073184.5,
        "lm_eval_version": "0.4.13",
        "model_name": model,
        "system_instruction": None,
        "fewshot_as_multiturn": None,
        "chat_template": None,
    }
    (folder / f"results_{DATE}.json").write_text(json.dumps(results))
    for task, values in outcomes.items():
        lines = [
            _lm_eval_line(task, number, value, metric, key, text, number in unparsed)
            for key in filters
            for number, value in enumerate(values)
        ]
        (folder / f"samples_{task}_{DATE}.jsonl").write_text(
            "".join(f"{json.dumps(line)}\n" for line in lines)
        )
    return folder


def _lm_eval_config(
    task: str, metric: str, filters: Sequence[str], text: bool, aggregation: str
) -> dict[str, Any]:
    return {
        "task": task,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"/data/{task}/test.jsonl"}},
        "doc_to_text": "Question: {{question}}\nAnswer:",
        "description": f"About {task}.\n\n",
        "fewshot_config": {"sampler": "<function shots at 0x7f00aa12bc>"},
        "num_fewshot": 0,
        "metric_list": [{"metric": metric, "aggregation": aggregation}],
        "output_type": "generate_until" if text else "multiple_choice",
        "repeats": 1,
        "filter_list": [
            {"name": key, "filter": [{"function": "regex"}, {"function": "take_first"}]}
            for key in filters
            if key != "none"
        ],
        "metadata": {"version": 1.0, "pretrained": "org/model"},
    }


def _lm_eval_line(
    task: str, number: int, value: Any, metric: str, key: str, text: bool, unparsed: bool
) -> dict[str, Any]:
    prompt = f"Question: {task} {number}?\nAnswer:"
    if text:
        arguments = {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["Question:"]}}}
        responses: Any = [["so it is 7"]]
        filtered: Any = ["[invalid]" if unparsed else "7"]
    else:
        arguments = {
            f"gen_args_{n}": {"arg_0": prompt, "arg_1": f" {label}"}
            for n, label in enumerate("ABCD")
        }
        responses = [[[f"-{n + 1}.5", "False"]] for n in range(4)]
        filtered = [[f"-{n + 1}.5", "False"] for n in range(4)]
    return {
        "doc_id": number,
        "doc": {"question": f"{task} {number}?", "answer": "7"},
        "target": "0",
        "arguments": arguments,
        "resps": responses,
        "filtered_resps": filtered,
        "filter": key,
        "metrics": [metric],
        metric: value,
    }


def page_logs(harness: str) -> None:
    """The logs of a harness that the documentation works with, in the working folder."""
    assert harness == "lm_eval"
    lm_eval_log(
        Path("logs/release"), {"faq_account": [1] * 30, "faq_billing": [1] * 30}, group="faq"
    )
    worse = {"faq_account": [1] * 29 + [0], "faq_billing": [0] * 7 + [1] * 23}
    lm_eval_log(Path("logs/today"), worse, group="faq")
