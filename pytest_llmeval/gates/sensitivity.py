"""Warnings about thresholds that are tighter than the noise, before anything runs.

These are not errors, because a run may still decide such a gate; but the benchmark has too few
items to decide it reliably.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from pytest_llmeval.core.validation import located_message
from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.bounds import percent
from pytest_llmeval.gates.name_checks import CollectedBenchmark
from pytest_llmeval.gates.thresholds import BenchmarkGates
from pytest_llmeval.gates.thresholds import RegressionGates
from pytest_llmeval.gates.thresholds import ScorerGates
from pytest_llmeval.gates.thresholds import SubjectGates
from pytest_llmeval.gates.thresholds import Thresholds
from pytest_llmeval.gates.verdict import TOLERANCE
from pytest_llmeval.gates.verdict import answer_count
from pytest_llmeval.metrics import macro_interval
from pytest_llmeval.metrics import score_interval
from pytest_llmeval.metrics import smallest_significant

_Warnings = Iterator[tuple[tuple[str, ...], str]]


def noise_warnings(
    thresholds: Thresholds, collected: Mapping[str, CollectedBenchmark]
) -> list[str]:
    """Return one line with file and key for each threshold that is tighter than the noise.

    Only collected benchmarks are checked: the sizes of the others are not known.
    """
    warnings: dict[tuple[tuple[str, ...], str], str] = {}
    for place, name, written in thresholds.tables():
        if name not in collected:
            continue
        # A model's table includes the benchmark's, whose warnings are not repeated.
        table = thresholds.for_model(place[1])[name] if place[0] == "models" else written
        for inner, gates in table.parts():
            if inner and inner[1] not in collected[name].scorers:
                continue
            for keys, text in _of_table(gates, collected[name]):
                line = located_message(thresholds.file, (*place, *inner, *keys), text)
                warnings.setdefault(((name, *inner, *keys), text), line)
        for keys, text in _of_hybrids(table, collected[name]):
            line = located_message(thresholds.file, (*place, *keys), text)
            warnings.setdefault(((name, *keys), text), line)
    return list(dict.fromkeys(warnings.values()))


def _of_hybrids(table: BenchmarkGates, benchmark: CollectedBenchmark) -> _Warnings:
    items = sum(benchmark.sizes.values())
    if not items:
        return
    for hybrid, bound in table.hybrids.items():
        # If all scorers are right on every item, several have no more information than one.
        text = _unreachable("hybrid", bound, [items], benchmark)
        if text:
            yield ("hybrids", hybrid), text


def _of_table(gates: ScorerGates, benchmark: CollectedBenchmark) -> _Warnings:
    sizes = {subject: size for subject, size in sorted(benchmark.sizes.items()) if size}
    if not sizes:
        return
    whole = [sum(sizes.values())]
    for metric, bound in gates.bounds().items():
        parts = list(sizes.values()) if metric == "macro_accuracy" else whole
        for text in _check_bound(metric, bound, parts, benchmark):
            yield (metric,), text
    if gates.every_subject is not None:
        yield from _of_every_subject(gates.every_subject, sizes, benchmark)
    for subject, own in gates.subjects.items():
        for metric, bound in own.bounds().items() if subject in sizes else ():
            for text in _check_bound(metric, bound, [sizes[subject]], benchmark):
                yield ("subjects", subject, metric), text
    if gates.regression is not None:
        yield from _of_regression(gates.regression, sizes, benchmark.samples)


def _check_bound(
    metric: str, bound: Bound, sizes: Sequence[int], benchmark: CollectedBenchmark
) -> Iterator[str]:
    for check in _CHECKS:
        text = check(metric, bound, sizes, benchmark)
        if text:
            yield text


def _of_every_subject(
    gates: SubjectGates, sizes: Mapping[str, int], benchmark: CollectedBenchmark
) -> _Warnings:
    for metric, bound in gates.bounds().items():
        for check in _CHECKS:
            texts = {s: check(metric, bound, [size], benchmark) for s, size in sizes.items()}
            line = _of_subjects({s: text for s, text in texts.items() if text}, sizes)
            if line:
                yield ("every_subject", metric), line


def _of_subjects(texts: Mapping[str, str], sizes: Mapping[str, int]) -> str | None:
    """Return one line for all subjects with a warning, with that of the smallest subject."""
    if not texts:
        return None
    smallest = min(texts, key=lambda subject: (sizes[subject], subject))
    return f"{len(texts)} of {len(sizes)} subjects, e.g. {smallest}: {texts[smallest]}"


def _of_regression(gates: RegressionGates, sizes: Mapping[str, int], samples: int) -> _Warnings:
    alpha = gates.alpha
    if gates.max_drop is not None:
        items = sum(sizes.values())
        text = _insignificant("max_drop", gates.max_drop, items, samples, 1, alpha)
        if text:
            yield ("regression", "max_drop"), text
    if gates.max_subject_drop is not None:
        limit = gates.max_subject_drop
        texts = {
            s: _insignificant("max_subject_drop", limit, size, samples, len(sizes), alpha)
            for s, size in sizes.items()
        }
        line = _of_subjects({s: text for s, text in texts.items() if text}, sizes)
        if line:
            yield ("regression", "max_subject_drop"), line


def _insignificant(
    name: str, limit: float, items: int, samples: int, comparisons: int, alpha: float
) -> str | None:
    """Return why a drop just beyond the limit can only warn; None if it can fail."""
    level = f"at alpha {alpha:.12g}"
    alone = smallest_significant(1, alpha)
    if items < alone:
        return (
            f"can never fail: of {answer_count(items)} at least {alone} would have to become wrong"
            f" for a significant drop {level}"
        )
    changed = smallest_significant(comparisons, alpha)
    if comparisons > 1:
        level += f" over {comparisons} subjects"
    if items < changed:
        # Holm's first step is the strictest; later ones come after other subjects have failed.
        return (
            f"can fail only together with other subjects: of {answer_count(items)} at least {changed} would"
            f" have to become wrong for a significant drop {level}"
        )
    smallest = changed / (items * samples)
    if limit >= smallest - TOLERANCE:
        return None
    return (
        f"{name} = {limit:.12g} is below {smallest:.2g}, the smallest significant drop of"
        f" {answer_count(items)} {level} ({changed} newly wrong, none newly right): a drop between"
        " the two only warns"
    )


def _unreachable(
    metric: str, bound: Bound, sizes: Sequence[int], benchmark: CollectedBenchmark
) -> str | None:
    """Return why even a perfect result cannot have its whole interval inside the bound."""
    scale = _scale(metric, benchmark)
    if bound.confidence is None or scale is None:
        return None
    perfect = {str(number): {(1, 1): size} for number, size in enumerate(sizes)}
    lower, _ = macro_interval(perfect, bound.confidence)
    items = sum(sizes)
    # The lower limit if all answers are right; 1 - x for the upper limit if none is.
    for side, value, best in (("min", bound.min, items), ("max", bound.max, 0)):
        if value is None:
            continue
        needed = scale(value) if side == "min" else 1 - scale(value)
        if needed <= lower + TOLERANCE:
            continue
        limit = lower if side == "min" else 1 - lower
        start = "begins" if side == "min" else "ends"
        text = (
            f"{side} = {value:.12g} cannot be met: even with {best:,} of {items:,} the"
            f" {percent(bound.confidence)} interval {start} at {_unscaled(scale, limit):.4f}"
        )
        if needed >= 1:
            return f"{text}, and no number of items is enough"
        if len(sizes) > 1:
            return text
        return f"{text}; needs at least {answer_count(_items_needed(needed, bound.confidence))}"
    return None


def _size(sizes: Sequence[int]) -> float:
    """Return the effective size of an unweighted mean over parts of equal accuracy."""
    return len(sizes) ** 2 / math.fsum(1 / size for size in sizes)


def _items_needed(lower: float, confidence: float) -> int:
    """Return how many items, all right, have this lower limit: Wilson's n / (n + z^2)."""
    one_item = score_interval(1.0, 1, confidence)[0]
    return math.ceil(lower / (1 - lower) * (1 - one_item) / one_item - TOLERANCE)


