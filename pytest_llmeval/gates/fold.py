"""The verdicts on the subjects of one gate as a single one."""

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
from pytest_llmeval.gates.wording import NO_MEASUREMENT

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
