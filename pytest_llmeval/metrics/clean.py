"""Scores of the items that overlap with a corpus and of the clean ones, and their difference."""

from __future__ import annotations

import math
from collections.abc import Collection
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_llmeval.metrics.intervals import Interval
from pytest_llmeval.metrics.intervals import tally_interval
from pytest_llmeval.metrics.result import ItemOutcomes
from pytest_llmeval.metrics.result import Result
from pytest_llmeval.metrics.result import aggregate
from pytest_llmeval.metrics.samples import Tally


@dataclass(frozen=True)
class CleanResult:
    """A result, divided by whether its items overlap with a corpus; the others were not judged."""

    clean: Result
    overlapping: Result

    @property
    def judged(self) -> int:
        """Number of judged items in the benchmark."""
        return sum(
            sum(map(result.items, result.subjects)) for result in (self.clean, self.overlapping)
        )


def divide(
    result: Result,
    items: Mapping[str, ItemOutcomes],
    overlapping: Mapping[str, str],
    unjudged: Mapping[str, str],
) -> CleanResult:
    """Divide a result by its items.

    ``items``: item id → outcomes. ``overlapping``, ``unjudged``: item id → subject. Raises
    ValueError for more items of a subject than the benchmark has.
    """
    dirty = _sizes(result, overlapping)
    sizes = {
        subject: result.items(subject) - dirty[subject] - count
        for subject, count in _sizes(result, unjudged).items()
    }

    def part(own: Mapping[str, ItemOutcomes], population: Mapping[str, int]) -> Result:
        drawn = None
        if result.sampled:
            # Of a random sample, the items of a part are a random sample of that part.
            drawn = dict.fromkeys(population, 0)
            for item in own.values():
                drawn[item.subject] += 1
        return aggregate(
            own.values(),
            model=result.model,
            benchmark=result.benchmark,
            scorer=result.scorer,
            protocol=result.protocol,
            chance=result.chance,
            sizes=population,
            samples=result.samples,
            drawn=drawn,
        )

    left_out: Collection[str] = overlapping.keys() | unjudged.keys()
    return CleanResult(
        part({id: item for id, item in items.items() if id not in left_out}, sizes),
        part({id: item for id, item in items.items() if id in overlapping}, dirty),
    )


def _sizes(result: Result, items: Mapping[str, str]) -> dict[str, int]:
    sizes = dict.fromkeys(result.subjects, 0)
    for subject in items.values():
        if subject in sizes:
            sizes[subject] += 1
    return sizes


def clean_gain(
    overlapping: Tally, clean: Tally, confidence: float = 0.95
) -> tuple[float, Interval] | None:
    """Return how much the accuracy of the judged items gains from the overlapping ones.

    It is accuracy(all) - accuracy(clean) = d (accuracy(overlapping) - accuracy(clean)), with the
    share d of the overlapping answers. The interval is that of the difference, times d: Newcombe's
    hybrid score interval (1998, Stat. Med. 17, 873-890, method 10) from the intervals of the two
    accuracies. (0, (0, 0)) without overlapping answers; None without clean ones.
    """
    (correct, answers), (clean_correct, clean_answers) = _counts(overlapping), _counts(clean)
    if not clean_answers:
        return None
    if not answers:
        return 0.0, (0.0, 0.0)
    share = answers / (answers + clean_answers)
    rate, clean_rate = correct / answers, clean_correct / clean_answers
    (low, high) = tally_interval(overlapping, confidence)
    (clean_low, clean_high) = tally_interval(clean, confidence)
    difference = rate - clean_rate
    return share * difference, (
        share * (difference - math.hypot(rate - low, clean_high - clean_rate)),
        share * (difference + math.hypot(high - rate, clean_rate - clean_low)),
    )


def _counts(tally: Tally) -> tuple[int, int]:
    return (
        sum(correct * items for (_, correct), items in tally.items()),
        sum(answers * items for (answers, _), items in tally.items()),
    )
