"""Gates and results to verdicts: what passed, what failed, and what could not be decided.

Rule 1: an error is not an answer. A gate over items that ended in errors fails, saying so,
unless ``max_errors`` allows them; then accuracy, macro accuracy and gain pass only if they
would pass whatever those items had been answered. Rule 2: a gate over items that were not run is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Literal

from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import macro_accuracy
from pytest_llmeval.metrics import normalized_gain
from pytest_llmeval.metrics import wilson_interval

from .mistakes import dotted
from .thresholds import BenchmarkGates
from .thresholds import Bound
from .thresholds import ScorerGates
from .thresholds import SubjectGates
from .thresholds import Thresholds

Status = Literal["pass", "fail", "undecided", "not run"]

# A measured value this close to a bound has reached it. It is far above the rounding of the
# few operations on floats behind a value, and far below what one item can move: c/n and a bound of
# d decimals are equal or at least 1 / (n 10^d) apart, which is more for any n 10^d < 10^12.
TOLERANCE = 1e-12

_METRICS = ("accuracy", "macro_accuracy", "normalized_gain", "unparsed_rate")


@dataclass(frozen=True)
class Verdict:
    """What became of one gate.

    ``id`` is stable: ``mmlu::subjects.anatomy::accuracy``, with the model in front when several
    ran. ``measured`` is in the metric's own unit (a proportion; for ``max_errors`` a number of
    items) and None where the result is incomplete. ``interval`` is Wilson's, of the bound's
    confidence or 95 %, None where there is no closed form. ``n`` counts the items behind
    ``measured``. ``model`` is None where the verdict concerns all models.
    """

    id: str
    model: str | None
    benchmark: str
    scorer: str | None
    subject: str | None
    metric: str | None
    bound: str
    measured: float | None
    interval: tuple[float, float] | None
    n: int
    status: Status
    reason: str
    min: float | None = None
    max: float | None = None


def judge(
    thresholds: Thresholds,
    results: Sequence[Result],
    models: Sequence[str],
    collected: Iterable[str],
) -> list[Verdict]:
    """Verdicts on every gate of the file, for every model that ran.

    ``collected`` names the benchmarks this run asked for, answered or not. The order is that
    of models and of the file, whatever the order of ``results``.
    """
    found: dict[tuple[str, str], dict[str, Result]] = {}
    for result in results:
        by_scorer = found.setdefault((result.model, result.benchmark), {})
        if result.scorer in by_scorer:
            raise ValueError(f"two results for {result.benchmark!r} under {result.scorer!r}")
        by_scorer[result.scorer] = result
    asked = {*collected, *(result.benchmark for result in results)}
    # A result of a model that is not in the list is judged too: nothing stays ungated unseen.
    every = dict.fromkeys([*models, *sorted({result.model for result in results})])
    gates = {model: thresholds.for_model(model) for model in every}
    verdicts = []
    for model, tables in gates.items():
        prefix = f"{model}::" if len(gates) > 1 else ""
        for name, table in tables.items():
            if name in asked:
                answers = found.get((model, name), {})
                if table.required and not any(r.counts.attempted for r in answers.values()):
                    reason = "required but no item was run"
                    verdicts.append(_absent(f"{prefix}{name}", model, name, "fail", reason))
                verdicts += _judge_benchmark(prefix, model, name, table, answers)
    return verdicts + _not_run(gates, asked)


def overall(verdicts: Iterable[Verdict], allow_undecided: bool = False) -> Literal["pass", "fail"]:
    """The build: red for any failed gate, and, unless allowed, for an undecided one or for none
    decided at all.
    """
    statuses = {verdict.status for verdict in verdicts}
    if "fail" in statuses:
        return "fail"
    if allow_undecided:
        return "pass"
    return "pass" if "pass" in statuses and "undecided" not in statuses else "fail"


def describe(verdict: Verdict) -> str:
    """A verdict on one line: status, id, measured value, bound, interval, reason.

    ``PASS mmlu::accuracy: 0.2814 (bound >= 0.28) [0.2740, 0.2889] 3,951 of 14,042 correct``
    """
    parts = [f"{verdict.status.upper()} {verdict.id}:"]
    if verdict.measured is not None:
        parts.append(_show(verdict))
    elif verdict.bound:
        parts.append("-")
    if verdict.bound:
        parts.append(f"(bound {verdict.bound})")
    if verdict.interval is not None:
        parts.append(f"[{verdict.interval[0]:.4f}, {verdict.interval[1]:.4f}]")
    return " ".join(" ".join([*parts, verdict.reason]).split())


def _show(verdict: Verdict) -> str:
    """The measured value, with more than four decimals where fewer would hide what decided."""
    value = verdict.measured
    if value is None or verdict.metric == "max_errors":
        return f"{value or 0:.0f}"
    bounds = [bound for bound in (verdict.min, verdict.max) if bound is not None]
    for digits in range(4, 13):
        shown = f"{value:.{digits}f}"
        if all(_side(float(shown), bound) == _side(value, bound) for bound in bounds):
            break
    return shown


def _side(value: float, bound: float) -> int:
    return 0 if abs(value - bound) <= TOLERANCE else int(math.copysign(1, value - bound))


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a gate stands: the beginning of its verdict's id, and what it covers."""

    id: str
    model: str
    benchmark: str
    scorer: str | None = None
    subject: str | None = None

    def verdict(
        self,
        metric: str,
        bound: Bound | None,
        status: Status,
        reason: str,
        *,
        text: str = "",
        measured: float | None = None,
        interval: tuple[float, float] | None = None,
        n: int = 0,
        maximum: float | None = None,
    ) -> Verdict:
        return Verdict(
            id=f"{self.id}::{metric}",
            model=self.model,
            benchmark=self.benchmark,
            scorer=self.scorer,
            subject=self.subject,
            metric=metric,
            bound=bound.text if bound else text,
            measured=measured,
            interval=interval,
            n=n,
            status=status,
            reason=reason,
            min=bound.min if bound else None,
            max=bound.max if bound else maximum,
        )


