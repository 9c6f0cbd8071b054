"""Requests for generated answers equal lm-eval's, byte for byte.

lm-eval runs as a library with its own task files and a model that only writes down its requests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_llmeval.catalog import gsm8k
from pytest_llmeval.catalog import humaneval
from pytest_llmeval.catalog import mbpp
from pytest_llmeval.catalog import mgsm
from pytest_llmeval.catalog import mmlu_pro
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.chain_of_thought import MGSM_WORDS

MAX_TOKENS = 256
"""What lm-eval's transformers backend generates at most where a task says nothing."""


@dataclass(frozen=True)
class Asked:
    context: str
    stop: tuple[str, ...]
    max_tokens: int


@cache
def task_manager() -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager()  # reads the names of all tasks, which takes seconds


def ask_lm_eval(
    tasks: Sequence[str], limit: int, shots: int | None = None, **options: bool
) -> dict[str, list[Asked]]:
    """The requests of each task for its first items. In a chat, the messages as JSON."""
    import lm_eval
    from lm_eval.api.model import LM

    class Listening(LM):
        tokenizer_name = "none"

        def generate_until(self, requests: Sequence[Any], **_: Any) -> list[str]:
            self.requests = list(requests)
            return [""] * len(requests)

        def apply_chat_template(self, history: Any, add_generation_prompt: bool = True) -> str:
            return json.dumps(history)

        def chat_template(self, *_: Any) -> str:
            return "messages"

        def loglikelihood(self, requests: Any) -> Any:
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

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
    by_task: dict[str, list[Asked]] = {task: [] for task in tasks}
    for request in sorted(model.requests, key=lambda request: int(request.doc_id)):
        context, options = request.args
        tokens = options.get("max_gen_toks", MAX_TOKENS)
        by_task[request.task_name].append(Asked(context, tuple(options["until"]), tokens))
    return by_task


@pytest.fixture
def without_running_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval's tasks for code run some when they are loaded; their requests need none of it."""

    class Nothing:
        def compute(self, **_: Any) -> tuple[dict[str, float], dict[str, Any]]:
            return {"pass@1": 0.0}, {}

    evaluate = ModuleType("evaluate")
    evaluate.load = lambda *_, **__: Nothing()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "evaluate", evaluate)


def bound(benchmark: Benchmark, name: str, dataset: Dataset) -> Protocol:
    return next(p for p in benchmark.protocols if p.name == name).bound_to(dataset)


def check(
    prompts: list[Asked], protocol: Protocol, dataset: Dataset, items: Sequence[Item]
) -> None:
    assert len(prompts) == len(items)
    for prompt, item in zip(prompts, items, strict=True):
        request = protocol.request(item, dataset.pool.get(item.subject, ()))
        assert request.prompt.text.encode() == prompt.context.encode(), item.id
    assert {prompt.stop for prompt in prompts} == {protocol.decoding.stop}
    assert {prompt.max_tokens for prompt in prompts} == {protocol.decoding.max_tokens}


@pytest.fixture(scope="module")
def sums(data: Path) -> Dataset:
    return gsm8k().source(data)


@pytest.mark.parametrize(
    ("task", "name", "limit"), [("gsm8k", "lmeval", 200), ("gsm8k_cot", "lmeval_cot", 20)]
)
def test_gsm8k(sums: Dataset, task: str, name: str, limit: int) -> None:
    check(ask_lm_eval([task], limit)[task], bound(gsm8k(), name, sums), sums, sums.items[:limit])


def test_gsm8k_draws_other_shots_where_the_tool_does(sums: Dataset) -> None:
    # Three shots are not the first three of five: the generator is at another place.
    protocol = replace(bound(gsm8k(), "lmeval", sums), shots=3).bound_to(sums)
    check(ask_lm_eval(["gsm8k"], 20, shots=3)["gsm8k"], protocol, sums, sums.items[:20])


def test_gsm8k_without_shots(sums: Dataset) -> None:
    protocol = bound(gsm8k(), "zero_shot", sums)
    # The prompt and the stop strings are lm-eval's; the tokens are more.
    protocol = replace(protocol, decoding=replace(protocol.decoding, max_tokens=MAX_TOKENS))
    task = "gsm8k_cot_zeroshot"
    check(ask_lm_eval([task], 20)[task], protocol, sums, sums.items[:20])


