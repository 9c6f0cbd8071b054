"""Permutation audits in the terminal, and comparisons of texts with letters."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from pytest_llmeval.core.plan import family_of
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import diagnose
from pytest_llmeval.metrics.bias.audit import FamilyResult
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.terminal.tables import add_number_columns
from pytest_llmeval.reports.terminal.tables import open_table

_MOST_ARMS = 16


def audit_parts(results: Iterable[Result]) -> Iterable[Any]:
    """Yield the audits of the results that have one, as rich renderables."""
    for result in results:
        if result.audit is not None:
            yield from _audit_parts(result.name, result.audit)


def _audit_parts(name: str, audit: Audit) -> Iterable[Any]:
    yield Text(f"options in other orders, {name}: {audit.items:,} items", style="bold")
    yield _arms(audit)
    for family in audit.families:
        yield Text(f"{name}, {family.name}: {_family_text(family)}")
    diagnosis = diagnose(audit)
    if diagnosis is not None:
        yield Text(f"{name}: the model {diagnosis}", style="yellow")
    else:
        yield Text(f"{name}: no position preference found")


def _arms(audit: Audit) -> Table:
    table = open_table()
    table.add_column("order")
    add_number_columns(table, "n", "accuracy", "95 % interval", "unparsed")
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


def _family_text(family: FamilyResult) -> str:
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


HEADER = ("answers", "accuracy", "mean", "variance", "SCORE", "RStd", "seconds", "tokens")

Pair = Mapping[str, Any]


def pair_parts(pairs: Iterable[Pair]) -> Iterable[Any]:
    """Yield the pairs as rich renderables."""
    for pair in pairs:
        yield Text(pair_title(pair), style="bold")
        table = open_table(collapse=True)
        table.add_column(HEADER[0], overflow="fold")
        add_number_columns(table, *HEADER[1:])
        for name, *cells in pair_rows(pair):
            table.add_row(Text(name), *cells)
        yield table
        yield Text(pair_words(pair))


def pair_title(pair: Pair) -> str:
    """Return the compared scorers, items and orders as a title."""
    arms = pair["arms"]
    return (
        f"{pair['benchmark']}, texts against letters: {count(pair['items'], 'item')}, as they are"
        f" and in {count(len(arms), 'order')} of {family_of(arms[0])!r}"
    )


def pair_rows(pair: Pair) -> list[Sequence[str]]:
    """Return a row for the texts and a row for the letters, with the columns of ``HEADER``."""
    return [_row(pair[side]) for side in ("texts", "letters")]


def pair_words(pair: Pair) -> str:
    """Describe the ratio of the variances in a sentence."""
    ratio = pair["variance_ratio"]
    if ratio is None:
        return "variance ratio: not defined, that of the letters is 0"
    which = "texts" if ratio < 1 else "letters"
    steadier = "neither is the steadier" if ratio == 1 else f"the {which} are the steadier"
    return f"variance ratio, texts over letters: {ratio:.4g}: {steadier}"


def _row(side: Mapping[str, Any]) -> Sequence[str]:
    tokens = [side["prompt_tokens"], side["completion_tokens"]]
    counted = [value for value in tokens if value is not None]
    return (
        side["scorer"],
        number(side["accuracy"]),
        number(side["mean"]),
        number(side["variance"], 5),
        number(side["consistency"]),
        number(side["recall_std"]),
        number(side["seconds"], 1),
        f"{sum(counted):,}" if counted else "-",
    )
