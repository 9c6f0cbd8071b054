"""A permutation audit at the end of a run: the arms, what they tell, and the bias in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.table import Table
from rich.text import Text

from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import diagnose
from pytest_llmeval.metrics.bias.audit import FamilyResult
from pytest_llmeval.reports.terminal.tables import add_numbers
from pytest_llmeval.reports.terminal.tables import open_table

_MOST_ARMS = 16


def audit_parts(results: Iterable[Result]) -> Iterable[Any]:
    """The audits of results that have one, as rich renderables."""
    for result in results:
        if result.audit is not None:
            yield from _one(result.name, result.audit)


def _one(name: str, audit: Audit) -> Iterable[Any]:
    yield Text(f"options in other orders, {name}: {audit.items:,} items", style="bold")
    yield _arms(audit)
    for family in audit.families:
        yield Text(f"{name}, {family.name}: {_told(family)}")
    found = diagnose(audit)
    if found is not None:
        yield Text(f"{name}: the model {found}", style="yellow")
    else:
        yield Text(f"{name}: no preference for a position is to be seen")


def _arms(audit: Audit) -> Table:
    table = open_table()
    table.add_column("order")
    add_numbers(table, "n", "accuracy", "95 % interval", "unparsed")
    for arm in audit.arms[:_MOST_ARMS]:
        low, high = arm.interval
        table.add_row(
            Text(arm.name),
            f"{arm.items:,}",
            f"{arm.accuracy:.4f}",
            f"{low:.4f} to {high:.4f}",
            f"{arm.unparsed:,}",
        )
    if len(audit.arms) > _MOST_ARMS:
        table.add_row(f"… {len(audit.arms) - _MOST_ARMS} more", "", "", "", "")
    return table


def _told(family: FamilyResult) -> str:
    parts = [
        f"mean {family.mean:.4f}, variance {family.variance:.5f}, range {family.range:.4f}",
        f"right in all orders {family.worst_case:.4f}, by majority {family.majority:.4f}",
    ]
    if family.consistency is not None:
        parts.append(f"consistency {family.consistency:.4f}")
    if family.position_range not in (None, family.range):
        parts.append(f"range over positions {family.position_range:.4f}")
    if family.recall_std is not None:
        parts.append(f"recall std {family.recall_std:.4f}")
    return "; ".join(parts)
