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
from pytest_llmeval.runs.leaderboard import League
from pytest_llmeval.runs.leaderboard import Standing

_OTHER_ITEMS = "accuracies are over different items; drops are over the same items"
_COLUMNS = ("n", "accuracy", "95 % interval", "macro", "gain", "drop", "p")


def league_parts(tables: Sequence[League]) -> Iterator[Any]:
    """Yield league tables as rich renderables, readable at 80 columns."""
    for league in tables:
        yield Text(league.name, style="bold")
        # Names are below the table: next to eight columns there is no space for them.
        table = compact_table()
        table.add_column("")
        add_number_columns(table, *_COLUMNS)
        for rank, standing in enumerate(league.standings, start=1):
            table.add_row(str(rank), *_standing_cells(standing, not league.mismatches))
        yield table
        for rank, standing in enumerate(league.standings, start=1):
            yield Text(f"{rank:>2} {standing.run} ({standing.model})")
        yield Text(_league_note(league), style="yellow" if league.mismatches else "")
        if not league.same_items:
            yield Text(_OTHER_ITEMS, style="yellow")
        if league.apart:
            yield Text(league.apart, style="yellow")


def league_json(tables: Sequence[League]) -> dict[str, Any]:
    """Return league tables as plain JSON values."""
    return {
        "tables": [
            {
                "benchmark": league.benchmark,
                "scorer": league.scorer,
                "comparable": not league.mismatches,
                "same_items": league.same_items,
                "apart": league.apart or None,
                "mismatches": [mismatch.as_json() for mismatch in league.mismatches],
                "standings": [
                    {
                        "run": standing.run,
                        "model": standing.model,
                        "metrics": summarize(standing.result),
                        "against_best": standing.against_best and standing.against_best.as_json(),
                    }
                    for standing in league.standings
                ],
            }
            for league in tables
        ]
    }


def league_markdown(tables: Sequence[League]) -> str:
    """Return league tables as GitHub Markdown."""
    blocks = []
    for league in tables:
        rows = [
            (
                gfm.code_cell(_standing_name(league, standing)),
                *_standing_cells(standing, not league.mismatches),
            )
            for standing in league.standings
        ]
        blocks.append(f"### {gfm.code_span(league.name)}")
        blocks.append(gfm.table(("run", *_COLUMNS), rows))
        blocks.append(gfm.escape_markdown(_league_note(league)))
        if not league.same_items:
            blocks.append(f"**{_OTHER_ITEMS}**")
        if league.apart:
            blocks.append(f"**{gfm.escape_markdown(league.apart)}**")
    return "\n\n".join(blocks) + "\n"


def _standing_name(league: League, standing: Standing) -> str:
    """Return the run's name, followed by the model if the run has several rows."""
    several = sum(other.run == standing.run for other in league.standings) > 1
    return f"{standing.run} {standing.model}" if several else standing.run


def _standing_cells(standing: Standing, verdict: bool) -> tuple[str, ...]:
    numbers, against = summarize(standing.result), standing.against_best
    return (
        f"{standing.result.counts.attempted:,}",
        number(numbers["accuracy"]),
        interval(numbers["wilson95"]) if numbers["accuracy"] is not None else "-",
        number(numbers["macro_accuracy"]),
        signed(numbers["normalized_gain"]),
        signed(against.drop) if against else "",
        p_value(against, verdict) if against else "",
    )


def _league_note(league: League) -> str:
    if league.mismatches:
        return f"{NO_VERDICT}: {fields(league.mismatches)}"
    if len(league.standings) == 1:
        return "no other run has a comparable result"
    if league.standings[0].result.accuracy is None:
        return "every run is incomplete, so there is no best run"
    others = len(league.standings) - 1
    return (
        f"* significant at {ALPHA}; drop against the first row over the items of both, p"
        f" Holm-adjusted over {others}"
    )
