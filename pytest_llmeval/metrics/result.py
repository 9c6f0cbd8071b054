"""The result of one model on one benchmark with one scorer, aggregated from item outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.bias.audit import Audit
from pytest_llmeval.metrics.proportions import accuracy
from pytest_llmeval.metrics.proportions import macro_accuracy
from pytest_llmeval.metrics.proportions import normalized_gain
from pytest_llmeval.metrics.samples import Tally

ALL_TIED_SHOWN = 0.20
"""A larger share of answers whose choices all have equal log-likelihoods is reported.

In bfloat16 the log-likelihoods of two options are equal occasionally, those of all options hardly
ever.
"""

ALL_TIED_LIMIT = 0.50
"""With a larger share of such answers, a result is not a measurement of the model."""


@dataclass(frozen=True, slots=True)
class ItemOutcomes:
    """The outcomes of one item."""

    subject: str
    #: Outcome of every sample that was run, by sample index.
    outcomes: tuple[Outcome, ...]
    #: Number of answers that reached the token limit.
    truncated: int = 0
    #: The prompt had fewer shots than the protocol, to fit into the context window.
    dropped_shots: bool = False
    #: A choice was encoded separately from its context.
    encoded_apart: bool = False
    #: The best choice was not unique.
    tie: bool = False
    #: Number of answers whose choices all had equal log-likelihoods.
    all_tied: int = 0
    #: Number of unparsed answers that the server marks as refused or filtered.
    refused: int = 0
    #: How each answer was extracted, if the scorer reports it.
    details: tuple[str, ...] = ()

    @property
    def answered(self) -> int:
        """Number of samples with an answer, parsed or not."""
        return len(self.outcomes) - self.outcomes.count(Outcome.ERROR)

    @property
    def correct(self) -> int:
        """Number of samples with the right answer."""
        return self.outcomes.count(Outcome.CORRECT)


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcomes of one subject of one result, in answers: items × samples.

    ``total`` is the number of answers for all items of the benchmark, selected or not. ``wrong``
    excludes ``unparsed``, which is scored as wrong but counted separately. ``truncated`` and
    ``all_tied`` answers also have one of these outcomes; ``refused`` ones are unparsed. ``tally``
    groups the answers by item.
    Addition is associative and commutative, so the result does not depend on how a run was split
    over workers or machines. Raises ValueError for inconsistent counts.
    """

    total: int
    correct: int = 0
    wrong: int = 0
    unparsed: int = 0
    error: int = 0
    truncated: int = 0
    all_tied: int = 0
    refused: int = 0
    #: (answered, correct) of an item → number of items. None: every item has one answer.
    spread: Mapping[tuple[int, int], int] | None = None

    def __post_init__(self) -> None:
        for name in _COUNTED:
            _validation.count(name, getattr(self, name))
        if self.missing < 0:
            raise ValueError(
                f"{self.answered} answered and {self.error} errors are more than {self.total} items"
            )
        if self.truncated > self.answered:
            raise ValueError(f"{self.truncated} truncated of {self.answered} answered")
        if self.all_tied > self.answered:
            raise ValueError(f"{self.all_tied} all tied of {self.answered} answered")
        if self.refused > self.unparsed:
            raise ValueError(f"{self.refused} refused of {self.unparsed} unparsed")
        if self.spread is not None:
            answers = sum(n * items for (n, _), items in self.spread.items())
            correct = sum(c * items for (_, c), items in self.spread.items())
            if (answers, correct) != (self.answered, self.correct):
                raise ValueError(f"items with {correct} of {answers} are not these counts")

    @property
    def answered(self) -> int:
        """Number of answers, parsed or not."""
        return self.correct + self.wrong + self.unparsed

    @property
    def attempted(self) -> int:
        """Number of requested answers, including errors."""
        return self.answered + self.error

    @property
    def missing(self) -> int:
        """Number of answers not requested: deselected, limited, interrupted or lost."""
        return self.total - self.attempted

    @property
    def complete(self) -> bool:
        """Whether there are all answers, without errors."""
        return self.missing == 0 and self.error == 0

    @property
    def all_tied_rate(self) -> float | None:
        """Share of answers whose choices all had equal log-likelihoods; None without answers."""
        return accuracy(self.all_tied, self.answered)

    @property
    def is_measurement(self) -> bool:
        """Whether the answers measure a model: at most ``ALL_TIED_LIMIT`` of them are all tied."""
        return (self.all_tied_rate or 0.0) <= ALL_TIED_LIMIT

    @property
    def tally(self) -> Tally:
        """(answered, correct) of an item → number of items, without items that have no answer."""
        if self.spread is not None:
            return self.spread
        incorrect = self.wrong + self.unparsed
        return {pair: n for pair, n in (((1, 1), self.correct), ((1, 0), incorrect)) if n}

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        spread: Mapping[tuple[int, int], int] | None = None
        if self.spread is not None or other.spread is not None:
            spread = Counter(self.tally) + Counter(other.tally)
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTED}
        return Counts(**sums, spread=spread)


_COUNTED = tuple(field.name for field in fields(Counts) if field.name != "spread")


