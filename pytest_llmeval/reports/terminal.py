"""The summary at the end of a run, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import describe
from pytest_llmeval.gates import fold
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import summarize

_WEAKEST = 5
_STYLES = {"pass": "green", "fail": "red", "undecided": "yellow", "not run": "dim"}


def write_summary(terminalreporter: Any, parts: Iterable[Any]) -> None:
    """Write the parts of a summary to pytest's terminal."""
    terminalreporter.section("llmeval", sep="=")
    console = Console(
        width=max(60, min(100, terminalreporter._tw.fullwidth)),
        force_terminal=terminalreporter.hasmarkup,
        no_color=not terminalreporter.hasmarkup,
        highlight=False,
    )
    with console.capture() as capture:
        for part in parts:
            # Lines are left to the terminal to wrap, so that a log can be searched.
            console.print(part, soft_wrap=isinstance(part, Text))
    terminalreporter.write(capture.get())


def summary_parts(
    results: Sequence[Result],
    verdicts: Sequence[Verdict] | None,
    notes: Iterable[str],
    folder: Path,
) -> Iterable[Any]:
    """The summary as rich renderables, in order; ``verdicts`` is None when nothing was gated."""
    models = list(dict.fromkeys(result.model for result in results))
    for model in models:
        own = [result for result in results if result.model == model]
        if len(models) > 1:
            yield Text(f"model {model}", style="bold")
        yield _results_table(own)
        yield from _remarks(own)
        yield from _weakest_subjects(own)
    if verdicts is None:
        yield Text("nothing was gated: no thresholds.toml", style="yellow")
    else:
        yield from _gate_lines(verdicts)
    for note in notes:
        yield Text(note, style="yellow")
    yield Text(f"run: {_short(folder)}")


def _short(path: Path) -> Path:
    """A path as one would type it from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _results_table(results: Iterable[Result]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    table.add_column("benchmark[scorer]", overflow="fold")
    for name in ("n", "accuracy", "macro", "gain", "unparsed", "errors"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        counts, numbers = result.counts, summarize(result)
        table.add_row(
            escape(f"{result.benchmark}[{result.scorer}]"),
            f"{counts.attempted:,}",
            _accuracy(numbers),
            _number(numbers["macro_accuracy"]),
            _number(numbers["normalized_gain"], sign=True),
            str(counts.unparsed),
            str(counts.error),
        )
    return table


def _accuracy(numbers: dict[str, Any]) -> str:
    if numbers["accuracy"] is None:
        return "-"
    error = numbers["standard_error"]
    return f"{numbers['accuracy']:.4f}" + ("" if error is None else f" ± {error:.4f}")


def _number(value: float | None, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.4f}" if sign else f"{value:.4f}"


def _remarks(results: Iterable[Result]) -> Iterable[Text]:
    for result in results:
        counts, name = result.counts, f"{result.benchmark}[{result.scorer}]"
        if counts.missing:
            yield Text(
                f"{name}: only {counts.attempted:,} of {counts.total:,} items were run",
                style="yellow",
            )
        if counts.error:
            plural = "" if counts.error == 1 else "s"
            yield Text(
                f"{name} is incomplete: {counts.error:,} error{plural}; correct {counts.correct:,}"
                f" of {counts.answered:,} answered, of {counts.answered + counts.error:,}"
                " with errors",
                style="red",
            )
        if result.dropped_shots:
            yield Text(
                f"{name}: {result.dropped_shots:,} items were asked with fewer shots than the"
                " protocol's (prompt window, or copies left out)",
                style="yellow",
            )
        if result.ties:
            yield Text(f"{name}: {result.ties:,} ties, the first option was taken")


def _weakest_subjects(results: Iterable[Result]) -> Iterable[Text]:
    for result in results:
        rated = [
            (counts.correct / counts.answered, subject, counts)
            for subject, counts in result.subjects.items()
            if counts.answered
        ]
        if len(rated) < 2:
            continue
        weakest = sorted(rated, key=lambda one: one[:2])[:_WEAKEST]
        yield Text(f"weakest of {len(rated)} subjects, {result.benchmark}[{result.scorer}]:")
        for accuracy, subject, counts in weakest:
            yield Text(f"  {subject:<40} {accuracy:.4f}  ({counts.correct}/{counts.answered})")


def _gate_lines(verdicts: Sequence[Verdict]) -> Iterable[Text]:
    """One line per gate; subjects that passed or were not run are told together."""
    for verdict in fold(verdicts, {"pass", "undecided"}):
        yield Text(describe(verdict), style=_STYLES[verdict.status])
