"""Item-by-item comparison of two runs over the same items, overall and by subject."""

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
    """The difference of two runs over paired items: all of them, or those of one subject.

    ``items``: number of paired items, with every sample answered in both runs; the accuracies are
    over them. ``drop`` is baseline minus candidate, so positive is worse; ``interval`` is that of
    the drop. ``newly_wrong``: number of items with fewer right answers in the candidate.
    ``p_value`` is exact and two-sided; ``adjusted`` is Holm's over all subjects with paired items.
    ``detectable``: the smallest drop detected with power 80 %, for a subject at Holm's strictest
    step.
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
        """Return the fields as plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"interval": None if self.interval is None else list(self.interval)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Difference:
        """Return the inverse of ``as_json``; raise KeyError for a missing field."""
        values = {field.name: value[field.name] for field in fields(cls)}
        interval = values["interval"]
        return cls(**values | {"interval": None if interval is None else tuple(interval)})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a candidate with a baseline on one benchmark with one scorer.

    ``baseline`` and ``candidate`` are the models' names; ``subjects`` has every subject of the
    benchmark, sorted, and ``sizes`` the numbers of items of the benchmark. Item ids are sorted.
    ``only_baseline``: items that are complete only in the baseline (not run, or interrupted, in
    the candidate). ``errors_baseline``: number of items with an error in the baseline, which are
    not paired. ``error_answers_baseline``: number of errors among its answers, to which limits
    apply. ``conservative``: if there are errors, the same comparison with errors of the baseline as
    right and errors of the candidate as wrong answers, which bounds the true drop for gates.
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
        """Return (subject, difference) of the ``count`` largest drops, largest first."""
        drops = [(d.drop, name, d) for name, d in self.subjects.items() if d.drop and d.drop > 0]
        drops.sort(key=lambda entry: (-entry[0], entry[1]))
        return [(name, difference) for _, name, difference in drops[:count]]

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values.update(
            overall=self.overall.as_json(),
            subjects={name: difference.as_json() for name, difference in self.subjects.items()},
            sizes=dict(self.sizes),
            complete=self.complete,
            conservative=self.conservative and self.conservative.as_json(),
        )
        for name in _LISTS:
            values[name] = list(values[name])
        return values

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Comparison:
        """Return the inverse of ``as_json``; raise KeyError for a missing field."""
        values = {field.name: value[field.name] for field in fields(cls)}
        conservative = values["conservative"]
        values.update(
            overall=Difference.from_json(values["overall"]),
            subjects={
                n: Difference.from_json(subject) for n, subject in values["subjects"].items()
            },
            conservative=None if conservative is None else cls.from_json(conservative),
            **{name: tuple(values[name]) for name in _LISTS},
        )
        return cls(**values)


_LISTS = ("newly_wrong", "newly_right", "only_baseline", "only_candidate")


@dataclass(frozen=True, slots=True)
class _PairedItem:
    """The number of right answers to one item in both runs."""

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
    sampled: bool = False,
    confidence: float = 0.95,
) -> Comparison:
    """Compare two runs, given as item id → outcomes, item by item.

    ``sizes``: subject → number of items in the benchmark. ``sampled``: the items of one of the runs
    are a random sample of each subject. The overall difference is then the estimate for all items,
    with subjects weighted by their sizes (``stratified_change``), and its p value is approximate.

    Tests are at alpha = 1 - confidence. An item is paired if both runs have all samples of it
    without an error; the number of samples of a run is the largest of its items. If the runs
    differ in it (and so in their protocol), rates are compared. Sources: ``sign_flip``,
    ``paired_interval``, ``holm``, ``detectable_paired_drop``. Raises ValueError for an item with a
    subject that ``sizes`` lacks, or with different subjects in the two runs.
    """
    _validation.confidence(confidence)
    samples = _samples(baseline), _samples(candidate)
    pairs = _pairs(baseline, candidate, samples)
    by_subject: dict[str, list[_PairedItem]] = {name: [] for name in sorted(sizes)}
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
            sampled=sampled,
            confidence=confidence,
        )
    overall = _difference(pairs.values(), samples, confidence, alpha)
    if sampled and overall.items:
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
    by_subject: Mapping[str, list[_PairedItem]],
    subjects: Mapping[str, Difference],
    sizes: Mapping[str, int],
    samples: tuple[int, int],
    confidence: float,
) -> Difference:
    """Return the overall difference of a random sample, with subjects weighted by their sizes."""
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
    """Return the items with errors replaced by the outcome."""
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
    """Return the items with an outcome, which may be an error, for every sample."""
    return {name for name, item in items.items() if len(item.outcomes) == samples}


def _errors(items: Mapping[str, ItemOutcomes]) -> int:
    return sum(item.answered < len(item.outcomes) for item in items.values())


def _pairs(
    baseline: Mapping[str, ItemOutcomes],
    candidate: Mapping[str, ItemOutcomes],
    samples: tuple[int, int],
) -> dict[str, _PairedItem]:
    pairs = {}
    for name, before in baseline.items():
        after = candidate.get(name)
        if after is None or (before.answered, after.answered) != samples:
            continue
        if before.subject != after.subject:
            raise ValueError(f"item {name!r} is of {before.subject!r} and of {after.subject!r}")
        pairs[name] = _PairedItem(before.subject, before.correct, after.correct)
    return pairs


def _change(pair: _PairedItem, samples: tuple[int, int]) -> int:
    """Return the number of right answers lost, scaled to the common multiple of the samples."""
    whole = math.lcm(*samples)
    return pair.baseline * (whole // samples[0]) - pair.candidate * (whole // samples[1])


def _difference(
    pairs: Iterable[_PairedItem], samples: tuple[int, int], confidence: float, alpha: float
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