@dataclass(frozen=True, slots=True)
class _Measured:
    """A metric: ``low`` and ``high`` differ where errors leave open what it would have been."""

    low: float
    high: float
    interval: tuple[float, float] | None
    n: int


def _not_run(gates: Mapping[str, Mapping[str, BenchmarkGates]], asked: set[str]) -> list[Verdict]:
    """One verdict for each benchmark that the file names and the run did not ask for."""
    only = next(iter(gates)) if len(gates) == 1 else None
    required: dict[str, bool] = {}
    for tables in gates.values():
        for name, table in tables.items():
            if name not in asked:
                required[name] = required.get(name, False) or table.required
    return [
        _absent(name, only, name, "fail", "required but not run")
        if needed
        else _absent(name, only, name, "not run", "not part of this run")
        for name, needed in required.items()
    ]


def _absent(id: str, model: str | None, benchmark: str, status: Status, reason: str) -> Verdict:
    """The verdict on a benchmark of which nothing was run."""
    return Verdict(
        id=id,
        model=model,
        benchmark=benchmark,
        scorer=None,
        subject=None,
        metric=None,
        bound="",
        measured=None,
        interval=None,
        n=0,
        status=status,
        reason=reason,
    )


def _judge_benchmark(
    prefix: str, model: str, name: str, table: BenchmarkGates, results: Mapping[str, Result]
) -> Iterator[Verdict]:
    if table.direct:
        scope = _Scope(f"{prefix}{name}", model, name)
        if len(results) > 1:
            reason = (
                f"runs under {len(results)} scorers ({', '.join(sorted(results))}):"
                f" put its gates under [{dotted(('benchmarks', name, 'scorers'))}.NAME]"
            )
            yield from _undecided(scope, table, reason)
        else:
            yield from _judge_result(scope, table, next(iter(results.values()), None))
    for scorer, gates in table.scorers.items():
        scope = _Scope(f"{prefix}{name}::scorers.{scorer}", model, name, scorer)
        if results and scorer not in results:
            yield from _undecided(scope, gates, f"scorer {scorer!r} did not run")
        else:
            yield from _judge_result(scope, gates, results.get(scorer))


def _undecided(scope: _Scope, gates: ScorerGates | SubjectGates, reason: str) -> Iterator[Verdict]:
    """Every gate of a table, none of which can be decided."""
    for metric in _METRICS:
        bound: Bound | None = getattr(gates, metric, None)
        if bound is not None:
            yield scope.verdict(metric, bound, "undecided", reason)
    if gates.max_errors is not None:
        limit = gates.max_errors
        yield scope.verdict(
            "max_errors", None, "undecided", reason, text=f"<= {limit}", maximum=limit
        )
    if isinstance(gates, ScorerGates):
        if gates.every_subject is not None:
            inner = replace(scope, id=f"{scope.id}::every_subject")
            yield from _undecided(inner, gates.every_subject, reason)
        for subject, table in gates.subjects.items():
            yield from _undecided(_inside(scope, "subjects.", subject), table, reason)


