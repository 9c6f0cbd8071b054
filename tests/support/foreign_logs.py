"""Small logs in the formats of other harnesses, written here, and changes to logs."""

from __future__ import annotations

import json
import shutil
import zipfile
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


# Inspect -----------------------------------------------------------------------------------


def inspect_log(file: Path, values: Mapping[str, Sequence[Any]]) -> Path:
    """A JSON log of Inspect; ``values``: sample → the scorer's value in each epoch, or ``error``."""
    epochs = len(next(iter(values.values())))
    samples = [
        _inspect_sample(name, number, epoch, value)
        for number, (name, own) in enumerate(values.items())
        for epoch, value in enumerate(own, start=1)
    ]
    means = [
        sum(value in ("C", 1) for value in answered) / len(answered)
        for own in values.values()
        if (answered := [value for value in own if value != "error"])
    ]
    accuracy = {"name": "accuracy", "value": sum(means) / len(means) if means else 0, "params": {}}
    log = {
        "version": 2,
        "status": "success",
        "eval": {
            "created": "2026-11-30T21:03:34+00:00",
            "task": "lab/sums",
            "task_version": 2,
            "task_args": {},
            "dataset": {"samples": len(values), "sample_ids": list(values)},
            "model": "mockllm/model",
            "model_generate_config": {},
            "model_args": {},
            "config": {"epochs": epochs, "log_samples": True},
            "packages": {"inspect_ai": "0.3.285"},
            "scorers": [{"name": "match", "options": {"numeric": True}}],
        },
        "plan": {
            "name": "plan",
            "steps": [{"solver": "generate", "params": {}, "params_passed": {}}],
            "config": {},
        },
        "results": {
            "total_samples": len(samples),
            "scores": [{"name": "match", "scorer": "match", "metrics": {"accuracy": accuracy}}],
        },
        "invalidated": False,
        "samples": samples,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(log))
    return file


def _inspect_sample(name: str, number: int, epoch: int, value: Any) -> dict[str, Any]:
    request = {"id": f"m{number}{epoch}", "role": "user", "source": "input", "content": f"{name}?"}
    reply = {"id": f"r{number}{epoch}", "role": "assistant", "content": "ANSWER: 8"}
    failed = value == "error"
    return {
        "id": name,
        "epoch": epoch,
        "input": f"{name}?",
        "target": "8",
        "messages": [request] if failed else [request, reply],
        "output": {"choices": [] if failed else [{"message": reply, "stop_reason": "stop"}]},
        "scores": {} if failed else {"match": {"value": value, "answer": "8"}},
        "metadata": {"category": ("even", "odd")[number % 2]},
        **({"error": {"message": "the tool is away"}} if failed else {}),
    }


def inspect_archive(source: Path, target: Path) -> Path:
    """The ``.eval`` archive of a JSON log, compressed as ``zipfile`` can read it."""
    log = json.loads(source.read_text())
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in log.pop("samples"):
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("header.json", json.dumps(log))
    return target


# promptfoo and HELM --------------------------------------------------------------------------


