"""Results in words, as verdicts tell them: what was counted, what is missing, what failed."""

from __future__ import annotations

from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result

NO_MEASUREMENT = "not a measurement"


def counted(metric: str, result: Result) -> str:
    """What the measured value was counted from, in words."""
    counts = result.counts
    if metric == "error_rate":
        return f"{errors(counts.error)} in {answers(counts.attempted, result.samples)}"
    for name, events in (("unparsed", counts.unparsed), ("truncated", counts.truncated)):
        if metric == f"{name}_rate":
            text = f"{events:,} of {counts.answered:,} answers {name}"
            return f"{text}, beside {errors(counts.error)}" if counts.error else text
    noun = "" if result.samples == 1 else " answers"
    text = f"{counts.correct:,} of {counts.attempted:,}{noun} correct"
    if result.samples > 1:
        items = counts.attempted // result.samples
        text += f" ({answers(items)}, {result.samples} samples each)"
    if counts.error:
        text += (
            f" counting {errors(counts.error)}, {counts.correct:,} of {counts.answered:,} answered"
        )
    if metric == "macro_accuracy":
        present = sum(1 for subject in result.subjects.values() if subject.attempted)
        text += f" in {present:,} subject{'s' if present != 1 else ''}"
    if metric == "normalized_gain" and result.chance is not None:
        text += f", chance {result.chance:.4g}"
    return text


def drawn(result: Result) -> str:
    """How much of the benchmark a random draw has, in words."""
    counts = result.counts
    items = answers(counts.total // result.samples)
    return f"sampled {counts.attempted // result.samples:,} of {items}"


def not_all(result: Result) -> str:
    """How much of the items was run, where it was not all, in words."""
    counts = result.counts
    noun = answers(counts.total, result.samples)
    if not counts.attempted:
        return f"none of {noun} was run" if counts.total else "no items"
    return f"only {counts.attempted:,} of {noun} were run"


def too_many(found: int, limit: int) -> str | None:
    """Why the errors leave a result incomplete; None when they are within the limit."""
    return f"incomplete: {errors(found)} (max_errors {limit})" if found > limit else None


def too_many_together(here: int, everywhere: int, limit: int) -> str | None:
    """Why the errors leave a subject incomplete that shares the allowance of all subjects."""
    if here and everywhere > limit:
        return f"incomplete: {errors(here)} here, {everywhere:,} in all (max_errors {limit})"
    return None


def errors(count: int) -> str:
    """``3 errors``."""
    return f"{count:,} error{'s' if count != 1 else ''}"


def no_measurement(counts: Counts) -> str | None:
    """Why answers are not a measurement of their model; None where they are one."""
    return None if counts.is_measurement else f"{NO_MEASUREMENT}: {all_tied(counts)}"


def all_tied(counts: Counts) -> str:
    """On how many of the answers every choice had the same log-likelihood, in words."""
    return (
        "all options have the same log-likelihood in"
        f" {counts.all_tied:,} of {answers(counts.answered)} ({counts.all_tied_rate or 0:.1%})"
    )


def answers(count: int, samples: int = 1) -> str:
    """``3 items``, or ``3 answers`` where an item has several."""
    return f"{count:,} {'item' if samples == 1 else 'answer'}{'s' if count != 1 else ''}"
