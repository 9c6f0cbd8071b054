"""lm-eval's own task files, fed from local rows instead of the hub. Used by tests and perf."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import datasets
import lm_eval.api.task

ROOT = Path(__file__).resolve().parents[2]
_ARC_SPLITS = {"train": "Train", "validation": "Dev", "test": "Test"}


def data_folder() -> Path | None:
    """``LLMEVAL_DATA``, else ``../shared/data`` beside the repository; None where neither is."""
    folder = Path(os.environ.get("LLMEVAL_DATA") or ROOT.parent / "shared" / "data")
    return folder if (folder / "mmlu" / "test").is_dir() else None


def feed(folder: Path) -> None:
    """From here on lm-eval's tasks load MMLU and ARC from the folder, and nothing else."""

    def load_dataset(path: str, name: str, **_: Any) -> datasets.DatasetDict:
        if path == "cais/mmlu":
            return datasets.DatasetDict(
                {split: _mmlu(folder, split, name) for split in ("dev", "test")}
            )
        if path == "allenai/ai2_arc":
            return datasets.DatasetDict({split: _arc(folder, split, name) for split in _ARC_SPLITS})
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
