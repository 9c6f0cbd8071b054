"""Explanations of extracted answers, computed again from the response.

A module of its own: the patterns of these scorers take longer to compile than most commands need.
"""

from __future__ import annotations

import re

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Record
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.scorers.choice.reader import Candidate
from pytest_llmeval.scorers.choice.reader import explain_choice
from pytest_llmeval.scorers.number import explain_number

_OPTION = re.compile(r"(?:^|\n)[ \t]*\(?([A-Z])[).:][ \t]+(.+)")


def candidate_words(candidate: Candidate) -> str:
    """Return role and rule of an answer candidate."""
    return one_line(f"{candidate.role} ({candidate.rule})")


def extraction_reason(record: Record, question: str | None) -> str | None:
    """Return role and rule of the candidate that decided the answer of a record.

    It is computed again from the response, with the options that ``question`` lists line by line.
    None if that gives a different answer, for example because the options are not listed.
    """
    if record.text is None:
        return None
    if record.scorer == "choice":
        listed = dict(_OPTION.findall(question or ""))
        options = [listed.get(label, "") for label in LABELS[: max(len(listed), 10)]]
        explanation = explain_choice(record.text, options)
    elif record.scorer == "number":
        explanation = explain_number(record.text)
    else:
        return None
    if not explanation.candidates or explanation.answer != record.answer:
        return None
    return candidate_words(explanation.candidates[0])
