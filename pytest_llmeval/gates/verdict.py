"""What became of a gate, and how that is told."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal

from pytest_llmeval.gates.bounds import Bound

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