def promptfoo_log(
    file: Path,
    tests: Mapping[str, Sequence[str]],
    *,
    prompts: Sequence[str] = ("Q: {{question}}",),
    providers: Sequence[str] = ("parrot",),
) -> Path:
    """Results of promptfoo; ``tests``: test → for each repetition pass, fail or error."""
    repeat = len(next(iter(tests.values())))
    rows = [
        _promptfoo_row(test, number * repeat + n, kind, prompt, provider, index)
        for number, (test, kinds) in enumerate(tests.items())
        for n, kind in enumerate(kinds)
        for index, (prompt, provider) in enumerate((p, q) for p in prompts for q in providers)
    ]
    kinds = [
        "errors" if r["failureReason"] == 2 else "successes" if r["success"] else "failures"
        for r in rows
    ]
    content = {
        "evalId": "eval-abc",
        "results": {
            "version": 3,
            "timestamp": "2026-11-30T21:05:24.093Z",
            "results": rows,
            "stats": {kind: kinds.count(kind) for kind in ("successes", "failures", "errors")},
        },
        "config": {"description": "quiz", "providers": []},
        "metadata": {"promptfooVersion": "0.123.1"},
        "runtimeOptions": {"repeat": repeat} if repeat > 1 else {},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


def _promptfoo_row(
    test: str, number: int, kind: str, prompt: str, provider: str, index: int
) -> dict[str, Any]:
    asserted = [{"type": "equals", "value": "4", "metric": "exact"}]
    return {
        "testIdx": number,
        "promptIdx": index,
        "promptId": f"id-{prompt}",
        "prompt": {
            "raw": prompt.replace("{{question}}", test),
            "label": prompt,
            "config": {},
        },
        "provider": {"id": f"file://{provider}.js", "label": provider},
        "vars": {"question": test},
        "testCase": {"assert": asserted, "metadata": {"kind": test[0]}, "description": test},
        "success": kind == "pass",
        "failureReason": {"pass": 0, "fail": 1, "error": 2}[kind],
        "namedScores": {} if kind == "error" else {"exact": int(kind == "pass")},
        "gradingResult": None if kind == "error" else {"pass": kind == "pass"},
        "error": "HTTP 503" if kind == "error" else None,
        "response": {} if kind == "error" else {"output": "4"},
        "latencyMs": 3,
    }


def helm_log(folder: Path, values: Sequence[Any], *, most: int = 1000, trials: int = 1) -> Path:
    """A run folder of HELM; ``values``: exact_match of each instance, or ``error``."""
    spec = {
        "name": "mmlu:subject=law,model=org_model",
        "scenario_spec": {"class_name": "MMLUScenario", "args": {"subject": "law"}},
        "adapter_spec": {
            "method": "multiple_choice_joint",
            "model": "org/model",
            "model_deployment": "here/model",
            "max_train_instances": 5,
            "max_eval_instances": most,
            "temperature": 0.0,
        },
    }
    keys = [(number, trial) for number in range(len(values)) for trial in range(trials)]
    states = [_helm_state(number, trial, values[number]) for number, trial in keys]
    stats = [
        {
            "instance_id": f"id{number}",
            "train_trial_index": trial,
            "stats": [
                {"name": {"name": name, "split": "test"}, "count": 1, "sum": value}
                for name, value in (("exact_match", values[number]), ("num_references", 4))
            ],
        }
        for number, trial in keys
        if values[number] != "error"
    ]
    whole = [value for value in values if value != "error"]
    total = {"name": {"name": "exact_match", "split": "test"}, "count": 1}
    documents = {
        "run_spec": spec,
        "scenario_state": {"adapter_spec": spec["adapter_spec"], "request_states": states},
        "per_instance_stats": stats,
        "stats": [{**total, "sum": sum(whole) / len(whole)}],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    return folder


def _helm_state(number: int, trial: int, value: Any) -> dict[str, Any]:
    failed = value == "error"
    references = [{"output": {"text": text}, "tags": []} for text in ("no", "maybe", "never")]
    return {
        "instance": {
            "id": f"id{number}",
            "split": "test",
            "input": {"text": f"Question {number}?"},
            "references": [{"output": {"text": "yes"}, "tags": ["correct"]}, *references],
        },
        "train_trial_index": trial,
        "output_mapping": {"A": "yes", "B": "no", "C": "maybe", "D": "never"},
        "request": {"prompt": f"Question {number}?\nAnswer:"},
        "result": {
            "success": not failed,
            **({"error": "out of quota"} if failed else {}),
            "completions": [] if failed else [{"text": " A" if value else " B"}],
            "request_time": 0.5,
            "request_datetime": 1762354922,
        },
    }


def page_logs(harness: str) -> None:
    """The logs of a harness that the documentation works with, in the working folder."""
    assert harness == "lm_eval"
    release = {"faq_account": [1] * 30, "faq_billing": [1] * 30}
    worse = {"faq_account": [1] * 29 + [0], "faq_billing": [0] * 7 + [1] * 23}
    lm_eval_log(Path("logs/release"), release, group="faq")
    lm_eval_log(Path("logs/today"), worse, group="faq")
