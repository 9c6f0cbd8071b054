"""Recorded outputs of real models as (item, reply) pairs, from the folder of public data."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers import get_scorer

Pair = tuple[Item, str]


def scores(scorer: str, pairs: list[Pair]) -> list[Score]:
    score = get_scorer(scorer)
    return [score(item, Response(item.id, text=reply)) for item, reply in pairs]


def outcomes(scorer: str, pairs: list[Pair]) -> dict[str, int]:
    return dict(Counter(score.outcome.value for score in scores(scorer, pairs)))


@lru_cache(maxsize=1)
def mmlu_pro(data: Path, model: str) -> list[Pair]:
    path = data / "mmlu_pro_outputs" / f"model_outputs_{model}_5shots.zip"
    with zipfile.ZipFile(path) as archive:
        rows = json.loads(archive.read(archive.namelist()[0]))
    return [
        (
            Item(
                str(row["question_id"]),
                row["category"],
                row["question"],
                LABELS.index(row["answer"]),
                tuple(row["options"]),
            ),
            row["generated_text"] if "generated_text" in row else row["model_outputs"],
        )
        for row in rows
    ]


@lru_cache(maxsize=1)
def _gsm8k(data: Path) -> list[dict[str, Any]]:
    lines = (data / "gsm8k" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _gsm8k_item(data: Path, number: int) -> Item:
    row = _gsm8k(data)[number]
    gold = row["answer"].rpartition("#### ")[2].replace(",", "")
    return Item(str(number), "gsm8k", row["question"], gold, fields={"answer": row["answer"]})


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def gsm8k_davinci(data: Path, prompt: str) -> list[Pair]:
    path = data / "outputs" / "gsm8k" / "zero_shot_cot" / f"gsm8k_{prompt}.jsonl.gz"
    return [(_gsm8k_item(data, row["index"]), row["completion"]) for row in _jsonl(path)]


def gsm8k_tora(data: Path, model: str, field: str = "pred") -> list[Pair]:
    path = (
        data / "outputs" / "gsm8k" / "tora" / f"{model}_test_tora_-1_seed0_t0.0_s0_e1319.jsonl.gz"
    )
    return [(_gsm8k_item(data, row["idx"]), str(row[field][0])) for row in _jsonl(path)]


def gsm8k_examples(data: Path, model: str) -> list[Pair]:
    rows = _jsonl(data / "gsm8k" / "example_model_solutions.jsonl.gz")
    return [(_gsm8k_item(data, number), row[model]["solution"]) for number, row in enumerate(rows)]


def commonsenseqa_davinci(data: Path, prompt: str) -> list[Pair]:
    items = {}
    text = (data / "commonsenseqa" / "dev_rand_split.jsonl").read_text(encoding="utf-8")
    for row in map(json.loads, text.splitlines()):
        choices = tuple(choice["text"] for choice in row["question"]["choices"])
        gold = LABELS.index(row["answerKey"])
        items[row["id"]] = Item(row["id"], "csqa", row["question"]["stem"], gold, choices)
    path = data / "outputs" / "commonsenseqa" / "zero_shot_cot" / f"commonsensqa_{prompt}.jsonl.gz"
    return [(items[row["id"]], row["completion"]) for row in _jsonl(path)]


def wizardcoder(data: Path, archive: str, file: str, field: str) -> dict[str, str]:
    """Task → text: ``completion`` (code cut out of the reply) or ``all_code`` (the reply)."""
    with zipfile.ZipFile(data / "outputs" / "humaneval" / "wizardcoder" / archive) as opened:
        lines = opened.read(file).decode("utf-8").split("\n")
    return {row["task_id"]: row[field] for row in map(json.loads, filter(None, lines))}


def humaneval_solutions(data: Path, file: str) -> dict[str, str]:
    path = data / "outputs" / "humaneval" / "reflexion" / f"{file}.jsonl.gz"
    return {row["task_id"]: row["solution"] for row in _jsonl(path)}


def codet(data: Path) -> dict[str, list[str]]:
    """Task → the 100 samples of codegen-16B."""
    folder = data / "outputs" / "humaneval" / "codet"
    tasks = {
        row["prompt"]: row["task_id"]
        for row in _jsonl(folder / "HumanEval_for_code_generation.jsonl.gz")
    }
    name = "HumanEval_codegen16B_temp0.8_topp0.95_num100_max300_code_solution.jsonl.gz"
    return {tasks[row["prompt"]]: row["samples"] for row in _jsonl(folder / name)}
