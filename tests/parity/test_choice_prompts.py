"""Requests for choices equal lm-eval's, byte for byte: contexts and continuations.

lm-eval runs as a library with its own task files and a model that only writes down its requests.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import arc_challenge
from pytest_llmeval.catalog import arc_easy
from pytest_llmeval.catalog import cmmlu
from pytest_llmeval.catalog import commonsenseqa
from pytest_llmeval.catalog import hellaswag
from pytest_llmeval.catalog import include
from pytest_llmeval.catalog import truthfulqa
from pytest_llmeval.catalog import winogrande
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol

Pairs = list[tuple[str, str]]
"""Context and continuation, one pair a choice."""


@cache
def task_manager() -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager()  # reads the names of all tasks, which takes seconds


def ask_lm_eval(
    tasks: Sequence[str], limit: int | None, shots: int | None = None, **options: bool
) -> dict[str, list[Pairs]]:
    """The requests of each task for its first items. In a chat, contexts are JSON."""
    import lm_eval
    from lm_eval.api.model import LM

    class Listening(LM):
        tokenizer_name = "none"

        def loglikelihood(self, requests: Sequence[Any], **_: Any) -> list[tuple[float, bool]]:
            self.requests = list(requests)
            return [(-1.0, False)] * len(requests)

        def apply_chat_template(self, history: Any, add_generation_prompt: bool = True) -> str:
            return json.dumps(history)

        def chat_template(self, *_: Any) -> str:
            return "messages"

        def generate_until(self, requests: Any) -> Any:
            raise NotImplementedError

        loglikelihood_rolling = generate_until

    model = Listening()
    lm_eval.simple_evaluate(
        model=model,
        tasks=list(tasks),
        task_manager=task_manager(),
        num_fewshot=shots,
        limit=limit,
        bootstrap_iters=0,
        **options,
    )
    by_task: dict[str, dict[int, dict[int, tuple[str, str]]]] = {task: {} for task in tasks}
    for request in model.requests:
        choices = by_task[request.task_name].setdefault(int(request.doc_id), {})
        choices[request.idx] = request.args
    return {
        task: [[numbered[n] for n in sorted(numbered)] for _, numbered in sorted(documents.items())]
        for task, documents in by_task.items()
    }


def pairs(protocol: Protocol, dataset: Dataset, item: Item) -> Pairs:
    request = protocol.request(item, dataset.pool.get(item.subject, ()))
    return [
        (
            json.dumps(prompt.messages()) if protocol.chat else prompt.text,
            prompt.delimiter + choice,
        )
        for prompt, choice in zip(request.prompts, request.choices, strict=True)
    ]


def bound(benchmark: Benchmark, dataset: Dataset, shots: int, *, chat: bool = False) -> Protocol:
    protocol = next(p for p in benchmark.protocols if p.name == "lmeval")
    assert protocol.shots == 0
    protocol = replace(protocol.with_chat() if chat else protocol, shots=shots)
    return protocol.bound_to(dataset)


def read(benchmark: Benchmark, data: Path) -> Dataset:
    """The benchmark's items, and as pool what lm-eval is given where there is none."""
    from support.choice_rows import STAND_INS

    dataset = benchmark.source(data)
    if benchmark.name in ("hellaswag", "winogrande"):
        assert not dataset.pool
        pool = {benchmark.name: dataset.items[-STAND_INS:]}
        return replace(dataset, pool=pool)
    return dataset


TASKS = [
    ("arc_easy", arc_easy(), 0, None),
    ("arc_challenge", arc_challenge(), 0, None),
    ("arc_challenge", arc_challenge(), 25, 50),
    ("commonsense_qa", commonsenseqa(), 0, None),
    ("commonsense_qa", commonsenseqa(), 5, 50),
    ("hellaswag", hellaswag(), 0, None),
    ("hellaswag", hellaswag(), 3, 50),
    ("winogrande", winogrande(), 0, None),
    ("winogrande", winogrande(), 3, 50),
]


@pytest.mark.parametrize(("task", "benchmark", "shots", "limit"), TASKS)
def test_one_task(
    data: Path, task: str, benchmark: Benchmark, shots: int, limit: int | None
) -> None:
    dataset = read(benchmark, data)
    documents = ask_lm_eval([task], limit, shots)[task]
    protocol = bound(benchmark, dataset, shots)
    assert len(documents) == (limit or len(dataset.items))
    for theirs, item in zip(documents, dataset.items, strict=False):
        assert pairs(protocol, dataset, item) == theirs, item.id


def test_truthfulqa_has_the_same_choices_in_another_order(data: Path) -> None:
    dataset = truthfulqa().source(data)
    documents = ask_lm_eval(["truthfulqa_mc1"], None)["truthfulqa_mc1"]
    protocol = bound(truthfulqa(), dataset, 0)
    for theirs, item in zip(documents, dataset.items, strict=True):
        ours = pairs(protocol, dataset, item)
        assert sorted(ours) == sorted(theirs), item.id
        assert ours[item.gold] == theirs[0], item.id
    assert sum(item.gold == 0 for item in dataset.items) < 300


@pytest.mark.parametrize("shots", [0, 5])
def test_cmmlu(data: Path, shots: int) -> None:
    dataset = cmmlu().source(data)
    sizes = dataset.subject_sizes()
    assert len(sizes) == 67
    protocol = bound(cmmlu(), dataset, shots)
    by_task = ask_lm_eval([f"cmmlu_{subject}" for subject in sizes], 5, shots)
    for subject in sizes:
        items = [item for item in dataset.items if item.subject == subject][:5]
        for theirs, item in zip(by_task[f"cmmlu_{subject}"], items, strict=True):
            assert pairs(protocol, dataset, item) == theirs, item.id


def test_include(data: Path, tmp_path: Path) -> None:
    from support.choice_rows import INCLUDE

    (tmp_path / "include").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in INCLUDE)
    (tmp_path / "include" / "test.jsonl").write_text(lines, encoding="utf-8")
    dataset = include().source(tmp_path)
    protocol = bound(include(), dataset, 0)
    tasks = {
        "include_base_44_albanian_stem": dataset.items[:5],
        "include_base_44_albanian_arts_humanities": dataset.items[5:10],
        "include_base_44_hebrew_driving_license": dataset.items[10:],
    }
    for task, documents in ask_lm_eval(list(tasks), None).items():
        for theirs, item in zip(documents, tasks[task], strict=True):
            assert pairs(protocol, dataset, item) == theirs, item.id


@pytest.mark.parametrize("shots", [0, 2])
@pytest.mark.parametrize(
    ("task", "benchmark"),
    [
        ("arc_easy", arc_easy()),
        ("commonsense_qa", commonsenseqa()),
        ("hellaswag", hellaswag()),
        ("winogrande", winogrande()),
    ],
)
def test_in_a_chat(data: Path, task: str, benchmark: Benchmark, shots: int) -> None:
    dataset = read(benchmark, data)
    by_task = ask_lm_eval([task], 5, shots, apply_chat_template=True, fewshot_as_multiturn=True)
    protocol = bound(benchmark, dataset, shots, chat=True)
    for theirs, item in zip(by_task[task], dataset.items, strict=False):
        assert pairs(protocol, dataset, item) == theirs, item.id
