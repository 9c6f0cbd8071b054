"""ARC: numbered and lettered options, three to five of them; the same items from every layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import arc_challenge
from pytest_llmeval.catalog import arc_easy
from pytest_llmeval.catalog.arc import ROWS
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import check_dataset
from pytest_llmeval.scorers import get_scorer
from support.hub_copies import Rows
from support.hub_copies import fake_hub
from support.hub_copies import write_clone
from support.hub_copies import write_jsonl

HASHES = {"ARC-Challenge": "ee79f6e887e61c04", "ARC-Easy": "ebefb54625864dab"}
BENCHMARKS = {"ARC-Challenge": arc_challenge(), "ARC-Easy": arc_easy()}
PART = "ARC-Challenge"


def row(name: str, **changes: Any) -> dict[str, Any]:
    """A row as the hub has it."""
    return {
        "id": name,
        "question": f"{name}?",
        "choices": {"text": ["w", "x", "y", "z"], "label": ["A", "B", "C", "D"]},
        "answerKey": "B",
        **changes,
    }


def official(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the hub as the official files have it."""
    pairs = zip(row["choices"]["text"], row["choices"]["label"], strict=True)
    choices = [{"text": text, "label": label} for text, label in pairs]
    question = {"stem": row["question"], "choices": choices}
    return {"id": row["id"], "question": question, "answerKey": row["answerKey"]}


def made_up(first: dict[str, Any] | None = None) -> tuple[Rows, Rows]:
    """Test and train, as many rows as the challenge has, the first test row as given."""
    sizes = zip(("test", "train"), ROWS[PART], strict=True)
    test, train = ([row(f"{split}-{n}") for n in range(size)] for split, size in sizes)
    return [*([] if first is None else [first]), *test][: len(test)], train


def write(folder: Path, test: Rows, train: Rows) -> Path:
    for split, rows in (("Test", test), ("Train", train)):
        write_jsonl(folder / "arc" / PART / f"{PART}-{split}.jsonl", map(official, rows))
    return folder


@pytest.mark.parametrize("part", ROWS)
def test_the_public_copy_is_complete(data: Path, part: str) -> None:
    benchmark = BENCHMARKS[part]
    dataset = benchmark.source(data)
    check_dataset(benchmark.name, dataset)
    assert dataset.content_hash() == HASHES[part]
    assert (len(dataset.items), len(dataset.pool[benchmark.name])) == ROWS[part]
    shots = {shot.id for shot in dataset.pool[benchmark.name]}
    assert not shots & {item.id for item in dataset.items}


def test_numbers_of_options_and_repeated_questions_of_the_public_copies(data: Path) -> None:
    easy, challenge = (BENCHMARKS[f"ARC-{part}"].source(data) for part in ("Easy", "Challenge"))
    for dataset, sizes in ((challenge, {3: 4, 4: 1165, 5: 3}), (easy, {3: 7, 4: 2365, 5: 4})):
        found: dict[int, int] = {}
        for item in dataset.items:
            found[len(item.options)] = found.get(len(item.options), 0) + 1
        assert dict(sorted(found.items())) == sizes
    assert challenge.warnings == (
        "arc_challenge: 2 question texts occur more than once (TIMSS_2003_8_pg47 ="
        " Mercury_SC_LBS10597, Mercury_7116183 = Mercury_406639)",
    )
    assert [warning[:48] for warning in easy.warnings] == [
        "arc_easy: 5 question texts occur more than once "
    ]


@pytest.mark.parametrize("part", ROWS)
def test_clone_and_hub_give_the_same_items(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    splits: dict[str, Rows] = {}
    for split, name in (("test", "Test"), ("train", "Train")):
        text = (data / "arc" / part / f"{part}-{name}.jsonl").read_text(encoding="utf-8")
        rows = [json.loads(line) for line in text.split("\n") if line]
        splits[split] = [
            {
                "id": one["id"],
                "question": one["question"]["stem"],
                "choices": {
                    key: [choice[key] for choice in one["question"]["choices"]]
                    for key in ("text", "label")
                },
                "answerKey": one["answerKey"],
            }
            for one in rows
        ]
    benchmark = BENCHMARKS[part]
    fake_hub(monkeypatch, "allenai/ai2_arc", {(part, name): rows for name, rows in splits.items()})
    assert benchmark.source(tmp_path).content_hash() == HASHES[part]
    write_clone(tmp_path / "arc" / part, splits)
    assert benchmark.source(tmp_path).content_hash() == HASHES[part]


def test_case_f03_a_key_is_looked_up_among_the_labels(tmp_path: Path) -> None:
    numbered = row(
        "f03",
        question="Which is a gas at room temperature?",
        choices={"text": ["iron", "salt", "neon", "wax"], "label": ["1", "2", "3", "4"]},
        answerKey="3",
    )
    dataset = arc_challenge().source(write(tmp_path, *made_up(numbered)))
    item = dataset.items[0]
    assert (item.gold, item.gold_label) == (2, "C")
    letter = next(one for one in arc_challenge().protocols if one.name == "letter")
    request = letter.request(item, dataset.pool["arc_challenge"])
    assert request.prompt.question.endswith("\nA. iron\nB. salt\nC. neon\nD. wax\nAnswer:")
    assert request.choices == ("A", "B", "C", "D")
    assert len(request.prompt.shots) == 5
    response = Response(item.id, text="C")
    assert get_scorer("choice")(item, response).outcome == Outcome.CORRECT


def test_both_scorers_of_lmeval_read_the_same_likelihoods() -> None:
    lmeval = next(one for one in arc_easy().protocols if one.name == "lmeval")
    assert (lmeval.scorer, lmeval.also, lmeval.shots) == ("cloze", ("likelihood",), 0)
    assert arc_easy().protocols[0].template == lmeval.template


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"answerKey": "E"},
            r"answerKey 'E' is not the label of exactly one choice \(labels \['A', 'B', 'C', 'D'\]\)",
        ),
        ({"answerKey": "2"}, "answerKey '2' is not the label of exactly one"),
        ({"answerKey": ""}, "no gold label in this split .*; the split test has them"),
        ({"id": 7}, "id, question and labelled choices were expected"),
        ({"question": None}, "id, question and labelled choices were expected"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    test, train = made_up()
    test[1] |= change
    write(tmp_path, test, train)
    with pytest.raises(DataError, match=rf"ARC-Challenge-Test\.jsonl, line 2: {message}"):
        arc_challenge().source(tmp_path)


def test_an_incomplete_copy_is_refused(tmp_path: Path) -> None:
    test, train = made_up()
    write(tmp_path, test[1:], train)
    with pytest.raises(DataError, match="test arc_challenge has 1,171 of 1,172 rows"):
        arc_challenge().source(tmp_path)
    with pytest.raises(DataError, match=r"not a copy of arc .*ARC-Easy-Test"):
        arc_easy().source(tmp_path)
