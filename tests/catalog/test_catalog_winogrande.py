"""WinoGrande: two options for a blank, of which the text behind the blank is scored."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmeval.catalog import winogrande
from support.choice_copies import WINOGRANDE


def test_golds_of_the_public_copy(data: Path) -> None:
    dataset = winogrande().source(data)
    assert [sum(item.gold == gold for item in dataset.items) for gold in (0, 1)] == [628, 639]
    assert dataset.warnings == ()


def test_ids_of_the_data_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    WINOGRANDE.use_constants(monkeypatch)
    rows = [row | {"qID": f"q{n}"} for n, row in enumerate(WINOGRANDE.splits["validation"])]
    with_ids = WINOGRANDE.write(tmp_path / "ids", {**WINOGRANDE.splits, "validation": rows})
    assert WINOGRANDE.load(with_ids) == WINOGRANDE.load(WINOGRANDE.write(tmp_path))


def test_the_text_behind_the_blank_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WINOGRANDE.use_constants(monkeypatch)
    dataset = WINOGRANDE.load(WINOGRANDE.write(tmp_path))
    request = winogrande().protocols[0].request(dataset.items[0], ())
    assert [prompt.text for prompt in request.prompts] == [
        "validation 0: she dealt because Bo",
        "validation 0: she dealt because Right Ann",
    ]
    assert request.choices == ("had the pack.", "had the pack.")
    assert request.prompt.delimiter == " "