def _judge_result(scope: _Scope, gates: ScorerGates, result: Result | None) -> Iterator[Verdict]:
    """The gates of a table over one result."""
    if result is None:
        yield from _undecided(scope, gates, "no item was run")
        return
    scope = replace(scope, scorer=result.scorer)
    limit = gates.max_errors or 0
    errors = result.counts.error  # once: a sum over all subjects
    yield from _judge_table(scope, gates, result, _too_many(errors, limit))
    if gates.every_subject is not None:
        for subject in sorted(result.subjects):
            inner = _inside(scope, "every_subject::", subject)
            yield from _judge_subject(inner, subject, gates.every_subject, result, errors, limit)
    for subject, table in gates.subjects.items():
        inner = _inside(scope, "subjects.", subject)
        yield from _judge_subject(inner, subject, table, result, errors, limit)


def _inside(scope: _Scope, kind: str, subject: str) -> _Scope:
    return replace(scope, id=f"{scope.id}::{kind}{subject}", subject=subject)


def _judge_subject(
    scope: _Scope, subject: str, gates: SubjectGates, result: Result, errors: int, limit: int
) -> Iterator[Verdict]:
    """The gates of one subject, decided by its own items, whatever else was run.

    Its errors are allowed by its own ``max_errors``, or else by the benchmark's: then they
    share that allowance with the ``errors`` of all subjects.
    """
    counts = result.subjects.get(subject, Counts(0))
    if gates.max_errors is not None:
        incomplete = _too_many(counts.error, gates.max_errors)
    elif counts.error and errors > limit:
        incomplete = (
            f"incomplete: {_errors(counts.error)} here, {errors:,} in all (max_errors {limit})"
        )
    else:
        incomplete = None
    yield from _judge_table(scope, gates, replace(result, subjects={subject: counts}), incomplete)


def _judge_table(
    scope: _Scope, gates: ScorerGates | SubjectGates, result: Result, incomplete: str | None
) -> Iterator[Verdict]:
    """The metrics and ``max_errors`` of one table over the subjects that ``result`` has.

    ``incomplete`` says that there were more errors than allowed.
    """
    for metric in _METRICS:
        bound: Bound | None = getattr(gates, metric, None)
        if bound is not None:
            yield _judge_metric(scope, metric, bound, result, incomplete)
    if gates.max_errors is not None:
        yield _judge_errors(scope, gates.max_errors, result.counts)


def _judge_errors(scope: _Scope, limit: int, counts: Counts) -> Verdict:
    status: Status
    incomplete = _too_many(counts.error, limit)
    if incomplete:
        status, reason = "fail", incomplete
    elif counts.attempted and not counts.answered:
        status, reason = "undecided", f"no item was answered: {_errors(counts.error)}"
    elif counts.missing or not counts.total:
        status, reason = "undecided", _not_all(counts)
    else:
        status, reason = "pass", f"{_errors(counts.error)} in {_items(counts.total)}"
    return scope.verdict(
        "max_errors",
        None,
        status,
        reason,
        text=f"<= {limit}",
        measured=float(counts.error),
        n=counts.attempted,
        maximum=limit,
    )


def _judge_metric(
    scope: _Scope, metric: str, bound: Bound, result: Result, incomplete: str | None
) -> Verdict:
    counts = result.counts
    if incomplete:
        # No number: the one over the answered items flatters, the other blames the model.
        return scope.verdict(metric, bound, "fail", incomplete, n=counts.answered)
    measured = _MEASURES[metric](result, bound.confidence or 0.95) if counts.answered else None
    if measured is None:
        if counts.answered:
            reason = "no chance level to compare with"
        elif counts.error:
            reason = f"no item was answered: {_errors(counts.error)}"
        else:
            reason = _not_all(counts)
        return scope.verdict(metric, bound, "undecided", reason)
    if counts.missing:
        status: Status = "undecided"
        reason = _not_all(counts)
    else:
        status = _decide(bound, measured)
        reason = _count(metric, result)
        if bound.confidence is not None:
            how = {"pass": "is inside", "fail": "is outside", "undecided": "straddles"}[status]
            reason += f"; the {bound.confidence * 100:.12g} % interval {how} the bound"
    return scope.verdict(
        metric,
        bound,
        status,
        reason,
        # Of the two values that errors leave, the one that the bound is harder on.
        measured=measured.low if bound.min is not None else measured.high,
        interval=measured.interval,
        n=measured.n,
    )


