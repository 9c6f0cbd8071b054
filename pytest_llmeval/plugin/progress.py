"""Progress while a run goes on: a line that moves on a terminal, now and then lines elsewhere.

It is read off the records file, which every answering process appends to: so it moves inside long
chunks, and under xdist, without any message between them.

How far a run has come, from its records as they are written; no I/O here.

A record line is not an item: an item may have several samples, a record for each other scorer of
the same response, and a second record where the body of its test overrules the scorer.
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

_ANY = ""  # a project's own model is one, whatever its records call it


@dataclass
class Tracked:
    """One model on one planned result.

    ``items``: the planned ids. ``samples``: protocol fingerprint → answers per item. ``scorer`` is
    the planned one until a record tells that the model was asked another way.
    """

    model: str
    benchmark: str
    scorer: str
    samples: dict[str, int]
    items: set[str]
    done: int = 0
    #: (answered, correct) of an item → how many items have it.
    tally: Counter[tuple[int, int]] = field(default_factory=Counter)
    seen: dict[str, _Seen] = field(default_factory=dict)
    weights: str | None = None
    #: When its last record came, in the order of records.
    moved: int = 0

    @property
    def name(self) -> str:
        """``mmlu[letter]``."""
        return f"{self.benchmark}[{self.scorer}]"

    def accuracy(self) -> tuple[float, tuple[float, float]] | None:
        """Accuracy of the answers so far with its 95 % interval; errors left out."""
        answered = sum(n * items for (n, _), items in self.tally.items())
        if not answered:
            return None
        correct = sum(c * items for (_, c), items in self.tally.items())
        return correct / answered, tally_interval(+self.tally)

    def put(self, item: str, sample: int, outcome: str, expected: int, weights: str | None) -> None:
        """Take what became of one sample; a later word on it replaces an earlier."""
        seen = self.seen.get(item)
        if seen is None:
            seen = self.seen[item] = _Seen(weights)
        else:
            self._count(seen, -1)
        seen.outcomes[sample], seen.expected = outcome, expected
        self._count(seen, 1)

    def forget(self, weights: str | None) -> None:
        """Drop what other weights answered: it will be asked for again."""
        for item in [item for item, seen in self.seen.items() if seen.weights != weights]:
            self._count(self.seen.pop(item), -1)

    def _count(self, seen: _Seen, sign: int) -> None:
        self.done += sign * (len(seen.outcomes) >= seen.expected)
        outcomes = list(seen.outcomes.values())
        answered = len(outcomes) - outcomes.count(Outcome.ERROR)
        if answered:
            self.tally[answered, outcomes.count(Outcome.CORRECT)] += sign


@dataclass
class _Seen:
    """What is known of an item: outcomes by sample, and the weights that gave the first."""

    weights: str | None
    outcomes: dict[int, str] = field(default_factory=dict)
    expected: int = 1


class Tracking:
    """All models and results of a plan. Records of an earlier session are fed with ``earlier``."""

    def __init__(self, plan: Plan) -> None:
        self._own_model = plan.own_model
        self._groups: dict[tuple[str, str, str], Tracked] = {}
        self._moves = 0
        groups: dict[tuple[int, int], Tracked] = {}
        for planned in plan.items:
            key = (planned.model, planned.result)
            if key not in groups:
                result, model = plan.results[planned.result], plan.models[planned.model]
                samples = {way.fingerprint: way.samples for way in result.ways}
                made = Tracked(model, result.benchmark, result.scorer, samples, set())
                groups[key] = made
                for fingerprint in samples:
                    name = _ANY if plan.own_model else model
                    self._groups[name, result.benchmark, fingerprint] = made
            groups[key].items.add(planned.item)
        self._scorers = {way.fingerprint: way.scorer for one in plan.results for way in one.ways}
        self.groups = list(groups.values())

    @property
    def total(self) -> int:
        """Planned items: of every model and result."""
        return sum(len(group.items) for group in self.groups)

    @property
    def done(self) -> int:
        """Items that have all their samples."""
        return sum(group.done for group in self.groups)

    def feed(self, lines: Iterable[bytes], earlier: bool = False) -> None:
        """Take lines of ``records.jsonl``. What is no record is for others to complain about.

        ``earlier``: of an earlier session, whose errors and unsettled answers are asked for again.
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
            return  # another scorer of the same response, say
        weights = record.get("model_fingerprint")
        if earlier and (outcome == Outcome.ERROR or record.get("left_out")):
            return
        if not earlier:
            self._moves += 1
            if weights is not None and weights != group.weights:
                group.weights = weights
                group.forget(weights)
        group.moved = self._moves
        group.scorer = self._scorers[protocol]
        group.put(item, record.get("sample", 0), outcome, group.samples[protocol], weights)


