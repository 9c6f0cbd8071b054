"""Recorded answers of real models run again in a sandbox: the published counts, task by task."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import sandbox as sandboxes
from pytest_llmeval.catalog import humaneval
from pytest_llmeval.catalog.mbpp import all_tasks
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers.execution import execution_score
from pytest_llmeval.scorers.execution import reference_program
from support.recorded import codet
from support.recorded import humaneval_solutions
from support.recorded import wizardcoder

WIZARD_15B = "humaneval.59.8.gen.zip", "T0.0_N1_reproduce.results.59.8.jsonl"
WIZARD_33B = "humaneval_mbpp_wizardcoder33b_v1.1_results.zip"
HUMANEVAL_33B = WIZARD_33B, "T0.0_N1_humaneval_wizardcoder33b_v1.1.jsonl"
HUMANEVAL_33B_VLLM = WIZARD_33B, "T0.0_N1_humaneval_wizardcoder33b_v1.1_vllm.jsonl"
MBPP_33B = WIZARD_33B, "T0.0_N1_MBPP_wizardcoder33b_v1.1.jsonl"
MBPP_33B_VLLM = WIZARD_33B, "T0.0_N1_MBPP_wizardcoder33b_v1.1_vllm.jsonl"

# Tasks that are read otherwise in the whole reply than in the recorded completion, which is its
# first block: the second block of 249 replaces the first one and is wrong, that of 572 defines the
# requested function, with the help of the first.
FIRST_BLOCK_ONLY = {"Mbpp/249": False, "Mbpp/572": True}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Any]:
    try:
        opened = sandboxes.open_sandbox("docker")
    except ConfigError as error:
        if os.environ.get("LLMEVAL_REQUIRE_SANDBOX"):
            pytest.fail(f"LLMEVAL_REQUIRE_SANDBOX is set, and {error}", pytrace=False)
        pytest.skip(str(error))
    with opened:
        yield opened


@lru_cache(maxsize=1)
def humaneval_items(data: Path) -> Mapping[str, Item]:
    return {item.id.replace("_", "/"): item for item in humaneval().source(data).items}


@lru_cache(maxsize=1)
def mbpp_items(data: Path) -> Mapping[str, Item]:
    tasks = all_tasks(data, sanitized=True)
    return {f"Mbpp/{int(item.id.removeprefix('mbpp-'))}": item for item in tasks}


def expected(data: Path, key: str) -> dict[str, bool]:
    path = data / "outputs" / "humaneval" / "expected_results.json"
    passed: dict[str, bool] = json.loads(path.read_text(encoding="utf-8"))["passed"][key]
    return passed


def scored(sandbox: Any, scorer: str, replies: Mapping[str, tuple[Item, str]]) -> dict[str, Score]:
    """The scores of texts by key. Equal programs are run once."""
    jobs = get_scorer(scorer).jobs
    assert jobs is not None
    scores, programs, keys = {}, {}, {}
    for key, (item, text) in replies.items():
        made = jobs.job(item, Response(item.id, text=text))
        if isinstance(made, Score):
            scores[key] = made
            continue
        programs.setdefault((made.source, made.tests), made)
        keys[key] = (made.source, made.tests)
    numbered = {str(number): what for number, what in enumerate(programs)}
    ended = {
        numbered[execution.id]: execution
        for execution in sandbox.run(
            sandboxes.Program(
                number,
                programs[what].source,
                programs[what].tests,
                programs[what].context,
                programs[what].entry_point,
            )
            for number, what in numbered.items()
        )
    }
    return scores | {key: execution_score(ended[what]) for key, what in keys.items()}


def passed(scores: Mapping[str, Score]) -> dict[str, bool]:
    assert not [score for score in scores.values() if score.outcome is Outcome.ERROR]
    return {key: score.outcome is Outcome.CORRECT for key, score in scores.items()}


@pytest.mark.parametrize(
    ("file", "field", "scorer", "right"),
    [
        (WIZARD_15B, "completion", "execution_raw", 98),
        (WIZARD_15B, "all_code", "execution", 98),
        (HUMANEVAL_33B, "all_code", "execution", 130),
        (HUMANEVAL_33B_VLLM, "all_code", "execution", 131),
    ],
)
def test_wizardcoder_on_humaneval(
    data: Path, sandbox: Any, file: tuple[str, str], field: str, scorer: str, right: int
) -> None:
    items = humaneval_items(data)
    texts = wizardcoder(data, *file, field)
    passing = passed(scored(sandbox, scorer, {key: (items[key], texts[key]) for key in items}))
    assert sum(passing.values()) == right
    assert passing == expected(data, "wizardcoder/" + "!".join(file))


@pytest.mark.parametrize(
    ("file", "right"),
    [
        ("simple_1_gpt-4_pass_at_k_1", 134),
        ("reflexion_humaneval_py_pass_at_1", 150),
        ("simple_1_gpt-3.5-turbo_pass_at_k_1", 42),
        ("simple_1_text-davinci-003_pass_at_k_1", 93),
    ],
)
def test_recorded_solutions_of_humaneval(data: Path, sandbox: Any, file: str, right: int) -> None:
    items = humaneval_items(data)
    texts = humaneval_solutions(data, file)
    passing = passed(scored(sandbox, "execution", {key: (items[key], texts[key]) for key in items}))
    assert sum(passing.values()) == right
    assert passing == expected(data, f"reflexion/{file}.jsonl.gz")


@pytest.mark.parametrize(
    ("file", "right", "field", "scorer", "otherwise"),
    [
        (MBPP_33B, 315, "completion", "execution_raw", {}),
        (MBPP_33B_VLLM, 313, "all_code", "execution", FIRST_BLOCK_ONLY),
    ],
)
def test_wizardcoder_on_mbpp(
    data: Path,
    sandbox: Any,
    file: tuple[str, str],
    right: int,
    field: str,
    scorer: str,
    otherwise: dict[str, bool],
) -> None:
    items = mbpp_items(data)
    texts = wizardcoder(data, *file, field)
    assert len(texts) == 399
    passing = passed(scored(sandbox, scorer, {key: (items[key], texts[key]) for key in texts}))
    assert sum(passing.values()) == right
    assert passing == expected(data, "wizardcoder/" + "!".join(file)) | otherwise


def test_reference_solutions_pass_and_empty_bodies_do_not(data: Path, sandbox: Any) -> None:
    """The full sets of MBPP take a while and have a test beside the sandbox."""
    items = humaneval_items(data)
    ended = sandbox.run(reference_program(item) for item in items.values())
    assert [execution for execution in ended if execution.status != "passed"] == []
    empty = {key: (item, "    pass\n") for key, item in items.items()}
    assert not any(passed(scored(sandbox, "execution_raw", empty)).values())


def test_codegen_on_the_first_tasks_with_a_hundred_samples(data: Path, sandbox: Any) -> None:
    """CodeT's samples of three tasks: as many right as were counted on all of them."""
    counts = json.loads(
        (data / "outputs" / "humaneval" / "expected_results.json").read_text(encoding="utf-8")
    )["codet_codegen16B_counts"]
    items = humaneval_items(data)
    tasks = [f"HumanEval/{number}" for number in range(3)]
    replies = {
        f"{task}#{number}": (items[task], text)
        for task, texts in codet(data).items()
        if task in tasks
        for number, text in enumerate(texts)
    }
    assert len(replies) == 300
    passing = passed(scored(sandbox, "execution_raw", replies))
    right = {task: sum(passing[f"{task}#{number}"] for number in range(100)) for task in tasks}
    assert right == {task: counts[task]["c"] for task in tasks}
