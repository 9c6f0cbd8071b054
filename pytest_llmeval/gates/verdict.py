"""Verdicts on gates and their wording."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from typing import Any
from typing import Literal

from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result

NOT_A_MEASUREMENT = "not a measurement"


def count_text(metric: str, result: Result) -> str:
    """Return the counts behind a measured value: ``3,951 of 14,042 correct``."""
    counts = result.counts
    if metric == "error_rate":
        return f"{error_count(counts.error)} in {answer_count(counts.attempted, result.samples)}"
    for name in ("unparsed", "refused", "truncated"):
        events = getattr(counts, name)
        if metric == f"{name}_rate":
            text = f"{events:,} of {counts.answered:,} answers {name}"
            return f"{text}, plus {error_count(counts.error)}" if counts.error else text
    noun = "" if result.samples == 1 else " answers"
    text = f"{counts.correct:,} of {counts.attempted:,}{noun} correct"
    if result.samples > 1:
        items = counts.attempted // result.samples
        text += f" ({answer_count(items)}, {result.samples} samples each)"
    if counts.error:
        text += f" counting {error_count(counts.error)}, {counts.correct:,} of {counts.answered:,} answered"
    if metric == "macro_accuracy":
        present = sum(1 for subject in result.subjects.values() if subject.attempted)
        text += f" in {present:,} subject{'s' if present != 1 else ''}"
    if metric == "normalized_gain" and result.chance is not None:
        text += f", chance {result.chance:.4g}"
    return text


def sample_text(result: Result) -> str:
    """Return how many items a random sample of items has: ``sampled 100 of 500 items``."""
    counts = result.counts
    items = answer_count(counts.total // result.samples)
    return f"sampled {counts.attempted // result.samples:,} of {items}"


def coverage_text(result: Result) -> str:
    """Return how many of the items were run: ``only 100 of 500 items were run``."""
    counts = result.counts
    noun = answer_count(counts.total, result.samples)
    if not counts.attempted:
        return f"none of {noun} was run" if counts.total else "no items"
    return f"only {counts.attempted:,} of {noun} were run"


def incomplete_reason(errors: int, limit: int) -> str | None:
    """Return why errors make a result incomplete; None if they are within the limit."""
    return f"incomplete: {error_count(errors)} (max_errors {limit})" if errors > limit else None


def shared_incomplete_reason(in_subject: int, in_all: int, limit: int) -> str | None:
    """Return why errors make a subject incomplete whose limit is shared by all subjects."""
    if in_subject and in_all > limit:
        return f"incomplete: {error_count(in_subject)} here, {in_all:,} in all (max_errors {limit})"
    return None


def error_count(count: int) -> str:
    """Format a number of errors: ``3 errors``."""
    return f"{count:,} error{'s' if count != 1 else ''}"


def measurement_problem(counts: Counts) -> str | None:
    """Return why the answers are not a measurement of the model; None if they are."""
    return None if counts.is_measurement else f"{NOT_A_MEASUREMENT}: {all_tied_text(counts)}"


def all_tied_text(counts: Counts) -> str:
    """Return on how many answers all options had the same log-likelihood, as text."""
    return (
        "all options have the same log-likelihood in"
        f" {counts.all_tied:,} of {answer_count(counts.answered)} ({counts.all_tied_rate or 0:.1%})"
    )


def answer_count(count: int, samples: int = 1) -> str:
    """Format a number of items, or of answers if an item has several: ``3 items``."""
    return f"{count:,} {'item' if samples == 1 else 'answer'}{'s' if count != 1 else ''}"


GROUPED_STATUSES = frozenset({"fail", "undecided", "pass"})
"""Statuses of subjects that are grouped by default."""

STATUSES_WITHOUT_VALUE = frozenset({"fail", "undecided"})
"""Statuses to group for counting: subjects that have a measured value count one by one."""


def group_subject_verdicts(
    verdicts: Iterable[Verdict], statuses: Collection[str] = GROUPED_STATUSES
) -> list[Verdict]:
    """Group the ``every_subject`` verdicts that need no line of their own into one for each gate.

    Grouped are subjects that passed without a warning and subjects without a measured value; the
    others keep their ids. A group has the worst status of its members, so that no id has two
    verdicts; if all members passed, it has the value of the subject nearest to the bound:
    ``PASS mmlu::every_subject::accuracy: 0.2100 (bound >= 0.15) worst of 57 subjects: anatomy``.
    ``statuses``: the statuses to group.
    """
    grouped: list[Verdict] = []
    members: dict[str, list[Verdict]] = {}
    totals: dict[str, int] = {}
    for verdict in verdicts:
        head, separator, _ = verdict.id.partition("::every_subject::")
        if not separator or verdict.subject is None:
            grouped.append(verdict)
            continue
        gate = f"{head}::every_subject::{verdict.metric}"
        totals[gate] = totals.get(gate, 0) + 1
        silent = verdict.status == "pass" or verdict.measured is None or not verdict.n
        if verdict.status not in statuses or verdict.warning is not None or not silent:
            grouped.append(verdict)
            continue
        if gate not in members:
            members[gate] = []
            grouped.append(replace(verdict, id=gate))
        members[gate].append(verdict)
    return [
        _group_verdict(verdict.id, members[verdict.id], totals[verdict.id])
        if verdict.id in members
        else verdict
        for verdict in grouped
    ]


def count_states(verdicts: Iterable[Verdict]) -> dict[State, int]:
    """Count the gates in each state, worst state first; states without gates are left out.

    All subjects of a gate that have no value count as one gate. The verdict on a run without judged
    gates is not a gate.
    """
    verdicts = [verdict for verdict in verdicts if verdict.id != NO_GATE]
    counts = Counter(
        verdict.state for verdict in group_subject_verdicts(verdicts, STATUSES_WITHOUT_VALUE)
    )
    return {state: counts[state] for state in STATES if counts[state]}


def _group_verdict(id: str, members: Sequence[Verdict], total: int) -> Verdict:
    """Return one verdict for ``members``; the gate has ``total`` subjects."""
    passed = [verdict for verdict in members if verdict.status == "pass"]
    others = [verdict for verdict in sort_worst_first(members) if verdict.status != "pass"]
    nearest = min(passed, key=lambda v: math.inf if v.room is None else v.room, default=None)
    if not others and nearest is not None:
        which = f"worst of {len(passed)} subjects" if len(passed) > 1 else "only subject"
        which = "the other subject" if len(passed) == 1 < total else which
        reason = f"{which}: {nearest.subject}"
        return replace(nearest, id=id, subject=None, reason=reason)
    kinds: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in others:
        kind = (verdict.status, re.sub(r"[\d.,]+", "", verdict.reason))
        kinds.setdefault(kind, []).append(verdict)
    parts = [_group_reason(verdicts, total) for verdicts in kinds.values()]
    if nearest is not None:
        value = "" if nearest.measured is None else f" {nearest.measured:.4f}"
        parts.append(f"{len(passed)} passed, worst {nearest.subject}{value}")
    first = others[0]
    return replace(
        first, id=id, subject=None, measured=None, interval=None, n=0, reason="; ".join(parts)
    )


def _group_reason(members: Sequence[Verdict], total: int) -> str:
    """Return the reason of subjects that have no value for the same reason."""
    first = members[0]
    if len(members) == 1:
        return first.reason if total == 1 else f"{first.subject}: {first.reason}"
    which = f"{len(members)} of {total} subjects" if len(members) < total else f"{total} subjects"
    if first.reason.startswith(NOT_A_MEASUREMENT):
        return f"{which} are no measurement"
    if re.fullmatch(r"none of .* was run", first.reason):
        return f"{which} were not run"
    return f"{which}, such as {first.subject}: {first.reason}"


Status = Literal["pass", "fail", "undecided", "not run"]
State = Literal["failed", "undecided", "warned", "passed", "not run"]

NO_GATE = "no-gate"
"""Id of the verdict on a run in which no gate was judged."""

STATES: tuple[State, ...] = ("failed", "undecided", "warned", "passed", "not run")
"""The states of gates in reports, worst first."""

_STATE_OF: Mapping[Status, State] = {
    "fail": "failed",
    "undecided": "undecided",
    "pass": "passed",
    "not run": "not run",
}

# A measured value this close to a bound counts as equal to it. The tolerance is far above the
# rounding errors of the few float operations behind a value, and far below the effect of one item:
# c/n and a bound of d decimals are equal or at least 1 / (n 10^d) apart, which is larger than the
# tolerance for any n 10^d < 10^12.
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Verdict:
    """Outcome of one gate."""

    id: str
    """Stable, such as ``mmlu::subjects.anatomy::accuracy``; prefixed by the model if several ran."""
    model: str | None
    """None if the verdict concerns all models."""
    benchmark: str
    scorer: str | None
    subject: str | None
    metric: str | None
    bound: str
    measured: float | None
    """In the metric's unit: a proportion, for ``max_errors`` a number; None if incomplete."""
    interval: tuple[float, float] | None
    """Interval of the metric, at the bound's confidence level or 95 %."""
    n: int
    """Answers behind ``measured``; for ``pass@k`` items, for regression gates paired items."""
    status: Status
    reason: str
    min: float | None = None
    """Lower bound; the chance level if that is the bound."""
    max: float | None = None
    """Upper bound; the chance level if that is the bound."""
    detectable: float | None = None
    """Smallest drop that the gate detects with 80 % power."""
    warning: str | None = None
    """Warning on a gate that passed."""
    line: int | None = None
    """Line of the gate in its file, from 1."""
    sequential: Mapping[str, float | None] | None = None
    """Of a gate that was decided, or cut short, before all items (``--llm-sequential``): ``asked`` and
    ``population`` (numbers of items), ``log_e`` (log evidence; None if certain or undecided), ``alpha``."""

    p_value: float | None = None
    """Of a test of contamination: its Holm-adjusted p value."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Verdict:
        """Read an entry of ``gates.json``; raises TypeError for anything else."""
        interval = value.get("interval")
        return cls(**{**value, "interval": None if interval is None else tuple(interval)})

    def as_json(self) -> dict[str, Any]:
        """Return the entry of ``gates.json``; what few gates have is left out unless it is set."""
        value = asdict(self)
        for name in ("sequential", "p_value"):
            if value[name] is None:
                del value[name]
        return value

    @property
    def state(self) -> State:
        """Status as reports show it: a gate that passed with a warning is ``warned``."""
        return "warned" if self.warning is not None else _STATE_OF[self.status]

    @property
    def room(self) -> float | None:
        """Distance of the measured value from its nearest bound, negative outside."""
        if self.measured is None:
            return None
        rooms = [] if self.min is None else [self.measured - self.min]
        rooms += [] if self.max is None else [self.max - self.measured]
        return min(rooms, default=None)

    @property
    def margin(self) -> float | None:
        """The ``room``, but None if the bound is the chance level: there the interval decides."""
        is_chance = self.min is not None and self.min == self.max
        return None if is_chance else self.room


@dataclass(frozen=True, slots=True)
class Scope:
    """Position of a gate: the beginning of its verdict's id, and the answers it covers."""

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
        """Return the verdict on a bound, or on a limit given as ``text`` and ``maximum``."""
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


