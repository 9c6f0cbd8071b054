"""Outcome and score of an answer, and its record on disk."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field
from enum import StrEnum

from pytest_llmeval.core.plan import is_content_free
from pytest_llmeval.core.plan import is_order_test
from pytest_llmeval.core.request import FILTERED
from pytest_llmeval.core.request import REFUSED


class Outcome(StrEnum):
    """The outcome of an item, best first; ``ERROR`` is not an answer and never counts as wrong."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSED = "unparsed"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a scorer for one response."""

    outcome: Outcome
    #: The extracted label or text; None if unparsed.
    answer: str | None = None
    #: Several choices shared the highest value, and the first of them was taken.
    tie: bool = False
    error: str | None = None
    #: How the answer was extracted, in a format of the scorer, if that is worth counting.
    detail: str = ""
    #: All choices had the same value, so that none was chosen.
    all_tied: bool = False
    #: Of code that was run, the explanation of the outcome, of limited length.
    log: str = ""
    #: Of code that was run on a node of a cluster, the node's host name.
    node: str = field(default="", compare=False)
    #: Time of a model that the scorer used, which is part of the cost of the answer.
    seconds: float = field(default=0.0, compare=False)


AnswerKey = tuple[str, int]
"""(arm, sample), which identifies one of the answers to an item."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line on disk: an item × arm × sample with its outcome, its response and fingerprints.

    ``model``, ``benchmark`` and ``scorer`` are names. Other fields without a comment are those of
    ``Item``, ``Request``, ``Response`` and ``Score``.
    """

    model: str
    benchmark: str
    scorer: str
    item: str
    subject: str
    outcome: Outcome
    #: In an arm, the label of the option in the original order.
    answer: str | None
    #: As ``answer``; empty for a content-free input, which is not an answer to its item.
    gold: str
    #: Index of the answer within its arm.
    sample: int = 0
    #: Name of an order of the options or shots, or of a content-free input; empty: the original.
    arm: str = ""
    #: In the order in which the options were shown.
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
    #: Fingerprint of the protocol.
    protocol: str = ""
    #: Content hash of the data set.
    data: str = ""
    model_fingerprint: str | None = None
    #: The response is valid, but the test had no outcome (it was skipped, or the run was
    #: interrupted), so the item counts as not run.
    left_out: bool = False
    #: The scorer whose record holds the response, if several score the same one.
    response_of: str = ""
    #: Of an arm, the labels of the options in the order in which they were shown (``CADB``).
    order: str = ""
    detail: str = ""
    all_tied: bool = False
    encoded_apart: int = 0
    log: str = ""
    node: str = ""

    @property
    def truncated(self) -> bool:
        """Whether the text ended at the token limit, or within its reasoning."""
        return self.finish_reason == "length" and self.outcome is not Outcome.ERROR

    @property
    def refused(self) -> bool:
        """Whether there is no answer because the server marks the reply as refused or filtered."""
        return self.outcome is Outcome.UNPARSED and self.finish_reason in (FILTERED, REFUSED)

    @property
    def all_tied_answer(self) -> bool:
        """Whether the record is an answer whose log-likelihoods are all equal."""
        return self.all_tied and self.outcome is not Outcome.ERROR

    @property
    def content_free(self) -> bool:
        """Whether the record belongs to a content-free prompt (contextual calibration)."""
        return is_content_free(self.arm)

    @property
    def order_test(self) -> bool:
        """Whether the record has the likelihoods of an order test, which is no answer."""
        return is_order_test(self.arm)

    @property
    def answer_key(self) -> AnswerKey:
        """The key of the record among the answers to its item."""
        return self.arm, self.sample
