"""Rows with labelled options: the key is looked up among the row's own labels."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import DataError
from pytest_llmeval.sources.ai2_format import labelled_item

LABELS = st.sampled_from(["ABCDE", "12345", "FGHJK"]).flatmap(
    lambda letters: st.integers(2, 5).flatmap(lambda n: st.permutations(letters[:n]))
)


def flat(labels: list[str], key: str) -> dict[str, Any]:
    texts = [f"option {label}" for label in labels]
    return {
        "id": "a/1",
        "question": " Q? ",
        "choices": {"text": texts, "label": labels},
        "answerKey": key,
    }


def nested(labels: list[str], key: str) -> dict[str, Any]:
    choices = [{"label": label, "text": f"option {label}"} for label in labels]
    return {"answerKey": key, "id": "a/1", "question": {"stem": " Q? ", "choices": choices}}


@given(LABELS, st.data())
def test_the_gold_option_is_the_one_with_the_label(labels: list[str], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(labels))
    item = labelled_item("w", flat(labels, key), "s", "train-", "test")
    assert item == labelled_item("w", nested(labels, key), "s", "train-", "test")
    assert isinstance(item.gold, int)
    assert item.options[item.gold] == f"option {key}"
    assert (item.id, item.question) == ("train-a_1", " Q? ")


@pytest.mark.parametrize(
    "change",
    [
        {"choices": None},
        {"choices": ["x", "y"]},
        {"choices": {"text": ["x", "y"], "label": ["A"]}},
        {"choices": {"text": ["x", None], "label": ["A", "B"]}},
        {"id": ""},
    ],
)
def test_rows_without_a_question_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"^w: id, question and labelled choices were expected$"):
        labelled_item("w", {**flat(["A", "B"], "A"), **change}, "s", "", "test")


def test_a_repeated_label_is_refused() -> None:
    with pytest.raises(DataError, match="answerKey 'A' is not the label of exactly one choice"):
        labelled_item("w", flat(["A", "A"], "A"), "s", "", "test")