def sort_worst_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Sort verdicts by state, failed and warned ones also by margin; the sort is stable."""

    def rank(verdict: Verdict) -> tuple[int, float]:
        by_margin = verdict.state in ("failed", "warned")
        return STATES.index(verdict.state), (verdict.margin or 0.0) if by_margin else 0.0

    return sorted(verdicts, key=rank)


def verdict_without_bound(
    id: str, model: str | None, benchmark: str, status: Status, reason: str
) -> Verdict:
    """Return a verdict without a bound, such as one on a benchmark that did not run."""
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


def overall_verdict(
    verdicts: Iterable[Verdict], allow_undecided: bool = False
) -> Literal["pass", "fail"]:
    """Return the verdict on the build.

    A failed gate fails it, and so does, unless allowed, an undecided gate or that none was decided.
    """
    statuses = {verdict.status for verdict in verdicts}
    if "fail" in statuses:
        return "fail"
    if allow_undecided:
        return "pass"
    return "pass" if "pass" in statuses and "undecided" not in statuses else "fail"


def undecided_run_verdict(verdicts: Iterable[Verdict], file: str) -> Verdict | None:
    """Return a failed verdict if no gate of the file was judged, else None.

    "Nothing ran is not green", see the rules in ARCHITECTURE.md.
    """
    if {verdict.status for verdict in verdicts} & {"pass", "fail", "undecided"}:
        return None
    reason = f"no gate of {file} was decided by this run"
    return verdict_without_bound(NO_GATE, None, "", "fail", reason)


def verdict_line(verdict: Verdict) -> str:
    """Return a verdict on one line: status, id, measured value, bound, interval, reason.

    ``PASS mmlu::accuracy: 0.2814 (bound >= 0.28) [0.2740, 0.2889] 3,951 of 14,042 correct;
    detectable drop 0.0106``; ``WARN`` in place of ``PASS`` if there is a warning.
    """
    return f"{verdict_heading(verdict)} {verdict_reason(verdict)}".strip()


def verdict_heading(verdict: Verdict) -> str:
    """Return status, id, measured value, bound and interval of a verdict on one line."""
    status = "warn" if verdict.state == "warned" else verdict.status
    parts = [f"{status.upper()} {verdict.id}:"]
    if verdict.measured is not None:
        parts.append(_measured_text(verdict))
    elif verdict.bound:
        parts.append("-")
    if verdict.bound:
        parts.append(f"(bound {verdict.bound})")
    if verdict.interval is not None:
        parts.append(f"[{verdict.interval[0]:.4f}, {verdict.interval[1]:.4f}]")
    return " ".join(" ".join(parts).split())


def verdict_reason(verdict: Verdict) -> str:
    """Return reason, warning and smallest detectable drop of a verdict on one line."""
    parts = [verdict.reason, verdict.warning or ""]
    if verdict.detectable is not None:
        parts.append(f"detectable drop {verdict.detectable:.4f}")
    return " ".join("; ".join(text for text in parts if text).split())


def _measured_text(verdict: Verdict) -> str:
    """Format the measured value with four decimals, or more if it would round onto its bound."""
    value = verdict.measured
    if value is None or verdict.metric == "max_errors":
        return f"{value or 0:.0f}"
    bounds = [bound for bound in (verdict.min, verdict.max) if bound is not None]
    for digits in range(4, 13):
        text = f"{value:.{digits}f}"
        if all(_side(float(text), bound) == _side(value, bound) for bound in bounds):
            break
    return text


def _side(value: float, bound: float) -> int:
    return 0 if abs(value - bound) <= TOLERANCE else int(math.copysign(1, value - bound))
