"""Whether published orders of options look random, from their texts alone.

A rank among random orders has a p value only if the published order is random, too. Options are
often ordered: numbers ascending, short texts first, "all of the above" last. Every check is the standardized distance of a statistic from its exact mean over
random orders; beyond ``LIMIT`` the orders do not count as random.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass

LIMIT = 3.0
"""Largest distance from the mean, in standard deviations, of orders that count as random."""

_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:/\d+)?")
_AFFIXES = re.compile(r"^[\s$€£(]*|[\s.%°)]*$")
_ROMAN = re.compile(r"\b(?:I{1,3}|IV|V|VI{1,3}|IX)\b")
_OTHERS = re.compile(
    r"\b(?:all|none|both|neither|either|any|some|two|three|one|each|most)\b.{0,24}"
    r"\b(?:above|these|options|choices|answers|statements|following|others|them)\b"
    r"|\bboth\b.+\band\b|\bneither\b.+\bnor\b|\b[A-J] (?:and|or|nor) [A-J]\b"
    r"|\bnot enough information\b|\bcannot be determined\b",
    re.IGNORECASE,
)
_OF_THE_ABOVE = re.compile(
    r"\b(?:all|none|any|both|neither|some)\b.{0,12}\b(?:above|these|the options|the answers)\b",
    re.IGNORECASE,
)
_ALTERNATIVES = frozenset({"true", "false", "yes", "no", "correct", "incorrect", "wrong", "right"})


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """A statistic of published orders: its distance from the mean of random orders."""

    name: str
    #: In standard deviations; 0 if no item has the property.
    z: float
    #: Items that have the property.
    items: int

    @property
    def is_random(self) -> bool:
        """Whether the orders count as random in this respect."""
        return abs(self.z) <= LIMIT

    @property
    def text(self) -> str:
        """Name and distance: ``numbers ascend, z = 36.5``."""
        return f"{self.name}, z = {self.z:.1f}"


def option_checks(items: Sequence[Sequence[str]]) -> tuple[OrderCheck, ...]:
    """Return the checks of the published orders of options; ``items``: the options of every item.

    Kendall's S over the items of numbers, lengths and texts by alphabet, and the share of "all (or
    none) of the above" at the end.
    """
    return (
        _kendall("numbers ascend", items, numbers),
        _kendall("options are ordered by length", items, lambda own: list(map(len, own))),
        _kendall("options are in alphabetical order", items, _alphabet),
        _last(items),
    )


def numbers(options: Sequence[str]) -> list[float] | None:
    """Return the options as numbers; None unless each begins with one and has the same unit."""
    values, units = [], set()
    for option in options:
        text = _AFFIXES.sub("", option)
        match = _NUMBER.match(text)
        if match is None or not any(map(str.isdigit, match[0])):
            return None
        value = match[0].replace(",", "").replace("−", "-")
        top, _, bottom = value.partition("/")
        if bottom and not float(bottom):
            return None
        values.append(float(top or 1) / float(bottom or 1))
        units.add(text[match.end() :].strip().rstrip("s").casefold())
    return values if len(units) == 1 else None


def natural_order(options: Sequence[str]) -> str | None:
    """Return why options have an order by their content, which most writers choose; else None.

    Items of such options are left out of a comparison with a reference: a model may prefer that
    order without having seen the item.
    """
    folded = [option.strip().casefold() for option in options]
    if len(set(folded)) < len(folded):
        return "equal options"
    if any(map(_OTHERS.search, options)):
        return "an option refers to others"
    if sum(re.split(r"\W+", text)[0] in _ALTERNATIVES for text in folded) >= 2:
        return "true or false"
    if sum(bool(_ROMAN.search(option)) for option in options) >= 2:
        return "Roman numerals"
    values = numbers(options)
    if values is not None and (values == sorted(values) or values == sorted(values, reverse=True)):
        return "sorted numbers"
    return None


def _alphabet(options: Sequence[str]) -> list[int]:
    """Return the place of every option in alphabetical order, equal for equal texts."""
    folded = [option.strip().casefold() for option in options]
    ordered = sorted(set(folded))
    return [ordered.index(text) for text in folded]


def _kendall(
    name: str,
    items: Iterable[Sequence[str]],
    values: Callable[[Sequence[str]], Sequence[float] | None],
) -> OrderCheck:
    """Sum Kendall's S over the items; its variance without ties is K (K - 1) (2 K + 5) / 18.

    Kendall 1938, Biometrika 30, 81-93. Equal values of an item reduce the variance by the same term
    of their number.
    """
    total, variance, count = 0, 0.0, 0
    for options in items:
        own = values(options)
        if own is None or len(set(own)) < 2:
            continue
        count += 1
        total += sum(
            (own[i] < own[j]) - (own[i] > own[j])
            for i in range(len(own))
            for j in range(i + 1, len(own))
        )
        sizes = (len(own), *Counter(own).values())
        terms = [size * (size - 1) * (2 * size + 5) / 18 for size in sizes]
        variance += terms[0] - sum(terms[1:])
    return OrderCheck(name, total / math.sqrt(variance) if variance else 0.0, count)


def _last(items: Iterable[Sequence[str]]) -> OrderCheck:
    """Count the items whose only option of the kind "all of the above" is the last one."""
    last, expected, variance, count = 0, 0.0, 0.0, 0
    for options in items:
        matches = [index for index, text in enumerate(options) if _OF_THE_ABOVE.search(text)]
        if len(matches) != 1:
            continue
        count += 1
        last += matches[0] == len(options) - 1
        chance = 1 / len(options)
        expected, variance = expected + chance, variance + chance * (1 - chance)
    z = (last - expected) / math.sqrt(variance) if variance else 0.0
    return OrderCheck('"all (or none) of the above" is last', z, count)
