"""Two runs item by item: for the terminal, as JSON, as Markdown.

The Markdown is GitHub's, for a comment on a pull request.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from pytest_llmeval.metrics import Comparison
from pytest_llmeval.metrics import Difference
from pytest_llmeval.reports import gfm
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import interval
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import probability
from pytest_llmeval.reports.formatting import signed
from pytest_llmeval.reports.terminal.tables import add_numbers
from pytest_llmeval.reports.terminal.tables import dense_table
from pytest_llmeval.runs.comparison import ALPHA
from pytest_llmeval.runs.comparison import Mismatch
from pytest_llmeval.runs.comparison import RunComparison

FLIPS = 10
"""How many items that changed are listed each way, unless asked otherwise."""

_WORST = 10
_COLUMNS = ("n", "baseline", "candidate", "drop", "p")
NO_VERDICT = "protocols or data differ: no verdict"


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
            yield Text(f"{NO_VERDICT}: {fields(found.differences(comparison))}", style="yellow")
        yield Text(_totals(comparison))
        for line in _flip_lines(comparison, flips):
            yield Text(line)
        if unpaired := _unpaired(comparison):
            yield Text(f"not paired: {unpaired}", style="yellow")
    for line in _lonely(found):
        yield Text(line, style="yellow")


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
                number(whole.baseline),
                number(whole.candidate),
                signed(whole.drop),
                interval(whole.interval),
                f"{whole.newly_wrong:,}",
                f"{whole.newly_right:,}",
                p_value(whole, verdict),
            )
        )
    blocks.append(gfm.table((*header, "newly wrong", "newly right", "p"), rows))
    for comparison in found.comparisons:
        blocks += _markdown_details(found, comparison, flips)
    blocks += [gfm.plain(line) for line in _lonely(found)]
    return "\n\n".join(blocks) + "\n"


# Two runs --------------------------------------------------------------------------------


def _name(found: RunComparison, comparison: Comparison) -> str:
    """``mmlu[letter]``, with the models where there is more than one pair of them."""
    name = comparison.name
    if len({(one.baseline, one.candidate) for one in found.comparisons}) == 1:
        return name
    if comparison.baseline == comparison.candidate:
        return f"{name} {comparison.candidate}"
    return f"{name} {comparison.baseline} → {comparison.candidate}"


def _title(found: RunComparison, comparison: Comparison) -> str:
    sides = (found.baseline, comparison.baseline), (found.candidate, comparison.candidate)
    before, after = (f"{run} ({model})" for run, model in sides)
    return one_line(f"{comparison.name}: {before} → {after}")


def _table(comparison: Comparison, verdict: bool) -> Table:
    table = dense_table()
    table.add_column("", overflow="fold")
    add_numbers(table, *_COLUMNS)
    table.add_row(_everything(comparison), *_cells(comparison.overall, verdict))
    for subject, difference in comparison.worst(_WORST):
        table.add_row(Text(one_line(subject)), *_cells(difference, verdict))
    return table


def _everything(comparison: Comparison) -> str:
    total, paired = len(comparison.subjects), _paired(comparison)
    if total == 1:
        return "all items"
    return f"{paired} of {total} subjects" if paired < total else f"all {total} subjects"


def _paired(comparison: Comparison) -> int:
    """How many subjects have items in both runs."""
    return sum(difference.items > 0 for difference in comparison.subjects.values())


def _cells(difference: Difference, verdict: bool) -> tuple[str, ...]:
    return (
        f"{difference.items:,}",
        number(difference.baseline),
        number(difference.candidate),
        signed(difference.drop),
        p_value(difference, verdict),
    )


def _legend(comparison: Comparison) -> str:
    text = f"* significant at {ALPHA}"
    if len(comparison.subjects) == 1:
        return text
    return f"{text}; subjects: largest drops first, p Holm-adjusted over {_paired(comparison)}"


def _more_worse(comparison: Comparison) -> str | None:
    """Subjects that are significantly worse by less than the drops that are shown."""
    worse = comparison.worst(len(comparison.subjects))
    names = [
        f"{one_line(subject)} ({signed(one.drop)}, p {p_value(one, True).rstrip(' *')})"
        for subject, one in worse[_WORST:]
        if one.adjusted <= ALPHA
    ]
    return f"significantly worse too: {', '.join(names)}" if names else None


def _totals(comparison: Comparison) -> str:
    whole = comparison.overall
    if whole.drop is None:
        return "no item is in both runs"
    return (
        f"drop {signed(whole.drop)}, 95 % interval {interval(whole.interval)};"
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
            told = count(len(items), "item")
            parts.append(f"{told} only in the {side} ({_examples(items)})")
    for errors, side in (
        (comparison.errors_baseline, "baseline"),
        (comparison.errors_candidate, "candidate"),
    ):
        if errors:
            parts.append(f"{count(errors, 'item')} with an error in the {side}")
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


def fields(mismatches: Iterable[Mismatch]) -> str:
    """What differs, in a line."""
    return "; ".join(mismatch.text for mismatch in mismatches)


def _markdown_details(found: RunComparison, comparison: Comparison, flips: int) -> Iterator[str]:
    name, verdict = _name(found, comparison), found.comparable(comparison)
    if not verdict:
        told = gfm.code(fields(found.differences(comparison)))
        yield f"**{NO_VERDICT}** for {gfm.code(name)}: {told}"
    worst = comparison.worst(_WORST)
    if worst and len(comparison.subjects) > 1:
        rows = [(gfm.cell(subject), *_cells(one, verdict)) for subject, one in worst]
        yield f"Worst subjects of {gfm.code(name)} ({len(worst)} of {_paired(comparison)}):"
        yield gfm.table(("subject", *_COLUMNS), rows)
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


def p_value(difference: Difference, verdict: bool) -> str:
    """The adjusted p value, starred where it is significant; nothing where there is no verdict."""
    if not verdict or difference.items == 0:
        return "-"
    return probability(difference.adjusted) + (" *" if difference.adjusted <= ALPHA else "  ")
