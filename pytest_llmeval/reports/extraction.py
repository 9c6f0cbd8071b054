"""How a stored answer was read from its reply."""

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
    return one_line(f"{candidate.role} ({candidate.rule})")


def why(record: Record, question: str | None) -> str | None:
    """Role and rule of the candidate that decided the answer of a record.

    Computed again from the response, with the options that ``question`` lists line by line; None
    where that gives another answer, as for an option's text that is not listed.
    """
    if record.text is None:
        return None
    if record.scorer == "choice":
        listed = dict(_OPTION.findall(question or ""))
        options = [listed.get(label, "") for label in LABELS[: max(len(listed), 10)]]
        found = explain_choice(record.text, options)
    elif record.scorer == "number":
        found = explain_number(record.text)
    else:
        return None
    if not found.candidates or found.answer != record.answer:
        return None
    return candidate_words(found.candidates[0])