@pytest.mark.parametrize("as_text", [False, True])
def test_gsm8k_in_a_chat(sums: Dataset, as_text: bool) -> None:
    protocol = replace(bound(gsm8k(), "lmeval", sums).with_chat(), shots_as_text=as_text)
    by_task = ask_lm_eval(["gsm8k"], 5, apply_chat_template=True, fewshot_as_multiturn=not as_text)
    for theirs, item in zip(by_task["gsm8k"], sums.items, strict=False):
        prompt = protocol.render(item, sums.pool[item.subject])
        assert prompt.messages() == json.loads(theirs.context)


def test_mmlu_pro(data: Path) -> None:
    dataset = mmlu_pro().source(data)
    protocol = bound(mmlu_pro(), "lmeval", dataset)
    sizes = dataset.subject_sizes()
    assert len(sizes) == 14
    by_task = ask_lm_eval([f"mmlu_pro_{subject}" for subject in sizes], 20)
    for subject in sizes:
        items = [item for item in dataset.items if item.subject == subject][:20]
        check(by_task[f"mmlu_pro_{subject}"], protocol, dataset, items)


@pytest.mark.parametrize("shots", [0, 2])
def test_mgsm(data: Path, shots: int) -> None:
    from pytest_llmeval.catalog.mgsm import _exemplar
    from support.lm_eval_rows import EXEMPLARS

    dataset = mgsm().source(data)
    tasks = [
        f"mgsm_{name}_{language}" for name in ("direct", "native_cot") for language in MGSM_WORDS
    ]
    for task, prompts in ask_lm_eval(tasks, 5, shots).items():
        name, _, language = task.removeprefix("mgsm_").rpartition("_")
        protocol = replace(
            next(p for p in mgsm().protocols if p.name == name), shots=shots, draw="lmeval"
        )
        items = [item for item in dataset.items if item.subject == language][:5]
        pool = tuple(_exemplar("", language, 0, *row.values()) for row in EXEMPLARS)
        protocol = protocol.bound_to(Dataset(tuple(items), {language: pool}))
        for theirs, item in zip(prompts, items, strict=True):
            assert theirs.context == protocol.render(item, pool).text, item.id
            # It stops at the question word of this language, we at those of all.
            assert set(theirs.stop) <= set(protocol.decoding.stop)


CODE = [
    ("humaneval", humaneval(), "official", 164),
    ("humaneval", humaneval(), "lmeval", 20),
    ("humaneval_instruct", humaneval(), "lmeval_instruct", 164),
    ("mbpp", mbpp(), "lmeval", 500),
    ("mbpp_instruct", mbpp(), "lmeval_instruct", 500),
]


@pytest.mark.usefixtures("without_running_code")
@pytest.mark.parametrize(("task", "benchmark", "name", "limit"), CODE)
def test_code(data: Path, task: str, benchmark: Benchmark, name: str, limit: int) -> None:
    dataset = benchmark.source(data)
    prompts = ask_lm_eval([task], limit, confirm_run_unsafe_code=True)[task]
    check(prompts, bound(benchmark, name, dataset), dataset, dataset.items[:limit])


@pytest.mark.usefixtures("without_running_code")
@pytest.mark.parametrize(("task", "benchmark", "name"), [CODE[2][:3], CODE[4][:3]])
def test_code_in_a_chat(data: Path, task: str, benchmark: Benchmark, name: str) -> None:
    dataset = benchmark.source(data)
    protocol = bound(benchmark, name, dataset).with_chat()
    by_task = ask_lm_eval(
        [task],
        5,
        apply_chat_template=True,
        fewshot_as_multiturn=True,
        confirm_run_unsafe_code=True,
    )
    for theirs, item in zip(by_task[task], dataset.items, strict=False):
        prompt = protocol.render(item, dataset.pool.get(item.subject, ()))
        begun = {"role": "assistant", "content": prompt.prefix}
        assert [*prompt.messages(), begun] == json.loads(theirs.context)
