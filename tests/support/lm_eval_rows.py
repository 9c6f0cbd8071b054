"""lm-eval's own task files, fed from local rows instead of the hub. Used by tests and perf."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import lm_eval.api.task

from support.choice_rows import choice_rows

EXEMPLARS = [
    {"question": f"Wort: wie viel ist 1 + {n}?", "answer": f"{'x' * 40}{n}", "answer_number": n + 1}
    for n in range(3)
]
"""Made-up shots for MGSM, whose own are not among the local files."""

_BUILDERS = ("csv", "json", "parquet")
"""Data sets that are local files, which lm-eval loads itself."""

_load_dataset = datasets.load_dataset

_ARC_SPLITS = {"train": "Train", "validation": "Dev", "test": "Test"}


def feed(folder: Path) -> None:
    """From here on lm-eval's tasks load their rows from the folder, and nothing else."""

    def load_dataset(path: str, name: str | None = None, **options: Any) -> datasets.DatasetDict:
        if path in _BUILDERS:
            return _load_dataset(path, name, **options)
        if path == "cais/mmlu":
            return datasets.DatasetDict(
                {split: _mmlu(folder, split, name) for split in ("dev", "test")}
            )
        if path == "allenai/ai2_arc":
            return datasets.DatasetDict({split: _arc(folder, split, name) for split in _ARC_SPLITS})
        if path == "openai/gsm8k":
            return datasets.DatasetDict(
                {
                    split: datasets.Dataset.from_list(_jsonl(folder / "gsm8k" / f"{split}.jsonl"))
                    for split in ("train", "test")
                }
            )
        if path == "TIGER-Lab/MMLU-Pro":
            pro = folder / "mmlu_pro"
            files = {"test": pro / "test.jsonl.gz", "validation": pro / "validation.jsonl"}
            return datasets.DatasetDict(
                {split: datasets.Dataset.from_list(_jsonl(file)) for split, file in files.items()}
            )
        if path == "openai/openai_humaneval":
            rows = _jsonl(folder / "humaneval" / "HumanEval.jsonl.gz")
            return datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)})
        if path == "google-research-datasets/mbpp":
            rows = _jsonl(folder / "mbpp" / "mbpp.jsonl")
            return datasets.DatasetDict({"test": datasets.Dataset.from_list(rows[10:510])})
        if path == "juletxara/mgsm":
            return datasets.DatasetDict(
                {"test": _mgsm(folder, name), "train": datasets.Dataset.from_list(EXEMPLARS)}
            )
        splits = choice_rows(folder, path, name)
        if splits is not None:
            return datasets.DatasetDict(
                {split: datasets.Dataset.from_list(rows) for split, rows in splits.items()}
            )
        raise LookupError(f"no local rows for {path}")

    lm_eval.api.task.datasets.load_dataset = load_dataset


def _mmlu(folder: Path, split: str, subject: str) -> datasets.Dataset:
    path = folder / "mmlu" / split / f"{subject}_{split}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return datasets.Dataset.from_list(
        [
            {
                "question": row[0],
                "subject": subject,
                "choices": row[1:5],
                "answer": "ABCD".index(row[5]),
            }
            for row in rows
        ]
    )


def _arc(folder: Path, split: str, name: str) -> datasets.Dataset:
    path = folder / "arc" / name / f"{name}-{_ARC_SPLITS[split]}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return datasets.Dataset.from_list(
        [
            {
                "id": row["id"],
                "question": row["question"]["stem"],
                "choices": {
                    "text": [choice["text"] for choice in row["question"]["choices"]],
                    "label": [choice["label"] for choice in row["question"]["choices"]],
                },
                "answerKey": row["answerKey"],
            }
            for row in rows
        ]
    )


def _jsonl(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().split("\n") if line]


def _mgsm(folder: Path, language: str | None) -> datasets.Dataset:
    text = (folder / "mgsm" / f"mgsm_{language}.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.split("\n") if line]
    return datasets.Dataset.from_list(
        [
            {"question": question, "answer": None, "answer_number": int(number.replace(",", ""))}
            for question, number in rows
        ]
    )
