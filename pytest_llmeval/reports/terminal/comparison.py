"""Comparison of two runs item by item, for the terminal and as Markdown for a pull request."""

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
from pytest_llmeval.reports.terminal.tables import add_number_columns
from pytest_llmeval.reports.terminal.tables import compact_table
from pytest_llmeval.runs.comparison import ALPHA
from pytest_llmeval.runs.comparison import STOPPED
from pytest_llmeval.runs.comparison import Mismatch
from pytest_llmeval.runs.comparison import RunComparison

FLIPS = 10
"""Default number of newly wrong and of newly right items that are listed."""

_WORST = 10
_COLUMNS = ("n", "baseline", "candidate", "drop", "p")
NO_VERDICT = "protocols or data differ: no verdict"


def no_verdict(mismatches: Sequence[Mismatch]) -> str:
    """Return why a comparison has no verdict."""
    only_stopped = all(mismatch.field == STOPPED for mismatch in mismatches)
    return "a run stopped before all items: no verdict" if only_stopped else NO_VERDICT


def comparison_parts(run_comparison: RunComparison, flips: int = FLIPS) -> Iterator[Any]:
    """Yield a comparison as rich renderables, readable at 80 columns."""
    for comparison in run_comparison.comparisons:
        verdict = run_comparison.comparable(comparison)
        yield Text(_title(run_comparison, comparison), style="bold")
        yield _table(comparison, verdict)
        if verdict:
            yield Text(_legend(comparison))
            if more := _more_worse(comparison):
                yield Text(more, style="red")
        else:
            differences = run_comparison.differences(comparison)
            yield Text(f"{no_verdict(differences)}: {fields(differences)}", style="yellow")
        yield Text(_totals(comparison))
        for line in _flip_lines(comparison, flips):
            yield Text(line)
        if unpaired := _unpaired(comparison):
            yield Text(f"not paired: {unpaired}", style="yellow")
    for line in _unpaired_results(run_comparison):
        yield Text(line, style="yellow")


def comparison_markdown(run_comparison: RunComparison, flips: int = FLIPS) -> str:
    """Return a comparison as GitHub Markdown."""
    blocks = [
        f"### {gfm.code_span(run_comparison.baseline)} → {gfm.code_span(run_comparison.candidate)}"
    ]
    header = ("result", "n", "baseline", "candidate", "drop", "95 % interval")
    rows = []
    for comparison in run_comparison.comparisons:
        whole, verdict = comparison.overall, run_comparison.comparable(comparison)
        rows.append(
            (
                gfm.code_cell(_name(run_comparison, comparison)),
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
    for comparison in run_comparison.comparisons:
        blocks += _markdown_details(run_comparison, comparison, flips)
    blocks += [gfm.escape_markdown(line) for line in _unpaired_results(run_comparison)]
    return "\n\n".join(blocks) + "\n"


# Two runs --------------------------------------------------------------------------------


def _name(run_comparison: RunComparison, comparison: Comparison) -> str:
    """Return ``mmlu[letter]``, followed by the models if there are several pairs of them."""
    name = comparison.name
    if len({(other.baseline, other.candidate) for other in run_comparison.comparisons}) == 1:
        return name
    if comparison.baseline == comparison.candidate:
        return f"{name} {comparison.candidate}"
    return f"{name} {comparison.baseline} → {comparison.candidate}"


def _title(run_comparison: RunComparison, comparison: Comparison) -> str:
    sides = (
        (run_comparison.baseline, comparison.baseline),
        (run_comparison.candidate, comparison.candidate),
    )
    before, after = (f"{run} ({model})" for run, model in sides)
    return one_line(f"{comparison.name}: {before} → {after}")


def _table(comparison: Comparison, verdict: bool) -> Table:
    table = compact_table()
    table.add_column("", overflow="fold")
    add_number_columns(table, *_COLUMNS)
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
    """Return the number of subjects with items in both runs."""
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
    """List the significantly worse subjects that are not in the table; None if there are none."""
    worse = comparison.worst(len(comparison.subjects))
    names = [
        f"{one_line(subject)} ({signed(drop.drop)}, p {p_value(drop, True).rstrip(' *')})"
        for subject, drop in worse[_WORST:]
        if drop.adjusted <= ALPHA
    ]
    return f"also significantly worse: {', '.join(names)}" if names else None


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


def _part(items: Sequence[str], limit: int) -> str:
    return f" ({limit:,} of {len(items):,})" if len(items) > limit else ""


def _unpaired(comparison: Comparison) -> str:
    """Return why items of the runs are not paired; empty if all are."""
    parts = []
    for items, side in (
        (comparison.only_baseline, "baseline"),
        (comparison.only_candidate, "candidate"),
    ):
        if items:
            parts.append(f"{count(len(items), 'item')} only in the {side} ({_examples(items)})")
    for errors, side in (
        (comparison.errors_baseline, "baseline"),
        (comparison.errors_candidate, "candidate"),
    ):
        if errors:
            parts.append(f"{count(errors, 'item')} with an error in the {side}")
    in_neither = sum(comparison.sizes.values()) - comparison.overall.items
    if not parts and in_neither:
        parts.append(f"{in_neither:,} items of the benchmark are in neither run")
    return "; ".join(parts)


def _examples(items: Sequence[str]) -> str:
    return ", ".join(items[:3]) + (", …" if len(items) > 3 else "")


def _unpaired_results(run_comparison: RunComparison) -> Iterator[str]:
    for results, run in (
        (run_comparison.only_baseline, run_comparison.baseline),
        (run_comparison.only_candidate, run_comparison.candidate),
    ):
        if results:
            yield f"only in {run}: {', '.join(results)}"


def fields(mismatches: Iterable[Mismatch]) -> str:
    """Return the differences on one line."""
    return "; ".join(mismatch.text for mismatch in mismatches)


def _markdown_details(
    run_comparison: RunComparison, comparison: Comparison, flips: int
) -> Iterator[str]:
    name, verdict = _name(run_comparison, comparison), run_comparison.comparable(comparison)
    if not verdict:
        mismatches = run_comparison.differences(comparison)
        differences = gfm.code_span(fields(mismatches))
        yield f"**{no_verdict(mismatches)}** for {gfm.code_span(name)}: {differences}"
    worst = comparison.worst(_WORST)
    if worst and len(comparison.subjects) > 1:
        rows = [(gfm.code_cell(subject), *_cells(drop, verdict)) for subject, drop in worst]
        yield f"Worst subjects of {gfm.code_span(name)} ({len(worst)} of {_paired(comparison)}):"
        yield gfm.table(("subject", *_COLUMNS), rows)
    if verdict:
        yield gfm.escape_markdown(_legend(comparison))
        if more := _more_worse(comparison):
            yield f"**{gfm.escape_markdown(more)}**"
    for kind, items in (
        ("newly wrong", comparison.newly_wrong),
        ("newly right", comparison.newly_right),
    ):
        if items and flips:
            listed = ", ".join(gfm.code_span(item) for item in items[:flips])
            summary = f"{kind} in <code>{gfm.escape_html(name)}</code>{_part(items, flips)}"
            yield f"<details><summary>{summary}</summary>\n\n{listed}\n\n</details>"
    if unpaired := _unpaired(comparison):
        yield f"Not paired in {gfm.code_span(name)}: {gfm.escape_markdown(unpaired)}"


def p_value(difference: Difference, verdict: bool) -> str:
    """Return the adjusted p value, with a star if it is significant; ``-`` without a verdict."""
    if not verdict or difference.items == 0:
        return "-"
    return probability(difference.adjusted) + (" *" if difference.adjusted <= ALPHA else "  ")
