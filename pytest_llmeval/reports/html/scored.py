"""The values by which a choice was made, from the log-likelihoods of its record."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Record
from pytest_llmeval.scorers.likelihood import per_character
from pytest_llmeval.storage.prompts import StoredPrompt

CLOZE = "cloze"
"""The scorer that compares other values than the log-likelihoods themselves."""


def scored_values(record: Record, stored: StoredPrompt | None) -> Sequence[float] | None:
    """What the record's scorer compared; None where that is not known.

    That is so where the texts of the options are not stored, and where the highest value is not
    that of the answer, as under a scorer of the user that compares something else.
    """
    values: Sequence[float] = record.logprobs
    if record.scorer == CLOZE:
        if stored is None or len(stored.compared) != len(values) or not all(stored.compared):
            return None
        values = per_character(values, stored.compared)
    chosen = LABELS.find(record.answer) if record.answer and len(record.answer) == 1 else -1
    return values if 0 <= chosen < len(values) and values[chosen] == max(values) else None
