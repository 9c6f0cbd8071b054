"""Whether answers go by where an option stands, or by where the answers of the shots stand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace

from pytest_llmeval.bias.arms import position_of
from pytest_llmeval.core import LABELS
from pytest_llmeval.core.plan import family_of
from pytest_llmeval.metrics.bias.rates import Answer
from pytest_llmeval.metrics.bias.rates import Rows
from pytest_llmeval.metrics.paired_tests import holm
from pytest_llmeval.metrics.paired_tests import sign_flip

_EXACT_UP_TO = 5_000  # the sum of all sizes; the convolution takes about its square


@dataclass(frozen=True, slots=True)
class PositionResult:
    """A position: the share of answers there, and how often the answer is found that stands there.

    ``expected`` is the share without any preference. ``p_value`` that there is one:
    sign-flip test over the items, Holm-adjusted over the positions. ``last`` is the last option
    of every item, where items have different numbers.
    """

    position: str
    share: float
    expected: float
    recall: float | None
    p_value: float


@dataclass(frozen=True, slots=True)
class CopyResult:
    """How often the chosen option stands where the answers of the shots were moved to.

    Over the arms that move the shots alone. ``p_value`` as in ``PositionResult``.
    """

    share: float
    expected: float
    p_value: float


def position_results(arms: Sequence[str], rows: Rows) -> tuple[PositionResult, ...]:
    """What the arms tell of every position, and of the last where that is not always the same.

    Rotations and swaps: of the items for which the arms show every position equally often.
    """
    if family_of(arms[-1]) in ("test", "cyclic"):
        rows = [row for row in rows if len(row[arms[0]].shown) == len(arms)]
    if not rows or any(row[arm].gold is None for row in rows for arm in arms):
        return ()
    sizes = {len(row[arm].shown) for row in rows for arm in arms}
    places: list[tuple[str, int]] = [(LABELS[k], k) for k in range(max(sizes))]
    if len(sizes) > 1:
        places.append(("last", -1))
    found = []
    for label, place in places:
        result = _position(label, place, arms, [row for row in rows if _has(row, arms, place)])
        if result is not None:
            found.append(result)
    adjusted = holm([result.p_value for result in found])
    return tuple(replace(one, p_value=p) for one, p in zip(found, adjusted, strict=True))


def _has(row: Mapping[str, Answer], arms: Sequence[str], place: int) -> bool:
    return place < len(row[arms[0]].shown)


def _position(label: str, place: int, arms: Sequence[str], rows: Rows) -> PositionResult | None:
    answers = [row[arm] for row in rows for arm in arms]
    read = [answer for answer in answers if answer.position is not None]
    there = [answer for answer in answers if answer.gold == _at(answer, place)]
    if not read:
        return None
    return PositionResult(
        label,
        share=sum(answer.position == _at(answer, place) for answer in read) / len(read),
        expected=math.fsum(1 / len(answer.shown) for answer in read) / len(read),
        recall=sum(answer.correct for answer in there) / len(there) if there else None,
        p_value=_chance(Counter(_excess(row, arms, place) for row in rows)),
    )


def _excess(row: Mapping[str, Answer], arms: Sequence[str], place: int) -> int:
    """How much oftener the position is chosen than the item's choices of content account for.

    Those are kept, and dealt out to the arms anew: an option that is chosen n times of m and
    stands at the position in k of the arms is expected there n k / m times. The difference times
    m, a whole number; 0 for whoever chooses the same content in every order.
    """
    answers = [row[arm] for arm in arms if row[arm].position is not None]
    chosen = Counter(answer.chosen for answer in answers)
    there = Counter(answer.shown[_at(answer, place)] for answer in answers)
    expected = sum(times * there[option] for option, times in chosen.items() if option is not None)
    return len(answers) * sum(a.position == _at(a, place) for a in answers) - expected


def _chance(excesses: Mapping[int, int]) -> float:
    """Two-sided p value of the sum: sign-flip test, exact where that takes no time.

    Beyond, its normal limit: the sum of d with random signs has the variance sum d^2.
    """
    whole = sum(abs(d) * items for d, items in excesses.items())
    if whole <= _EXACT_UP_TO:
        return sign_flip(excesses)
    total = sum(d * items for d, items in excesses.items())
    squares = sum(d * d * items for d, items in excesses.items())
    return math.erfc(abs(total) / math.sqrt(2 * squares))


def _at(answer: Answer, place: int) -> int:
    return place if place >= 0 else len(answer.shown) + place


def copy_result(arms: Sequence[str], every: Rows) -> CopyResult | None:
    """Without copying, an item's choice stands still and is where the shots' answers are once."""
    rows = [row for row in every if all(arm in row for arm in arms)]
    rows = [row for row in rows if arms and len(row[arms[0]].shown) == len(arms)]
    excesses: Counter[int] = Counter()
    copied = read = 0
    for row in rows:
        answers = [(row[arm].position, position_of(arm)) for arm in arms]
        answers = [(position, shots) for position, shots in answers if position is not None]
        matches = sum(position == shots for position, shots in answers)
        excesses[len(arms) * matches - len(answers)] += 1
        copied, read = copied + matches, read + len(answers)
    if not read:
        return None
    return CopyResult(copied / read, 1 / len(arms), _chance(excesses))
