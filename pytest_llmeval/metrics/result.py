"""What one model did on one benchmark under one scorer, as counts and as metrics.json shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record

from . import _checks
from .proportions import accuracy
from .proportions import macro_accuracy
from .proportions import normalized_gain
from .proportions import standard_error
from .proportions import wilson_interval


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcomes of one subject of one result, in items.

    ``total`` counts the items that the benchmark has there, selected or not; ``wrong`` leaves
    out ``unparsed``, which is scored as wrong but counted apart. Adding is associative and
    commutative, so it does not matter how a run was split over workers or machines.
    """

    total: int
    correct: int = 0
    wrong: int = 0
    unparsed: int = 0
    error: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            _checks.count(field.name, getattr(self, field.name))
        if self.missing < 0:
            raise ValueError(
                f"{self.answered} answered and {self.error} errors are more than {self.total} items"
            )

    @property
    def answered(self) -> int:
        """Items with an answer, readable or not."""
        return self.correct + self.wrong + self.unparsed

    @property
    def attempted(self) -> int:
        """Items that were run: answered or ended in an error."""
        return self.answered + self.error

    @property
    def missing(self) -> int:
        """Items that were not run: deselected, limited, cut short or lost."""
        return self.total - self.attempted

    @property
    def complete(self) -> bool:
        """Whether every item was answered."""
        return self.missing == 0 and self.error == 0

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(
            self.total + other.total,
            self.correct + other.correct,
            self.wrong + other.wrong,
            self.unparsed + other.unparsed,
            self.error + other.error,
        )


@dataclass(frozen=True)
class Result:
    """What one model did on one benchmark under one scorer.

    ``subjects`` has every subject of the benchmark, those that were not run too. ``chance`` is
    the benchmark's chance level, the mean of 1/K over its items (K options), or None.
    ``dropped_shots``: items answered with fewer shots than the protocol has, for want of room.
    ``ties``: items whose best choice was not unique.
    """

    model: str
    benchmark: str
    scorer: str
    protocol: str
    chance: float | None
    subjects: Mapping[str, Counts]
    dropped_shots: int = 0
    ties: int = 0

    def __post_init__(self) -> None:
        if self.chance is not None:
            _checks.proportion("chance", self.chance)
        _checks.count("dropped_shots", self.dropped_shots)
        _checks.count("ties", self.ties)

    @property
    def counts(self) -> Counts:
        """The counts of all subjects together."""
        return sum(self.subjects.values(), Counts(0))

    @property
    def complete(self) -> bool:
        """Whether every item of the benchmark was answered."""
        return self.counts.complete

    @property
    def accuracy(self) -> float | None:
        """Micro accuracy over the answered items; None with errors, which are not answers."""
        return _accuracy(self.counts)

    @property
    def macro_accuracy(self) -> float | None:
        """Mean accuracy of the subjects with answers; None with errors."""
        if self.counts.error:
            return None
        return macro_accuracy({s: (c.correct, c.answered) for s, c in self.subjects.items()})

    @property
    def normalized_gain(self) -> float | None:
        """Accuracy over the chance level; None with errors or without a chance level.

        On a part of the items this is an approximation where items differ in their number of
        options: the chance level is that of the whole benchmark.
        """
        value = self.accuracy
        if value is None or self.chance is None:
            return None
        return normalized_gain(value, self.chance)


def aggregate(
    records: Iterable[Record],
    *,
    model: str,
    benchmark: str,
    scorer: str,
    protocol: str,
    chance: float | None,
    sizes: Mapping[str, int],
) -> Result:
    """The result of the records of one (model, benchmark, scorer); ``sizes`` as subject -> items.

    Items are told apart by id, never by text; a later record of an item replaces an earlier
    one. ValueError for a record of another result, of a subject that ``sizes`` lacks, or of a
    second sample, which these counts have no place for.
    """
    latest: dict[str, Record] = {}
    for record in records:
        if (record.model, record.benchmark, record.scorer) != (model, benchmark, scorer):
            raise ValueError(f"item {record.item!r} belongs to another result")
        if record.subject not in sizes:
            raise ValueError(f"item {record.item!r}: unknown subject {record.subject!r}")
        if record.sample != 0:
            raise ValueError(f"item {record.item!r}: several samples of an item are not counted")
        latest[record.item] = record
    tally = Counter((record.subject, record.outcome) for record in latest.values())
    subjects = {
        subject: Counts(
            size,
            correct=tally[subject, Outcome.CORRECT],
            wrong=tally[subject, Outcome.WRONG],
            unparsed=tally[subject, Outcome.UNPARSED],
            error=tally[subject, Outcome.ERROR],
        )
        for subject, size in sizes.items()
    }
    return Result(
        model,
        benchmark,
        scorer,
        protocol,
        chance,
        subjects,
        dropped_shots=sum(1 for record in latest.values() if record.dropped_shots),
        ties=sum(1 for record in latest.values() if record.tie),
    )


def summarize(result: Result) -> dict[str, Any]:
    """One result as metrics.json shows it: plain JSON values, subjects sorted by name.

    With errors the result is incomplete: ``accuracy`` and all that rests on it is None, and
    both ``accuracy_answered`` (errors left out) and ``accuracy_with_errors`` (errors in the
    denominator) are given. Items that were merely not run leave ``accuracy`` over the others,
    and ``complete`` false.
    """
    counts = result.counts
    return {
        "model": result.model,
        "benchmark": result.benchmark,
        "scorer": result.scorer,
        "protocol": result.protocol,
        **_core(counts),
        "macro_accuracy": result.macro_accuracy,
        "normalized_gain": result.normalized_gain,
        "chance": result.chance,
        "dropped_shots": result.dropped_shots,
        "ties": result.ties,
        "subjects": {name: _core(result.subjects[name]) for name in sorted(result.subjects)},
    }


def _core(counts: Counts) -> dict[str, Any]:
    """The fields that a whole result and each of its subjects share."""
    value = _accuracy(counts)
    known = value is not None
    return {
        "n_total": counts.total,
        "answered": counts.answered,
        "correct": counts.correct,
        "wrong": counts.wrong,
        "unparsed": counts.unparsed,
        "errors": counts.error,
        "missing": counts.missing,
        "complete": counts.complete,
        "accuracy": value,
        "standard_error": standard_error(counts.correct, counts.answered) if known else None,
        "wilson95": list(wilson_interval(counts.correct, counts.answered)) if known else None,
        "accuracy_answered": accuracy(counts.correct, counts.answered),
        "accuracy_with_errors": accuracy(counts.correct, counts.attempted),
        "unparsed_rate": accuracy(counts.unparsed, counts.answered),
        "error_rate": accuracy(counts.error, counts.attempted),
    }


def _accuracy(counts: Counts) -> float | None:
    return None if counts.error else accuracy(counts.correct, counts.answered)
