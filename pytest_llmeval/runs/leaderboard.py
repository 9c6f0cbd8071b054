"""Leaderboards: several runs in one table, each compared with the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace

from pytest_llmeval.metrics import Difference
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import holm
from pytest_llmeval.runs.comparison import Mismatch
from pytest_llmeval.runs.comparison import compare_pair
from pytest_llmeval.runs.comparison import mismatches_of
from pytest_llmeval.runs.comparison import shortened_list
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.run import Run
from pytest_llmeval.storage.folder import run_name

Entry = tuple[str, Measurement]
"""(name of a run, one of its measurements)."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A row of a leaderboard: one model of one run."""

    run: str
    model: str
    result: Result
    #: Paired difference to the first row, with the p value Holm-adjusted over all rows but the
    #: first; None in the first row, if no row is the best, and if the row is not a measurement.
    against_best: Difference | None


@dataclass(frozen=True)
class Leaderboard:
    """Several runs under one (benchmark, scorer), best accuracy first.

    Runs with fewer answers than others follow these, and runs with errors come last: the answered
    items may be the easy ones.
    """

    benchmark: str
    scorer: str
    standings: tuple[LeaderboardRow, ...]
    #: As in a RunComparison, with the run's name before each field.
    mismatches: tuple[Mismatch, ...] = ()
    #: False if the accuracies are not over the same items.
    same_items: bool = True
    #: Why the runs are not in the first table of the result; empty in the first table.
    apart: str = ""

    @property
    def name(self) -> str:
        """Name of the result, such as ``mmlu[letter]``."""
        return f"{self.benchmark}[{self.scorer}]"


def leaderboards(runs: Sequence[Run], *, allow_mismatch: bool = False) -> list[Leaderboard]:
    """Return the leaderboards of every (benchmark, scorer) of the runs.

    Runs that differ in protocol or data are in separate tables; with ``allow_mismatch`` they share
    one, whose p values are meaningless, as in ``compare``.
    """
    groups: dict[tuple[str, str], list[Entry]] = {}
    for run in runs:
        for measurement in run.measurements():
            key = (measurement.result.benchmark, measurement.result.scorer)
            groups.setdefault(key, []).append((run_name(run.path), measurement))
    tables = []
    for (benchmark, scorer), entries in groups.items():
        complete = [entry for entry in entries if not entry[1].result.stopped]
        comparable = [complete] if allow_mismatch and complete else _comparable(complete)
        for name, stopped in ((name, entry) for name, entry in entries if entry.result.stopped):
            row = LeaderboardRow(name, stopped.result.model, stopped.result, None)
            tables.append(Leaderboard(benchmark, scorer, (row,), apart=_STOPPED))
        for group in comparable:
            (_, first), *others = group
            mismatches = [
                replace(entry, field=f"{name}: {entry.field}")
                for name, measurement in others
                for entry in mismatches_of([(first, measurement)])
            ]
            same = all(measurement.items.keys() == first.items.keys() for _, measurement in others)
            apart = "" if group is comparable[0] else _apart(comparable[0][0], first)
            table = _standings(group)
            tables.append(Leaderboard(benchmark, scorer, table, tuple(mismatches), same, apart))
    return tables


_STOPPED = "stopped when its gates were decided: not ranked with complete runs"


def _comparable(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Group the entries by protocol and version of the data, in their order."""
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
    return f"not comparable with {first[0]}: {shortened_list(texts)}"


def _standings(entries: Sequence[Entry]) -> tuple[LeaderboardRow, ...]:
    most = max(measurement.result.counts.answered for _, measurement in entries)
    # Sorting is stable: equal accuracies stay in the order given.
    ranked = sorted(entries, key=lambda entry: _rank(entry[1].result, most))
    best = ranked[0][1]
    if best.result.accuracy is None:
        return tuple(
            LeaderboardRow(name, measurement.result.model, measurement.result, None)
            for name, measurement in ranked
        )
    differences = {
        place: compare_pair(best, measurement).overall
        for place, (_, measurement) in enumerate(ranked)
        if place and measurement.result.is_measurement
    }
    adjusted = holm([difference.p_value for difference in differences.values()])
    against = {
        place: replace(difference, adjusted=p)
        for (place, difference), p in zip(differences.items(), adjusted, strict=True)
    }
    return tuple(
        LeaderboardRow(name, measurement.result.model, measurement.result, against.get(place))
        for place, (name, measurement) in enumerate(ranked)
    )


def _rank(result: Result, most: int) -> tuple[bool, bool, float]:
    value = result.accuracy
    return value is None, result.counts.answered < most, -(value or 0.0)
