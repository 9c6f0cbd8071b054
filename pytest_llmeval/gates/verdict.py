"""Verdicts, and their wording: what was counted, what is missing, what failed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any
from typing import Literal

from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result

NO_MEASUREMENT = "not a measurement"


def counted(metric: str, result: Result) -> str:
    """What the measured value was counted from, in words."""
    counts = result.counts
    if metric == "error_rate":
        return f"{errors(counts.error)} in {answers(counts.attempted, result.samples)}"
    for name, events in (("unparsed", counts.unparsed), ("truncated", counts.truncated)):
        if metric == f"{name}_rate":
            text = f"{events:,} of {counts.answered:,} answers {name}"
            return f"{text}, beside {errors(counts.error)}" if counts.error else text
    noun = "" if result.samples == 1 else " answers"
    text = f"{counts.correct:,} of {counts.attempted:,}{noun} correct"
    if result.samples > 1:
        items = counts.attempted // result.samples
        text += f" ({answers(items)}, {result.samples} samples each)"
    if counts.error:
        text += (
            f" counting {errors(counts.error)}, {counts.correct:,} of {counts.answered:,} answered"
        )
    if metric == "macro_accuracy":
        present = sum(1 for subject in result.subjects.values() if subject.attempted)
        text += f" in {present:,} subject{'s' if present != 1 else ''}"
    if metric == "normalized_gain" and result.chance is not None:
        text += f", chance {result.chance:.4g}"
    return text


def drawn(result: Result) -> str:
    """How much of the benchmark a random draw has, in words."""
    counts = result.counts
    items = answers(counts.total // result.samples)
    return f"sampled {counts.attempted // result.samples:,} of {items}"


def not_all(result: Result) -> str:
    """How much of the items was run, where it was not all, in words."""
    counts = result.counts
    noun = answers(counts.total, result.samples)
    if not counts.attempted:
        return f"none of {noun} was run" if counts.total else "no items"
    return f"only {counts.attempted:,} of {noun} were run"


def too_many(found: int, limit: int) -> str | None:
    """Why the errors leave a result incomplete; None when they are within the limit."""
    return f"incomplete: {errors(found)} (max_errors {limit})" if found > limit else None


def too_many_together(here: int, everywhere: int, limit: int) -> str | None:
    """Why the errors leave a subject incomplete that shares the allowance of all subjects."""
    if here and everywhere > limit:
        return f"incomplete: {errors(here)} here, {everywhere:,} in all (max_errors {limit})"
    return None


def errors(count: int) -> str:
    """``3 errors``."""
    return f"{count:,} error{'s' if count != 1 else ''}"


def no_measurement(counts: Counts) -> str | None:
    """Why answers are not a measurement of their model; None where they are one."""
    return None if counts.is_measurement else f"{NO_MEASUREMENT}: {all_tied(counts)}"


def all_tied(counts: Counts) -> str:
    """On how many of the answers every choice had the same log-likelihood, in words."""
    return (
        "all options have the same log-likelihood in"
        f" {counts.all_tied:,} of {answers(counts.answered)} ({counts.all_tied_rate or 0:.1%})"
    )


def answers(count: int, samples: int = 1) -> str:
    """``3 items``, or ``3 answers`` where an item has several."""
    return f"{count:,} {'item' if samples == 1 else 'answer'}{'s' if count != 1 else ''}"


FOLDED = frozenset({"fail", "undecided", "pass"})
"""Statuses of which subjects are folded unless the caller chooses."""

VALUELESS = frozenset({"fail", "undecided"})
"""Of these none with a measured value is folded: what is left are the gates that are counted."""


def fold(verdicts: Iterable[Verdict], statuses: Collection[str] = FOLDED) -> list[Verdict]:
    """The verdicts with those of ``every_subject`` that need no line of their own made one a gate.

    Folded are subjects that passed without a warning, and subjects without a measured value; the
    others keep their ids. The one has the worst status of those that it stands for, so that no id
    has two verdicts, and shows the subject nearest to the bound where all of them passed:
    ``PASS mmlu::every_subject::accuracy: 0.2100 (bound >= 0.15) worst of 57 subjects: anatomy``.
    ``statuses``: those that are folded.
    """
    shown: list[Verdict] = []
    members: dict[str, list[Verdict]] = {}
    totals: dict[str, int] = {}
    for verdict in verdicts:
        head, found, _ = verdict.id.partition("::every_subject::")
        if not found or verdict.subject is None:
            shown.append(verdict)
            continue
        gate = f"{head}::every_subject::{verdict.metric}"
        totals[gate] = totals.get(gate, 0) + 1
        silent = verdict.status == "pass" or verdict.measured is None or not verdict.n
        if verdict.status not in statuses or verdict.warning is not None or not silent:
            shown.append(verdict)
            continue
        if gate not in members:
            members[gate] = []
            shown.append(replace(verdict, id=gate))
        members[gate].append(verdict)
    return [
        _one(verdict.id, members[verdict.id], totals[verdict.id])
        if verdict.id in members
        else verdict
        for verdict in shown
    ]


def count_states(verdicts: Iterable[Verdict]) -> dict[State, int]:
    """State → how many gates have it, worst first; states that no gate has are left out.

    The subjects of one gate that have no value, for want of items say, are one gate.
    """
    counts = Counter(verdict.state for verdict in fold(verdicts, VALUELESS))
    return {state: counts[state] for state in STATES if counts[state]}


def _one(id: str, members: Sequence[Verdict], total: int) -> Verdict:
    """What stands for some of a gate's subjects, ``total`` in number."""
    passed = [one for one in members if one.status == "pass"]
    others = [one for one in worst_first(members) if one.status != "pass"]
    nearest = min(passed, key=lambda one: math.inf if one.room is None else one.room, default=None)
    if not others and nearest is not None:
        which = f"worst of {len(passed)} subjects" if len(passed) > 1 else "only subject"
        which = "the other subject" if len(passed) == 1 < total else which
        reason = f"{which}: {nearest.subject}"
        return replace(nearest, id=id, subject=None, reason=reason)
    kinds: dict[tuple[str, str], list[Verdict]] = {}
    for one in others:
        kinds.setdefault((one.status, re.sub(r"[\d.,]+", "", one.reason)), []).append(one)
    parts = [_kind(kind, total) for kind in kinds.values()]
    if nearest is not None:
        value = "" if nearest.measured is None else f" {nearest.measured:.4f}"
        parts.append(f"{len(passed)} passed, worst {nearest.subject}{value}")
    first = others[0]
    return replace(
        first, id=id, subject=None, measured=None, interval=None, n=0, reason="; ".join(parts)
    )


