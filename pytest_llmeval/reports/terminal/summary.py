"""The summary at the end of a run, readable at 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import describe
from pytest_llmeval.gates import fold
from pytest_llmeval.gates import worst_first
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import summarize
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import harmless
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import signed
from pytest_llmeval.reports.formatting import visible
from pytest_llmeval.reports.terminal.audit import Pair
from pytest_llmeval.reports.terminal.audit import audit_parts
from pytest_llmeval.reports.terminal.audit import pair_parts
from pytest_llmeval.reports.terminal.comparison import comparison_parts
from pytest_llmeval.reports.terminal.tables import add_numbers
from pytest_llmeval.reports.terminal.tables import open_table
from pytest_llmeval.reports.wording import all_tied_words
from pytest_llmeval.reports.wording import tie_words
from pytest_llmeval.reports.wording import truncated_words
from pytest_llmeval.reports.wording import undecided_words
from pytest_llmeval.runs.comparison import RunComparison
from pytest_llmeval.storage.folder import run_name

_WEAKEST = 5
_PASSED = 20  # lines of gates that passed
_STYLES = {
    "failed": "red",
    "undecided": "yellow",
    "warned": "yellow",
    "passed": "green",
    "not run": "dim",
}


def write_summary(terminalreporter: Any, parts: Iterable[Any]) -> None:
    """Write the parts of a summary to pytest's terminal."""
    terminalreporter.section("llmeval", sep="=")
    console = Console(
        width=max(60, min(100, terminalreporter.config.get_terminal_writer().fullwidth)),
        force_terminal=terminalreporter.hasmarkup,
        no_color=not terminalreporter.hasmarkup,
        highlight=False,
    )
    with console.capture() as capture:
        _put(console, parts)
    terminalreporter.write(harmless(capture.get()))


def print_parts(parts: Iterable[Any]) -> None:
    """Print renderables to standard output."""
    console = Console(highlight=False)
    with console.capture() as capture:
        _put(console, parts)
    console.file.write(harmless(capture.get()))


def say(text: str) -> None:
    """Print text to standard output."""
    print(harmless(text))


def _put(console: Console, parts: Iterable[Any]) -> None:
    for part in parts:
        if isinstance(part, Text) and not part.spans:
            # The names in it are others', and nothing in them may act on the terminal.
            part = Text(visible(part.plain), part.style)
        # Lines are left to the terminal to wrap, so that a log can be searched.
        console.print(part, soft_wrap=isinstance(part, Text))


def summary_parts(
    results: Sequence[Result],
    verdicts: Sequence[Verdict] | None,
    notes: Iterable[str],
    folder: Path | None,
    comparison: RunComparison | None = None,
    pairs: Iterable[Pair] = (),
    failures: Iterable[str] = (),
) -> Iterable[Any]:
    """The summary as rich renderables, in order; ``verdicts`` is None when nothing was gated.

    ``pairs``: texts against letters, as ``metrics.json`` has them. ``failures``: lines about items
    with errors.
    """
    pairs = list(pairs)
    models = list(dict.fromkeys(result.model for result in results))
    benchmarks = list(dict.fromkeys(result.benchmark for result in results))
    results = sorted(results, key=lambda result: benchmarks.index(result.benchmark))
    for model in models:
        # Once: with many samples the intervals of pass@k are bootstrapped.
        own = [(result, summarize(result)) for result in results if result.model == model]
        if len(models) > 1:
            yield Text(f"model {one_line(model)}", style="bold")
        yield _results_table(own)
        yield from _remarks(own)
        yield from _weakest_subjects(own)
        yield from audit_parts(result for result, _ in own)
        yield from pair_parts(pair for pair in pairs if pair["model"] == model)
    if comparison is not None:
        yield from comparison_parts(comparison)
    for failure in failures:
        yield Text(failure, style="red")
    if verdicts is not None:
        yield from _gate_lines(verdicts)
    for note in notes:
        yield Text(note, style="yellow")
    if folder is None:
        yield Text("no answer was received: the run folder was removed")
    else:
        yield Text(f"run: {run_name(folder)}")


