"""Summary of a run in the terminal: verdict, gates, results, weakest subjects, run folder."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import group_subject_verdicts
from pytest_llmeval.gates import sort_worst_first
from pytest_llmeval.gates import verdict_heading
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.gates import verdict_reason
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import summarize
from pytest_llmeval.reports.formatting import WIDTH
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import escape_workflow_commands
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import signed
from pytest_llmeval.reports.formatting import visible
from pytest_llmeval.reports.formatting import wrap_text
from pytest_llmeval.reports.terminal.audit import Pair
from pytest_llmeval.reports.terminal.audit import audit_parts
from pytest_llmeval.reports.terminal.audit import pair_parts
from pytest_llmeval.reports.terminal.comparison import comparison_parts
from pytest_llmeval.reports.terminal.tables import add_number_columns
from pytest_llmeval.reports.terminal.tables import open_table
from pytest_llmeval.reports.wording import all_tied_words
from pytest_llmeval.reports.wording import resolved_words
from pytest_llmeval.reports.wording import sampled_words
from pytest_llmeval.reports.wording import stopped_words
from pytest_llmeval.reports.wording import tie_words
from pytest_llmeval.reports.wording import truncated_words
from pytest_llmeval.reports.wording import undecided_words
from pytest_llmeval.reports.wording import weakest_subjects
from pytest_llmeval.runs.comparison import RunComparison
from pytest_llmeval.storage.folder import run_name

_WEAKEST = 5
_PASSED = 20  # gates that passed
_INDENT = "     "  # of a gate's reason on a line of its own
_STYLES = {
    "failed": "red",
    "undecided": "yellow",
    "warned": "yellow",
    "passed": "green",
    "not run": "dim",
}


def write_summary(terminalreporter: Any, parts: Iterable[Any]) -> None:
    """Write renderables to pytest's terminal under the heading ``llmeval``."""
    terminalreporter.section("llmeval", sep="=")
    # A log has no width, for which pytest assumes 80 columns: names would be broken.
    columns = terminalreporter.config.get_terminal_writer().fullwidth
    console = Console(
        width=max(60, min(WIDTH, columns)) if terminalreporter.isatty else WIDTH,
        force_terminal=terminalreporter.hasmarkup,
        no_color=not terminalreporter.hasmarkup,
        highlight=False,
    )
    with console.capture() as capture:
        _put(console, parts)
    terminalreporter.write(escape_workflow_commands(capture.get()))


def print_parts(parts: Iterable[Any]) -> None:
    """Print renderables to standard output."""
    console = Console(highlight=False)
    with console.capture() as capture:
        _put(console, parts)
    console.file.write(escape_workflow_commands(capture.get()))


def print_line(text: str) -> None:
    """Print text to standard output."""
    print(escape_workflow_commands(text))


def _put(console: Console, parts: Iterable[Any]) -> None:
    for part in parts:
        if isinstance(part, Text) and not part.spans:
            # The text contains names from outside, which must not control the terminal.
            part = Text(visible(part.plain), part.style)
        # Text is wrapped before; rich would break names.
        console.print(part, soft_wrap=isinstance(part, Text))


def summary_parts(
    results: Sequence[Result],
    verdicts: Sequence[Verdict] | None,
    notes: Iterable[str],
    folder: Path | None,
    comparison: RunComparison | None = None,
    pairs: Iterable[Pair] = (),
    failures: Iterable[str] = (),
    *,
    headline: str | None = None,
    allowed: bool = False,
    width: int | None = WIDTH,
) -> Iterator[Any]:
    """Yield the summary as rich renderables, in the order of all reports.

    ``verdicts``: None if nothing was gated. ``folder``: None if the run folder was removed.
    ``pairs``: texts against letters, entries of ``metrics.json``. ``failures``: lines about items
    with errors. ``headline``: the verdict in a line. ``allowed``: undecided gates do not fail the
    build. ``width``: columns of a line of text, None for any length.
    """
    if headline is not None:
        style = {"PASS": "bold green", "FAIL": "bold red"}.get(headline.partition(":")[0], "bold")
        yield wrap(Text(headline, style=style), width)
    if verdicts is not None:
        yield from _gate_lines(verdicts, allowed, width)
        yield Text("")
    for part in _measured_parts(results, comparison, list(pairs), failures):
        yield wrap(part, width) if isinstance(part, Text) else part
    for note in notes:
        yield wrap(Text(note, style="yellow"), width)
    if folder is None:
        yield Text("no answer was received: the run folder was removed")
    else:
        yield Text(f"run: {run_name(folder)}")