_WITH_WEIGHTS = frozenset({"demo", "hf"})  # kinds of models

_TTY_SECONDS = 0.5
_PLAIN_SECONDS = 30.0
_BLOCK = 1 << 20  # bytes read at once, so that a test waits for no long read


class Progress:
    """A thread that follows the records file; daemonic, stopped by ``stop``."""

    def __init__(
        self,
        stream: TextIO,
        records: Path,
        tracking: Tracking,
        tty: bool,
        loads: bool = False,
        loading: LoadingTimer = LOADING,
    ) -> None:
        """``loads``: weights are to be loaded; ``loading``: how long that took in this process."""
        self._stream = stream
        self._records = records
        self._tracking = tracking
        self._tty = tty
        self._several = len({group.model for group in tracking.groups}) > 1
        self._offset = 0
        self._loads, self._loading = loads, loading
        self._read(earlier=True)
        self._begin()
        self._told: dict[int, int] = {}
        self._stopped = threading.Event()
        self._width = 0
        self._thread = threading.Thread(target=self._watch, name="llmeval-progress", daemon=True)

    @classmethod
    def start(cls, config: pytest.Config, records: Path, plan: Plan) -> Progress | None:
        """Start showing progress where somebody reads it; None with ``-q`` or without stdout."""
        if config.get_verbosity() < 0 or not config.pluginmanager.hasplugin("terminalreporter"):
            return None
        try:
            # A copy of the descriptor: pytest points the original at a file during a test.
            stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        except (OSError, ValueError, AttributeError):
            return None
        kinds = {spec.partition(":")[0] for spec in plan.models}
        loads = not plan.own_model and bool(kinds & _WITH_WEIGHTS)
        progress = cls(stream, records, Tracking(plan), stream.isatty(), loads)
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
            self._look()
            if self._tty:
                # A line that wraps could not be erased.
                line = self.line()[: shutil.get_terminal_size().columns - 1]
                self._write("\r" + line.ljust(self._width))
                self._width = len(line)
            else:
                self._write("".join(f"\n{line}" for line in self.lines()))

    def _begin(self) -> None:
        """Count items and time from here on."""
        self._first = self._tracking.done
        self._began = time.monotonic()
        self._loaded_before = self._loading.seconds

    def _look(self) -> None:
        """Read what is new; where workers load their weights, the first answers end that."""
        elsewhere = self._loads_elsewhere()
        self._read()
        if elsewhere and not self._loads_elsewhere():
            self._loads = False
            self._begin()

    def _loads_elsewhere(self) -> bool:
        """Whether other processes have yet to load their weights, as far as is seen from here."""
        quiet = self._tracking.done == self._first
        return self._loads and quiet and not self._loading.seconds

    def _read(self, earlier: bool = False) -> None:
        """Take the whole lines that were written since the last time."""
        rest = b""
        with contextlib.suppress(OSError), self._records.open("rb") as file:
            file.seek(self._offset)
            while block := file.read(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                self._offset += sum(len(line) + 1 for line in lines)
                self._tracking.feed(lines, earlier)

    def line(self) -> str:
        """Everything, and the result that moved last, on one line.

        ``4,000 of 14,042 (28%), 12.3/s, 13:37 left; mmlu[letter] 0.451 [0.436, 0.467]``.
        """
        text = self._overall()
        moving = max(self._tracking.groups, key=lambda group: group.moved, default=None)
        if moving is None or moving.accuracy() is None:
            return text
        of = f" {self._count(moving)}" if len(self._tracking.groups) > 1 else ""
        return f"{text}; {self._name(moving)}{of} {_accuracy(moving)}"

    def lines(self) -> list[str]:
        """For a log: one line, or, with several results, one for everything and each that moved."""
        groups = self._tracking.groups
        if len(groups) < 2:
            return [self.line()]
        moved = [n for n, group in enumerate(groups) if group.moved != self._told.get(n, 0)]
        self._told.update((n, groups[n].moved) for n in moved)
        shown = [groups[n] for n in moved]
        return [
            self._overall(),
            *(f"  {self._name(one)} {self._count(one)}, {_accuracy(one)}" for one in shown),
        ]

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
            left = int((total - done) / rate)
            text += f", {rate:.1f}/s, {left // 60}:{left % 60:02d} left"
        return text

    def _name(self, group: Tracked) -> str:
        return f"{group.model} {group.name}" if self._several else group.name

    def _count(self, group: Tracked) -> str:
        return f"{group.done:,} of {len(group.items):,}"

    def _write(self, text: str) -> None:
        # A closed pipe must not end the run: progress is a courtesy.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(escape_workflow_commands(text))
            self._stream.flush()


def _accuracy(group: Tracked) -> str:
    found = group.accuracy()
    if found is None:
        return "no answers yet"
    value, (low, high) = found
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"
