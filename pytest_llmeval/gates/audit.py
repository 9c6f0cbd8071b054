"""What a permutation audit gives gates to judge: range of accuracy, consistency, recall."""

from __future__ import annotations

from pytest_llmeval.bias.arms import position_of
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics.bias.audit import FamilyResult

AUDITED = ("position_range", "consistency", "recall_std")
"""Metrics of an audit. Only ``consistency`` has an interval."""

NO_AUDIT = "no permutation audit: run it with --llm-permutations"


def audited(metric: str, audit: Audit | None) -> tuple[float, tuple[float, float] | None] | str:
    """The metric over the audit's main family of arms with its 95 % interval; or why not."""
    if audit is None:
        return NO_AUDIT
    family = audit.main
    if family is None:
        return f"{metric} is not defined: no item has an answer in every order"
    value = _values(family)[metric]
    if value is None:
        return f"{metric} is not defined: no answer could be read"
    return value, family.consistency_interval if metric == "consistency" else None


def audited_of(audit: Audit) -> str:
    """What the value was computed from, in words."""
    family = audit.main
    assert family is not None
    # The original is one of the rotations, but no arm that moves the answer.
    orders = len(family.arms) + (position_of(family.arms[0]) is None)
    return f"{family.items:,} items in the {orders} orders of {family.name!r}"


def _values(family: FamilyResult) -> dict[str, float | None]:
    return {
        "position_range": family.position_range,
        "consistency": family.consistency,
        "recall_std": family.recall_std,
    }
