"""Results in the format of ``metrics.json``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_llmeval.metrics.intervals import macro_interval
from pytest_llmeval.metrics.intervals import pass_at_k_interval
from pytest_llmeval.metrics.intervals import pass_hat_k_interval
from pytest_llmeval.metrics.intervals import stratified_accuracy
from pytest_llmeval.metrics.intervals import stratified_interval
from pytest_llmeval.metrics.intervals import tally_interval
from pytest_llmeval.metrics.proportions import accuracy
from pytest_llmeval.metrics.proportions import macro_standard_error
from pytest_llmeval.metrics.result import Counts
from pytest_llmeval.metrics.result import Result
from pytest_llmeval.metrics.samples import Tally
from pytest_llmeval.metrics.samples import clustered_standard_error
from pytest_llmeval.metrics.samples import mean_pass_at_k
from pytest_llmeval.metrics.samples import mean_pass_hat_k
from pytest_llmeval.metrics.samples import sample_spread
from pytest_llmeval.metrics.samples import variance_components

_KS = (1, 2, 5, 10, 20, 50, 100)


def summarize(result: Result) -> dict[str, Any]:
    """Return a result in the format of ``metrics.json``: JSON values, subjects sorted by name.

    Counts are in answers (items × samples); ``items`` is the number of items in the benchmark. A
    result with errors is incomplete: ``accuracy`` and all values derived from it are None, and
    ``accuracy_answered`` (without errors) and ``accuracy_with_errors`` (errors in the denominator)
    are given. ``accuracy`` is None also if the result is not a measurement, because most answers
    are all tied. If items were not run, ``accuracy`` is over the others and ``complete`` is false;
    ``sampled`` has the estimates for the whole benchmark from a random sample. ``stopped`` has the
    numbers of items of a sequential run that stopped early; its intervals are confidence sequences
    for the whole benchmark, which hold whenever it stopped, or None. With several samples there are
    also ``pass@k``, ``pass^k``, ``by_sample`` (accuracy by sample) and ``variance``
    (between and within items).
    """
    counts = result.counts
    has_accuracy = result.accuracy is not None
    has_interval = has_accuracy and not result.stopped
    tallies = {name: subject.tally for name, subject in result.subjects.items()}
    return {
        "model": result.model,
        "benchmark": result.benchmark,
        "scorer": result.scorer,
        "protocol": result.protocol,
        "samples": result.samples,
        "items": sum(map(result.items, result.subjects)),
        "measurement": counts.is_measurement,
        **_core(
            counts, counts.is_measurement, _stop_interval(result, counts, result.first_of_order)
        ),
        "macro_accuracy": result.macro_accuracy,
        "macro_standard_error": macro_standard_error(tallies) if has_interval else None,
        "macro_interval95": list(macro_interval(tallies)) if has_interval else None,
        "normalized_gain": result.normalized_gain,
        "chance": result.chance,
        "sampled": _sampled(result, tallies) if has_accuracy else None,
        **(_several_samples(result, has_interval) if result.samples > 1 else {}),
        **({"stopped": _stopped(result)} if result.stopped else {}),
        "dropped_shots": result.dropped_shots,
        **({"encoded_apart": result.encoded_apart} if result.encoded_apart else {}),
        "ties": result.ties,
        **({} if result.audit is None else {"audit": result.audit.as_json()}),
        "subjects": {
            name: {
                "items": result.items(name),
                **_core(part, counts.is_measurement, _stop_interval(result, part, True)),
            }
            for name, part in sorted(result.subjects.items())
        },
    }


def _stopped(result: Result) -> dict[str, int]:
    counts = result.counts
    return {
        "asked": counts.attempted // result.samples,
        "population": counts.total // result.samples,
    }


_PLAIN = object()
"""The interval of a run that did not stop early."""


def _stop_interval(result: Result, counts: Counts, in_order: bool | None) -> Any:
    """Return the 95 % confidence sequence of the accuracy of a stopped run; None if it has none.

    ``in_order``: whether the items are the first of a random order; those of a subject always are.
    """
    if not result.stopped:
        return _PLAIN
    if not in_order or result.samples > 1 or not counts.total:
        return None
    # Imported here because it imports numpy, which only sequential runs need.
    from pytest_llmeval.metrics.sequential.counts import count_interval

    ends = count_interval(counts.total, counts.answered, counts.correct, 0.05)
    return [end / counts.total for end in ends]


def _core(counts: Counts, measurement: bool, interval: Any) -> dict[str, Any]:
    """Return the fields that a result and its subjects have in common.

    ``measurement``: whether the whole result is a measurement; otherwise no subject is.
    ``interval``: as ``_stop_interval`` returns it.
    """
    usable = measurement and counts.is_measurement and not counts.error
    value = accuracy(counts.correct, counts.answered) if usable else None
    has_accuracy = value is not None
    tally = counts.tally
    return {
        "n_total": counts.total,
        "answered": counts.answered,
        "correct": counts.correct,
        "wrong": counts.wrong,
        "unparsed": counts.unparsed,
        "refused": counts.refused,
        "truncated": counts.truncated,
        "all_tied": counts.all_tied,
        "errors": counts.error,
        "missing": counts.missing,
        "complete": counts.complete,
        "accuracy": value,
        "standard_error": clustered_standard_error(tally)
        if has_accuracy and interval is _PLAIN
        else None,
        "wilson95": (list(tally_interval(tally)) if interval is _PLAIN else interval)
        if has_accuracy
        else None,
        "accuracy_answered": accuracy(counts.correct, counts.answered),
        "accuracy_with_errors": accuracy(counts.correct, counts.attempted),
        "unparsed_rate": accuracy(counts.unparsed, counts.answered),
        "refused_rate": accuracy(counts.refused, counts.answered),
        "truncated_rate": accuracy(counts.truncated, counts.answered),
        "all_tied_rate": counts.all_tied_rate,
        "error_rate": accuracy(counts.error, counts.attempted),
    }


def _sampled(result: Result, tallies: dict[str, Tally]) -> dict[str, Any] | None:
    """Return the estimates for the whole benchmark; None if the run is not a random sample."""
    if not result.sampled:
        return None
    sizes = {name: result.items(name) for name in result.subjects}
    return {
        "items": sum((result.drawn or {}).values()),
        "accuracy": stratified_accuracy(tallies, sizes),
        "interval95": list(stratified_interval(tallies, sizes, finite=True)),
    }


def _several_samples(result: Result, has_accuracy: bool) -> dict[str, Any]:
    if not has_accuracy:
        return dict.fromkeys(("pass@k", "pass^k", "by_sample", "variance"))
    tally, samples = result.counts.tally, result.samples
    parts = variance_components(tally)
    accuracies = [accuracy(correct, answered) for correct, answered in result.by_sample]
    spread = sample_spread([value for value in accuracies if value is not None])
    return {
        "pass@k": _passes(tally, samples, mean_pass_at_k, pass_at_k_interval),
        "pass^k": _passes(tally, samples, mean_pass_hat_k, pass_hat_k_interval),
        "by_sample": spread
        and {
            "accuracies": accuracies,
            "mean": spread.mean,
            "variance": spread.variance,
            "interval95": list(spread.interval),
        },
        "variance": parts
        and {
            "between_items": parts.between_items,
            "within_items": parts.within_items,
            "items_share": parts.items_share,
        },
    }


def _passes(
    tally: Tally,
    samples: int,
    mean: Callable[[Tally, int], float | None],
    interval: Callable[[Tally, int], tuple[float, float] | None],
) -> dict[str, Any]:
    by_k: dict[str, Any] = {}
    for k in _KS:
        if k <= samples:
            limits = interval(tally, k)
            value = mean(tally, k)
            by_k[str(k)] = limits and {"value": value, "interval95": list(limits)}
    return by_k
