"""Rows of ARC and CommonsenseQA: labelled options, with one of the labels as key.

AI2 publishes both in one format, ``{"id", "question": {"stem", "choices"}, "answerKey"}`` with
choices of ``{"text", "label"}``. On the hub, ``question`` is the text of the question, and
``choices`` is a column of its own with a list of texts and a list of labels.
"""

from __future__ import annotations

from typing import Any

from pytest_llmeval.core import DataError
from pytest_llmeval.core import Item
from pytest_llmeval.sources.item_ids import safe_id


def labelled_item(
    where: str, row: dict[str, Any], subject: str, prefix: str, keyed_split: str
) -> Item:
    """Return the item of a row.

    ``prefix`` is put before the id of the data, for example for shots. The gold option is the one
    whose label is the key, whatever the labels are. Raises DataError for a row that cannot be used;
    the message begins with ``where`` and, if the key is missing, names the split ``keyed_split``.
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
            f"{where}: no gold label in this split (answerKey is empty); the split {keyed_split}"
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
    """Return the texts and labels of choices in either format, of any type."""
    if isinstance(choices, dict):
        return choices.get("text"), choices.get("label")
    if isinstance(choices, list) and all(isinstance(choice, dict) for choice in choices):
        return [choice.get("text") for choice in choices], [
            choice.get("label") for choice in choices
        ]
    return None, None


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
