"""WinoGrande: two options for a blank, of which the text behind the blank is scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import winogrande
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from support.hub_copies import fake_hub
from support.hub_copies import write_clone
from support.hub_copies import write_jsonl

CONTENT_HASH = "3b8df3d199fdfa9e"


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "sentence": f"Ann dealt to Bo {number} because _ had the pack.",
        "option1": "Ann",
        "option2": "Bo",
        "answer": "1",
        **changes,
    }


def test_the_public_copy_is_complete(data: Path) -> None:
    dataset = winogrande().source(data)
    check_dataset("winogrande", dataset)
    assert dataset.content_hash() == CONTENT_HASH
    assert [sum(item.gold == gold for item in dataset.items) for gold in (0, 1)] == [628, 639]
    assert dataset.warnings == ()


def test_clone_and_hub_give_the_same_items(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data / "winogrande" / "winogrande_dev_1267.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    write_clone(tmp_path / "winogrande" / "winogrande_xl", {"validation": rows})
    assert winogrande().source(tmp_path).content_hash() == CONTENT_HASH
    # With the training split the pool is another one, the items are not.
    train = [row(number) for number in range(40398)]
    hub = {("winogrande_xl", "validation"): rows, ("winogrande_xl", "train"): train}
    fake_hub(monkeypatch, "allenai/winogrande", hub)
    whole = winogrande().source(tmp_path / "winogrande")
    assert whole.items == winogrande().source(tmp_path).items
    assert len(whole.pool["winogrande"]) == 40398
    official = tmp_path / "official" / "winogrande" / "winogrande_1.1"
    # The official files have ids, and nothing is made of them.
    write_jsonl(official / "dev.jsonl", ({"qID": str(n), **r} for n, r in enumerate(rows)))
    write_jsonl(official / "train_xl.jsonl", train)
    assert winogrande().source(tmp_path / "official") == whole


def test_what_follows_the_blank_is_scored(tmp_path: Path) -> None:
    rows = [row(number) for number in range(1267)]
    write_jsonl(tmp_path / "winogrande" / "dev.jsonl", rows)
    dataset = winogrande().source(tmp_path)
    request = winogrande().protocols[0].request(dataset.items[0], ())
    assert [prompt.text for prompt in request.prompts] == [
        "Ann dealt to Bo 0 because Ann",
        "Ann dealt to Bo 0 because Bo",
    ]
    assert request.choices == ("had the pack.", "had the pack.")
    assert request.prompt.delimiter == " "


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": ""}, "no gold label in this split .*; the split dev has them"),
        ({"answer": "3"}, "answer '3' is neither '1' nor '2'"),
        ({"answer": 1}, "answer 1 is neither '1' nor '2'"),
        ({"sentence": "no blank"}, r"no blank \(_\) with text behind it"),
        ({"sentence": "at the end _ "}, r"no blank \(_\) with text behind it"),
        ({"option2": None}, "sentence, option1 and option2 were expected"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write_jsonl(tmp_path / "winogrande" / "dev.jsonl", [row(0), row(1, **change)])
    with pytest.raises(DataError, match=rf"dev\.jsonl, line 2: {message}"):
        winogrande().source(tmp_path)


def test_an_incomplete_copy_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "winogrande"
    write_jsonl(folder / "dev.jsonl", map(row, range(1266)))
    with pytest.raises(DataError, match="dev winogrande has 1,266 of 1,267 rows"):
        winogrande().source(tmp_path)
    write_jsonl(folder / "dev.jsonl", map(row, range(1267)))
    write_jsonl(folder / "train_xl.jsonl", [row(1)])
    with pytest.raises(DataError, match="train winogrande has 1 of 40,398 rows"):
        winogrande().source(tmp_path)
