"""Rows of ARC and CommonsenseQA: labelled options, and a key that is one of the labels.

The two are published by AI2 in one shape, ``{"id", "question": {"stem", "choices"}, "answerKey"}``
with choices of ``{"text", "label"}``; the hub has the question's text in ``question`` and the
choices beside it, as one list of texts and one of labels.
"""

from __future__ import annotations

from typing import Any

from pytest_llmeval.core import DataError
from pytest_llmeval.core import Item
from pytest_llmeval.sources.item_ids import safe_id


def labelled_item(
    where: str, row: dict[str, Any], subject: str, prefix: str, answered: str
) -> Item:
    """The item of a row; ``prefix`` stands before the data's own id, of a shot for example.

    The gold option is the one whose label is the key, whatever the labels are. Raises DataError,
    beginning with ``where``, for a row that cannot be used; for one without a key it names the
    split ``answered`` that has them.
    """
    name, question, choices = row.get("id"), row.get("question"), row.get("choices")
    if isinstance(question, dict):
        choices, question = question.get("choices"), question.get("stem")
    texts, labels = _columns(choices)
    if (
        not isinstance(name, str)
        or not name
        or not isinstance(question, str)
        or not _are_texts(texts)
        or not _are_texts(labels)
        or len(texts) != len(labels)
    ):
        raise DataError(f"{where}: id, question and labelled choices were expected")
    key = row.get("answerKey")
    if key is None or key == "":
        raise DataError(
            f"{where}: no gold label in this split (answerKey is empty); the split {answered}"
            " has them"
        )
    if labels.count(key) != 1:
        raise DataError(
            f"{where}: answerKey {key!r} is not the label of exactly one choice (labels {labels})"
        )
    return Item(
        id=f"{prefix}{safe_id(name)}",
        subject=subject,
        question=question,
        gold=labels.index(key),
        options=tuple(texts),
    )


def _columns(choices: Any) -> tuple[Any, Any]:
    """Texts and labels of choices in either shape, whatever they are."""
    if isinstance(choices, dict):
        return choices.get("text"), choices.get("label")
    if isinstance(choices, list) and all(isinstance(choice, dict) for choice in choices):
        return [choice.get("text") for choice in choices], [
            choice.get("label") for choice in choices
        ]
    return None, None


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
