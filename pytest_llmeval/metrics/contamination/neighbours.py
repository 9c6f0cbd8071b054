"""Whether the published order of items looks random: neighbours in a sorted or grouped file are alike."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence

import numpy as np

from pytest_llmeval.metrics.contamination.published import OrderCheck

Floats = np.typing.NDArray[np.float64]


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
