"""Taking position and label bias out of the probabilities of option labels.

Pure functions over arrays of natural-log probabilities, one a label. They are renormalised over the
labels first, and kept at 1e-10 or more, so that a label which an endpoint did not tell (-inf) costs
no item (Zheng et al. do both). ValueError for NaN, +inf, nothing but -inf, and other shapes.

None of these is ever applied unasked: a score with one of them is another protocol's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.core.seeded_random import Draws

if TYPE_CHECKING:
    import numpy as np

    Array = np.typing.NDArray[np.float64]

FLOOR = 1e-10

METHODS = ("cyclic", "pride", "contextual", "batch")
"""What ``--llm-debias`` knows."""

AVERAGING = ("cyclic", "pride")
"""Those of them that need every option at every position as often."""


def averaged(logprobs: Sequence[Sequence[float]], orders: Sequence[Sequence[int]]) -> Array:
    """Probability of every option, averaged over orders: P(o_j) = mean over I of P(d at o_j | I).

    ``logprobs``: a row an order, a column a position; ``orders``: position → original index.
    Zheng et al. 2024 (arXiv:2309.03882), eq. 1: over the K rotations ("cyclic") or all K!
    ("full"). A position or label that is preferred gives to each option alike.
    """
    import numpy as np

    rows, where = _probabilities(logprobs), _orders(orders, len(logprobs), len(logprobs[0]))
    by_option = np.empty_like(rows)
    np.put_along_axis(by_option, where, rows, axis=1)
    return np.asarray(by_option.mean(axis=0), dtype=np.float64)


def prior(logprobs: Sequence[Sequence[float]], orders: Sequence[Sequence[int]]) -> Array:
    """One item's prior over positions: softmax of the mean over orders of log P(d_i | I).

    PriDe, Zheng et al. 2024, eq. 7: where every option stands at every position as
    often, its own share is the same at all and cancels. ValueError for orders that do not do
    that.
    """
    import numpy as np

    rows, where = _probabilities(logprobs), _orders(orders, len(logprobs), len(logprobs[0]))
    if not balanced(where.tolist()):
        raise ValueError("a prior needs every option at every position equally often")
    return _softmax(np.log(rows).mean(axis=0))


def balanced(orders: Sequence[Sequence[int]]) -> bool:
    """Whether every option stands at every position as often: all rotations, all permutations."""
    size = len(orders[0]) if orders else 0
    times = Counter(pair for order in orders for pair in enumerate(order))
    return len(times) == size * size and len(set(times.values())) <= 1


def without_prior(logprobs: Sequence[float], prior: Sequence[float]) -> Array:
    """What is left of an item's probabilities: proportional to P(d_i) / prior_i.

    PriDe, Zheng et al. 2024, eq. 8; ``prior`` is the mean of ``prior`` over the items that it was
    estimated on, which take their averaged answer instead.
    """
    import numpy as np

    (row,) = _probabilities([logprobs])
    known = np.asarray(prior, dtype=np.float64)
    if known.shape != row.shape or not np.isfinite(known).all() or (known < 0).any():
        raise ValueError(f"a prior of {len(row)} probabilities was expected, not {prior!r}")
    return _softmax(np.log(row) - np.log(np.maximum(known, FLOOR)))


def mean_prior(priors: Sequence[Sequence[float]]) -> Array:
    """The mean over items; ValueError without any."""
    import numpy as np

    if not len(priors):
        raise ValueError("no item to estimate a prior on")
    return np.asarray(np.mean(np.asarray(priors, dtype=np.float64), axis=0), dtype=np.float64)


def estimation_items(ids: Sequence[str], share: float = 0.05, seed: int = 0) -> frozenset[str]:
    """The items that a prior is estimated on: ``share`` of them, at least one, drawn from the seed.

    A pure function of the set of ids: their order does not enter. Zheng et al. take 5 % of the
    test items at random. ValueError for a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], but is {share!r}")
    known = sorted(set(ids))
    size = min(len(known), max(1, int(share * len(known))))
    return frozenset(Draws("pride", seed).some_of(known, size))


def contextually_calibrated(
    logprobs: Sequence[float], content_free: Sequence[Sequence[float]]
) -> Array:
    """Probabilities over those of the same prompt without a question: W = diag(p_cf)^-1.

    Zhao et al. 2021 (arXiv:2102.09690), sec. 5: p_cf is the mean over the content-free inputs, of
    which they take "N/A", "[MASK]" and the empty text; q = W p with b = 0, here made to sum to 1.
    """
    import numpy as np

    (row,) = _probabilities([logprobs])
    free = _probabilities(content_free)
    if free.shape[1] != len(row):
        raise ValueError(f"{free.shape[1]} content-free probabilities for {len(row)} labels")
    scaled = row / free.mean(axis=0)
    return np.asarray(scaled / scaled.sum(), dtype=np.float64)


def batch_calibrated(logprobs: Sequence[Sequence[float]]) -> Array:
    """Every item's probabilities over the mean of all items', a row an item.

    Zhou et al. 2023 (arXiv:2309.17249): argmax of log p(y|x) - log mean_x p(y|x). It takes
    golds that are not uniform over the positions for bias: balance them first.
    """
    import numpy as np

    rows = _probabilities(logprobs)
    scaled = rows / rows.mean(axis=0)
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True), dtype=np.float64)


def _probabilities(logprobs: Sequence[Sequence[float]]) -> Array:
    import numpy as np

    if not len(logprobs) or len({len(row) for row in logprobs}) != 1 or not len(logprobs[0]):
        raise ValueError("log-probabilities of as many labels each were expected")
    rows = np.asarray(logprobs, dtype=np.float64)
    highest = rows.max(axis=1, keepdims=True)
    if not np.isfinite(highest).all():  # NaN, +inf, or nothing but -inf
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

    raised = np.exp(values - values.max())
    return np.asarray(raised / raised.sum(), dtype=np.float64)
