"""Tests for two runs over the same items, and for many of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from . import _checks


def mcnemar(only_baseline: int, only_candidate: int) -> float:
    """Exact two-sided p value of McNemar's test, from the items that only one run has right.

    Under no difference the smaller count is binomial(n, 1/2) over the n discordant items:
    min(1, 2 P(X <= min)). McNemar 1947, Psychometrika 12, 153-157; exact form in Fagerland,
    Lydersen & Laake 2013, BMC Med. Res. Methodol. 13:91. Without discordant items 1.
    """
    only_baseline = _checks.count("only_baseline", only_baseline)
    only_candidate = _checks.count("only_candidate", only_candidate)
    discordant = only_baseline + only_candidate
    if only_baseline == only_candidate:
        return 1.0  # twice the lower half counts the middle twice
    smaller = min(only_baseline, only_candidate)
    # Here, not above: scipy takes longer to load than pytest, and few sessions compare runs.
    from scipy.special import betainc

    # P(X <= k) = I_1/2(n - k, k + 1); scipy's bdtr is the same with three digits fewer.
    return min(1.0, 2 * float(betainc(discordant - smaller, smaller + 1, 0.5)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values, in the order of the input.

    With p sorted ascending the i-th (from 0) is max over j <= i of min(1, (m - j) p_j); rejecting
    those <= alpha keeps the family-wise error rate <= alpha under any dependence. Holm 1979,
    "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, 65-70.
    """
    checked = [_checks.proportion(f"p_values[{i}]", p) for i, p in enumerate(p_values)]
    adjusted = [0.0] * len(checked)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(checked)), key=checked.__getitem__)):
        highest = max(highest, min(1.0, (len(checked) - rank) * checked[index]))
        adjusted[index] = highest
    return adjusted
