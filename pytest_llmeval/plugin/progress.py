"""Progress of a run: one line that is updated on a terminal, lines at intervals elsewhere.

It is computed from the records file, to which all workers append, so that it also advances within
long chunks and under xdist, without messages between processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any
from typing import TextIO

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.metrics.intervals import tally_interval
from pytest_llmeval.models.hf import LOADING
from pytest_llmeval.models.hf import LoadingTimer
from pytest_llmeval.reports.formatting import escape_workflow_commands

_ANY = ""  # stands for a custom model, whatever name its records have


@dataclass
class ResultProgress:
    """Progress of one model on one planned result."""

    model: str
    benchmark: str
    #: The planned scorer, until a record has another variant of the protocol.
    scorer: str
    #: Protocol fingerprint → answers per item.
    samples: dict[str, int]
    #: Ids of the planned items.
    items: set[str]
    #: Number of items with all their samples.
    done: int = 0
    #: (answered, correct) of an item → how many items have it.
    tally: Counter[tuple[int, int]] = field(default_factory=Counter)
    seen: dict[str, _ItemOutcomes] = field(default_factory=dict)
    weights: str | None = None
    #: Position of its last record among all records.
    last_record: int = 0

    @property
    def name(self) -> str:
        """Benchmark and scorer, such as ``mmlu[letter]``."""
        return f"{self.benchmark}[{self.scorer}]"

    def accuracy(self) -> tuple[float, tuple[float, float]] | None:
        """Return the accuracy of the answers so far and its 95 % interval, without errors."""
        answered = sum(n * items for (n, _), items in self.tally.items())
        if not answered:
            return None
        correct = sum(c * items for (_, c), items in self.tally.items())
        return correct / answered, tally_interval(+self.tally)

    def put(self, item: str, sample: int, outcome: str, expected: int, weights: str | None) -> None:
        """Set the outcome of one sample; it replaces an earlier one."""
        seen = self.seen.get(item)
        if seen is None:
            seen = self.seen[item] = _ItemOutcomes(weights)
        else:
            self._count(seen, -1)
        seen.outcomes[sample], seen.expected = outcome, expected
        self._count(seen, 1)

    def forget(self, weights: str | None) -> None:
        """Drop the answers of other weights: they will be requested again."""
        for item in [item for item, seen in self.seen.items() if seen.weights != weights]:
            self._count(self.seen.pop(item), -1)

    def _count(self, seen: _ItemOutcomes, sign: int) -> None:
        self.done += sign * (len(seen.outcomes) >= seen.expected)
        outcomes = list(seen.outcomes.values())
        answered = len(outcomes) - outcomes.count(Outcome.ERROR)
        if answered:
            self.tally[answered, outcomes.count(Outcome.CORRECT)] += sign


@dataclass
class _ItemOutcomes:
    """Outcomes of an item by sample, and the weights that gave the first one."""

    weights: str | None
    outcomes: dict[int, str] = field(default_factory=dict)
    expected: int = 1


class RunProgress:
    """Progress of all models and results of a plan, computed from lines of records; no I/O.

    A record is not an item: an item may have several samples, a record for each other scorer of the
    same response, and a second record if its test overrules the scorer.
    """

    def __init__(self, plan: Plan) -> None:
        self._own_model = plan.own_model
        self._groups: dict[tuple[str, str, str], ResultProgress] = {}
        self._records = 0
        groups: dict[tuple[int, int], ResultProgress] = {}
        for planned in plan.items:
            key = (planned.model, planned.result)
            if key not in groups:
                result, model = plan.results[planned.result], plan.models[planned.model]
                samples = {variant.fingerprint: variant.samples for variant in result.variants}
                group = ResultProgress(model, result.benchmark, result.scorer, samples, set())
                groups[key] = group
                for fingerprint in samples:
                    name = _ANY if plan.own_model else model
                    self._groups[name, result.benchmark, fingerprint] = group
            groups[key].items.add(planned.item)
        self._scorers = {
            variant.fingerprint: variant.scorer
            for result in plan.results
            for variant in result.variants
        }
        self.groups = list(groups.values())

    @property
    def total(self) -> int:
        """Number of planned items, over all models and results."""
        return sum(len(group.items) for group in self.groups)

    @property
    def done(self) -> int:
        """Number of items with all their samples."""
        return sum(group.done for group in self.groups)

    def feed(self, lines: Iterable[bytes], earlier: bool = False) -> None:
        """Add lines of ``records.jsonl``; invalid lines are ignored, and reported when a run is read.

        ``earlier``: of an earlier session, whose errors and left-out answers are requested again.
        """
        for line in lines:
            try:
                record = json.loads(line)
                self._put(record, earlier)
            except (ValueError, KeyError, TypeError):
                continue

    def _put(self, record: dict[str, Any], earlier: bool) -> None:
        name = _ANY if self._own_model else record["model"]
        protocol, item, outcome = record["protocol"], record["item"], record["outcome"]
        group = self._groups.get((name, record["benchmark"], protocol))
        if group is None or item not in group.items:
            return  # for example another scorer of the same response
        weights = record.get("model_fingerprint")
        if earlier and (outcome == Outcome.ERROR or record.get("left_out")):
            return
        if not earlier:
            self._records += 1
            if weights is not None and weights != group.weights:
                group.weights = weights
                group.forget(weights)
        group.last_record = self._records
        group.scorer = self._scorers[protocol]
        group.put(item, record.get("sample", 0), outcome, group.samples[protocol], weights)


_WITH_WEIGHTS = frozenset({"demo", "hf"})
"""Kinds of models that load weights."""

_TTY_SECONDS = 0.5
_PLAIN_SECONDS = 30.0
_BLOCK = 1 << 20  # bytes read at once, so that tests do not wait for a long read


class Progress:
    """Daemon thread that follows the records file and prints progress until ``stop``."""

    def __init__(
        self,
        stream: TextIO,
        records: Path,
        tracking: RunProgress,
        tty: bool,
        loads: bool = False,
        loading: LoadingTimer = LOADING,
        activity: Callable[[], str] = str,
    ) -> None:
        """Read the records of earlier sessions.

        ``loads``: whether weights have to be loaded. ``loading``: timer of loading in this process.
        ``activity``: state of a model's replicas, empty if there are none.
        """
        self._stream = stream
        self._records = records
        self._tracking = tracking
        self._tty = tty
        self._several = len({group.model for group in tracking.groups}) > 1
        self._offset = 0
        self._loads, self._loading = loads, loading
        self._activity = activity
        self._read(earlier=True)
        self._begin()
        self._printed_records: dict[int, int] = {}
        self._stopped = threading.Event()
        self._width = 0
        self._thread = threading.Thread(target=self._watch, name="llmeval-progress", daemon=True)

    @classmethod
    def start(
        cls, config: pytest.Config, records: Path, plan: Plan, activity: Callable[[], str] = str
    ) -> Progress | None:
        """Start printing progress; return None with ``-q`` or without stdout.

        ``activity``: state of a model's replicas, empty if there are none.
        """
        if config.get_verbosity() < 0 or not config.pluginmanager.hasplugin("terminalreporter"):
            return None
        try:
            # A copy of the descriptor: pytest redirects the original to a file during a test.
            stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        except (OSError, ValueError, AttributeError):
            return None
        kinds = {spec.partition(":")[0] for spec in plan.models}
        loads = not plan.own_model and bool(kinds & _WITH_WEIGHTS)
        progress = cls(
            stream, records, RunProgress(plan), stream.isatty(), loads, activity=activity
        )
        progress._thread.start()
        return progress

    def stop(self) -> None:
        """Erase the line and end the thread."""
        self._stopped.set()
        self._thread.join(timeout=2)
        if self._tty:
            self._write("\r" + " " * self._width + "\r")
        with contextlib.suppress(OSError):
            self._stream.close()

    def _watch(self) -> None:
        seconds = _TTY_SECONDS if self._tty else _PLAIN_SECONDS
        while not self._stopped.wait(seconds):
            self._update()
            if self._tty:
                # A line that wraps could not be erased.
                line = self.line()[: shutil.get_terminal_size().columns - 1]
                self._write("\r" + line.ljust(self._width))
                self._width = len(line)
            else:
                self._write("".join(f"\n{line}" for line in self.lines()))

    def _begin(self) -> None:
        """Count items and time from now on."""
        self._first = self._tracking.done
        self._began = time.monotonic()
        self._loaded_before = self._loading.seconds

    def _update(self) -> None:
        """Read new records; the first ones show that workers have loaded their weights."""
        elsewhere = self._loads_elsewhere()
        self._read()
        if elsewhere and not self._loads_elsewhere():
            self._loads = False
            self._begin()

    def _loads_elsewhere(self) -> bool:
        """Return whether other processes seem to be loading weights: there are no answers yet."""
        quiet = self._tracking.done == self._first
        return self._loads and quiet and not self._loading.seconds

    def _read(self, earlier: bool = False) -> None:
        """Read the complete lines that were written since the last call."""
        rest = b""
        with contextlib.suppress(OSError), self._records.open("rb") as file:
            file.seek(self._offset)
            while block := file.read(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                self._offset += sum(len(line) + 1 for line in lines)
                self._tracking.feed(lines, earlier)

    def line(self) -> str:
        """Return the total progress, and that of the result with the last record, in one line.

        Example: ``4,000 of 14,042 (28%), 12.3/s, 13:37 left; mmlu[letter] 0.451 [0.436, 0.467]``.
        """
        text = self._overall()
        latest = max(self._tracking.groups, key=lambda group: group.last_record, default=None)
        if latest is None or latest.accuracy() is None:
            return text
        count = f" {self._count(latest)}" if len(self._tracking.groups) > 1 else ""
        return f"{text}; {self._name(latest)}{count} {_accuracy(latest)}"

    def lines(self) -> list[str]:
        """Return lines for a log: the total, and each result with new records if there are several."""
        groups = self._tracking.groups
        if len(groups) < 2:
            return [self.line()]
        changed = [
            n
            for n, group in enumerate(groups)
            if group.last_record != self._printed_records.get(n, 0)
        ]
        self._printed_records.update((n, groups[n].last_record) for n in changed)
        lines = [
            f"  {self._name(group)} {self._count(group)}, {_accuracy(group)}"
            for group in map(groups.__getitem__, changed)
        ]
        return [self._overall(), *lines]

    def _overall(self) -> str:
        done, total = self._tracking.done, self._tracking.total
        share = done / total if total else 1.0
        text = f"{done:,} of {total:,} ({share:.0%})"
        loading = self._loading.seconds - self._loaded_before
        elapsed = time.monotonic() - self._began - loading
        if self._loading.is_running or self._loads_elsewhere():
            text += ", loading weights"
        elif done > self._first and elapsed > 0:
            rate = (done - self._first) / elapsed
            seconds = int((total - done) / rate)
            text += f", {rate:.1f}/s, {seconds // 60}:{seconds % 60:02d} left"
        activity = self._activity()
        return f"{text}, {activity}" if activity else text

    def _name(self, group: ResultProgress) -> str:
        return f"{group.model} {group.name}" if self._several else group.name

    def _count(self, group: ResultProgress) -> str:
        return f"{group.done:,} of {len(group.items):,}"

    def _write(self, text: str) -> None:
        # A closed pipe must not end the run.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(escape_workflow_commands(text))
            self._stream.flush()


def _accuracy(group: ResultProgress) -> str:
    accuracy = group.accuracy()
    if accuracy is None:
        return "no answers yet"
    value, (low, high) = accuracy
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"
