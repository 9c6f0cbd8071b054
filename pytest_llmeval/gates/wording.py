"""Results in words, as verdicts tell them: what was counted, what is missing, what failed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import replace

from pytest_llmeval.gates.verdict import STATES
from pytest_llmeval.gates.verdict import State
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import worst_first
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
