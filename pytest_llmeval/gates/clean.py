"""Gates on the overlap of a benchmark with a corpus: its share, and the gain from its items.

Found text is often easier text, so that a gain is no evidence that a model has learnt the items; it
is what the published score owes to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace

from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.estimates import Estimate
from pytest_llmeval.gates.estimates import Measured
from pytest_llmeval.gates.estimates import decide
from pytest_llmeval.gates.estimates import decide_by_interval
from pytest_llmeval.gates.estimates import filled_tally
from pytest_llmeval.gates.metric_verdicts import judge_metric
from pytest_llmeval.gates.thresholds import MAX_GAIN
from pytest_llmeval.gates.thresholds import BenchmarkGates
from pytest_llmeval.gates.thresholds import CleanGates
from pytest_llmeval.gates.thresholds import ScorerGates
from pytest_llmeval.gates.verdict import TOLERANCE
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import answer_count
from pytest_llmeval.gates.verdict import measurement_problem
from pytest_llmeval.gates.verdict import shared_incomplete_reason
from pytest_llmeval.metrics import CleanResult
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import clean_gain
from pytest_llmeval.overlap.report import MOST_UNJUDGED
from pytest_llmeval.overlap.report import BenchmarkOverlap


@dataclass(frozen=True)
class Overlaps:
    """Overlap of the benchmarks of a run with a corpus; without arguments, none was searched."""

    #: Benchmark → its overlap, or the reason why it cannot be used.
    benchmarks: Mapping[str, BenchmarkOverlap | str] = field(default_factory=dict)
    #: (model, benchmark, scorer) → the result, divided.
    results: Mapping[tuple[str, str, str], CleanResult] = field(default_factory=dict)

    def of(self, benchmark: str) -> BenchmarkOverlap | str:
        """Return the overlap of a benchmark, or why there is none."""
        return self.benchmarks.get(
            benchmark, "no corpus was searched: llmeval overlap, then --llm-overlap DIR"
        )


NOT_SEARCHED = Overlaps()


def judge_max_overlap(scope: Scope, table: BenchmarkGates, overlaps: Overlaps) -> Iterator[Verdict]:
    """Judge the share of the items that overlap, whatever the run has answered."""
    limit = None if table.contamination is None else table.contamination.max_overlap
    if limit is None:
        return
    inner = Scope(f"{scope.id}::contamination", scope.model, scope.benchmark)
    overlap, text = overlaps.of(scope.benchmark), f"<= {limit:.12g}"
    if isinstance(overlap, str) or not overlap.judged:
        reason = overlap if isinstance(overlap, str) else "no item was judged"
        yield inner.verdict("max_overlap", None, "undecided", reason, text=text, maximum=limit)
        return
    overlapping = overlap.overlapping
    share = len(overlapping) / overlap.judged
    status: Status = "pass" if share <= limit + TOLERANCE else "fail"
    reason = f"{len(overlapping):,} of {answer_count(overlap.judged)} overlap"
    if overlapping:
        id, match = max(overlapping.items(), key=lambda entry: entry[1].longest)
        reason += f", such as {id} with {match.document}"
    yield inner.verdict(
        "max_overlap",
        None,
        status,
        reason,
        text=text,
        measured=share,
        n=overlap.judged,
        maximum=limit,
        warning=unjudged_warning(overlap) if status == "pass" else None,
    )


def judge_clean(
    scope: Scope, table: BenchmarkGates, results: Mapping[str, Result], overlaps: Overlaps
) -> Iterator[Verdict]:
    """Judge the gates of the items that do not overlap, for every scorer of a benchmark's table."""
    overlap = overlaps.of(scope.benchmark)
    for inner, gates in table.parts():
        if gates.clean is None:
            continue
        # The direct gates of a benchmark under several scorers are refused before the run.
        scorer = inner[1] if inner else next(iter(results), None) if len(results) == 1 else None
        result = results.get(scorer or "")
        parts = (scope.id, *([".".join(inner)] if inner else []), "clean")
        where = replace(scope, id="::".join(parts), scorer=scorer)
        if result is None or isinstance(overlap, str):
            reason = overlap if isinstance(overlap, str) else "no item was run"
            yield from _undecided(where, gates.clean, reason)
        else:
            divided = overlaps.results[result.key]
            yield from _judge_divided(where, gates, result, divided, unjudged_warning(overlap))


