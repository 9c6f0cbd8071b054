"""Made-up copies of the benchmarks with options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytest_llmeval.catalog import arc_challenge
from pytest_llmeval.catalog import arc_easy
from pytest_llmeval.catalog import commonsenseqa
from pytest_llmeval.catalog import hellaswag
from pytest_llmeval.catalog import nonsenseqa
from pytest_llmeval.catalog import starter
from pytest_llmeval.catalog import truthfulqa
from pytest_llmeval.catalog import winogrande
from support.catalog_copies import MATCHED
from support.catalog_copies import CatalogCopy
from support.catalog_copies import HubSplits
from support.catalog_copies import Row
from support.catalog_copies import Splits
from support.catalog_copies import below
from support.catalog_copies import jsonl
from support.catalog_copies import made
from support.catalog_copies import options
from support.catalog_copies import read_csv
from support.catalog_copies import read_jsonl
from support.catalog_copies import under
from support.catalog_copies import write_csv


def ai2_row(split: str, number: int, labels: str = "ABCD") -> Row:
    """A row as the official files of ARC and CommonsenseQA have it."""
    gold = number % len(labels)
    texts = options(gold, number, len(labels))
    choices = [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]
    question = {"stem": f"{split} {number}?", "choices": choices}
    return {"id": f"{split}_{number}", "question": question, "answerKey": labels[gold]}


def ai2_to_hub(row: Row) -> Row:
    question = row["question"]
    choices = {key: [choice[key] for choice in question["choices"]] for key in ("text", "label")}
    return {
        "id": row["id"],
        "question": question["stem"],
        "choices": choices,
        "answerKey": row["answerKey"],
    }


def _ai2_hub(config: str | None) -> Callable[[Splits], HubSplits]:
    return lambda splits: {
        (config, split): [ai2_to_hub(row) for row in rows] for split, rows in splits.items()
    }


def arc_row(split: str, number: int) -> Row:
    return ai2_row(split, number, ("ABCD", "ABC", "12345", "1234")[number % 4])


def _arc(part: str, refusal: tuple[str, ...]) -> CatalogCopy:
    names = {split: f"{part}/{part}-{split.capitalize()}.jsonl" for split in ("test", "train")}
    official = jsonl(**names)
    return CatalogCopy(
        arc_challenge() if part == "ARC-Challenge" else arc_easy(),
        "arc",
        splits=made(arc_row, test=4, train=6),
        scored="test",
        pool="train",
        shot_ids=r"train-train_\d",
        protocols=("cloze", "lmeval", "letter", *MATCHED),
        subjects={part.lower().replace("-", "_"): 4},
        chance=(1 / 4 + 1 / 3 + 1 / 5 + 1 / 4) / 4,
        folder="arc",
        repo="allenai/ai2_arc",
        constants={"ROWS": {part: (4, 6)}},
        refusal=refusal,
        layouts={
            "jsonl": official,
            "packed": jsonl(**{split: f"{name}.gz" for split, name in names.items()}),
            "official archive": below("ARC-V1-Feb2018-2", layout=official),
        },
        to_hub=_ai2_hub(part),
        second_row=rf"{part}-Test\.jsonl, line 2",
        unusable=(
            (
                {"answerKey": "E"},
                r"answerKey 'E' is not the label of exactly one choice"
                r" \(labels \['A', 'B', 'C'\]\)",
            ),
            ({"answerKey": "2"}, "answerKey '2' is not the label of exactly one"),
            ({"answerKey": ""}, "no gold label in this split .*; the split test has them"),
            ({"id": 7}, "id, question and labelled choices were expected"),
            ({"question": None}, "id, question and labelled choices were expected"),
        ),
        same=(frozenset({"cloze", "lmeval"}),),
        read=lambda folder: {split: read_jsonl(folder / name) for split, name in names.items()},
    )


ARC_CHALLENGE = _arc("ARC-Challenge", ("has 4 of 1,172 rows", "has 6 of 1,119 rows"))
ARC_EASY = _arc("ARC-Easy", ("has 4 of 2,376 rows", "has 6 of 2,251 rows"))

_COMMONSENSEQA = {"validation": "dev_rand_split.jsonl", "train": "train_rand_split.jsonl"}

COMMONSENSEQA = CatalogCopy(
    commonsenseqa(),
    "commonsenseqa",
    splits=made(lambda split, n: ai2_row(split, n, "ABCDE"), validation=4, train=6),
    scored="validation",
    pool="train",
    shot_ids=r"train-train_\d",
    protocols=("letter", "lmeval", "cloze", *MATCHED),
    subjects={"commonsenseqa": 4},
    chance=0.2,
    folder="commonsenseqa",
    repo="tau/commonsense_qa",
    constants={"VALIDATION_ROWS": 4, "TRAIN_ROWS": 6},
    refusal=("has 4 of 1,221 rows", "has 6 of 9,741 rows"),
    layouts={
        "jsonl": jsonl(**_COMMONSENSEQA),
        "packed": jsonl(**{split: f"{name}.gz" for split, name in _COMMONSENSEQA.items()}),
    },
    to_hub=_ai2_hub(None),
    second_row=r"dev_rand_split\.jsonl, line 2",
    unusable=(
        ({"answerKey": ""}, "no gold label in this split .*; the split validation has them"),
        ({"answerKey": "F"}, "answerKey 'F' is not the label of exactly one choice"),
        ({"id": None}, "id, question and labelled choices were expected"),
    ),
    read=lambda folder: {
        "validation": read_jsonl(folder / "dev_rand_split.jsonl"),
        "train": read_jsonl(folder / "train_rand_split.jsonl.gz"),
    },
)


def hellaswag_row(split: str, number: int) -> Row:
    gold = number % 4
    endings = ["bows [title] out.", "wins.", "[step] loses.", "deals."]
    endings[gold] = f"is right {number}."
    return {
        "ind": number,
        "activity_label": "Playing cards",
        "ctx_a": f"Ann holds the ace, {split} {number}.",
        "ctx_b": "she",
        "ctx": f"Ann holds the ace, {split} {number}. she",
        "split": split,
        "split_type": "indomain",
        "label": gold,
        "endings": endings,
        "source_id": "activitynet~v_x",
    }


def _hellaswag_to_hub(splits: Splits) -> HubSplits:
    """The hub has labels as text."""
    return {
        (None, split): [row | {"label": str(row["label"])} for row in rows]
        for split, rows in splits.items()
    }


HELLASWAG = CatalogCopy(
    hellaswag(),
    "hellaswag",
    splits=made(hellaswag_row, validation=4, train=6),
    scored="validation",
    pool="train",
    shot_ids=r"train-hellaswag-0000\d",
    protocols=("cloze", "lmeval", "letter"),
    subjects={"hellaswag": 4},
    chance=0.25,
    folder="hellaswag",
    repo="Rowan/hellaswag",
    constants={"VALIDATION_ROWS": 4, "TRAIN_ROWS": 6},
    refusal=("validation hellaswag has 4 of 10,042 rows", "train hellaswag has 6 of 39,905 rows"),
    layouts={
        "jsonl": jsonl(validation="hellaswag_val.jsonl", train="hellaswag_train.jsonl"),
        "packed": jsonl(validation="hellaswag_val.jsonl.gz", train="hellaswag_train.jsonl.gz"),
    },
    to_hub=_hellaswag_to_hub,
    second_row=r"hellaswag_val\.jsonl, line 2",
    unusable=(
        ({"label": ""}, "no gold label in this split .*; the split validation has them"),
        ({"label": 4}, "label 4 is not a number 0 to 3"),
        ({"endings": ["a", "b", "c"]}, "ind, activity_label, ctx_a, ctx_b and four endings"),
        ({"ind": None}, "ind, activity_label, ctx_a, ctx_b and four endings"),
    ),
    optional=("train",),
    same=(frozenset({"cloze", "lmeval"}),),
)


def winogrande_row(split: str, number: int) -> Row:
    names = ("Right Ann", "Bo") if number % 2 else ("Bo", "Right Ann")
    return {
        "sentence": f"{split} {number}: she dealt because _ had the pack.",
        "option1": names[0],
        "option2": names[1],
        "answer": "1" if number % 2 else "2",
    }


_WINOGRANDE = {"validation": "dev.jsonl", "train": "train_xl.jsonl"}

WINOGRANDE = CatalogCopy(
    winogrande(),
    "winogrande",
    splits=made(winogrande_row, validation=4, train=6),
    scored="validation",
    pool="train",
    shot_ids=r"train-winogrande-000\d",
    protocols=("lmeval", "letter"),
    subjects={"winogrande": 4},
    chance=0.5,
    folder="winogrande",
    repo="allenai/winogrande",
    constants={"DEV_ROWS": 4, "TRAIN_ROWS": 6},
    refusal=("dev winogrande has 4 of 1,267 rows", "train winogrande has 6 of 40,398 rows"),
    layouts={
        "jsonl": jsonl(**_WINOGRANDE),
        "packed": jsonl(**{split: f"{name}.gz" for split, name in _WINOGRANDE.items()}),
        "official archive": below("winogrande_1.1", layout=jsonl(**_WINOGRANDE)),
    },
    to_hub=under("winogrande_xl"),
    second_row=r"dev\.jsonl, line 2",
    unusable=(
        ({"answer": ""}, "no gold label in this split .*; the split dev has them"),
        ({"answer": "3"}, "answer '3' is neither '1' nor '2'"),
        ({"answer": 1}, "answer 1 is neither '1' nor '2'"),
        ({"sentence": "no blank"}, r"no blank \(_\) with text after it"),
        ({"sentence": "at the end _ "}, r"no blank \(_\) with text after it"),
        ({"option2": None}, "sentence, option1 and option2 were expected"),
    ),
    optional=("train",),
    read=lambda folder: {"validation": read_jsonl(folder / "winogrande_dev_1267.jsonl")},
)

TRUTHFULQA_COLUMNS = (
    "Type",
    "Category",
    "Question",
    "Best Answer",
    "Correct Answers",
    "Incorrect Answers",
)


def truthfulqa_row(split: str, number: int) -> Row:
    wrong = "Never; Often.; No;" if number % 2 else "Never"
    values = ("Adversarial", "Cards", f"{split} {number}?", f"Right {number}", "x", wrong)
    return dict(zip(TRUTHFULQA_COLUMNS, values, strict=True))


def write_truthfulqa(folder: Path, splits: Splits) -> None:
    rows = [[row[name] for name in TRUTHFULQA_COLUMNS] for row in splits["validation"]]
    write_csv(folder / "TruthfulQA.csv", [TRUTHFULQA_COLUMNS, *rows])


def _truthfulqa_to_hub(splits: Splits) -> HubSplits:
    """The hub has the options made, each closed with a full stop, the right one first."""
    rows = []
    for row in reversed(splits["validation"]):
        texts = [row["Best Answer"], *row["Incorrect Answers"].split(";")]
        choices = [f"{text.strip().removesuffix('.')}." for text in texts if text.strip()]
        labels = [1] + [0] * (len(choices) - 1)
        targets = {"choices": choices, "labels": labels}
        rows.append({"question": row["Question"], "mc1_targets": targets})
    return {("multiple_choice", "validation"): rows}


def _read_truthfulqa(folder: Path) -> Splits:
    header, *lines = read_csv(folder / "TruthfulQA.csv")
    return {"validation": [dict(zip(header, line, strict=True)) for line in lines]}


TRUTHFULQA = CatalogCopy(
    truthfulqa(),
    "truthfulqa",
    splits=made(truthfulqa_row, validation=4),
    scored="validation",
    protocols=("lmeval", "letter"),
    subjects={"truthfulqa": 4},
    chance=(1 / 2 + 1 / 4) / 2,
    folder="truthfulqa",
    repo="truthfulqa/truthful_qa",
    constants={"ROWS": 4},
    refusal=("validation truthfulqa has 4 of 817 rows",),
    layouts={
        "csv": write_truthfulqa,
        "official repository": below("data", layout=write_truthfulqa),
    },
    to_hub=_truthfulqa_to_hub,
    second_row=r"TruthfulQA\.csv, row 3",  # below the header
    unusable=(
        ({"Best Answer": " "}, "no gold label in this split"),
        ({"Incorrect Answers": " ; "}, "no incorrect answers"),
    ),
    read=_read_truthfulqa,
)

NONSENSEQA = CatalogCopy(
    nonsenseqa(),
    "nonsenseqa",
    splits={},
    scored="",
    shot_ids=r"shot-00\d\d",
    pool="",
    protocols=("letter", *MATCHED),
    subjects={"miscellaneous": 1000},
    chance=0.25,
)

STARTER = replace(
    NONSENSEQA,
    benchmark=starter(),
    module="starter",
    shot_ids=r"dev-[a-z_]+-000[0-4]",
    protocols=("letter", "cloze"),
    subjects={},
)
"""The sizes of its subjects are in ``test_starter_data.py``."""

PACKAGED = (NONSENSEQA, STARTER)
COPIES = (
    ARC_CHALLENGE,
    ARC_EASY,
    COMMONSENSEQA,
    HELLASWAG,
    TRUTHFULQA,
    WINOGRANDE,
)