def wrap(text: Text, width: int | None) -> Text:
    """Return the text in lines of at most ``width`` columns; words and styled texts stay whole."""
    if width is None or len(text.plain) <= width or text.spans:
        return text
    return Text(wrap_text(text.plain, width), text.style)


def _measured_parts(
    results: Sequence[Result],
    comparison: RunComparison | None,
    pairs: Sequence[Pair],
    failures: Iterable[str],
) -> Iterator[Any]:
    """Yield results with their weakest subjects and audits, errors, and the comparison."""
    models = list(dict.fromkeys(result.model for result in results))
    benchmarks = list(dict.fromkeys(result.benchmark for result in results))
    results = sorted(results, key=lambda result: benchmarks.index(result.benchmark))
    for model in models:
        # Computed once: with many samples the intervals of pass@k are bootstrapped.
        summaries = [(result, summarize(result)) for result in results if result.model == model]
        if len(models) > 1:
            yield Text(f"model {one_line(model)}", style="bold")
        yield _results_table(summaries)
        yield from _remarks(summaries)
        yield from _weakest_subjects(summaries)
        yield from audit_parts(result for result, _ in summaries)
        yield from pair_parts(pair for pair in pairs if pair["model"] == model)
    for failure in failures:
        yield Text(failure, style="red")
    if comparison is not None:
        yield from comparison_parts(comparison)


def _results_table(results: Iterable[tuple[Result, dict[str, Any]]]) -> Table:
    table = open_table(collapse=True)
    table.add_column("benchmark[scorer]", overflow="fold")
    add_number_columns(table, "n", "accuracy", "macro", "gain", "unparsed", "errors")
    for result, numbers in results:
        counts = result.counts
        times = f"×{result.samples}" if result.samples > 1 else ""
        table.add_row(
            Text(result.name),
            f"{-(-counts.attempted // result.samples):,}{times}",
            _accuracy(numbers),
            number(numbers["macro_accuracy"]),
            signed(numbers["normalized_gain"]),
            str(counts.unparsed),
            str(counts.error),
        )
    return table


def _accuracy(numbers: dict[str, Any]) -> str:
    if numbers["accuracy"] is None:
        return "-"
    error = numbers["standard_error"]
    return f"{numbers['accuracy']:.4f}" + ("" if error is None else f" ± {error:.4f}")