def _undecided(scope: Scope, gates: CleanGates, reason: str) -> Iterator[Verdict]:
    for metric, bound in gates.bounds().items():
        yield scope.verdict(metric, bound, "undecided", reason)


def _judge_divided(
    scope: Scope,
    gates: ScorerGates,
    result: Result,
    divided: CleanResult,
    warning: str | None,
) -> Iterator[Verdict]:
    assert gates.clean is not None
    clean, limit = divided.clean.counts, gates.max_errors or 0
    all_errors = result.counts.error
    incomplete = shared_incomplete_reason(clean.error, all_errors, limit)
    reason = measurement_problem(result.counts) or ("" if clean.total else "no item is clean")
    if reason and not incomplete:
        yield from _undecided(scope, gates.clean, reason)
        return
    for metric, bound in gates.clean.bounds().items():
        if metric == MAX_GAIN:
            judged_errors = clean.error + divided.overlapping.counts.error
            lost = shared_incomplete_reason(judged_errors, all_errors, limit)
            verdict = _judge_gain(scope, bound, divided, lost)
        else:
            verdict = judge_metric(scope, metric, bound, divided.clean, incomplete)
        yield replace(verdict, warning=warning) if verdict.status == "pass" else verdict


def _judge_gain(scope: Scope, bound: Bound, result: CleanResult, incomplete: str | None) -> Verdict:
    """Judge the gain from overlapping items; ``incomplete``: the reason if there were many errors."""
    clean, overlapping = result.clean.counts, result.overlapping.counts
    if incomplete:
        return scope.verdict(MAX_GAIN, bound, "fail", incomplete)
    # Errors are counted against the gate in both directions.
    least = clean_gain(_tally(result, overlapping, False), _tally(result, clean, True), bound.level)
    most = clean_gain(_tally(result, overlapping, True), _tally(result, clean, False), bound.level)
    if least is None or most is None:
        return scope.verdict(MAX_GAIN, bound, "undecided", "no clean item was answered")
    measured = Measured(
        Estimate(least[0], *least[1]),
        Estimate(most[0], *most[1]),
        clean.attempted + overlapping.attempted,
    )
    missing = clean.missing + overlapping.missing
    is_sample = result.clean.sampled and (result.overlapping.sampled or not overlapping.total)
    status: Status = "undecided"
    how = ""
    if missing and not (is_sample and bound.by_interval):
        how = f"{answer_count(missing, result.clean.samples)} of the judged ones were not run"
    elif bound.by_interval:
        status, how = decide_by_interval(bound, measured)
    else:
        status = decide(bound, measured)
    basis = (
        f"{overlapping.correct:,} of {overlapping.attempted:,} overlapping and {clean.correct:,} of"
        f" {clean.attempted:,} clean {'items' if result.clean.samples == 1 else 'answers'} correct"
    )
    return scope.verdict(
        MAX_GAIN,
        bound,
        status,
        "; ".join(filter(None, (basis, how))),
        measured=(most if bound.max is not None else least)[0],
        interval=measured.interval,
        n=measured.n,
    )


def _tally(result: CleanResult, counts: Counts, right: bool) -> Mapping[tuple[int, int], int]:
    return filled_tally(counts, result.clean.samples, right)


def unjudged_warning(overlap: BenchmarkOverlap) -> str | None:
    """Return a warning if many items could not be judged."""
    share = len(overlap.unjudged) / overlap.items
    if share <= MOST_UNJUDGED:
        return None
    return f"{answer_count(len(overlap.unjudged))} ({share:.1%}) could not be judged"