def _decide(bound: Bound, measured: _Measured) -> Status:
    least = -math.inf if bound.min is None else bound.min - TOLERANCE
    most = math.inf if bound.max is None else bound.max + TOLERANCE
    if bound.confidence is None:
        return "pass" if measured.low >= least and measured.high <= most else "fail"
    if measured.interval is None:
        return "undecided"
    low, high = measured.interval
    if low >= least and high <= most:
        return "pass"
    return "fail" if high < least or low > most else "undecided"


def _measure_accuracy(result: Result, confidence: float) -> _Measured:
    """Accuracy with errors counted as wrong and as correct: between them lies the truth."""
    counts = result.counts
    n, best = counts.attempted, counts.correct + counts.error
    interval = (
        wilson_interval(counts.correct, n, confidence)[0],
        wilson_interval(best, n, confidence)[1],
    )
    return _Measured(counts.correct / n, best / n, interval, n)


def _measure_macro(result: Result, confidence: float) -> _Measured | None:
    subjects = result.subjects
    low = macro_accuracy({s: (c.correct, c.attempted) for s, c in subjects.items()})
    high = macro_accuracy({s: (c.correct + c.error, c.attempted) for s, c in subjects.items()})
    if low is None or high is None:
        return None
    return _Measured(low, high, None, result.counts.attempted)


def _measure_gain(result: Result, confidence: float) -> _Measured | None:
    """The gain of the accuracies: a linear function of them, so of their interval too."""
    chance = result.chance
    if chance is None or chance == 1:
        return None
    base = _measure_accuracy(result, confidence)
    values = [base.low, base.high, *(base.interval or ())]
    low, high, *interval = (normalized_gain(value, chance) or 0.0 for value in values)
    return _Measured(low, high, (interval[0], interval[1]), base.n)


def _measure_unparsed(result: Result, confidence: float) -> _Measured:
    """Share of the answers that could not be read. An error is no answer, so it is not in it."""
    counts = result.counts
    rate = counts.unparsed / counts.answered
    interval = wilson_interval(counts.unparsed, counts.answered, confidence)
    return _Measured(rate, rate, interval, counts.answered)


_MEASURES: Mapping[str, Callable[[Result, float], _Measured | None]] = {
    "accuracy": _measure_accuracy,
    "macro_accuracy": _measure_macro,
    "normalized_gain": _measure_gain,
    "unparsed_rate": _measure_unparsed,
}


def _count(metric: str, result: Result) -> str:
    """What the measured value was counted from."""
    counts = result.counts
    if metric == "unparsed_rate":
        text = f"{counts.unparsed:,} of {counts.answered:,} answers unparsed"
        return f"{text}, beside {_errors(counts.error)}" if counts.error else text
    text = f"{counts.correct:,} of {counts.attempted:,} correct"
    if counts.error:
        text += (
            f" counting {_errors(counts.error)}, {counts.correct:,} of {counts.answered:,} answered"
        )
    if metric == "macro_accuracy":
        present = sum(1 for subject in result.subjects.values() if subject.total)
        text += f" in {present:,} subject{'s' if present != 1 else ''}"
    if metric == "normalized_gain" and result.chance is not None:
        text += f", chance {result.chance:.4g}"
    return text


def _too_many(errors: int, limit: int) -> str | None:
    """Why the errors leave a result incomplete; None when they are within the limit."""
    return f"incomplete: {_errors(errors)} (max_errors {limit})" if errors > limit else None


def _not_all(counts: Counts) -> str:
    if not counts.attempted:
        return f"none of {_items(counts.total)} was run" if counts.total else "no items"
    return f"only {counts.attempted:,} of {_items(counts.total)} were run"


def _errors(count: int) -> str:
    return f"{count:,} error{'s' if count != 1 else ''}"


def _items(count: int) -> str:
    return f"{count:,} item{'s' if count != 1 else ''}"