def _kind(members: Sequence[Verdict], total: int) -> str:
    """Subjects that have no value for one reason."""
    first = members[0]
    if len(members) == 1:
        return first.reason if total == 1 else f"{first.subject}: {first.reason}"
    which = f"{len(members)} of {total} subjects" if len(members) < total else f"{total} subjects"
    if first.reason.startswith(NO_MEASUREMENT):
        return f"{which} are no measurement"
    if re.fullmatch(r"none of .* was run", first.reason):
        return f"{which} were not run"
    return f"{which}, such as {first.subject}: {first.reason}"


Status = Literal["pass", "fail", "undecided", "not run"]
State = Literal["failed", "undecided", "warned", "passed", "not run"]

STATES: tuple[State, ...] = ("failed", "undecided", "warned", "passed", "not run")
"""The states of gates in reports, worst first."""

_STATE_OF: Mapping[Status, State] = {
    "fail": "failed",
    "undecided": "undecided",
    "pass": "passed",
    "not run": "not run",
}

# A measured value this close to a bound has reached it. It is far above the rounding of the
# few operations on floats behind a value, and far below what one item can move: c/n and a bound of
# d decimals are equal or at least 1 / (n 10^d) apart, which is more for any n 10^d < 10^12.
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Verdict:
    """What became of one gate.

    ``id`` is stable: ``mmlu::subjects.anatomy::accuracy``, with the model in front when several
    ran. ``measured`` is in the metric's own unit (a proportion; for ``max_errors`` a number of
    answers) and None where the result is incomplete. ``interval`` is that of the metric, of the
    bound's confidence or 95 %. ``n`` counts the answers behind ``measured``; for ``pass@k`` the
    items, for regression gates the items paired. ``min`` and ``max`` are the bound's, both the
    chance level where that is the bound. ``detectable``: the smallest drop that the gate could have
    seen with power 80 %. ``warning``: what a gate that passed does not let pass unsaid. ``model``
    is None where the verdict concerns all models. ``line``: of the gate in its file, from 1.
    """

    id: str
    model: str | None
    benchmark: str
    scorer: str | None
    subject: str | None
    metric: str | None
    bound: str
    measured: float | None
    interval: tuple[float, float] | None
    n: int
    status: Status
    reason: str
    min: float | None = None
    max: float | None = None
    detectable: float | None = None
    warning: str | None = None
    line: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Verdict:
        """The verdict of an entry in ``gates.json``. Raises TypeError for what is none."""
        interval = value.get("interval")
        return cls(**{**value, "interval": None if interval is None else tuple(interval)})

    @property
    def state(self) -> State:
        """The status for people: a gate that passed with a warning is ``warned``, not ``passed``."""
        return "warned" if self.warning is not None else _STATE_OF[self.status]

    @property
    def room(self) -> float | None:
        """How far the measured value is inside the bound it is nearest to, negative outside."""
        if self.measured is None:
            return None
        rooms = [] if self.min is None else [self.measured - self.min]
        rooms += [] if self.max is None else [self.max - self.measured]
        return min(rooms, default=None)

    @property
    def margin(self) -> float | None:
        """The room, but None where the bound is the chance level: there the interval decides."""
        one_value = self.min is not None and self.min == self.max
        return None if one_value else self.room


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a gate stands: the beginning of its verdict's id, and what it covers."""

    id: str
    model: str
    benchmark: str
    scorer: str | None = None
    subject: str | None = None

    def verdict(
        self,
        metric: str,
        bound: Bound | None,
        status: Status,
        reason: str,
        *,
        text: str = "",
        measured: float | None = None,
        interval: tuple[float, float] | None = None,
        n: int = 0,
        maximum: float | None = None,
        detectable: float | None = None,
        warning: str | None = None,
    ) -> Verdict:
        """The verdict on a bound, or on a limit told by ``text`` and ``maximum``."""
        return Verdict(
            id=f"{self.id}::{metric}",
            model=self.model,
            benchmark=self.benchmark,
            scorer=self.scorer,
            subject=self.subject,
            metric=metric,
            bound=bound.text if bound else text,
            measured=measured,
            interval=interval,
            n=n,
            status=status,
            reason=reason,
            min=bound.min if bound else None,
            max=bound.max if bound else maximum,
            detectable=detectable,
            warning=warning,
        )


