"""Removal of position and label bias from the probabilities of option labels.

Pure functions over arrays of natural-log probabilities, one per label. Probabilities are first
renormalised over the labels and limited to 1e-10 from below, so that a label which an endpoint did
not return (-inf) does not make an item unusable (Zheng et al. do both). All raise ValueError for
NaN, +inf, only -inf, and other shapes.

They are never applied implicitly; a debiased score has a protocol fingerprint of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.core.seeded_random import SeededRandom

if TYPE_CHECKING:
    import numpy as np

    Array = np.typing.NDArray[np.float64]

FLOOR = 1e-10

METHODS = ("cyclic", "pride", "contextual", "batch")
"""The methods of ``--llm-debias``."""

AVERAGING = ("cyclic", "pride")
"""The methods that need every option at every position equally often."""


def averaged_probabilities(
    logprobs: Sequence[Sequence[float]], orders: Sequence[Sequence[int]]
) -> Array:
    """Return every option's probability, averaged over orders: P(o_j) = mean_I P(d at o_j | I).

    ``logprobs``: one row per order, one column per position; ``orders``: position → original
    index. Returns one probability per option, in the original order. Zheng et al. 2024
    (arXiv:2309.03882), eq. 1: over the K rotations ("cyclic") or all K! permutations ("full"). A
    preferred position or label contributes to each option equally.
    """
    import numpy as np

    rows, where = _probabilities(logprobs), _orders(orders, len(logprobs), len(logprobs[0]))
    by_option = np.empty_like(rows)
    np.put_along_axis(by_option, where, rows, axis=1)
    return np.asarray(by_option.mean(axis=0), dtype=np.float64)


def prior(logprobs: Sequence[Sequence[float]], orders: Sequence[Sequence[int]]) -> Array:
    """Return an item's prior over positions: softmax of the mean over orders of log P(d_i | I).

    PriDe, Zheng et al. 2024, eq. 7: if every option is at every position equally often, the
    options' own shares are equal at all positions and cancel. Arguments as for
    ``averaged_probabilities``. Raises ValueError for other orders.
    """
    import numpy as np

    rows, where = _probabilities(logprobs), _orders(orders, len(logprobs), len(logprobs[0]))
    if not is_balanced(where.tolist()):
        raise ValueError("a prior needs every option at every position equally often")
    return _softmax(np.log(rows).mean(axis=0))


def is_balanced(orders: Sequence[Sequence[int]]) -> bool:
    """Return whether every option is at every position equally often, as in all rotations."""
    size = len(orders[0]) if orders else 0
    times = Counter(pair for order in orders for pair in enumerate(order))
    return len(times) == size * size and len(set(times.values())) <= 1


def without_prior(logprobs: Sequence[float], prior: Sequence[float]) -> Array:
    """Return an item's probabilities without the prior: proportional to P(d_i) / prior_i.

    PriDe, Zheng et al. 2024, eq. 8; ``prior`` is the mean of the function ``prior`` over the items
    on which it is estimated; these items use ``averaged_probabilities`` instead.
    """
    import numpy as np

    (row,) = _probabilities([logprobs])
    values = np.asarray(prior, dtype=np.float64)
    if values.shape != row.shape or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"a prior of {len(row)} probabilities was expected, not {prior!r}")
    return _softmax(np.log(row) - np.log(np.maximum(values, FLOOR)))


def mean_prior(priors: Sequence[Sequence[float]]) -> Array:
    """Return the mean of the items' priors; raise ValueError without items."""
    import numpy as np

    if not len(priors):
        raise ValueError("no item to estimate a prior on")
    return np.asarray(np.mean(np.asarray(priors, dtype=np.float64), axis=0), dtype=np.float64)


def estimation_items(ids: Sequence[str], share: float = 0.05, seed: int = 0) -> frozenset[str]:
    """Return the items on which a prior is estimated: a random ``share``, at least one item.

    A pure function of the seed and the set of ids, independent of their order. Zheng et al. sample
    5 % of the test items. Raises ValueError for a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], but is {share!r}")
    unique_ids = sorted(set(ids))
    size = min(len(unique_ids), max(1, int(share * len(unique_ids))))
    return frozenset(SeededRandom("pride", seed).sample(unique_ids, size))


def contextually_calibrated(
    logprobs: Sequence[float], content_free: Sequence[Sequence[float]]
) -> Array:
    """Return probabilities divided by those of the content-free prompts: W = diag(p_cf)^-1.

    ``content_free``: one row per content-free input. Zhao et al. 2021 (arXiv:2102.09690), sec. 5:
    p_cf is the mean over the content-free inputs ("N/A", "[MASK]" and the empty text); q = W p
    with b = 0, here normalised to sum to 1.
    """
    import numpy as np

    (row,) = _probabilities([logprobs])
    free = _probabilities(content_free)
    if free.shape[1] != len(row):
        raise ValueError(f"{free.shape[1]} content-free probabilities for {len(row)} labels")
    scaled = row / free.mean(axis=0)
    return np.asarray(scaled / scaled.sum(), dtype=np.float64)


def batch_calibrated(logprobs: Sequence[Sequence[float]]) -> Array:
    """Return the items' probabilities divided by their mean over all items, one row per item.

    Zhou et al. 2023 (arXiv:2309.17249): argmax of log p(y|x) - log mean_x p(y|x). Golds that are
    not uniform over the positions are treated as bias, so balance them first.
    """
    import numpy as np

    rows = _probabilities(logprobs)
    scaled = rows / rows.mean(axis=0)
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True), dtype=np.float64)


def _probabilities(logprobs: Sequence[Sequence[float]]) -> Array:
    import numpy as np

    if not len(logprobs) or len({len(row) for row in logprobs}) != 1 or not len(logprobs[0]):
        raise ValueError("the rows of log-probabilities have different lengths, or there are none")
    rows = np.asarray(logprobs, dtype=np.float64)
    highest = rows.max(axis=1, keepdims=True)
    if not np.isfinite(highest).all():  # NaN, +inf, or only -inf
        raise ValueError("log-probabilities that cannot be compared")
    rows = np.exp(rows - highest)
    rows = np.maximum(rows / rows.sum(axis=1, keepdims=True), FLOOR)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), dtype=np.float64)


def _orders(orders: Sequence[Sequence[int]], rows: int, size: int) -> np.typing.NDArray[np.intp]:
    import numpy as np

    if len(orders) != rows or any(sorted(order) != list(range(size)) for order in orders):
        raise ValueError(f"{rows} orders of {size} options were expected")
    return np.asarray(orders, dtype=np.intp)


def _softmax(values: Array) -> Array:
    import numpy as np

    powers = np.exp(values - values.max())
    return np.asarray(powers / powers.sum(), dtype=np.float64)
