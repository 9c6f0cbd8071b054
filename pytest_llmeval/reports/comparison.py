"""Two runs item by item, or several in a league table: for the terminal, as JSON, as Markdown.

The Markdown is GitHub's, for a comment on a pull request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from pytest_llmeval.metrics import Comparison
from pytest_llmeval.metrics import Difference
from pytest_llmeval.metrics import summarize
from pytest_llmeval.reports import gfm
from pytest_llmeval.reports.text import one_line
from pytest_llmeval.runs.compare import League
from pytest_llmeval.runs.compare import Mismatch
from pytest_llmeval.runs.compare import RunComparison
from pytest_llmeval.runs.compare import Standing

FLIPS = 10
"""How many items that changed are listed each way, unless asked otherwise."""

_WORST = 10
_ALPHA = 0.05
_NO_VERDICT = "protocols or data differ: no verdict"
_OTHER_ITEMS = "accuracies are not over the same items; drops are"


def comparison_parts(found: RunComparison, flips: int = FLIPS) -> Iterator[Any]:
    """A comparison as rich renderables, in order, readable at 80 columns."""
    for comparison in found.comparisons:
        verdict = found.comparable(comparison)
        yield Text(_title(found, comparison), style="bold")
        yield _table(comparison, verdict)
        if verdict:
            yield Text(_legend(comparison))
            if more := _more_worse(comparison):
                yield Text(more, style="red")
        else:
            yield Text(f"{_NO_VERDICT}: {_fields(found.differences(comparison))}", style="yellow")
        yield Text(_totals(comparison))
        for line in _flip_lines(comparison, flips):
            yield Text(line)
        if unpaired := _unpaired(comparison):
            yield Text(f"not paired: {unpaired}", style="yellow")
    for line in _lonely(found):
        yield Text(line, style="yellow")


def comparison_json(found: RunComparison) -> dict[str, Any]:
    """A comparison as plain JSON values; ``comparable`` false: the numbers are no verdict."""
    return {
        "baseline": found.baseline,
        "candidate": found.candidate,
        "comparisons": [
            {**comparison.as_json(), "comparable": found.comparable(comparison)}
            for comparison in found.comparisons
        ],
        "mismatches": [_mismatch_json(mismatch) for mismatch in found.mismatches],
        "only_baseline": list(found.only_baseline),
        "only_candidate": list(found.only_candidate),
    }


def comparison_markdown(found: RunComparison, flips: int = FLIPS) -> str:
    """A comparison as GitHub Markdown."""
    blocks = [f"### {gfm.code(found.baseline)} → {gfm.code(found.candidate)}"]
    header = ("result", "n", "baseline", "candidate", "drop", "95 % interval")
    rows = []
    for comparison in found.comparisons:
        whole, verdict = comparison.overall, found.comparable(comparison)
        rows.append(
            (
                gfm.cell(_name(found, comparison)),
                f"{whole.items:,}",
                _number(whole.baseline),
                _number(whole.candidate),
                _signed(whole.drop),
                _interval(whole.interval),
                f"{whole.newly_wrong:,}",
                f"{whole.newly_right:,}",
                _p_value(whole, verdict),
            )
        )
    blocks.append(gfm.table((*header, "newly wrong", "newly right", "p"), rows))
    for comparison in found.comparisons:
        blocks += _markdown_details(found, comparison, flips)
    blocks += [gfm.plain(line) for line in _lonely(found)]
    return "\n\n".join(blocks) + "\n"


def league_parts(tables: Sequence[League]) -> Iterator[Any]:
    """League tables as rich renderables, readable at 80 columns."""
    for league in tables:
        yield Text(f"{league.benchmark}[{league.scorer}]", style="bold")
        # Names stand below: beside eight columns there is no room for them.
        table = _empty_table()
        table.add_column("")
        for name in _LEAGUE_COLUMNS:
            table.add_column(name, justify="right", no_wrap=True)
        for rank, standing in enumerate(league.standings, start=1):
            table.add_row(str(rank), *_standing_cells(standing, not league.mismatches))
        yield table
        for rank, standing in enumerate(league.standings, start=1):
            yield Text(f"{rank:>2} {standing.run} ({standing.model})")
        yield Text(_league_note(league), style="yellow" if league.mismatches else "")
        if not league.same_items:
            yield Text(_OTHER_ITEMS, style="yellow")


def league_json(tables: Sequence[League]) -> dict[str, Any]:
    """League tables as plain JSON values."""
    return {
        "tables": [
            {
                "benchmark": league.benchmark,
                "scorer": league.scorer,
                "comparable": not league.mismatches,
                "same_items": league.same_items,
                "mismatches": [_mismatch_json(mismatch) for mismatch in league.mismatches],
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
    """League tables as GitHub Markdown."""
    blocks = []
    for league in tables:
        rows = [
            (
                gfm.cell(_standing_name(league, standing)),
                *_standing_cells(standing, not league.mismatches),
            )
            for standing in league.standings
        ]
        blocks.append(f"### {gfm.code(f'{league.benchmark}[{league.scorer}]')}")
        blocks.append(gfm.table(("run", *_LEAGUE_COLUMNS), rows))
        blocks.append(gfm.plain(_league_note(league)))
        if not league.same_items:
            blocks.append(f"**{_OTHER_ITEMS}**")
    return "\n\n".join(blocks) + "\n"


# Two runs --------------------------------------------------------------------------------


def _name(found: RunComparison, comparison: Comparison) -> str:
    """``mmlu[letter]``, with the models where there is more than one pair of them."""
    name = f"{comparison.benchmark}[{comparison.scorer}]"
    if len({(one.baseline, one.candidate) for one in found.comparisons}) == 1:
        return name
    if comparison.baseline == comparison.candidate:
        return f"{name} {comparison.candidate}"
    return f"{name} {comparison.baseline} → {comparison.candidate}"


def _title(found: RunComparison, comparison: Comparison) -> str:
    sides = (found.baseline, comparison.baseline), (found.candidate, comparison.candidate)
    before, after = (f"{run} ({model})" for run, model in sides)
    return one_line(f"{comparison.benchmark}[{comparison.scorer}]: {before} → {after}")


def _empty_table() -> Table:
    # The box puts one space between columns; with more, MMLU's longest subject would not fit.
    return Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)


def _table(comparison: Comparison, verdict: bool) -> Table:
    table = _empty_table()
    table.add_column("", overflow="fold")
    for name in ("n", "baseline", "candidate", "drop", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row(_everything(comparison), *_cells(comparison.overall, verdict))
    for subject, difference in comparison.worst(_WORST):
        table.add_row(Text(one_line(subject)), *_cells(difference, verdict))
    return table


def _everything(comparison: Comparison) -> str:
    count = len(comparison.subjects)
    return f"all {count} subjects" if count > 1 else "all items"


def _cells(difference: Difference, verdict: bool) -> tuple[str, ...]:
    return (
        f"{difference.items:,}",
        _number(difference.baseline),
        _number(difference.candidate),
        _signed(difference.drop),
        _p_value(difference, verdict),
    )


def _legend(comparison: Comparison) -> str:
    text = f"* significant at {_ALPHA}"
    if len(comparison.subjects) == 1:
        return text
    tested = sum(difference.items > 0 for difference in comparison.subjects.values())
    return f"{text}; subjects: largest drops first, p Holm-adjusted over {tested}"


def _more_worse(comparison: Comparison) -> str | None:
    """Subjects that are significantly worse by less than the drops that are shown."""
    worse = comparison.worst(len(comparison.subjects))
    names = [
        f"{one_line(subject)} ({_signed(one.drop)}, p {_p_value(one, True).rstrip(' *')})"
        for subject, one in worse[_WORST:]
        if one.adjusted <= _ALPHA
    ]
    return f"significantly worse too: {', '.join(names)}" if names else None


def _totals(comparison: Comparison) -> str:
    whole = comparison.overall
    if whole.drop is None:
        return "no item is in both runs"
    return (
        f"drop {_signed(whole.drop)}, 95 % interval {_interval(whole.interval)};"
        f" {whole.newly_wrong:,} newly wrong, {whole.newly_right:,} newly right"
    )


def _flip_lines(comparison: Comparison, flips: int) -> Iterator[str]:
    for name, items in (
        ("newly wrong", comparison.newly_wrong),
        ("newly right", comparison.newly_right),
    ):
        if items and flips:
            yield f"{name}{_part(items, flips)}: {' '.join(items[:flips])}"


def _part(items: Sequence[str], shown: int) -> str:
    return f" ({shown:,} of {len(items):,})" if len(items) > shown else ""


def _unpaired(comparison: Comparison) -> str:
    """Why items of the runs are not paired; empty when all are."""
    parts = []
    for items, side in (
        (comparison.only_baseline, "baseline"),
        (comparison.only_candidate, "candidate"),
    ):
        if items:
            noun = "item" if len(items) == 1 else "items"
            parts.append(f"{len(items):,} {noun} only in the {side} ({_examples(items)})")
    for count, side in (
        (comparison.errors_baseline, "baseline"),
        (comparison.errors_candidate, "candidate"),
    ):
        if count:
            noun = "item" if count == 1 else "items"
            parts.append(f"{count:,} {noun} with an error in the {side}")
    nowhere = sum(comparison.sizes.values()) - comparison.overall.items
    if not parts and nowhere:
        parts.append(f"{nowhere:,} items of the benchmark are in neither run")
    return "; ".join(parts)


def _examples(items: Sequence[str]) -> str:
    return ", ".join(items[:3]) + (", …" if len(items) > 3 else "")


def _lonely(found: RunComparison) -> Iterator[str]:
    for results, run in (
        (found.only_baseline, found.baseline),
        (found.only_candidate, found.candidate),
    ):
        if results:
            yield f"only in {run}: {', '.join(results)}"


def _fields(mismatches: Iterable[Mismatch]) -> str:
    return "; ".join(mismatch.text for mismatch in mismatches)


def _markdown_details(found: RunComparison, comparison: Comparison, flips: int) -> Iterator[str]:
    name, verdict = _name(found, comparison), found.comparable(comparison)
    if not verdict:
        fields = gfm.code(_fields(found.differences(comparison)))
        yield f"**{_NO_VERDICT}** for {gfm.code(name)}: {fields}"
    worst = comparison.worst(_WORST)
    if worst and len(comparison.subjects) > 1:
        rows = [(gfm.cell(subject), *_cells(one, verdict)) for subject, one in worst]
        yield f"Worst subjects of {gfm.code(name)} ({len(worst)} of {len(comparison.subjects)}):"
        yield gfm.table(("subject", "n", "baseline", "candidate", "drop", "p"), rows)
    if verdict:
        yield gfm.plain(_legend(comparison))
        if more := _more_worse(comparison):
            yield f"**{gfm.plain(more)}**"
    for kind, items in (
        ("newly wrong", comparison.newly_wrong),
        ("newly right", comparison.newly_right),
    ):
        if items and flips:
            listed = ", ".join(gfm.code(item) for item in items[:flips])
            summary = f"{kind} in <code>{gfm.html(name)}</code>{_part(items, flips)}"
            yield f"<details><summary>{summary}</summary>\n\n{listed}\n\n</details>"
    if unpaired := _unpaired(comparison):
        yield f"Not paired in {gfm.code(name)}: {gfm.plain(unpaired)}"


# Several runs ----------------------------------------------------------------------------

_LEAGUE_COLUMNS = ("n", "accuracy", "95 % interval", "macro", "gain", "drop", "p")


def _standing_name(league: League, standing: Standing) -> str:
    """The run, with the model where the run has several rows."""
    several = sum(one.run == standing.run for one in league.standings) > 1
    return f"{standing.run} {standing.model}" if several else standing.run


def _standing_cells(standing: Standing, verdict: bool) -> tuple[str, ...]:
    numbers, against = summarize(standing.result), standing.against_best
    return (
        f"{standing.result.counts.attempted:,}",
        _number(numbers["accuracy"]),
        _interval(numbers["wilson95"]) if numbers["accuracy"] is not None else "-",
        _number(numbers["macro_accuracy"]),
        _signed(numbers["normalized_gain"]),
        _signed(against.drop) if against else "",
        _p_value(against, verdict) if against else "",
    )


def _league_note(league: League) -> str:
    if league.mismatches:
        return f"{_NO_VERDICT}: {_fields(league.mismatches)}"
    if len(league.standings) == 1:
        return "no other run has this result"
    if league.standings[0].result.accuracy is None:
        return "every run is incomplete: none is the best"
    others = len(league.standings) - 1
    return (
        f"* significant at {_ALPHA}; drop against the first row over the items of both, p"
        f" Holm-adjusted over {others}"
    )


# Numbers and names -----------------------------------------------------------------------


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _signed(value: float | None) -> str:
    # + 0.0: a drop of -0.00001 is shown as zero, and zero has no sign worth showing.
    return "-" if value is None else f"{round(value, 4) + 0.0:+.4f}"


def _interval(interval: Sequence[float] | None) -> str:
    if interval is None:
        return "-"
    low, high = interval
    return f"[{low:.4f}, {high:.4f}]"


def _p_value(difference: Difference, verdict: bool) -> str:
    """The adjusted p value, starred where it is significant; nothing where there is no verdict."""
    p = difference.adjusted
    if not verdict or difference.items == 0:
        return "-"
    text = "<0.0001" if p < 0.0001 else f"{p:.4f}"
    return text + (" *" if p <= _ALPHA else "  ")


def _mismatch_json(mismatch: Mismatch) -> dict[str, Any]:
    # default=repr: a field that one side lacks has no JSON value of its own.
    value: Mapping[str, Any] = json.loads(json.dumps(asdict(mismatch), default=repr))
    return dict(value)
