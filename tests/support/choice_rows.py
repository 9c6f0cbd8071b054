"""Rows of multiple-choice data sets as lm-eval's task files expect them, made from local files.

Where a training split is not among the local files, a few rows of the scored split stand in for it:
which rows are shots is the same for both tools, and that is what is compared.
"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]

STAND_INS = 40
"""How many rows stand in for a training split; they are the last ones of the scored split."""

INCLUDE = [
    {
        "language": language,
        "country": "Nowhere",
        "domain": domain,
        "subject": "Cards",
        "regional_feature": "agnostic",
        "level": "Academic",
        "question": f" {language} {domain} {number}? ",
        "option_a": "one",
        "option_b": " two",
        "option_c": "three ",
        "option_d": f"{number}",
        "answer": number % 4,
    }
    for language, domain in (
        ("Albanian", "STEM"),
        ("Albanian", "Arts & Humanities"),
        ("Hebrew", "Driving License"),
    )
    for number in range(5)
]
"""Made-up rows in INCLUDE's columns, whose own are not among the local files."""


def choice_rows(folder: Path, path: str, name: str | None) -> dict[str, Rows] | None:
    """The splits of a data set by its name on the hub, or None for one not known here."""
    if path == "tau/commonsense_qa":
        files = {"validation": "dev_rand_split.jsonl", "train": "train_rand_split.jsonl.gz"}
        return {
            split: [_commonsense(row) for row in jsonl(folder / "commonsenseqa" / file)]
            for split, file in files.items()
        }
    if path == "Rowan/hellaswag":
        rows = jsonl(folder / "hellaswag" / "hellaswag_val_1000.jsonl")
        return {"validation": rows, "train": rows[-STAND_INS:]}
    if path == "allenai/winogrande":
        rows = jsonl(folder / "winogrande" / "winogrande_dev_1267.jsonl")
        return {"validation": rows, "train": rows[-STAND_INS:]}
    if path == "truthfulqa/truthful_qa":
        rows = table(folder / "truthfulqa" / "TruthfulQA.csv")
        return {"validation": [_truthful(row) for row in rows]}
    if path == "haonan-li/cmmlu":
        return {split: table(folder / "cmmlu" / split / f"{name}.csv") for split in ("test", "dev")}
    if path == "CohereForAI/include-base-44":
        return {"test": [row for row in INCLUDE if row["language"] == name]}
    return None


def jsonl(path: Path) -> Rows:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().split("\n") if line]


def table(path: Path) -> Rows:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _commonsense(row: dict[str, Any]) -> dict[str, Any]:
    question = row["question"]
    return {
        "id": row["id"],
        "question": question["stem"],
        "choices": {
            key: [choice[key] for choice in question["choices"]] for key in ("label", "text")
        },
        "answerKey": row["answerKey"],
    }


def _truthful(row: dict[str, Any]) -> dict[str, Any]:
    texts = [row["Best Answer"], *row["Incorrect Answers"].split(";")]
    closed = [text.strip().removesuffix(".") + "." for text in texts if text.strip()]
    targets = {"choices": closed, "labels": [1] + [0] * (len(closed) - 1)}
    return {"question": row["Question"], "mc1_targets": targets, "mc2_targets": targets}
