"""Several runs in one table, each against the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace

from pytest_llmeval.metrics import Difference
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import holm
from pytest_llmeval.runs.comparison import Mismatch
from pytest_llmeval.runs.comparison import compare_pair
from pytest_llmeval.runs.comparison import listed
from pytest_llmeval.runs.comparison import mismatches_of
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.run import Run
from pytest_llmeval.storage.folder import run_name

Entry = tuple[str, Measurement]
"""The name of a run, and one of its measurements."""


@dataclass(frozen=True)
class Standing:
    """A row of a league table: one model of one run.

    ``against_best`` is the paired difference to the first row, its ``adjusted`` p value
    Holm-adjusted over all rows but the first; None in the first row, where no row is first, and in
    a row that is not a measurement.
    """

    run: str
    model: str
    result: Result
    against_best: Difference | None


@dataclass(frozen=True)
class League:
    """Several runs under one (benchmark, scorer), best accuracy first.

    Runs with fewer answers than others follow those, and runs with errors come last: a part of
    the items may be the easy one. ``mismatches`` as in a RunComparison, each with the run's
    name before the field. ``same_items`` false: accuracies are not over the same items. ``apart``:
    why the runs are not in the result's first table, with what that table begins; empty in that.
    """

    benchmark: str
    scorer: str
    standings: tuple[Standing, ...]
    mismatches: tuple[Mismatch, ...] = ()
    same_items: bool = True
    apart: str = ""

    @property
    def name(self) -> str:
        """``mmlu[letter]``."""
        return f"{self.benchmark}[{self.scorer}]"


def league(runs: Sequence[Run], *, allow_mismatch: bool = False) -> list[League]:
    """The standings of every (benchmark, scorer) of the runs, each against the best.

    Runs that differ in protocol or data have tables of their own; with ``allow_mismatch`` they are
    in one, whose p values mean nothing, as in ``compare``.
    """
    groups: dict[tuple[str, str], list[Entry]] = {}
    for run in runs:
        for one in run.measurements():
            key = (one.result.benchmark, one.result.scorer)
            groups.setdefault(key, []).append((run_name(run.path), one))
    tables = []
    for (benchmark, scorer), entries in groups.items():
        comparable = [entries] if allow_mismatch else _comparable(entries)
        for group in comparable:
            (_, first), *others = group
            mismatches = [
                replace(entry, field=f"{name}: {entry.field}")
                for name, one in others
                for entry in mismatches_of([(first, one)])
            ]
            same = all(one.items.keys() == first.items.keys() for _, one in others)
            apart = "" if group is comparable[0] else _apart(comparable[0][0], first)
            table = _standings(group)
            tables.append(League(benchmark, scorer, table, tuple(mismatches), same, apart))
    return tables


def _comparable(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries in groups of one protocol and one version of the data, in their order."""
    groups: list[list[Entry]] = []
    for entry in entries:
        for group in groups:
            if not mismatches_of([(group[0][1], entry[1])]):
                group.append(entry)
                break
        else:
            groups.append([entry])
    return groups


def _apart(first: Entry, other: Measurement) -> str:
    texts = (mismatch.text for mismatch in mismatches_of([(first[1], other)]))
    return f"not comparable with {first[0]}: {listed(texts)}"


def _standings(entries: Sequence[Entry]) -> tuple[Standing, ...]:
    most = max(one.result.counts.answered for _, one in entries)
    # Sorting is stable: equal accuracies stay in the order given.
    ranked = sorted(entries, key=lambda entry: _rank(entry[1].result, most))
    best = ranked[0][1]
    if best.result.accuracy is None:
        return tuple(Standing(name, one.result.model, one.result, None) for name, one in ranked)
    differences = {
        place: compare_pair(best, one).overall
        for place, (_, one) in enumerate(ranked)
        if place and one.result.is_measurement
    }
    adjusted = holm([difference.p_value for difference in differences.values()])
    against = {
        place: replace(difference, adjusted=p)
        for (place, difference), p in zip(differences.items(), adjusted, strict=True)
    }
    return tuple(
        Standing(name, one.result.model, one.result, against.get(place))
        for place, (name, one) in enumerate(ranked)
    )


def _rank(result: Result, most: int) -> tuple[bool, bool, float]:
    value = result.accuracy
    return value is None, result.counts.answered < most, -(value or 0.0)
