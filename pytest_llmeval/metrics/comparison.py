"""Two runs over the same items, item by item: overall and per subject."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.paired_tests import detectable_mean_change
from pytest_llmeval.metrics.paired_tests import detectable_stratified_change
from pytest_llmeval.metrics.paired_tests import holm
from pytest_llmeval.metrics.paired_tests import paired_interval
from pytest_llmeval.metrics.paired_tests import sign_flip
from pytest_llmeval.metrics.paired_tests import stratified_change
from pytest_llmeval.metrics.result import ItemOutcomes


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs over the same items: all of them, or those of one subject.

    ``items``: those paired, with every sample answered in both runs; the accuracies are over
    them. ``drop`` is baseline less candidate: positive is worse; ``interval`` is its interval.
    ``newly_wrong``: items on which the candidate has fewer right answers. ``p_value`` is exact
    and two-sided; ``adjusted`` is Holm's over all subjects with paired items. ``detectable``:
    the smallest drop found with power 80 %, for a subject at Holm's strictest step.
    """

    items: int
    baseline: float | None
    candidate: float | None
    drop: float | None
    interval: tuple[float, float] | None
    newly_wrong: int
    newly_right: int
    p_value: float
    adjusted: float
    detectable: float | None

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        return shown | {"interval": None if self.interval is None else list(self.interval)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Difference:
        """The inverse of ``as_json``. Raises KeyError for a field that is missing."""
        values = {field.name: value[field.name] for field in fields(cls)}
        interval = values["interval"]
        return cls(**values | {"interval": None if interval is None else tuple(interval)})


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against a baseline on one benchmark under one scorer.

    ``baseline`` and ``candidate`` are the models' names; ``subjects`` has every subject of the
    benchmark, sorted, and ``sizes`` how many items it has there. Item ids are sorted.
    ``only_baseline``: items that only that run has in full (not run, or cut short, in the
    other). ``errors_baseline``: items with an error in that run; they are not paired.
    ``error_answers_baseline``: how many of its answers are errors, which is what limits count.
    ``conservative``: the same where there are errors, with those of the baseline taken as right
    and those of the candidate as wrong answers: what a gate can be sure of.
    """

    benchmark: str
    scorer: str
    baseline: str
    candidate: str
    overall: Difference
    subjects: Mapping[str, Difference]
    sizes: Mapping[str, int]
    newly_wrong: tuple[str, ...]
    newly_right: tuple[str, ...]
    only_baseline: tuple[str, ...]
    only_candidate: tuple[str, ...]
    errors_baseline: int
    errors_candidate: int
    error_answers_baseline: int = 0
    conservative: Comparison | None = None

    @property
    def name(self) -> str:
        """``mmlu[letter]``."""
        return f"{self.benchmark}[{self.scorer}]"

    @property
    def complete(self) -> bool:
        """Whether every item of the benchmark is paired."""
        return self.overall.items == sum(self.sizes.values())

    def worst(self, count: int = 10) -> list[tuple[str, Difference]]:
        """The subjects that got worse, largest drop first."""
        drops = [(d.drop, name, d) for name, d in self.subjects.items() if d.drop and d.drop > 0]
        drops.sort(key=lambda entry: (-entry[0], entry[1]))
        return [(name, difference) for _, name, difference in drops[:count]]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        shown.update(
            overall=self.overall.as_json(),
            subjects={name: difference.as_json() for name, difference in self.subjects.items()},
            sizes=dict(self.sizes),
            complete=self.complete,
            conservative=self.conservative and self.conservative.as_json(),
        )
        for name in _LISTS:
            shown[name] = list(shown[name])
        return shown

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Comparison:
        """The inverse of ``as_json``. Raises KeyError for a field that is missing."""
        values = {field.name: value[field.name] for field in fields(cls)}
        conservative = values["conservative"]
        values.update(
            overall=Difference.from_json(values["overall"]),
            subjects={n: Difference.from_json(one) for n, one in values["subjects"].items()},
            conservative=None if conservative is None else cls.from_json(conservative),
            **{name: tuple(values[name]) for name in _LISTS},
        )
        return cls(**values)


_LISTS = ("newly_wrong", "newly_right", "only_baseline", "only_candidate")


@dataclass(frozen=True, slots=True)
class _Pair:
    """One item in both runs: how many answers it has there, and how many are right."""

    subject: str
    baseline: int
    candidate: int


def compare_items(
    baseline: Mapping[str, ItemOutcomes],
    candidate: Mapping[str, ItemOutcomes],
    *,
    benchmark: str,
    scorer: str,
    baseline_model: str,
    candidate_model: str,
    sizes: Mapping[str, int],
    drawn: bool = False,
    confidence: float = 0.95,
) -> Comparison:
    """Pair two runs by item id; ``sizes`` as subject -> items of the benchmark.

    ``drawn``: the items of one of the runs are a random draw of every subject's. The overall
    difference is then the estimate for all items, each subject weighing as much as it has
    there (``stratified_change``), and its p value an approximation.

    Tests at alpha = 1 - confidence. An item is paired when both runs have all samples of it and
    none is an error; how many all are is the most that an item has in that run. Where the runs
    differ in it (they are not of one protocol then) rates are compared. Sources: ``sign_flip``,
    ``paired_interval``, ``holm``, ``detectable_paired_drop``. ValueError for an item of a subject
    that ``sizes`` lacks or of different subjects.
    """
    _validation.confidence(confidence)
    samples = _samples(baseline), _samples(candidate)
    pairs = _pairs(baseline, candidate, samples)
    by_subject: dict[str, list[_Pair]] = {name: [] for name in sorted(sizes)}
    for item in (*baseline.values(), *candidate.values()):
        if item.subject not in by_subject:
            raise ValueError(f"unknown subject {item.subject!r}")
    for pair in pairs.values():
        by_subject[pair.subject].append(pair)
    alpha = 1 - confidence
    tested = [name for name, subject_pairs in by_subject.items() if subject_pairs]
    subjects = {
        name: _difference(subject_pairs, samples, confidence, alpha / max(1, len(tested)))
        for name, subject_pairs in by_subject.items()
    }
    adjusted = holm([subjects[name].p_value for name in tested])
    for name, p_value in zip(tested, adjusted, strict=True):
        subjects[name] = replace(subjects[name], adjusted=p_value)
    conservative = None
    if _errors(baseline) or _errors(candidate):
        conservative = compare_items(
            _filled(baseline, Outcome.CORRECT),
            _filled(candidate, Outcome.WRONG),
            benchmark=benchmark,
            scorer=scorer,
            baseline_model=baseline_model,
            candidate_model=candidate_model,
            sizes=sizes,
            drawn=drawn,
            confidence=confidence,
        )
    overall = _difference(pairs.values(), samples, confidence, alpha)
    if drawn and overall.items:
        overall = _weighted(overall, by_subject, subjects, sizes, samples, confidence)
    full_baseline, full_candidate = _full(baseline, samples[0]), _full(candidate, samples[1])
    changes = {item: _change(pair, samples) for item, pair in pairs.items()}
    return Comparison(
        benchmark,
        scorer,
        baseline_model,
        candidate_model,
        overall=overall,
        subjects=subjects,
        sizes={name: sizes[name] for name in sorted(sizes)},
        newly_wrong=tuple(sorted(item for item, change in changes.items() if change > 0)),
        newly_right=tuple(sorted(item for item, change in changes.items() if change < 0)),
        only_baseline=tuple(sorted(full_baseline - full_candidate)),
        only_candidate=tuple(sorted(full_candidate - full_baseline)),
        errors_baseline=_errors(baseline),
        errors_candidate=_errors(candidate),
        error_answers_baseline=sum(i.outcomes.count(Outcome.ERROR) for i in baseline.values()),
        conservative=conservative,
    )


def _weighted(
    overall: Difference,
    by_subject: Mapping[str, list[_Pair]],
    subjects: Mapping[str, Difference],
    sizes: Mapping[str, int],
    samples: tuple[int, int],
    confidence: float,
) -> Difference:
    """The overall difference of a draw, with subjects weighing what they have in the benchmark."""
    present = {name: sizes[name] for name, pairs in by_subject.items() if pairs}
    whole = sum(present.values())
    weights = {name: size / whole for name, size in present.items()}
    changes = [
        (weight, Counter(_change(pair, samples) for pair in by_subject[name]))
        for name, weight in weights.items()
    ]
    interval, p_value = stratified_change(changes, math.lcm(*samples), confidence)
    before, after, drop = (
        math.fsum(
            weight * (getattr(subjects[name], field) or 0) for name, weight in weights.items()
        )
        for field in ("baseline", "candidate", "drop")
    )
    return replace(
        overall,
        baseline=before,
        candidate=after,
        drop=drop,
        interval=interval,
        p_value=p_value,
        adjusted=p_value,
        detectable=detectable_stratified_change(changes, math.lcm(*samples), 1 - confidence),
    )


def _filled(items: Mapping[str, ItemOutcomes], outcome: Outcome) -> dict[str, ItemOutcomes]:
    """The items with that outcome in place of errors."""
    return {
        name: replace(
            item, outcomes=tuple(outcome if o is Outcome.ERROR else o for o in item.outcomes)
        )
        if Outcome.ERROR in item.outcomes
        else item
        for name, item in items.items()
    }


def _samples(items: Mapping[str, ItemOutcomes]) -> int:
    return max((len(item.outcomes) for item in items.values()), default=1) or 1


def _full(items: Mapping[str, ItemOutcomes], samples: int) -> set[str]:
    """Items that were asked for every sample, whatever became of it."""
    return {name for name, item in items.items() if len(item.outcomes) == samples}


def _errors(items: Mapping[str, ItemOutcomes]) -> int:
    return sum(item.answered < len(item.outcomes) for item in items.values())


def _pairs(
    baseline: Mapping[str, ItemOutcomes],
    candidate: Mapping[str, ItemOutcomes],
    samples: tuple[int, int],
) -> dict[str, _Pair]:
    pairs = {}
    for name, before in baseline.items():
        after = candidate.get(name)
        if after is None or (before.answered, after.answered) != samples:
            continue
        if before.subject != after.subject:
            raise ValueError(f"item {name!r} is of {before.subject!r} and of {after.subject!r}")
        pairs[name] = _Pair(before.subject, before.correct, after.correct)
    return pairs


def _change(pair: _Pair, samples: tuple[int, int]) -> int:
    """Right answers lost, in the common multiple of both runs' samples."""
    whole = math.lcm(*samples)
    return pair.baseline * (whole // samples[0]) - pair.candidate * (whole // samples[1])


def _difference(
    pairs: Iterable[_Pair], samples: tuple[int, int], confidence: float, alpha: float
) -> Difference:
    pairs = list(pairs)
    items, scale = len(pairs), math.lcm(*samples)
    if not pairs:
        return Difference(0, None, None, None, None, 0, 0, 1.0, 1.0, None)
    changes = Counter(_change(pair, samples) for pair in pairs)
    p_value = sign_flip(changes)
    squares = sum(change * change * m for change, m in changes.items()) / scale**2
    return Difference(
        items,
        baseline=sum(pair.baseline for pair in pairs) / (items * samples[0]),
        candidate=sum(pair.candidate for pair in pairs) / (items * samples[1]),
        drop=sum(change * m for change, m in changes.items()) / (items * scale),
        interval=paired_interval(changes, scale, confidence),
        newly_wrong=sum(m for change, m in changes.items() if change > 0),
        newly_right=sum(m for change, m in changes.items() if change < 0),
        p_value=p_value,
        adjusted=p_value,
        detectable=detectable_mean_change(items, squares, 1 / scale, alpha),
    )
