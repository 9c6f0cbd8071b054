"""Results of a permutation audit: the accuracy of every arm, and the agreement of the arms.

Computed from a table item → arm → answer. Comparisons of arms are over the items with an answer in
all of them, and include the original arm in each family.
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
from pytest_llmeval.metrics.bias.positions import ArmAnswer
from pytest_llmeval.metrics.bias.positions import CopyResult
from pytest_llmeval.metrics.bias.positions import PositionResult
from pytest_llmeval.metrics.bias.positions import Rows
from pytest_llmeval.metrics.bias.positions import Table
from pytest_llmeval.metrics.bias.positions import agreement
from pytest_llmeval.metrics.bias.positions import cochran_q
from pytest_llmeval.metrics.bias.positions import consistency_rate
from pytest_llmeval.metrics.bias.positions import copy_result
from pytest_llmeval.metrics.bias.positions import majority_choice
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
    """The result of a single arm, over all items with an answer in it."""

    name: str
    items: int
    correct: int
    unparsed: int
    accuracy: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class FamilyResult:
    """The comparison of the arms of a family, over the ``items`` with an answer in all of them.

    ``mean``, ``variance`` (population), ``range`` (largest minus smallest accuracy), ``worst_case``
    (right in all arms), ``majority`` (accuracy of the option chosen most often, with ties broken by
    the original order) and ``p_value`` (Cochran's Q) include the original arm. ``moved_mean`` and
    ``consistency`` (SCORE) exclude it if the arms move the answer. ``gap`` is ``moved_mean`` minus
    the accuracy of the original arm. ``recall_std`` and ``positions`` pool the arms of
    ``moved_mean``, the former over the items with the usual number of options. ``position_range``
    is the largest difference between positions: ``range`` if an arm corresponds to a position,
    else the range of the recalls in ``recall_std`` (with rotations, every position has every gold
    once, so that accuracies are equal for any preference).
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
    """The result of an audit.

    ``items``: number of items with an answer in some arm. ``recall_std``: that of the original arm.
    """

    items: int
    arms: tuple[ArmResult, ...]
    families: tuple[FamilyResult, ...]
    recall_std: float | None
    copying: CopyResult | None = None

    @property
    def main(self) -> FamilyResult | None:
        """The family that represents the audit: ``both``, else ``test``, else the first."""
        by_name = {family.name: family for family in self.families}
        first = self.families[0] if self.families else None
        return by_name.get("both") or by_name.get("test") or first

    def as_json(self) -> dict[str, Any]:
        """Return the audit as plain JSON values."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def audit_table(table: Table, confidence: float = 0.95, arms: Sequence[str] = ()) -> Audit:
    """Return the audit of a table.

    ``arms``: the order of the arms, which breaks ties of the majority; by default that of their
    first occurrence. Intervals of accuracies are Wilson's; that of the mean has items as clusters;
    those of consistency and gap are over items (bootstrap; Bonett and Price). Raises ValueError
    for a table that is empty or without the original arm.
    """
    rows = [
        {name: ArmAnswer(*answer) for name, answer in answers.items()} for answers in table.values()
    ]
    seen = dict.fromkeys(name for row in rows for name in row)
    names = list(dict.fromkeys((*(arm for arm in arms if arm in seen), *seen)))
    if ORIGINAL not in names:
        raise ValueError("an audit needs answers in the original order")
    families: dict[str, list[str]] = {}
    for name in names:
        if name != ORIGINAL:
            families.setdefault(family_of(name), []).append(name)
    results = [_family(name, members, rows, confidence) for name, members in families.items()]
    original = [row[ORIGINAL] for row in rows if ORIGINAL in row]
    return Audit(
        items=sum(bool(row) for row in rows),
        arms=tuple(_arm(name, rows, confidence) for name in sorted(names, key=_original_first)),
        families=tuple(family for family in results if family is not None),
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
    # The original arm is one of the rotations, but not one of the arms that move the answer.
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
        # In these families copying from shots also moves answers, so positions are not reported.
        positions=() if family_of(arms[0]) in ("shots", "both") else position_results(moved, rows),
    )


def _majority_is_right(row: Mapping[str, ArmAnswer], arms: Sequence[str]) -> bool:
    chosen = majority_choice([row[arm].chosen for arm in arms])
    if chosen is None:
        return False
    return any(row[arm].correct for arm in arms if row[arm].chosen == chosen)


def _recalls(answers: Sequence[ArmAnswer]) -> list[float]:
    """Return the recall of each position, over the items with the usual number of options.

    The few items with more options would otherwise determine the recall of a position alone.
    """
    placed = [answer for answer in answers if answer.gold is not None]
    sizes = Counter(len(answer.options) for answer in placed)
    usual = max(sizes, key=lambda size: (sizes[size], size), default=0)
    usual_answers = [answer for answer in placed if len(answer.options) == usual]
    recalls = position_recalls(
        [answer.gold for answer in usual_answers if answer.gold is not None],
        [answer.position for answer in usual_answers],
        usual,
    )
    return [recall for recall in recalls if recall is not None]


def _range(values: Sequence[float]) -> float | None:
    return max(values) - min(values) if values else None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


_ALWAYS = 0.95
_TESTS = 3  # of copying, of positions, of differences in accuracy


def diagnose(audit: Audit, alpha: float = 0.01) -> str | None:
    """Return a description of the bias that the audit shows, or None.

    ``alpha``: probability of a description for a model without bias, over all tests. Of copying
    and preference for a position, the stronger one is described; copying if they are equal, since
    a model that copies from shots with fixed positions always answers one position.
    """
    level = alpha / _TESTS
    copying = audit.copying
    by_copying = _deviation(copying.share, copying.expected) if copying else 0.0
    position = _odd_one_out([p for family in audit.families for p in family.positions], alpha=level)
    by_position = _deviation(position[0].share, position[0].expected) if position else 0.0
    if copying and copying.p_value < level and by_copying >= by_position:
        verb = "copies" if copying.share > copying.expected else "avoids"
        return (
            f"{verb} the position of the shots' answers: {_percent(copying.share)} of its answers"
            f" are at that position; {_percent(copying.expected)} without copying"
        )
    if position:
        return _describe_position(*position)
    return _describe_spread(audit, level)


def _odd_one_out(
    positions: Sequence[PositionResult], alpha: float
) -> tuple[PositionResult, float | None, bool] | None:
    """Return the position that differs, the mean recall of the others, and whether it is the last.

    Of the significant positions, it is the one without which the others differ least: a model
    that never finds the answer at C also answers the others more often than expected.
    """
    significant = [result for result in positions if result.p_value < alpha]
    if not significant:
        return None
    recalls = {result.position: result.recall for result in positions if result.position != "last"}

    def spread_without(result: PositionResult) -> tuple[float, float]:
        others = [r for place, r in recalls.items() if place != result.position and r is not None]
        mean = math.fsum(others) / len(others) if others else 0.0
        spread = math.fsum((r - mean) ** 2 for r in others)
        return spread, -(result.share - result.expected)

    odd = min(significant, key=spread_without)
    others = [r for place, r in recalls.items() if place != odd.position and r is not None]
    mean = math.fsum(others) / len(others) if others else None
    return odd, mean, odd.position in ("last", list(recalls)[-1])


def _describe_position(result: PositionResult, elsewhere: float | None, last: bool) -> str:
    if result.recall is None or elsewhere is None:
        higher = result.share > result.expected
    else:
        higher = result.recall > elsewhere
    name = "the last option" if result.position == "last" else f"position {result.position}"
    if last and result.position != "last":
        name = f"the last option, {name}"
    share, expected = _percent(result.share), _percent(result.expected)
    if higher and result.share >= _ALWAYS:
        return f"always answers {name}: {share} of its answers, whatever the option"
    if higher:
        return f"prefers {name}: {share} of its answers; {expected} without a preference"
    if result.recall is None or elsewhere is None:
        return f"avoids {name}: {share} of its answers; {expected} without a preference"
    return (
        f"flips on {name}: finds {_percent(result.recall)} of the answers at that position,"
        f" {_percent(elsewhere)} of those elsewhere"
    )


def _describe_spread(audit: Audit, alpha: float) -> str | None:
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
