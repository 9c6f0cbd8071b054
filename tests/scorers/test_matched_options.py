"""Every option of two public benchmarks, stated unchanged, is read as itself and without a model."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pytest_llmeval.catalog.mmlu_pro import load
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.scorers.matched import matched_by


class ModelNeededError(Exception):
    pass


def no_model(texts: Sequence[str]) -> np.typing.NDArray[np.float32]:
    raise ModelNeededError(texts[0])


def read(all_options: list[tuple[str, ...]], form: str) -> Counter[str]:
    score = matched_by(no_model)
    readings: Counter[str] = Counter()
    for number, options in enumerate(all_options):
        for option in options:
            response = Response("i", text=form.format(option))
            try:
                result = score(Item(f"i{number}", "s", "?", 0, options), response)
            except ModelNeededError:
                readings["no option"] += 1
                continue
            assert result.outcome is not Outcome.ERROR
            chosen = options[LABELS.index(result.answer)] if result.answer else None
            readings["itself" if chosen and chosen.split() == option.split() else "another"] += 1
    return readings


@pytest.mark.parametrize("form", ["Let me think.\nThe answer is {}.", "Answer: {}", "So I say {}"])
def test_mmlu_pro(data: Path, form: str) -> None:
    every = [item.options for item in load(data).items[::9]]
    readings = read(every, form)
    assert readings == {"itself": sum(map(len, every))}


@pytest.mark.parametrize("form", ["我们想一想。答案是{}。", "答案：{}", "The answer is {}."])
def test_cmmlu(data: Path, form: str) -> None:
    every = []
    for path in sorted((data / "cmmlu" / "test").glob("*.csv"))[::6]:
        with path.open(encoding="utf-8-sig", newline="") as file:
            every += [tuple(row[label] for label in "ABCD") for row in csv.DictReader(file)]
    assert len(every) > 1000
    readings = read(every, form)
    assert readings == {"itself": sum(map(len, every))}