@dataclass(frozen=True)
class Result:
    """The result of one model on one benchmark with one scorer; ValueError for invalid counts."""

    model: str
    benchmark: str
    scorer: str
    protocol: str
    #: Chance level of the benchmark: the mean of 1/K over its items with K options, or None.
    chance: float | None
    #: Counts of every subject of the benchmark, also of those that were not run.
    subjects: Mapping[str, Counts]
    #: Answers requested per item.
    samples: int = 1
    #: (correct, answered) of the first, second, … answers of all items, if there are several.
    by_sample: tuple[tuple[int, int], ...] = ()
    #: Subject → number of randomly sampled items (``--llm-limit``); None without a limit.
    drawn: Mapping[str, int] | None = None
    #: Number of items whose prompt had fewer shots than the protocol, to fit into the window.
    dropped_shots: int = 0
    #: Number of items with a choice that was encoded separately from its context.
    encoded_apart: int = 0
    #: Number of items whose best choice was not unique.
    ties: int = 0
    #: The audit with reordered options, if requested.
    audit: Audit | None = None
    #: Of a sequential run: True if its items are the first of the benchmark's random order, False if
    #: some subjects stopped before others; None of any other run.
    first_of_order: bool | None = None

    def __post_init__(self) -> None:
        if self.chance is not None:
            _validation.proportion("chance", self.chance)
        if _validation.count("samples", self.samples) == 0:
            raise ValueError("samples must be at least 1")
        _validation.count("dropped_shots", self.dropped_shots)
        _validation.count("encoded_apart", self.encoded_apart)
        _validation.count("ties", self.ties)

    @property
    def name(self) -> str:
        """Benchmark and scorer in the form ``mmlu[letter]``."""
        return f"{self.benchmark}[{self.scorer}]"

    @property
    def key(self) -> tuple[str, str, str]:
        """Model, benchmark and scorer, which identify the result in a run."""
        return self.model, self.benchmark, self.scorer

    @property
    def counts(self) -> Counts:
        """The counts of all subjects together."""
        return sum(self.subjects.values(), Counts(0))

    @property
    def complete(self) -> bool:
        """Whether every item of the benchmark has an answer for every sample."""
        return self.counts.complete

    @property
    def sampled(self) -> bool:
        """Whether the items run are a complete random sample, smaller than the benchmark."""
        if self.drawn is None or not self.counts.missing:
            return False
        return all(
            counts.attempted == self.samples * self.drawn.get(subject, 0)
            for subject, counts in self.subjects.items()
        )

    @property
    def stopped(self) -> bool:
        """Whether a sequential run stopped before all items."""
        return self.first_of_order is not None and self.counts.missing > 0

    def items(self, subject: str) -> int:
        """Return the number of items of a subject in the benchmark."""
        return self.subjects[subject].total // self.samples

    @property
    def is_measurement(self) -> bool:
        """Whether the result is a measurement, as opposed to mostly answers that are all tied."""
        return self.counts.is_measurement

    @property
    def accuracy(self) -> float | None:
        """Micro accuracy over the answers; None with errors, or if it is not a measurement."""
        counts = self.counts
        if counts.error or not counts.is_measurement:
            return None
        return accuracy(counts.correct, counts.answered)

    @property
    def macro_accuracy(self) -> float | None:
        """Mean accuracy of the subjects with answers; None if ``accuracy`` is None."""
        if self.accuracy is None:
            return None
        return macro_accuracy({s: (c.correct, c.answered) for s, c in self.subjects.items()})

    @property
    def normalized_gain(self) -> float | None:
        """Normalized gain over the chance level; None with errors or without a chance level.

        For a part of the items it is an approximation if items differ in their number of options,
        because the chance level is that of the whole benchmark.
        """
        value = self.accuracy
        if value is None or self.chance is None:
            return None
        return normalized_gain(value, self.chance)


def aggregate(
    items: Iterable[ItemOutcomes],
    *,
    model: str,
    benchmark: str,
    scorer: str,
    protocol: str,
    chance: float | None,
    sizes: Mapping[str, int],
    samples: int = 1,
    drawn: Mapping[str, int] | None = None,
) -> Result:
    """Return the result of the items' outcomes.

    ``sizes``: subject → number of items in the benchmark. Other arguments as in ``Result``. Raises
    ValueError for an item of a subject that ``sizes`` lacks, or with more than ``samples``
    outcomes.
    """
    outcomes: Counter[tuple[str, Outcome]] = Counter()
    truncated: Counter[str] = Counter()
    all_tied: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    spreads: dict[str, Counter[tuple[int, int]]] = {subject: Counter() for subject in sizes}
    by_sample = [[0, 0] for _ in range(samples)] if samples > 1 else []
    dropped = apart = ties = 0
    for item in items:
        if item.subject not in sizes:
            raise ValueError(f"unknown subject {item.subject!r}")
        if len(item.outcomes) > samples:
            raise ValueError(f"an item of {item.subject!r} has more answers than {samples}")
        for outcome in item.outcomes:
            outcomes[item.subject, outcome] += 1
        if samples > 1 and item.answered:
            spreads[item.subject][item.answered, item.correct] += 1
            for sample, outcome in zip(by_sample, item.outcomes, strict=False):
                sample[0] += outcome is Outcome.CORRECT
                sample[1] += outcome is not Outcome.ERROR
        truncated[item.subject] += item.truncated
        all_tied[item.subject] += min(item.all_tied, item.answered)
        refused[item.subject] += item.refused
        dropped += item.dropped_shots
        apart += item.encoded_apart
        ties += item.tie and item.answered > 0
    subjects = {
        subject: Counts(
            size * samples,
            correct=outcomes[subject, Outcome.CORRECT],
            wrong=outcomes[subject, Outcome.WRONG],
            unparsed=outcomes[subject, Outcome.UNPARSED],
            error=outcomes[subject, Outcome.ERROR],
            truncated=truncated[subject],
            all_tied=all_tied[subject],
            refused=refused[subject],
            spread=spreads[subject] if samples > 1 else None,
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
        samples=samples,
        by_sample=tuple((correct, answered) for correct, answered in by_sample),
        drawn=drawn,
        dropped_shots=dropped,
        encoded_apart=apart,
        ties=ties,
    )
