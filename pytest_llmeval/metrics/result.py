"""What one model did on one benchmark under one scorer, as counts and as metrics.json shows it."""

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
"""A larger share of answers whose choices all have the same log-likelihood is reported.

Models that compute in bfloat16 tie two options now and then, hardly ever all of several.
"""

ALL_TIED_LIMIT = 0.50
"""With a larger share of such answers a result is not a measurement of the model."""


@dataclass(frozen=True, slots=True)
class ItemOutcomes:
    """What became of one item: the outcome of every sample that was run, by sample index.

    ``truncated`` counts the answers that ended because they had reached the token limit.
    ``dropped_shots``: asked with fewer shots than the protocol has, for want of room.
    ``encoded_apart``: a choice was encoded apart from its context.
    ``tie``: the best choice was not unique. ``all_tied`` counts the answers whose choices all had
    the same log-likelihood. ``details``: how each answer was read, where the scorer
    tells.
    """

    subject: str
    outcomes: tuple[Outcome, ...]
    truncated: int = 0
    dropped_shots: bool = False
    encoded_apart: bool = False
    tie: bool = False
    all_tied: int = 0
    details: tuple[str, ...] = ()

    @property
    def answered(self) -> int:
        """Samples with an answer, readable or not."""
        return len(self.outcomes) - self.outcomes.count(Outcome.ERROR)

    @property
    def correct(self) -> int:
        """Samples with the right answer."""
        return self.outcomes.count(Outcome.CORRECT)


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcomes of one subject of one result, in answers: items × samples.

    ``total`` counts the answers that the benchmark has there, selected or not; ``wrong`` leaves
    out ``unparsed``, which is scored as wrong but counted apart. ``truncated`` answers have one
    of these outcomes too, and so have those whose choices ``all_tied``. ``tally`` tells the answers
    of one item from those of another. Adding is associative and commutative, so it does not matter
    how a run was split over workers or machines.
    """

    total: int
    correct: int = 0
    wrong: int = 0
    unparsed: int = 0
    error: int = 0
    truncated: int = 0
    all_tied: int = 0
    #: (answered, correct) of an item → how many items have it. None: every item has one answer.
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
        if self.spread is not None:
            answers = sum(n * items for (n, _), items in self.spread.items())
            correct = sum(c * items for (_, c), items in self.spread.items())
            if (answers, correct) != (self.answered, self.correct):
                raise ValueError(f"items with {correct} of {answers} are not these counts")

    @property
    def answered(self) -> int:
        """Answers, readable or not."""
        return self.correct + self.wrong + self.unparsed

    @property
    def attempted(self) -> int:
        """Answers that were asked for: given, or ended in an error."""
        return self.answered + self.error

    @property
    def missing(self) -> int:
        """Answers that were not asked for: deselected, limited, cut short or lost."""
        return self.total - self.attempted

    @property
    def complete(self) -> bool:
        """Whether every answer was given."""
        return self.missing == 0 and self.error == 0

    @property
    def all_tied_rate(self) -> float | None:
        """Share of the answers whose choices all had the same log-likelihood; None without any."""
        return accuracy(self.all_tied, self.answered)

    @property
    def is_measurement(self) -> bool:
        """Whether the answers measure a model: most of them are decided by log-likelihoods."""
        return (self.all_tied_rate or 0.0) <= ALL_TIED_LIMIT

    @property
    def tally(self) -> Tally:
        """(answered, correct) of an item → number of items, items without an answer left out."""
        if self.spread is not None:
            return self.spread
        bad = self.wrong + self.unparsed
        return {pair: n for pair, n in (((1, 1), self.correct), ((1, 0), bad)) if n}

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
    """What one model did on one benchmark under one scorer.

    ``subjects`` has every subject of the benchmark, those that were not run too. ``chance`` is the
    benchmark's chance level, the mean of 1/K over its items (K options), or None. ``samples``:
    answers asked for per item; ``by_sample``: (correct, answered) of the first, the second, … of
    every item, where there are several. ``drawn``: subject → items drawn at random of its items
    (``--llm-limit``), None where the run asks for all of them. ``dropped_shots``: items answered
    with fewer shots than the protocol has, for want of room. ``encoded_apart``: items with a choice
    that was encoded apart from its context. ``ties``: items whose best choice was
    not unique. ``audit``: the same items with their options in other orders, where that was asked
    for.
    """

    model: str
    benchmark: str
    scorer: str
    protocol: str
    chance: float | None
    subjects: Mapping[str, Counts]
    samples: int = 1
    by_sample: tuple[tuple[int, int], ...] = ()
    drawn: Mapping[str, int] | None = None
    dropped_shots: int = 0
    encoded_apart: int = 0
    ties: int = 0
    audit: Audit | None = None

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
        """``mmlu[letter]``."""
        return f"{self.benchmark}[{self.scorer}]"

    @property
    def key(self) -> tuple[str, str, str]:
        """Model, benchmark and scorer: of a run, which result it is."""
        return self.model, self.benchmark, self.scorer

    @property
    def counts(self) -> Counts:
        """The counts of all subjects together."""
        return sum(self.subjects.values(), Counts(0))

    @property
    def complete(self) -> bool:
        """Whether every item of the benchmark was answered, by every sample."""
        return self.counts.complete

    @property
    def sampled(self) -> bool:
        """Whether the items run are all of a random draw that is smaller than the benchmark."""
        if self.drawn is None or not self.counts.missing:
            return False
        return all(
            counts.attempted == self.samples * self.drawn.get(subject, 0)
            for subject, counts in self.subjects.items()
        )

    def items(self, subject: str) -> int:
        """How many items the benchmark has in a subject."""
        return self.subjects[subject].total // self.samples

    @property
    def is_measurement(self) -> bool:
        """Whether it is a measurement at all, and not mostly answers whose choices all tied."""
        return self.counts.is_measurement

    @property
    def accuracy(self) -> float | None:
        """Micro accuracy over the answers; None with errors, and of what is not a measurement."""
        counts = self.counts
        if counts.error or not counts.is_measurement:
            return None
        return accuracy(counts.correct, counts.answered)

    @property
    def macro_accuracy(self) -> float | None:
        """Mean accuracy of the subjects with answers; None where ``accuracy`` is."""
        if self.accuracy is None:
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
    """The result of what became of the items; ``sizes`` as subject -> items of the benchmark.

    ValueError for an item of a subject that ``sizes`` lacks, or with more outcomes than
    ``samples``.
    """
    outcomes: Counter[tuple[str, Outcome]] = Counter()
    truncated: Counter[str] = Counter()
    all_tied: Counter[str] = Counter()
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
