"""Many verdicts on the subjects of one benchmark, told as one."""

from __future__ import annotations

import math
from collections.abc import Collection
from collections.abc import Iterable
from dataclasses import replace

from .verdict import Verdict
from .words import NO_MEASUREMENT


def fold(verdicts: Iterable[Verdict], statuses: Collection[str]) -> list[Verdict]:
    """The verdicts with those of ``every_subject`` of one gate and one status made one.

    Only verdicts of the given statuses are folded, of the undecided ones only those whose
    subject was not measured, and none with a warning. The one shows the subject nearest to its
    bound:
    ``PASS mmlu::every_subject::accuracy: 0.2100 (bound >= 0.15) worst of 57 subjects: anatomy``.
    """
    shown: list[Verdict] = []
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        head, found, _ = verdict.id.partition("::every_subject::")
        silent = verdict.status != "undecided" or verdict.measured is None
        folded = verdict.status in statuses and verdict.warning is None
        if not found or not folded or not silent:
            shown.append(verdict)
            continue
        key = (f"{head}::every_subject::{verdict.metric}", _kind(verdict))
        if key not in groups:
            groups[key] = []
            shown.append(replace(verdict, id=key[0]))
        groups[key].append(verdict)
    return [_one(verdict, groups.get((verdict.id, _kind(verdict)))) for verdict in shown]


def _kind(verdict: Verdict) -> str:
    """What verdicts have in common that are shown as one: their status, or why there is none."""
    return NO_MEASUREMENT if verdict.reason.startswith(NO_MEASUREMENT) else verdict.status


def _one(shown: Verdict, members: list[Verdict] | None) -> Verdict:
    if members is None or shown.subject is None:
        return shown
    measured = [one for one in members if one.measured is not None]
    if not measured:
        what = "are no measurement" if _kind(shown) == NO_MEASUREMENT else "were not run"
        reason = f"{len(members)} subjects {what}" if len(members) > 1 else shown.reason
        return replace(shown, subject=None, n=0, reason=reason)
    worst = min(measured, key=lambda one: math.inf if one.room is None else one.room)
    which = f"worst of {len(members)} subjects" if len(members) > 1 else "only subject"
    reason = f"{which}: {worst.subject}"
    return replace(worst, id=shown.id, subject=None, reason=reason)
