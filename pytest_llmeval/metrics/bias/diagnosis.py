"""What an audit shows, in a sentence, where it is no play of chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_llmeval.metrics.bias.audit import Audit
from pytest_llmeval.metrics.bias.positions import PositionResult

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
