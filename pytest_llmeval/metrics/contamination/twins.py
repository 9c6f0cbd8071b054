"""Gap between the scores on a benchmark and on its rewritten copy, its twin.

Zhang et al. 2024, "A Careful Examination of Large Language Model Performance on Grade School
Arithmetic" (arXiv:2405.00332), compare GSM8K with GSM1k. The null hypothesis is that original and
twin are equally hard; a reference run removes a difference in difficulty that both models share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.paired_tests import sign_flip_tail


@dataclass(frozen=True, slots=True)
class TwinGap:
    """Items right in the original or in the twin only, and the one-sided test of the gap."""

    items: int
    #: Items that count for the original, and for the twin.
    original_only: int
    twin_only: int
    #: Mean difference: accuracy of the original minus that of the twin.
    gap: float
    #: One-sided exact p value for equal difficulty.
    p_value: float


def twin_gap(pairs: Mapping[str, tuple[bool, bool]]) -> TwinGap | None:
    """Test the gap of a model; ``pairs``: item → right in the original, right in the twin.

    With b items right in the original only and c in the twin only, the gap is (b - c) / n, and
    p = P(binomial(b + c, 1/2) >= b). None without items.
    """
    return _test({item: int(original) - int(twin) for item, (original, twin) in pairs.items()})


def twin_gap_over_reference(
    candidate: Mapping[str, tuple[bool, bool]], reference: Mapping[str, tuple[bool, bool]]
) -> TwinGap | None:
    """Test the candidate's gap minus that of a reference model, over the items of the candidate.

    The differences, from -2 to 2, are tested by sign flips. None without items. Raises KeyError for
    an item that the reference does not have.
    """
    return _test(
        {
            item: int(original) - int(twin) - int(reference[item][0]) + int(reference[item][1])
            for item, (original, twin) in candidate.items()
        }
    )


def _test(by_item: Mapping[str, int]) -> TwinGap | None:
    differences: dict[int, int] = {}
    for difference in by_item.values():
        differences[difference] = differences.get(difference, 0) + 1
    if not by_item:
        return None
    return TwinGap(
        items=len(by_item),
        original_only=sum(m for d, m in differences.items() if d > 0),
        twin_only=sum(m for d, m in differences.items() if d < 0),
        gap=sum(d * m for d, m in differences.items()) / len(by_item),
        p_value=one_sided_sign_flip(differences),
    )


def one_sided_sign_flip(differences: Mapping[int, int]) -> float:
    """Return P(sum >= observed) if every difference has either sign with probability 1/2.

    ``differences``: difference → number of items. The one-sided ``sign_flip``, computed exactly;
    with differences of one size it is the tail of a binomial distribution.
    """
    sizes: dict[int, int] = {}
    total = 0
    for difference, items in differences.items():
        total += difference * _validation.count("items", items)
        if difference:
            sizes[abs(difference)] = sizes.get(abs(difference), 0) + items
    whole = sum(size * items for size, items in sizes.items())
    # The sum is whole - 2 N, N being the sizes of the negative differences.
    return min(1.0, sign_flip_tail(sizes, (whole - total) // 2))