def worst_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts by state; those that failed or warn by margin, the others in their order."""

    def rank(verdict: Verdict) -> tuple[int, float]:
        by_margin = verdict.state in ("failed", "warned")
        return STATES.index(verdict.state), (verdict.margin or 0.0) if by_margin else 0.0

    return sorted(verdicts, key=rank)


def absent(id: str, model: str | None, benchmark: str, status: Status, reason: str) -> Verdict:
    """A verdict that is about no bound: nothing was run."""
    return Verdict(
        id=id,
        model=model,
        benchmark=benchmark,
        scorer=None,
        subject=None,
        metric=None,
        bound="",
        measured=None,
        interval=None,
        n=0,
        status=status,
        reason=reason,
    )


def overall(verdicts: Iterable[Verdict], allow_undecided: bool = False) -> Literal["pass", "fail"]:
    """The verdict on the build.

    It fails for any failed gate and, unless allowed, for an undecided one or for none decided.
    """
    statuses = {verdict.status for verdict in verdicts}
    if "fail" in statuses:
        return "fail"
    if allow_undecided:
        return "pass"
    return "pass" if "pass" in statuses and "undecided" not in statuses else "fail"


def nothing_decided(verdicts: Iterable[Verdict], file: str) -> Verdict | None:
    """The verdict on a run that no gate of its file had anything to say about, as rule 2 of ARCHITECTURE.md demands."""
    if {verdict.status for verdict in verdicts} & {"pass", "fail", "undecided"}:
        return None
    reason = f"no gate of {file} was decided by this run"
    return absent("no-gate", None, "", "fail", reason)


def describe(verdict: Verdict) -> str:
    """A verdict on one line: status, id, measured value, bound, interval, reason, what it sees.

    ``PASS mmlu::accuracy: 0.2814 (bound >= 0.28) [0.2740, 0.2889] 3,951 of 14,042 correct;
    sees drops of 0.0106``; ``WARN`` in place of ``PASS`` where there is a warning.
    """
    status = "warn" if verdict.state == "warned" else verdict.status
    parts = [f"{status.upper()} {verdict.id}:"]
    if verdict.measured is not None:
        parts.append(_show(verdict))
    elif verdict.bound:
        parts.append("-")
    if verdict.bound:
        parts.append(f"(bound {verdict.bound})")
    if verdict.interval is not None:
        parts.append(f"[{verdict.interval[0]:.4f}, {verdict.interval[1]:.4f}]")
    told = [verdict.reason, verdict.warning or ""]
    if verdict.detectable is not None:
        told.append(f"sees drops of {verdict.detectable:.4f}")
    parts.append("; ".join(text for text in told if text))
    return " ".join(" ".join(parts).split())


def _show(verdict: Verdict) -> str:
    """The measured value, with more than four decimals where fewer would hide what decided."""
    value = verdict.measured
    if value is None or verdict.metric == "max_errors":
        return f"{value or 0:.0f}"
    bounds = [bound for bound in (verdict.min, verdict.max) if bound is not None]
    for digits in range(4, 13):
        shown = f"{value:.{digits}f}"
        if all(_side(float(shown), bound) == _side(value, bound) for bound in bounds):
            break
    return shown


def _side(value: float, bound: float) -> int:
    return 0 if abs(value - bound) <= TOLERANCE else int(math.copysign(1, value - bound))
