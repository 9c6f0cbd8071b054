"""Made-up copies of the benchmarks that are answered by text: numbers and programs."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

from pytest_llmeval.catalog import gsm8k
from pytest_llmeval.catalog import humaneval
from pytest_llmeval.catalog import mbpp
from pytest_llmeval.catalog import mbpp_sanitized
from pytest_llmeval.catalog import mgsm
from support.catalog_copies import CatalogCopy
from support.catalog_copies import HubSplits
from support.catalog_copies import Layout
from support.catalog_copies import Row
from support.catalog_copies import Splits
from support.catalog_copies import below
from support.catalog_copies import by
from support.catalog_copies import jsonl
from support.catalog_copies import made
from support.catalog_copies import read_jsonl
from support.catalog_copies import under
from support.catalog_copies import write_jsonl

_GSM8K = jsonl(test="test.jsonl", train="train.jsonl")

GSM8K = CatalogCopy(
    gsm8k(),
    "gsm8k",
    splits=made(
        lambda split, n: {"question": f"{split} {n}?", "answer": f"It is {n}.\n#### 7,00{n}"},
        test=4,
        train=9,
    ),
    scored="test",
    pool="train",
    shot_ids=r"train-gsm8k-000\d",
    protocols=("cot", "lmeval", "lmeval_cot", "zero_shot"),
    subjects={"gsm8k": 4},
    gold=r"700\d",
    folder="gsm8k",
    repo="openai/gsm8k",
    constants={"TEST_ROWS": 4, "TRAIN_ROWS": 9},
    refusal=("test gsm8k has 4 of 1,319 rows", "train gsm8k has 9 of 7,473 rows"),
    layouts={
        "jsonl": _GSM8K,
        "packed": jsonl(test="test.jsonl.gz", train="train.jsonl.gz"),
        "official repository": below("grade_school_math", "data", layout=_GSM8K),
    },
    to_hub=under("main"),
    second_row=r"test\.jsonl, line 2",
    unusable=(
        ({"answer": "It is 4."}, "the answer does not end with '#### ' and a whole number"),
        ({"answer": "It is 4.\n#### four"}, "the answer does not end with '#### '"),
        ({"answer": None}, "texts question and answer were expected"),
    ),
    read=lambda folder: {
        split: read_jsonl(folder / f"{split}.jsonl") for split in ("test", "train")
    },
)

MGSM_LANGUAGES = ("bn", "de", "en")


def mgsm_row(language: str, split: str, number: int) -> Row:
    answer = 7100 + number
    row = {"language": language, "question": f'"{language}" {split} {number}?'}
    return row | ({"answer": f"{answer:,}"} if split == "test" else {"a": "A", "number": answer})


def write_tsv(folder: Path, splits: Splits) -> None:
    """The official files: a tsv file a language, and exemplars that are read without running."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, rows in by(splits["test"], "language").items():
        lines = ["\t".join(filter(None, (row["question"], row["answer"]))) for row in rows]
        (folder / f"mgsm_{language}.tsv").write_text("\n".join(lines), encoding="utf-8")
    if "train" in splits:
        exemplars = by(splits["train"], "language")
        texts = {
            language: {str(n): {"q": row["question"], "a": row["a"]} for n, row in enumerate(rows)}
            for language, rows in exemplars.items()
        }
        numbers = [row["number"] for row in next(iter(exemplars.values()))]
        (folder / "exemplars.py").write_text(
            f"raise SystemExit\nEXEMPLAR_NUMBER_ANSWERS = {numbers}\nMGSM_EXEMPLARS = {texts!r}\n",
            encoding="utf-8",
        )


def _mgsm_to_hub(splits: Splits) -> HubSplits:
    return {
        (language, split): [
            {
                "question": row["question"],
                "answer": row.get("a"),
                "answer_number": row.get("number") or int(row["answer"].replace(",", "")),
            }
            for row in rows
        ]
        for split in splits
        for language, rows in by(splits[split], "language").items()
    }


MGSM = CatalogCopy(
    mgsm(),
    "mgsm",
    splits={
        split: [mgsm_row(language, split, n) for language in MGSM_LANGUAGES for n in range(2)]
        for split in ("test", "train")
    },
    scored="test",
    pool="train",
    shot_ids=r"train-(bn|de|en)-000\d",
    protocols=("native_cot", "direct"),
    subjects=dict.fromkeys(MGSM_LANGUAGES, 2),
    gold=r"710\d",
    folder="mgsm",
    repo="juletxara/mgsm",
    constants={"LANGUAGES": MGSM_LANGUAGES, "ROWS": 2},
    refusal=(r"mgsm_es.tsv: no such file",),
    layouts={"tsv": write_tsv, "official repository": below("mgsm", layout=write_tsv)},
    to_hub=_mgsm_to_hub,
    second_row=r"mgsm_bn\.tsv, row 2",
    unusable=(
        ({"answer": None}, "1 cells; question and answer were expected"),
        ({"answer": "many"}, "answer 'many' is not a whole number"),
    ),
    optional=("train",),
)

_HUMANEVAL_TEXTS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")

