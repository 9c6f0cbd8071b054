"""Candidates for the answer of a reply: each has a role, and the best ranked one is the answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """How a reply presents a candidate. The scorers rank roles; of equal rank the last one wins."""

    WHOLE_REPLY = "whole reply"  # the reply is the text of an option and nothing else
    MARKED = "marked"  # behind a mark that a prompt prescribes, such as ``####``
    BOXED = "boxed"  # inside ``\\boxed{…}``
    ANNOUNCED = "announced"  # behind words that announce the answer, or in front of "is the answer"
    VERDICT = "verdict"  # an option called correct in a sentence, a table, or a list of verdicts
    CONCLUSION = "conclusion"  # behind "therefore", "it must be", and similar
    LABELLED_LINE = "labelled line"  # the label that a line opens with
    OPTION_TEXT = "option text"  # the whole text of an option, without its label
    BARE = "bare"  # a label alone on a line, or a number without any context
    SUPPOSED = "supposed"  # would be the answer if something else were the case


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stretch of a reply that may be its answer.

    ``answer`` is None for an explicit statement that names no single answer ("A or B").
    ``start`` and ``end`` are character positions in ``Extraction.reply``. ``rule`` is one line on
    why the candidate has its role.
    """

    answer: str | None
    role: Role
    start: int
    end: int
    rule: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was extracted from a reply, and why.

    ``reply`` is the part of the text that is read: no reasoning, no invented next question.
    ``candidates`` are ordered by rank, the best first; the first one decides.
    """

    reply: str
    candidates: tuple[Candidate, ...]

    @property
    def answer(self) -> str | None:
        """The answer of the best candidate; None where there is none."""
        return self.candidates[0].answer if self.candidates else None
