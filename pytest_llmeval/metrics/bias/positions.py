"""Dependence of answers on the positions of options, and on those of the answers of shots.

The metrics are over permutations of the options. A chosen option is its index in the original
order, so that the same content has the same number in every permutation; None is an unparsed
answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import NamedTuple

from pytest_llmeval.bias.arms import position_of
from pytest_llmeval.core import option_label
from pytest_llmeval.core.plan import family_of
from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.paired_tests import holm
from pytest_llmeval.metrics.paired_tests import sign_flip
from pytest_llmeval.metrics.samples import Tally


def consistency_rate(choices: Sequence[Sequence[int | None]]) -> float | None:
    """Return the mean over items of the share of pairs of permutations with the same choice.

    CR of SCORE (Nalbandyan et al. 2025, arXiv:2503.00137): sum over i < j of 1(y_i = y_j) over
    C(n, 2), by content. 1 if the choice is always the same. A None agrees with nothing, not even
    with another None. Items with fewer than two permutations have no pair and are left out; None
    without any pair.
    """
    tally = agreement(choices)
    items = sum(tally.values())
    if not items:
        return None
    return math.fsum(agreeing / pairs * m for (pairs, agreeing), m in tally.items()) / items


def agreement(choices: Sequence[Sequence[int | None]]) -> Tally:
    """Return (pairs of permutations, pairs with the same choice) → number of such items.

    Items without a pair are left out. Raises ValueError for a negative option.
    """
    counts: Counter[tuple[int, int]] = Counter()
    for chosen in choices:
        same = Counter(_validation.count("choice", c) for c in chosen if c is not None)
        pairs = math.comb(len(chosen), 2)
        if pairs:
            counts[pairs, sum(math.comb(m, 2) for m in same.values())] += 1
    return counts


def recall_std(gold: Sequence[int], predicted: Sequence[int | None], options: int) -> float | None:
    """Return RStd: the population standard deviation of the positions' recalls, in [0, 0.5].

    recall_k = P(predicted = k | gold = k); Zheng et al. 2024 (arXiv:2309.03882), who report it
    times 100. ``gold`` and ``predicted`` are positions in the order shown, not original indices. 0
    if the answer is found equally often at every position. A None counts as an answer at no
    position. Positions without a gold have no recall and are left out; None without any.
    """
    recalls = position_recalls(gold, predicted, options)
    return population_std([recall for recall in recalls if recall is not None])


def position_recalls(
    gold: Sequence[int], predicted: Sequence[int | None], options: int
) -> list[float | None]:
    """Return the recall of every position; None for a position without a gold.

    Raises ValueError for positions outside the options and for lists of different lengths.
    """
    options = _validation.count("options", options)
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} golds for {len(predicted)} predictions")
    golds, hits = [0] * options, [0] * options
    for position, answer in zip(gold, predicted, strict=True):
        position = _position("gold", position, options)
        golds[position] += 1
        if answer is not None and _position("predicted", answer, options) == position:
            hits[position] += 1
    return [hit / items if items else None for hit, items in zip(hits, golds, strict=True)]


def population_variance(values: Sequence[float]) -> float | None:
    """Return the mean squared distance from the mean (ddof 0); None without values."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def population_std(values: Sequence[float]) -> float | None:
    """Return the square root of ``population_variance``."""
    variance = population_variance(values)
    return None if variance is None else math.sqrt(variance)


def variance_ratio(variance: float, reference: float) -> float | None:
    """Return the variance over permutations as a multiple of a reference's variance.

    Below 1, the accuracy varies less than that of the reference. M&D over S&L in Nowak et al. 2026
    (arXiv:2602.17445). None if the reference has no variance.
    """
    if not (variance >= 0 and reference >= 0):
        raise ValueError(f"variances must not be negative, but are {variance!r}, {reference!r}")
    return variance / reference if reference else None


def majority_choice(choices: Sequence[int | None]) -> int | None:
    """Return the option chosen in most permutations; None without any choice.

    Of equally frequent options, it is the first in ``choices``: with the original order in front,
    it breaks ties. No random numbers are used.
    """
    votes = Counter(choice for choice in choices if choice is not None)
    # Counter keeps the order of first occurrence, and max returns the first of equals.
    return max(votes, key=votes.__getitem__) if votes else None