HUMANEVAL = CatalogCopy(
    humaneval(),
    "humaneval",
    splits=made(
        lambda split, n: {
            "task_id": f"HumanEval/{n}",
            "prompt": f"def right_{n}(n):\n    # {split}\n",
            "entry_point": f"right_{n}",
            "canonical_solution": f"    return {n}\n",
            "test": f"def check(candidate):\n    assert candidate(0) == {n}\n",
        },
        test=4,
    ),
    scored="test",
    protocols=("official", "official_sampled", "instruct", "chat", "lmeval", "lmeval_instruct"),
    subjects={"humaneval": 4},
    folder="humaneval",
    repo="openai/openai_humaneval",
    constants={"ROWS": 4},
    refusal=("test humaneval has 4 of 164 rows",),
    layouts={
        "packed": jsonl(test="HumanEval.jsonl.gz"),
        "jsonl": jsonl(test="HumanEval.jsonl"),
        "older name": jsonl(test="human-eval-v2-20210705.jsonl"),
        "official repository": jsonl(test="data/HumanEval.jsonl.gz"),
    },
    to_hub=under("openai_humaneval"),
    second_row=r"HumanEval\.jsonl\.gz, line 2",
    unusable=tuple(({name: None}, f"no text in {name}$") for name in _HUMANEVAL_TEXTS),
    same=(frozenset({"official", "lmeval"}),),
    read=lambda folder: {"test": read_jsonl(folder / "HumanEval.jsonl.gz")},
)

MBPP_IDS = {
    "prompt": (2, 3, 4, 7),
    "test": (11, 12, 13, 510),
    "validation": (511,),
    "train": (974,),
}
"""Ids at the edges of the groups."""


def mbpp_row(split: str, number: int) -> Row:
    task = MBPP_IDS[split][number]
    return {
        "task_id": task,
        "text": f"Task {task} for {split}.",
        "code": f"def right_{task}(n):\r\n  return n + {task}",
        "test_list": [f"assert right_{task}({n}) == {n + task}" for n in range(3)],
        "test_setup_code": "",
        "challenge_test_list": [],
    }


def sanitized_row(split: str, number: int) -> Row:
    row = mbpp_row(split, number)
    kept = {name: row[name] for name in ("task_id", "code", "test_list")}
    return {**kept, "source_file": "x", "prompt": row["text"], "test_imports": ["import math"]}


def _one_file(name: str, *, reverse: bool = False) -> Layout:
    """All splits in one file, a line a row or an array of rows."""

    def write(folder: Path, splits: Splits) -> None:
        rows = [row for split in ("test", "prompt", "validation", "train") for row in splits[split]]
        rows = rows[::-1] if reverse else rows
        if ".jsonl" in name:
            write_jsonl(folder / name, rows)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(json.dumps(rows, indent=1), encoding="utf-8")

    return write


def _mbpp_groups(rows: list[Row]) -> Splits:
    last = {"prompt": 10, "test": 510, "validation": 600, "train": 974}
    splits: Splits = {}
    for row in rows:
        split = next(split for split, task in last.items() if row["task_id"] <= task)
        splits.setdefault(split, []).append(row)
    return splits


_MBPP_SIZES = {split: len(ids) for split, ids in MBPP_IDS.items()}
_MBPP_MODULE = importlib.import_module("pytest_llmeval.catalog.mbpp")

MBPP = CatalogCopy(
    mbpp(),
    "mbpp",
    splits=made(mbpp_row, **_MBPP_SIZES),
    scored="test",
    pool="prompt",
    shot_ids=r"mbpp-000[2347]",
    protocols=("official", "official_sampled", "instruct", "chat", "lmeval", "lmeval_instruct"),
    subjects={"mbpp": 4},
    folder="mbpp",
    repo="google-research-datasets/mbpp",
    constants={"_FULL": replace(_MBPP_MODULE._FULL, sizes=_MBPP_SIZES)},
    refusal=("prompt mbpp has 4 of 10", "test mbpp has 4 of 500", "train mbpp has 1 of 374"),
    layouts={
        "jsonl": _one_file("mbpp.jsonl"),
        "packed": _one_file("mbpp.jsonl.gz"),
        "official repository": _one_file("mbpp/mbpp.jsonl", reverse=True),
    },
    to_hub=under("full"),
    second_row=r"mbpp\.jsonl, line 2",
    unusable=(
        ({"task_id": "11"}, "task_id is not a whole number"),
        ({"task_id": 11}, "task_id 11 occurs twice"),
        ({"text": None}, "texts text and code were expected"),
        ({"test_list": "assert"}, "test_list and test_imports must be lists of texts"),
        ({"test_list": []}, "test_list and test_imports must be lists of texts"),
        ({"test_setup_code": 1}, "test_list and test_imports must be lists of texts"),
        ({"code": "def f(:"}, "code or tests are not Python"),
        ({"test_list": ["assert g(1)"]}, "the tests do not call a function of the code"),
    ),
    read=lambda folder: _mbpp_groups(read_jsonl(folder / "mbpp.jsonl")),
)

MBPP_SANITIZED = replace(
    MBPP,
    benchmark=mbpp_sanitized(),
    splits=made(sanitized_row, **_MBPP_SIZES),
    constants={"_SANITIZED": replace(_MBPP_MODULE._SANITIZED, sizes=_MBPP_SIZES)},
    refusal=("prompt mbpp has 4 of 7", "test mbpp has 4 of 257", "train mbpp has 1 of 120"),
    layouts={
        "json": _one_file("sanitized-mbpp.json"),
        "official repository": _one_file("mbpp/sanitized-mbpp.json", reverse=True),
    },
    to_hub=under("sanitized"),
    second_row=r"sanitized-mbpp\.json, row 1",
    unusable=(
        ({"prompt": None}, "texts prompt and code were expected"),
        ({"test_imports": [1]}, "test_list and test_imports must be lists of texts"),
    ),
    read=lambda folder: _mbpp_groups(
        json.loads((folder / "sanitized-mbpp.json").read_text(encoding="utf-8"))
    ),
)

COPIES = (GSM8K, MGSM, HUMANEVAL, MBPP, MBPP_SANITIZED)
