"""Dependence of answers on the position of an option, and on the positions of the answers of the shots.

How far answers depend on where an option stands: numbers over permutations of the options.

A chosen option is its index in the original order, so that the same content is the same number
in every permutation; None is an answer that could not be read.
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
from pytest_llmeval.core import LABELS
from pytest_llmeval.core.plan import family_of
from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.paired_tests import holm
from pytest_llmeval.metrics.paired_tests import sign_flip
from pytest_llmeval.metrics.samples import Tally


def consistency_rate(choices: Sequence[Sequence[int | None]]) -> float | None:
    """Mean over the items of the share of pairs of permutations with the same choice.

    CR of SCORE (Nalbandyan et al. 2025, arXiv:2503.00137): sum over i < j of 1(y_i = y_j) over
    C(n, 2), by content. 1 is one and the same choice throughout. None agrees with nothing, not
    even with another None. Items with fewer than two permutations have no pair and are left
    out; None without any pair.
    """
    tally = agreement(choices)
    items = sum(tally.values())
    if not items:
        return None
    return math.fsum(agreeing / pairs * m for (pairs, agreeing), m in tally.items()) / items


def agreement(choices: Sequence[Sequence[int | None]]) -> Tally:
    """(pairs of permutations, pairs with the same choice) of an item → how many items have it.

    Without items that have no pair. ValueError for a negative option.
    """
    counts: Counter[tuple[int, int]] = Counter()
    for chosen in choices:
        same = Counter(_validation.count("choice", c) for c in chosen if c is not None)
        pairs = math.comb(len(chosen), 2)
        if pairs:
            counts[pairs, sum(math.comb(m, 2) for m in same.values())] += 1
    return counts


def recall_std(gold: Sequence[int], predicted: Sequence[int | None], options: int) -> float | None:
    """RStd: population standard deviation of the recall of every position, in [0, 0.5].

    recall_k = P(predicted = k | gold = k); Zheng et al. 2024 (arXiv:2309.03882), who give it
    times 100. Positions, not contents: 0 where the answer is found as often wherever it stands.
    A None is no answer at any position. Positions where the gold never stands have no recall
    and are left out; None without any.
    """
    recalls = position_recalls(gold, predicted, options)
    return population_std([recall for recall in recalls if recall is not None])


def position_recalls(
    gold: Sequence[int], predicted: Sequence[int | None], options: int
) -> list[float | None]:
    """The recall of every position; None where the gold never stands there.

    ValueError for positions outside the options and for lists of different lengths.
    """
    options = _validation.count("options", options)
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} golds for {len(predicted)} predictions")
    there, found = [0] * options, [0] * options
    for position, answer in zip(gold, predicted, strict=True):
        position = _position("gold", position, options)
        there[position] += 1
        if answer is not None and _position("predicted", answer, options) == position:
            found[position] += 1
    return [hits / items if items else None for hits, items in zip(found, there, strict=True)]


def population_variance(values: Sequence[float]) -> float | None:
    """Mean squared distance from the mean (ddof 0); None without values."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def population_std(values: Sequence[float]) -> float | None:
    """Square root of ``population_variance``."""
    variance = population_variance(values)
    return None if variance is None else math.sqrt(variance)


def variance_ratio(variance: float, reference: float) -> float | None:
    """How many times the reference's variance over permutations; below 1 is steadier.

    M&D over S&L in Nowak et al. 2026 (arXiv:2602.17445). None where the reference has none.
    """
    if not (variance >= 0 and reference >= 0):
        raise ValueError(f"variances must not be negative, but are {variance!r}, {reference!r}")
    return variance / reference if reference else None


def majority(choices: Sequence[int | None]) -> int | None:
    """The option chosen in most permutations; None where nothing was chosen.

    Of equally frequent ones the one that was chosen first, in the order given: with the original
    order in front a tie is decided by the original. Nothing is drawn.
    """
    votes = Counter(choice for choice in choices if choice is not None)
    # Counter keeps the order of first occurrence, and max takes the first of equals.
    return max(votes, key=votes.__getitem__) if votes else None


def cochran_q(outcomes: Sequence[Sequence[bool]]) -> float:
    """The p value that the permutations differ in accuracy, from item → right in each permutation.

    Cochran 1950, Biometrika 37, 256-266: Q = (m - 1)(m sum C_j^2 - N^2) / (m N - sum R_i^2) over
    m permutations with column sums C, row sums R and total N, against chi-squared with m - 1
    degrees of freedom. 1 where no item's outcome depends on the permutation. ValueError for
    items with different numbers of permutations.
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
    # Here, not above: scipy takes longer to load than pytest.
    from scipy.special import chdtrc

    return float(chdtrc(arms - 1, q))


def _position(name: str, value: int, options: int) -> int:
    position = _validation.count(name, value)
    if position >= options:
        raise ValueError(f"{name} position {position} is outside the {options} options")
    return position


class Answer(NamedTuple):
    """What was chosen for one item in one arm; a plain ``(chosen, correct)`` will do.

    ``chosen``: the option's index in the original order, None where nothing could be read.
    ``position``, ``gold``: where the chosen and the right option stood; ``shown``: which option
    was at each position. Without them there is no result by position.
    """

    chosen: int | None
    correct: bool
    position: int | None = None
    gold: int | None = None
    shown: tuple[int, ...] = ()


def answered(
    shown: Sequence[int], gold: int, chosen: int | None, correct: bool, same: Sequence[int] = ()
) -> Answer:
    """The answer to an item that was shown in an order; indices are of the original order.

    ``same``: ``permutations.same_options``, where some are equal: they are one option, whichever of
    them was chosen. None is no choice.
    """
    contents = tuple(same[index] for index in shown) if same else tuple(shown)
    place = list(shown).index(gold)
    if chosen is None:
        return Answer(None, correct, None, place, contents)
    position = list(shown).index(chosen)
    return Answer(contents[position], correct, position, place, contents)


Table = Mapping[str, Mapping[str, "Answer | tuple[int | None, bool]"]]
"""Item → arm → answer. An arm that an item is not in, or where it had an error, is missing."""

Rows = Sequence[Mapping[str, Answer]]


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
        result = _positions_position(
            label, place, arms, [row for row in rows if _has(row, arms, place)]
        )
        if result is not None:
            found.append(result)
    adjusted = holm([result.p_value for result in found])
    return tuple(replace(one, p_value=p) for one, p in zip(found, adjusted, strict=True))


def _has(row: Mapping[str, Answer], arms: Sequence[str], place: int) -> bool:
    return place < len(row[arms[0]].shown)


def _positions_position(
    label: str, place: int, arms: Sequence[str], rows: Rows
) -> PositionResult | None:
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