def cochran_q(outcomes: Sequence[Sequence[bool]]) -> float:
    """Return the p value of Cochran's Q test of equal accuracies in all permutations.

    ``outcomes``: one row per item, with the correctness in each permutation. Cochran 1950,
    Biometrika 37, 256-266: Q = (m - 1)(m sum C_j^2 - N^2) / (m N - sum R_i^2) over m permutations
    with column sums C, row sums R and total N, against chi-squared with m - 1 degrees of freedom.
    1 if no item's outcome depends on the permutation. Raises ValueError for items with different
    numbers of permutations.
    """
    sizes = {len(row) for row in outcomes}
    if len(sizes) > 1:
        raise ValueError(f"items with {sorted(sizes)} permutations cannot be compared")
    arms = sizes.pop() if sizes else 0
    columns = [sum(row[j] for row in outcomes) for j in range(arms)]
    rows = [sum(row) for row in outcomes]
    total = sum(rows)
    spread = arms * total - sum(row * row for row in rows)
    if not spread:
        return 1.0
    q = (arms - 1) * (arms * sum(column * column for column in columns) - total * total) / spread
    # Imported here because scipy takes longer to import than pytest.
    from scipy.special import chdtrc

    return float(chdtrc(arms - 1, q))


def _position(name: str, value: int, options: int) -> int:
    position = _validation.count(name, value)
    if position >= options:
        raise ValueError(f"{name} position {position} is outside the {options} options")
    return position


class ArmAnswer(NamedTuple):
    """The answer to an item in an arm; a plain ``(chosen, correct)`` is accepted as well.

    ``chosen``: index of the option in the original order, None if unparsed. ``position`` and
    ``gold``: positions of the chosen and of the right option; ``options``: original index of the
    option at each position. Without these three there is no result by position.
    """

    chosen: int | None
    correct: bool
    position: int | None = None
    gold: int | None = None
    options: tuple[int, ...] = ()


def arm_answer(
    order: Sequence[int], gold: int, chosen: int | None, correct: bool, same: Sequence[int] = ()
) -> ArmAnswer:
    """Return the answer to an item with its options in ``order`` (original index by position).

    ``gold`` and ``chosen`` are original indices; None is an unparsed answer. ``same``:
    ``bias.arms.same_options`` if some options are equal, which are then treated as one option.
    """
    contents = tuple(same[index] for index in order) if same else tuple(order)
    place = list(order).index(gold)
    if chosen is None:
        return ArmAnswer(None, correct, None, place, contents)
    position = list(order).index(chosen)
    return ArmAnswer(contents[position], correct, position, place, contents)


Table = Mapping[str, Mapping[str, "ArmAnswer | tuple[int | None, bool]"]]
"""Item → arm → answer; arms without the item, or with an error, are missing."""

Rows = Sequence[Mapping[str, ArmAnswer]]


_EXACT_UP_TO = 5_000  # sum of all sizes; the time of the convolution grows with its square


@dataclass(frozen=True, slots=True)
class PositionResult:
    """The share of answers at a position, and the recall of right answers at it.

    ``expected`` is the share without a preference. ``p_value``: that of a sign-flip test of a
    preference, over the items, Holm-adjusted over the positions. The position ``last`` is the last
    option of every item, if items differ in their number of options.
    """

    position: str
    share: float
    expected: float
    recall: float | None
    p_value: float


@dataclass(frozen=True, slots=True)
class CopyResult:
    """The share of chosen options at the position to which the answers of the shots were moved.

    Over the arms that move only the shots. ``p_value`` as in ``PositionResult``.
    """

    share: float
    expected: float
    p_value: float