def _remarks(results: Iterable[tuple[Result, dict[str, Any]]]) -> Iterable[Text]:
    for result, numbers in results:
        counts, name = result.counts, result.name
        unit = "answers were requested" if result.samples > 1 else "items were run"
        if result.sampled and numbers["sampled"] is None:
            items = sum((result.drawn or {}).values())
            yield Text(f"{name}: sampled {items:,} of {numbers['items']:,} items", style="yellow")
        elif numbers["sampled"] is not None:
            yield Text(f"{name}: {sampled_words(numbers)}", style="yellow")
        elif stopped := stopped_words(numbers):
            yield Text(f"{name}: {stopped}", style="yellow")
        elif counts.missing:
            yield Text(
                f"{name}: only {counts.attempted:,} of {counts.total:,} {unit}", style="yellow"
            )
        if result.samples > 1:
            yield from _samples(name, numbers)
        if resolved := resolved_words(numbers):
            yield Text(f"{name}: {resolved}")
        if truncated := truncated_words(numbers):
            yield Text(f"{name}: {truncated}", style="yellow")
        if counts.error:
            yield Text(
                f"{name} is incomplete: {count(counts.error, 'error')}; {counts.correct:,} correct"
                f" of {counts.answered:,} answered"
                f" ({counts.answered + counts.error:,} including errors)",
                style="red",
            )
        if result.dropped_shots:
            yield Text(
                f"{name}: {count(result.dropped_shots, 'item')} {_were(result.dropped_shots)}"
                " run with fewer shots than the protocol has (prompt window, or copies left out)",
                style="yellow",
            )
        if all_tied := all_tied_words(numbers):
            style = "yellow" if result.is_measurement else "red"
            yield Text(f"{name}: {all_tied}", style=style)
        if result.encoded_apart:
            yield Text(
                f"{name}: {count(result.encoded_apart, 'item')} {_were(result.encoded_apart)}"
                " scored with choices encoded separately, because their text merges with the end of"
                " the prompt into one token",
                style="yellow",
            )
        if result.ties:
            yield Text(f"{name}: {count(result.ties, 'tie')}, {tie_words(result.scorer)}")


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _samples(name: str, numbers: dict[str, Any]) -> Iterable[Text]:
    """Yield pass@k, the spread over samples, and whether more samples or more items would help."""
    passes = [
        f"{metric.replace('k', k)} {entry['value']:.4f}"
        for metric in ("pass@k", "pass^k")
        for k, entry in (numbers[metric] or {}).items()
        if entry is not None and (metric, k) != ("pass^k", "1")
    ]
    if passes:
        yield Text(f"{name}: {', '.join(passes)}")
    if (spread := numbers["by_sample"]) is not None:
        low, high = spread["interval95"]
        same = f"{name}: the accuracy is the same in all {numbers['samples']} samples"
        yield Text(
            f"{name}: over {numbers['samples']} samples of these items the accuracy varies by"
            f" ± {spread['variance'] ** 0.5:.4f}; its mean is between {low:.4f} and {high:.4f} (95 %)"
            if spread["variance"]
            else same
        )
    parts = numbers["variance"]
    if parts is not None and parts["items_share"] is not None:
        share = parts["items_share"]
        advice = "more samples would help as well" if share < 0.5 else "only more items would help"
        yield Text(
            f"{name}: {share:.0%} of the variance of the accuracy is between items: {advice}"
        )


def _weakest_subjects(results: Iterable[tuple[Result, dict[str, Any]]]) -> Iterable[Text]:
    for result, numbers in results:
        total, weakest = weakest_subjects(numbers, _WEAKEST)
        if weakest:
            yield Text(f"weakest of {total} subjects, {result.name}:")
        for entry in weakest:
            yield Text(f"  {one_line(entry.subject):<40} {entry.text}")


def _gate_lines(verdicts: Sequence[Verdict], allowed: bool, width: int | None) -> Iterable[Text]:
    """Yield the gates, worst first; of many that passed only those nearest to their bounds."""
    grouped = sort_worst_first(group_subject_verdicts(verdicts))
    passed = [verdict for verdict in grouped if verdict.state == "passed"]
    # The sort is stable: gates without a margin stay in the order of the file.
    nearest = sorted(passed, key=lambda gate: math.inf if gate.margin is None else gate.margin)
    hidden = {verdict.id for verdict in nearest[_PASSED:]}
    last = passed[-1] if hidden else None
    for verdict in grouped:
        if verdict.id not in hidden:
            yield Text(_gate_text(verdict, width), style=_STYLES[verdict.state])
        if verdict is last:
            more = count(len(hidden), "more gate")
            yield Text(f"and {more} passed, further from the bounds; see gates.json", style="green")
    if not allowed and (undecided := count_states(verdicts).get("undecided")):
        yield wrap(Text(undecided_words(undecided), style="yellow"), width)


def _gate_text(verdict: Verdict, width: int | None) -> str:
    """Return the verdict on one line if it fits, else its reason on lines of its own."""
    line = verdict_line(verdict)
    if width is None or len(line) <= width:
        return line
    heading, reason = verdict_heading(verdict), verdict_reason(verdict)
    parts = heading.split(": ", 1) if len(heading) > width else [heading]
    lines = [part if part is parts[-1] else f"{part}:" for part in parts]
    first, *others = [*lines, reason] if reason else lines
    return "\n".join([first, *(wrap_text(text, width, _INDENT, _INDENT) for text in others)])