def _narrow(
    metric: str, bound: Bound, sizes: Sequence[int], benchmark: CollectedBenchmark
) -> str | None:
    """Return why chance alone can miss a band even if the true value is its middle."""
    scale = _scale(metric, benchmark)
    if bound.min is None or bound.max is None or scale is None:
        return None
    if scale(bound.min) <= 0 or scale(bound.max) >= 1:
        return None  # one-sided: no value is beyond the other end
    low, high = score_interval(scale((bound.min + bound.max) / 2), _size(sizes))
    if scale(bound.max) - scale(bound.min) >= high - low - TOLERANCE:
        return None
    width = _unscaled(scale, high) - _unscaled(scale, low)
    return (
        f"the band from {bound.min:.12g} to {bound.max:.12g} is narrower than the 95 % interval at"
        f" its middle, {width:.2g} wide with {answer_count(sum(sizes))}"
    )


def _below_one(
    metric: str, bound: Bound, sizes: Sequence[int], benchmark: CollectedBenchmark
) -> str | None:
    """Return why a rate's maximum is the same as 0: it is less than one answer."""
    every = sum(sizes) * benchmark.samples
    if not metric.endswith("_rate") or not bound.max or bound.max * every >= 1 - TOLERANCE * every:
        return None
    return f"max = {bound.max:.12g} is the same as 0: one of {every:,} answers is {1 / every:.2g}"


_CHECKS: tuple[Callable[[str, Bound, Sequence[int], CollectedBenchmark], str | None], ...] = (
    _unreachable,
    _narrow,
    _below_one,
)


def _scale(metric: str, benchmark: CollectedBenchmark) -> Callable[[float], float] | None:
    """Return the conversion of the metric's unit to a proportion; None if there is none."""
    if metric != "normalized_gain":
        return lambda value: value
    chance = benchmark.chance
    if chance is None or chance == 1:
        return None
    return lambda value: chance + value * (1 - chance)


def _unscaled(scale: Callable[[float], float], value: float) -> float:
    return (value - scale(0)) / (scale(1) - scale(0))