def position_results(arms: Sequence[str], rows: Rows) -> tuple[PositionResult, ...]:
    """Return the results of all positions, and of the last one if its index varies.

    For rotations and swaps, only items are used for which the arms cover every position equally
    often.
    """
    if family_of(arms[-1]) in ("test", "cyclic"):
        rows = [row for row in rows if len(row[arms[0]].options) == len(arms)]
    if not rows or any(row[arm].gold is None for row in rows for arm in arms):
        return ()
    sizes = {len(row[arm].options) for row in rows for arm in arms}
    places: list[tuple[str, int]] = [(option_label(k), k) for k in range(max(sizes))]
    if len(sizes) > 1:
        places.append(("last", -1))
    results = []
    for label, place in places:
        result = _position_result(
            label, place, arms, [row for row in rows if _has(row, arms, place)]
        )
        if result is not None:
            results.append(result)
    adjusted = holm([result.p_value for result in results])
    return tuple(replace(result, p_value=p) for result, p in zip(results, adjusted, strict=True))


def _has(row: Mapping[str, ArmAnswer], arms: Sequence[str], place: int) -> bool:
    return place < len(row[arms[0]].options)


def _position_result(
    label: str, place: int, arms: Sequence[str], rows: Rows
) -> PositionResult | None:
    answers = [row[arm] for row in rows for arm in arms]
    parsed = [answer for answer in answers if answer.position is not None]
    with_gold = [answer for answer in answers if answer.gold == _at(answer, place)]
    if not parsed:
        return None
    return PositionResult(
        label,
        share=sum(answer.position == _at(answer, place) for answer in parsed) / len(parsed),
        expected=math.fsum(1 / len(answer.options) for answer in parsed) / len(parsed),
        recall=sum(answer.correct for answer in with_gold) / len(with_gold) if with_gold else None,
        p_value=_chance(Counter(_excess(row, arms, place) for row in rows)),
    )


def _excess(row: Mapping[str, ArmAnswer], arms: Sequence[str], place: int) -> int:
    """Return the excess of choices of the position over those that its contents explain.

    With the item's choices distributed at random over the arms, an option that is chosen n times
    out of m and is at the position in k of the arms is expected there n k / m times. The excess is
    multiplied by m, to be a whole number; it is 0 if the same content is chosen in every order.
    """
    answers = [row[arm] for arm in arms if row[arm].position is not None]
    chosen = Counter(answer.chosen for answer in answers)
    present = Counter(answer.options[_at(answer, place)] for answer in answers)
    expected = sum(
        times * present[option] for option, times in chosen.items() if option is not None
    )
    return len(answers) * sum(a.position == _at(a, place) for a in answers) - expected


def _chance(excesses: Mapping[int, int]) -> float:
    """Return the two-sided p value of the sum of the excesses by a sign-flip test.

    Exact up to ``_EXACT_UP_TO``; above it the normal approximation, since the sum of d with random
    signs has the variance sum d^2.
    """
    whole = sum(abs(d) * items for d, items in excesses.items())
    if whole <= _EXACT_UP_TO:
        return sign_flip(excesses)
    total = sum(d * items for d, items in excesses.items())
    squares = sum(d * d * items for d, items in excesses.items())
    return math.erfc(abs(total) / math.sqrt(2 * squares))


def _at(answer: ArmAnswer, place: int) -> int:
    return place if place >= 0 else len(answer.options) + place


def copy_result(arms: Sequence[str], every: Rows) -> CopyResult | None:
    """Return the result of copying from shots; None without parsed answers in these arms.

    Without copying, the choice for an item does not move, and is at the position of the shots'
    answers in exactly one of the arms.
    """
    rows = [row for row in every if all(arm in row for arm in arms)]
    rows = [row for row in rows if arms and len(row[arms[0]].options) == len(arms)]
    excesses: Counter[int] = Counter()
    copied = parsed = 0
    for row in rows:
        answers = [(row[arm].position, position_of(arm)) for arm in arms]
        answers = [(position, shots) for position, shots in answers if position is not None]
        matches = sum(position == shots for position, shots in answers)
        excesses[len(arms) * matches - len(answers)] += 1
        copied, parsed = copied + matches, parsed + len(answers)
    if not parsed:
        return None
    return CopyResult(copied / parsed, 1 / len(arms), _chance(excesses))
