"""The packaged benchmark ``starter``: shape and balance of its data file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections import defaultdict
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest

LETTERS = "ABCD"
TEXT = (files("pytest_llmeval.catalog") / "starter.jsonl").read_bytes().decode("utf-8")
ITEMS: list[dict[str, Any]] = [json.loads(line) for line in TEXT.splitlines()]
SUBJECTS = sorted({item["subject"] for item in ITEMS})


def of(split: str, subject: str | None = None) -> list[dict[str, Any]]:
    return [
        item
        for item in ITEMS
        if item["split"] == split and (subject is None or item["subject"] == subject)
    ]


def squeezed(text: str) -> str:
    return "".join(text.casefold().split())


def test_every_line_is_one_object_with_the_same_keys() -> None:
    assert TEXT.endswith("\n")
    assert "\r" not in TEXT
    for item in ITEMS:
        assert list(item) == ["split", "subject", "question", "options", "answer"]
        assert item["split"] in ("dev", "test")
        assert item["answer"] in tuple(LETTERS), item


def test_subjects() -> None:
    assert len(SUBJECTS) >= 10
    for subject in SUBJECTS:
        assert re.fullmatch("[a-z_]+", subject), subject


@pytest.mark.parametrize("subject", SUBJECTS)
def test_counts_of_a_subject(subject: str) -> None:
    assert len(of("dev", subject)) == 5
    assert len(of("test", subject)) >= 25


def test_sizes_are_unequal() -> None:
    sizes = [len(of("test", subject)) for subject in SUBJECTS]
    assert len(set(sizes)) > 1
    assert max(sizes) >= 1.5 * min(sizes)


def test_lines_are_grouped_by_subject_dev_first() -> None:
    keys = [(item["subject"], item["split"]) for item in ITEMS]
    assert keys == sorted(keys)


def test_options() -> None:
    for item in ITEMS:
        options = item["options"]
        assert len(options) == 4, item
        for option in options:
            assert isinstance(option, str)
            assert option
            assert option == option.strip(), item
        assert len({squeezed(option) for option in options}) == 4, item


def test_questions() -> None:
    for item in ITEMS:
        question = item["question"]
        assert isinstance(question, str)
        assert question
        assert question == question.strip(), item
        assert question.endswith("?"), item
    counts = Counter(squeezed(item["question"]) for item in ITEMS)
    assert [question for question, n in counts.items() if n > 1] == []


def test_golds_are_even_over_all_test_items() -> None:
    test = of("test")
    golds = Counter(item["answer"] for item in test)
    for letter in LETTERS:
        assert abs(golds[letter] / len(test) - 0.25) <= 0.01, golds


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("split", ["dev", "test"])
def test_golds_are_even_within_a_subject(split: str, subject: str) -> None:
    golds = Counter(item["answer"] for item in of(split, subject))
    counts = [golds[letter] for letter in LETTERS]
    assert max(counts) - min(counts) <= 1, golds


def test_golds_do_not_run_in_a_cycle() -> None:
    followers: dict[str, Counter[str]] = defaultdict(Counter)
    golds = [item["answer"] for item in of("test")]
    for here, there in pairwise(golds):
        followers[here][there] += 1
    for letter in LETTERS:
        assert set(followers[letter]) == set(LETTERS)
        assert max(followers[letter].values()) <= 0.5 * followers[letter].total()
