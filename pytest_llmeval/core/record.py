"""What became of an answer: outcome, score, and the line on disk."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field
from enum import StrEnum

from pytest_llmeval.core.plan import is_content_free


class Outcome(StrEnum):
    """What became of one item, best first. An error is not an answer: it never counts as wrong."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSED = "unparsed"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Score:
    """A scorer's verdict. ``answer`` is the label or text that was read, None if unparsed.

    ``tie``: two choices shared the highest value and the first of them was taken. ``all_tied``:
    all choices had the same value, so that nothing was chosen. ``detail``: how
    the answer was read, in the scorer's own words, where that is worth counting. ``seconds``: what
    a model that the scorer asked took, which is part of what the answer cost.
    """

    outcome: Outcome
    answer: str | None = None
    tie: bool = False
    error: str | None = None
    detail: str = ""
    all_tied: bool = False
    seconds: float = field(default=0.0, compare=False)


AnswerKey = tuple[str, int]
"""(arm, sample): one of the answers to an item."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line on disk: an item × arm × sample with its outcome, its response and fingerprints.

    ``arm``: as in ``Request``: the name of another order of the options or of the shots, or of a
    content-free input; empty: the item as it is. ``sample``: which of the answers in that arm.
    ``left_out``: the response stands, but the test did not come to a verdict (it was skipped,
    or the run was cut short), so the item counts as not run. ``response_of`` names the scorer
    whose record holds the response, where several score the same one. ``order``: of an arm, the
    labels of the options in the order shown (``CADB``); ``answer`` and ``gold`` are labels of the
    original order there, ``logprobs`` are in the order shown. A record of a content-free input has
    no ``gold``: it is no answer to its item.
    ``detail`` and ``all_tied``: as in ``Score``, ``encoded_apart``: as in ``Response``.
    """

    model: str
    benchmark: str
    scorer: str
    item: str
    subject: str
    outcome: Outcome
    answer: str | None
    gold: str
    sample: int = 0
    arm: str = ""
    logprobs: tuple[float, ...] = ()
    text: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_sha256: str = ""
    dropped_shots: int = 0
    tie: bool = False
    seconds: float | None = None
    error: str | None = None
    protocol: str = ""
    data: str = ""
    model_fingerprint: str | None = None
    left_out: bool = False
    response_of: str = ""
    order: str = ""
    detail: str = ""
    all_tied: bool = False
    encoded_apart: int = 0

    @property
    def truncated(self) -> bool:
        """Whether the text ended at the token limit, or within its reasoning."""
        return self.finish_reason == "length" and self.outcome is not Outcome.ERROR

    @property
    def all_tied_answer(self) -> bool:
        """Whether it is an answer, and one that no log-likelihood speaks for."""
        return self.all_tied and self.outcome is not Outcome.ERROR

    @property
    def content_free(self) -> bool:
        """Whether it is about a prompt without content, which its item only carries."""
        return is_content_free(self.arm)

    @property
    def answer_key(self) -> AnswerKey:
        """Which of the answers to its item it is about."""
        return self.arm, self.sample