def _results_table(results: Iterable[tuple[Result, dict[str, Any]]]) -> Table:
    table = open_table(collapse=True)
    table.add_column("benchmark[scorer]", overflow="fold")
    add_numbers(table, "n", "accuracy", "macro", "gain", "unparsed", "errors")
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
        unit = "answers were asked for" if result.samples > 1 else "items were run"
        if result.sampled and numbers["sampled"] is None:
            drawn = sum((result.drawn or {}).values())
            yield Text(f"{name}: a draw of {drawn:,} of {numbers['items']:,} items", style="yellow")
        elif numbers["sampled"] is not None:
            drawn = numbers["sampled"]
            low, high = drawn["interval95"]
            yield Text(
                f"{name}: a draw of {drawn['items']:,} of {numbers['items']:,} items; the accuracy"
                f" over all of them is {drawn['accuracy']:.4f}, between {low:.4f} and {high:.4f}"
                " (95 %)",
                style="yellow",
            )
        elif counts.missing:
            yield Text(
                f"{name}: only {counts.attempted:,} of {counts.total:,} {unit}", style="yellow"
            )
        if result.samples > 1:
            yield from _samples(name, numbers)
        if truncated := truncated_words(numbers):
            yield Text(f"{name}: {truncated}", style="yellow")
        if counts.error:
            yield Text(
                f"{name} is incomplete: {count(counts.error, 'error')}; correct {counts.correct:,}"
                f" of {counts.answered:,} answered, of {counts.answered + counts.error:,}"
                " with errors",
                style="red",
            )
        if result.dropped_shots:
            yield Text(
                f"{name}: {count(result.dropped_shots, 'item')} {_were(result.dropped_shots)}"
                " asked with fewer shots than the protocol's (prompt window, or copies left out)",
                style="yellow",
            )
        if all_tied := all_tied_words(numbers):
            style = "yellow" if result.is_measurement else "red"
            yield Text(f"{name}: {all_tied}", style=style)
        if result.encoded_apart:
            yield Text(
                f"{name}: {count(result.encoded_apart, 'item')} {_were(result.encoded_apart)}"
                " scored with choices encoded apart from the prompt, with whose end their text"
                " merges into one token",
                style="yellow",
            )
        if result.ties:
            yield Text(f"{name}: {count(result.ties, 'tie')}, {tie_words(result.scorer)}")


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _samples(name: str, numbers: dict[str, Any]) -> Iterable[Text]:
    """What several samples tell: pass@k, and whether more samples or more items would help."""
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
            f"{name}: {share:.0%} of the variance of the accuracy lies between items: {advice}"
        )


def _weakest_subjects(results: Iterable[tuple[Result, dict[str, Any]]]) -> Iterable[Text]:
    for result, _ in results:
        if not result.is_measurement:
            continue
        rated = [
            (counts.correct / counts.answered, subject, counts)
            for subject, counts in result.subjects.items()
            if counts.answered and counts.is_measurement
        ]
        if len(rated) < 2:
            continue
        weakest = sorted(rated, key=lambda one: one[:2])[:_WEAKEST]
        yield Text(f"weakest of {len(rated)} subjects, {result.name}:")
        for accuracy, subject, counts in weakest:
            yield Text(
                f"  {one_line(subject):<40} {accuracy:.4f}  ({counts.correct}/{counts.answered})"
            )


def _gate_lines(verdicts: Sequence[Verdict]) -> Iterable[Text]:
    """One line per gate, worst first; of many that passed those nearest to their bounds."""
    shown = worst_first(fold(verdicts))
    passed = [verdict for verdict in shown if verdict.state == "passed"]
    # Stable: of gates without a margin, those that come first in the file.
    nearest = sorted(passed, key=lambda one: math.inf if one.margin is None else one.margin)
    left_out = {one.id for one in nearest[_PASSED:]}
    last = passed[-1] if left_out else None
    for verdict in shown:
        if verdict.id not in left_out:
            yield Text(describe(verdict), style=_STYLES[verdict.state])
        if verdict is last:
            told = count(len(left_out), "more gate")
            yield Text(f"and {told} passed, with more room; gates.json has all", style="green")
    if undecided := count_states(verdicts).get("undecided"):
        yield Text(undecided_words(undecided), style="yellow")
