"""Whether published orders of options and of items look random, from their texts alone.

A rank among random orders has a p value only if the published order is random, too. Options are
often ordered: numbers ascending, short texts first, "all of the above" last. Items of a file may be
sorted or grouped. Every check is the standardized distance of a statistic from its exact mean over
random orders; beyond ``LIMIT`` the orders do not count as random.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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

Floats = np.typing.NDArray[np.float64]


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


def item_checks(texts: Sequence[str]) -> tuple[OrderCheck, ...]:
    """Return the checks of the published order of items; ``texts``: one per item, in that order.

    In a sorted or grouped file neighbours are more alike than random pairs: in their words (cosine
    of hashed bags of words), or in length (difference of logarithms). Only that side counts.
    """
    if len(texts) < 4:
        return ()
    bags = np.stack([_bag(text) for text in texts])
    lengths = np.log1p(np.array([float(len(text)) for text in texts]))
    return (
        OrderCheck("neighbours have similar words", max(0.0, _bag_z(bags)), len(texts)),
        OrderCheck("neighbours have similar lengths", max(0.0, _length_z(lengths)), len(texts)),
    )


_WIDTH = 256


def _bag(text: str) -> Floats:
    """Return the text's words in hashed places, with signs, as a vector of length 1."""
    bag = np.zeros(_WIDTH)
    for word in set(re.findall(r"\w+", text.casefold())):
        digest = zlib.crc32(word.encode("utf-8", "replace"))
        bag[digest % _WIDTH] += 1.0 if digest >> 31 else -1.0
    size = float(np.linalg.norm(bag))
    return bag / size if size else bag


def _bag_z(bags: Floats) -> float:
    squares = np.einsum("ij,ij->i", bags, bags)
    products = bags.T @ bags
    row_sums = bags @ bags.sum(axis=0) - squares
    row_squares = np.einsum("ij,jk,ik->i", bags, products, bags, optimize=True) - squares**2
    observed = float(np.einsum("ij,ij->", bags[:-1], bags[1:]))
    return neighbour_z(observed, row_sums, row_squares)


def _length_z(lengths: Floats) -> float:
    count = len(lengths)
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    below = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])
    places = np.arange(count)
    sums = (
        ordered * places
        - below
        + (ordered.sum() - below - ordered)
        - ordered * (count - 1 - places)
    )
    row_sums = np.empty(count)
    row_sums[order] = sums
    row_squares = count * lengths**2 - 2 * lengths * lengths.sum() + (lengths**2).sum()
    observed = float(np.abs(np.diff(lengths)).sum())
    # Small differences are similarity.
    return neighbour_z(-observed, -row_sums, row_squares)


def neighbour_z(observed: float, row_sums: Floats, row_squares: Floats) -> float:
    """Return the standardized sum of a symmetric similarity over the neighbours of a random order.

    ``row_sums`` and ``row_squares``: for every item, the sum of its similarities to all others, and
    of their squares. For b over distinct items and the n - 1 pairs of neighbours, of which 2 (n - 2)
    ordered pairs share an item, mean and variance follow from the means of b, b^2, b_ij b_ik and
    b_ij b_kl (Mantel 1967, Cancer Res. 27, 209-220). 0 if all similarities are equal.
    """
    n = len(row_sums)
    total, squares = float(row_sums.sum()), float(row_squares.sum())
    row_total = float((row_sums**2).sum())
    pairs = n * (n - 1)
    edges = n - 1
    mean, mean_square = total / pairs, squares / pairs
    shared = (row_total - squares) / (pairs * (n - 2))
    apart = (total**2 - 4 * row_total + 2 * squares) / (pairs * (n - 2) * (n - 3))
    touching = 2 * (n - 2)
    variance = (
        edges * mean_square
        + touching * shared
        + (edges**2 - edges - touching) * apart
        - (edges * mean) ** 2
    )
    if variance <= 1e-12 * max(1.0, edges * mean_square):
        return 0.0
    return (observed - edges * mean) / math.sqrt(variance)
