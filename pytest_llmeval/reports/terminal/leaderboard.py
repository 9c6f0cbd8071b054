"""Leaderboard of several runs for the terminal, as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from pytest_llmeval.metrics import summarize
from pytest_llmeval.reports import gfm
from pytest_llmeval.reports.formatting import interval
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.formatting import signed
from pytest_llmeval.reports.terminal.comparison import NO_VERDICT
from pytest_llmeval.reports.terminal.comparison import fields
from pytest_llmeval.reports.terminal.comparison import p_value
from pytest_llmeval.reports.terminal.tables import add_number_columns
from pytest_llmeval.reports.terminal.tables import compact_table
from pytest_llmeval.runs.comparison import ALPHA
from pytest_llmeval.runs.leaderboard import Leaderboard
from pytest_llmeval.runs.leaderboard import LeaderboardRow

_OTHER_ITEMS = "accuracies are over different items; drops are over the same items"
_COLUMNS = ("n", "accuracy", "95 % interval", "macro", "gain", "drop", "p")


def leaderboard_parts(tables: Sequence[Leaderboard]) -> Iterator[Any]:
    """Yield leaderboards as rich renderables, readable at 80 columns."""
    for leaderboard in tables:
        yield Text(leaderboard.name, style="bold")
        # Names are below the table: next to eight columns there is no space for them.
        table = compact_table()
        table.add_column("")
        add_number_columns(table, *_COLUMNS)
        for rank, row in enumerate(leaderboard.standings, start=1):
            table.add_row(str(rank), *_row_cells(row, not leaderboard.mismatches))
        yield table
        for rank, row in enumerate(leaderboard.standings, start=1):
            yield Text(f"{rank:>2} {row.run} ({row.model})")
        yield Text(_leaderboard_note(leaderboard), style="yellow" if leaderboard.mismatches else "")
        if not leaderboard.same_items:
            yield Text(_OTHER_ITEMS, style="yellow")
        if leaderboard.apart:
            yield Text(leaderboard.apart, style="yellow")


def leaderboard_json(tables: Sequence[Leaderboard]) -> dict[str, Any]:
    """Return leaderboards as plain JSON values."""
    return {
        "tables": [
            {
                "benchmark": leaderboard.benchmark,
                "scorer": leaderboard.scorer,
                "comparable": not leaderboard.mismatches,
                "same_items": leaderboard.same_items,
                "apart": leaderboard.apart or None,
                "mismatches": [mismatch.as_json() for mismatch in leaderboard.mismatches],
                "standings": [
                    {
                        "run": row.run,
                        "model": row.model,
                        "metrics": summarize(row.result),
                        "against_best": row.against_best and row.against_best.as_json(),
                    }
                    for row in leaderboard.standings
                ],
            }
            for leaderboard in tables
        ]
    }


def leaderboard_markdown(tables: Sequence[Leaderboard]) -> str:
    """Return leaderboards as GitHub Markdown."""
    blocks = []
    for leaderboard in tables:
        rows = [
            (
                gfm.code_cell(_row_name(leaderboard, row)),
                *_row_cells(row, not leaderboard.mismatches),
            )
            for row in leaderboard.standings
        ]
        blocks.append(f"### {gfm.code_span(leaderboard.name)}")
        blocks.append(gfm.table(("run", *_COLUMNS), rows))
        blocks.append(gfm.escape_markdown(_leaderboard_note(leaderboard)))
        if not leaderboard.same_items:
            blocks.append(f"**{_OTHER_ITEMS}**")
        if leaderboard.apart:
            blocks.append(f"**{gfm.escape_markdown(leaderboard.apart)}**")
    return "\n\n".join(blocks) + "\n"


def _row_name(leaderboard: Leaderboard, row: LeaderboardRow) -> str:
    """Return the run's name, followed by the model if the run has several rows."""
    several = sum(other.run == row.run for other in leaderboard.standings) > 1
    return f"{row.run} {row.model}" if several else row.run


def _row_cells(row: LeaderboardRow, verdict: bool) -> tuple[str, ...]:
    numbers, against = summarize(row.result), row.against_best
    return (
        f"{row.result.counts.attempted:,}",
        number(numbers["accuracy"]),
        interval(numbers["wilson95"]) if numbers["accuracy"] is not None else "-",
        number(numbers["macro_accuracy"]),
        signed(numbers["normalized_gain"]),
        signed(against.drop) if against else "",
        p_value(against, verdict) if against else "",
    )


def _leaderboard_note(leaderboard: Leaderboard) -> str:
    if leaderboard.mismatches:
        return f"{NO_VERDICT}: {fields(leaderboard.mismatches)}"
    if len(leaderboard.standings) == 1:
        return "no other run has a comparable result"
    if leaderboard.standings[0].result.accuracy is None:
        return "every run is incomplete, so there is no best run"
    others = len(leaderboard.standings) - 1
    return (
        f"* significant at {ALPHA}; drop against the first row over the items of both, p"
        f" Holm-adjusted over {others}"
    )
