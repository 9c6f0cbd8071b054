"""Metrics over n samples of one item of which c are correct.

Whole-number binomials and one correctly rounded division: no overflow and no cancellation, for
any n (a big-integer product is also quick: under 10 ms at n = 10,000).
"""

from __future__ import annotations

import math

from . import _checks


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Probability that at least one of k samples drawn from n without replacement is correct.

    1 - C(n-c, k) / C(n, k), the unbiased estimator of Chen et al. 2021 (arXiv:2107.03374, eq. 1).
    A probability, not a flag. None when n < k: it cannot be estimated from fewer samples.
    """
    n, c, k = _arguments(n, c, k)
    if n < k:
        return None
    # C(n-c, k) / C(n, k) == C(n-k, c) / C(n, c): take the one with the smaller numbers.
    few, many = sorted((k, c))
    every = math.comb(n, few)
    return (every - math.comb(n - many, few)) / every


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Probability that all of k samples drawn from n without replacement are correct.

    C(c, k) / C(n, k), "pass^k" of Yao et al. 2024 (tau-bench, arXiv:2406.12045). None when n < k.
    """
    n, c, k = _arguments(n, c, k)
    return math.comb(c, k) / math.comb(n, k) if n >= k else None


def _arguments(n: int, c: int, k: int) -> tuple[int, int, int]:
    c, n = _checks.part("c", c, "n", n)
    k = _checks.count("k", k)
    if k == 0:
        raise ValueError("k must be at least 1")
    return n, c, k
