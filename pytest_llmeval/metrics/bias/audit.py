"""A permutation audit as numbers: what each arm scored, and how far the arms agree.

Computed from a plain table: item → arm → what was chosen. What compares arms with one another is
over the items that have an answer in all of them, each family of arms with the original.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.bias.arms import ORIGINAL
from pytest_llmeval.bias.arms import position_of
from pytest_llmeval.core.plan import family_of
from pytest_llmeval.metrics.bias.positions import Answer
from pytest_llmeval.metrics.bias.positions import CopyResult
from pytest_llmeval.metrics.bias.positions import PositionResult
from pytest_llmeval.metrics.bias.positions import Rows
from pytest_llmeval.metrics.bias.positions import Table
from pytest_llmeval.metrics.bias.positions import agreement
from pytest_llmeval.metrics.bias.positions import cochran_q
from pytest_llmeval.metrics.bias.positions import consistency_rate
from pytest_llmeval.metrics.bias.positions import copy_result
from pytest_llmeval.metrics.bias.positions import majority
from pytest_llmeval.metrics.bias.positions import population_std
from pytest_llmeval.metrics.bias.positions import population_variance
from pytest_llmeval.metrics.bias.positions import position_recalls
from pytest_llmeval.metrics.bias.positions import position_results
from pytest_llmeval.metrics.intervals import Interval
from pytest_llmeval.metrics.intervals import bootstrap_interval
from pytest_llmeval.metrics.intervals import tally_interval
from pytest_llmeval.metrics.paired_tests import paired_interval
from pytest_llmeval.metrics.proportions import wilson_interval


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm by itself, over all items that have an answer in it."""

    name: str
    items: int
    correct: int
    unparsed: int
    accuracy: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class FamilyResult:
    """Arms that are compared with one another, over the ``items`` that have all of them.

    ``mean``, ``variance`` (population), ``range`` (largest minus smallest), ``worst_case`` (right
    in all), ``majority`` (the option chosen most often, a tie going to the original order) and
    ``p_value`` (Cochran's Q) are over the arms and the original. ``moved_mean`` and
    ``consistency`` (SCORE) are over the arms without the original where these move the answer,
    over all otherwise. ``gap`` is ``moved_mean`` minus the original's accuracy. ``recall_std``
    and ``positions`` are over the arms of ``moved_mean``, pooled, the first over the items with the
    usual number of options. ``position_range`` is how much oftener the answer is found at one
    position than at another: ``range`` where an arm stands for a position, else the same of the
    recalls that ``recall_std`` is of (every position of a rotation has every gold once, so that
    accuracies are equal whatever is preferred).
    """

    name: str
    arms: tuple[str, ...]
    items: int
    mean: float
    mean_interval: Interval
    moved_mean: float
    gap: float
    gap_interval: Interval
    variance: float
    range: float
    position_range: float | None
    p_value: float
    consistency: float | None
    consistency_interval: Interval
    recall_std: float | None
    worst_case: float
    worst_case_interval: Interval
    majority: float
    majority_interval: Interval
    positions: tuple[PositionResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Audit:
    """A whole audit. ``items`` have an answer in some arm; ``recall_std`` is the original's."""

    items: int
    arms: tuple[ArmResult, ...]
    families: tuple[FamilyResult, ...]
    recall_std: float | None
    copying: CopyResult | None = None

    @property
    def main(self) -> FamilyResult | None:
        """The family that stands for the audit: ``both``, else ``test``, else the first."""
        by_name = {family.name: family for family in self.families}
        first = self.families[0] if self.families else None
        return by_name.get("both") or by_name.get("test") or first

    def as_json(self) -> dict[str, Any]:
        """The audit as plain JSON values."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def audit_table(table: Table, confidence: float = 0.95, arms: Sequence[str] = ()) -> Audit:
    """The numbers of a table. ValueError for an empty one, or one without the original arm.

    ``arms``: their order, which settles ties of the majority; else that in which they occur.
    Intervals of accuracies are Wilson's, that of the mean has the items as clusters, those of
    consistency and gap are over items too (bootstrap, Bonett and Price).
    """
    rows = [
        {name: Answer(*answer) for name, answer in answers.items()} for answers in table.values()
    ]
    seen = dict.fromkeys(name for row in rows for name in row)
    names = list(dict.fromkeys((*(arm for arm in arms if arm in seen), *seen)))
    if ORIGINAL not in names:
        raise ValueError("an audit needs answers in the original order")
    families: dict[str, list[str]] = {}
    for name in names:
        if name != ORIGINAL:
            families.setdefault(family_of(name), []).append(name)
    judged = [_family(name, members, rows, confidence) for name, members in families.items()]
    original = [row[ORIGINAL] for row in rows if ORIGINAL in row]
    return Audit(
        items=sum(bool(row) for row in rows),
        arms=tuple(_arm(name, rows, confidence) for name in sorted(names, key=_original_first)),
        families=tuple(family for family in judged if family is not None),
        recall_std=population_std(_recalls(original)),
        copying=copy_result(families.get("shots", ()), rows),
    )


def _original_first(name: str) -> bool:
    return name != ORIGINAL


def _arm(name: str, rows: Rows, confidence: float) -> ArmResult:
    answers = [row[name] for row in rows if name in row]
    correct = sum(answer.correct for answer in answers)
    return ArmResult(
        name,
        items=len(answers),
        correct=correct,
        unparsed=sum(answer.chosen is None for answer in answers),
        accuracy=correct / len(answers),
        interval=wilson_interval(correct, len(answers), confidence),
    )


def _family(name: str, arms: Sequence[str], every: Rows, confidence: float) -> FamilyResult | None:
    everything = (ORIGINAL, *arms)
    rows = [row for row in every if all(arm in row for arm in everything)]
    if not rows:
        return None
    # The original is one of the rotations, but no arm that moves the answer.
    by_position = position_of(arms[0]) is not None
    moved = tuple(arms) if by_position else everything
    items = len(rows)
    outcomes = [[row[arm].correct for arm in everything] for row in rows]
    rates = [sum(column) / items for column in zip(*outcomes, strict=True)]
    right = Counter((len(everything), sum(outcome)) for outcome in outcomes)
    changes = Counter(
        sum(row[arm].correct for arm in moved) - len(moved) * row[ORIGINAL].correct for row in rows
    )
    choices = [[row[arm].chosen for arm in moved] for row in rows]
    worst = sum(all(outcome) for outcome in outcomes)
    voted = sum(_majority_is_right(row, everything) for row in rows)
    gap = sum(change * m for change, m in changes.items()) / (items * len(moved))
    pooled = [row[arm] for row in rows for arm in moved]
    return FamilyResult(
        name,
        arms=tuple(arms),
        items=items,
        mean=math.fsum(rates) / len(rates),
        mean_interval=tally_interval(right, confidence),
        moved_mean=sum(answer.correct for answer in pooled) / len(pooled),
        gap=gap,
        gap_interval=paired_interval(changes, len(moved), confidence),
        variance=population_variance(rates) or 0.0,
        range=max(rates) - min(rates),
        position_range=_range(rates if by_position else _recalls(pooled)),
        p_value=cochran_q(outcomes),
        consistency=consistency_rate(choices),
        consistency_interval=bootstrap_interval(
            [agreement(choices)], lambda pairs, same: same / pairs, confidence
        ),
        recall_std=population_std(_recalls(pooled)),
        worst_case=worst / items,
        worst_case_interval=wilson_interval(worst, items, confidence),
        majority=voted / items,
        majority_interval=wilson_interval(voted, items, confidence),
        # Copied shots move the answers in these too, which says nothing of positions.
        positions=() if family_of(arms[0]) in ("shots", "both") else position_results(moved, rows),
    )


def _majority_is_right(row: Mapping[str, Answer], arms: Sequence[str]) -> bool:
    chosen = majority([row[arm].chosen for arm in arms])
    if chosen is None:
        return False
    return any(row[arm].correct for arm in arms if row[arm].chosen == chosen)


def _recalls(answers: Sequence[Answer]) -> list[float]:
    """The recall of each position, over the items with the usual number of options.

    The few with another number would make a recall of their own, at a position of which they
    alone tell.
    """
    placed = [answer for answer in answers if answer.gold is not None]
    sizes = Counter(len(answer.shown) for answer in placed)
    usual = max(sizes, key=lambda size: (sizes[size], size), default=0)
    alike = [answer for answer in placed if len(answer.shown) == usual]
    found = position_recalls(
        [answer.gold for answer in alike if answer.gold is not None],
        [answer.position for answer in alike],
        usual,
    )
    return [recall for recall in found if recall is not None]


def _range(values: Sequence[float]) -> float | None:
    return max(values) - min(values) if values else None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


_ALWAYS = 0.95
_QUESTIONS = 3  # of copying, of positions, of accuracies that differ


def diagnose(audit: Audit, alpha: float = 0.01) -> str | None:
    """The bias that the audit shows, as one plain sentence; None where it shows none.

    ``alpha``: how often a sentence may be told of a model that has no bias, over all that is
    looked at. Of copying and preference the stronger one is told; copying where they are equal,
    since whoever copies from shots that stand still answers one position.
    """
    level = alpha / _QUESTIONS
    copying = audit.copying
    by_copying = _deviation(copying.share, copying.expected) if copying else 0.0
    position = _odd_one_out([p for family in audit.families for p in family.positions], alpha=level)
    by_position = _deviation(position[0].share, position[0].expected) if position else 0.0
    if copying and copying.p_value < level and by_copying >= by_position:
        verb = "copies" if copying.share > copying.expected else "avoids"
        return (
            f"{verb} the position of the shots' answers: {_percent(copying.share)} of its answers"
            f" stand there; {_percent(copying.expected)} would without looking at it"
        )
    if position:
        return _of_position(*position)
    return _of_spread(audit, level)


def _odd_one_out(
    positions: Sequence[PositionResult], alpha: float
) -> tuple[PositionResult, float | None, bool] | None:
    """The position that differs, the mean recall of the others, and whether it is the last.

    Of the significant ones that without which the others are most alike: a model that never
    finds the answer at C also answers the others more often than by chance.
    """
    significant = [one for one in positions if one.p_value < alpha]
    if not significant:
        return None
    recalls = {one.position: one.recall for one in positions if one.position != "last"}

    def unlike(one: PositionResult) -> tuple[float, float]:
        others = [r for place, r in recalls.items() if place != one.position and r is not None]
        mean = math.fsum(others) / len(others) if others else 0.0
        spread = math.fsum((r - mean) ** 2 for r in others)
        return spread, -(one.share - one.expected)

    odd = min(significant, key=unlike)
    others = [r for place, r in recalls.items() if place != odd.position and r is not None]
    mean = math.fsum(others) / len(others) if others else None
    return odd, mean, odd.position in ("last", list(recalls)[-1])


def _of_position(one: PositionResult, elsewhere: float | None, last: bool) -> str:
    if one.recall is None or elsewhere is None:
        higher = one.share > one.expected
    else:
        higher = one.recall > elsewhere
    name = "the last option" if one.position == "last" else f"position {one.position}"
    if last and one.position != "last":
        name = f"the last option, {name}"
    if higher and one.share >= _ALWAYS:
        return f"always answers {name}: {_percent(one.share)} of its answers, whatever stands there"
    if higher:
        return (
            f"prefers {name}: {_percent(one.share)} of its answers;"
            f" {_percent(one.expected)} without a preference"
        )
    if one.recall is None or elsewhere is None:
        return (
            f"avoids {name}: {_percent(one.share)} of its answers;"
            f" {_percent(one.expected)} without a preference"
        )
    return (
        f"flips on {name}: finds {_percent(one.recall)} of the answers that stand there,"
        f" {_percent(elsewhere)} of those elsewhere"
    )


def _of_spread(audit: Audit, alpha: float) -> str | None:
    family = audit.main
    if family is None or family.p_value >= alpha:
        return None
    rates = [arm.accuracy for arm in audit.arms if arm.name in ("original", *family.arms)]
    return (
        f"depends on the order of the options: accuracies of {_percent(min(rates))} to"
        f" {_percent(max(rates))} over the arms {family.name}, p = {family.p_value:.2g}"
    )


def _deviation(share: float, expected: float) -> float:
    return abs(share - expected)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
