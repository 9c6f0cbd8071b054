"""Verdicts on the gap between a benchmark and its rewritten copy."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import replace

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates.contamination import TwinGates
from pytest_llmeval.gates.estimates import is_random_sample
from pytest_llmeval.gates.evidence import Evidence
from pytest_llmeval.gates.evidence import Origins
from pytest_llmeval.gates.evidence import PendingTest
from pytest_llmeval.gates.evidence import Reference
from pytest_llmeval.gates.verdict import TOLERANCE
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import answer_count
from pytest_llmeval.gates.verdict import error_count
from pytest_llmeval.gates.verdict import measurement_problem
from pytest_llmeval.metrics import FirstOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics.contamination.twins import TwinGap
from pytest_llmeval.metrics.contamination.twins import twin_gap
from pytest_llmeval.metrics.contamination.twins import twin_gap_over_reference


def judge_twin(
    scope: Scope,
    gate: TwinGates | None,
    results: Mapping[tuple[str, str], Mapping[str, Result]],
    outcomes: FirstOutcomes,
    evidence: Evidence,
) -> Iterator[Verdict | PendingTest]:
    """Judge the twin of a benchmark; ``results``: by (model, benchmark) and scorer."""
    if gate is not None:
        inner = replace(scope, id=f"{scope.id}::twin")
        yield _judge_twin(inner, gate, results, outcomes, evidence)


def _judge_twin(
    scope: Scope,
    gate: TwinGates,
    results: Mapping[tuple[str, str], Mapping[str, Result]],
    outcomes: FirstOutcomes,
    evidence: Evidence,
) -> Verdict | PendingTest:
    def undecided(reason: str, status: Status = "undecided") -> Verdict:
        return scope.verdict("max_gap", None, status, reason, text=gate.text, maximum=gate.max_gap)

    own = results.get((scope.model, scope.benchmark), {})
    twins = results.get((scope.model, gate.of), {})
    if not own or not twins:
        missing = scope.benchmark if not own else gate.of
        return undecided(f"no item of {missing} was run")
    scorers = sorted(own.keys() & twins.keys())
    if len(scorers) != 1:
        return undecided(
            f"{scope.benchmark} and {gate.of} have {len(scorers)} scorers in common, not 1"
        )
    (scorer,) = scorers
    pair = (own[scorer], twins[scorer])
    for result in pair:
        if result.counts.error:
            errors = error_count(result.counts.error)
            return undecided(f"incomplete: {errors} in {result.benchmark}", "fail")
        if (problem := measurement_problem(result.counts)) is not None:
            return undecided(f"{result.benchmark}: {problem}")
    original, twin = (outcomes[result.key] for result in pair)
    size = pair[1].counts.total // pair[1].samples
    paired = {item: (original[item], twin[item]) for item in twin if item in original}
    if (len(paired) < size and not is_random_sample(pair[1])) or len(paired) < len(twin):
        return undecided(f"only {len(paired):,} of {answer_count(size)} are in both benchmarks")
    candidate = {item: _right(both) for item, both in paired.items()}
    if gate.against is None:
        test = twin_gap(candidate)
    else:
        reference = _reference_pairs(
            evidence.references.get(gate.against, "cannot be read"),
            evidence.origins,
            scope,
            gate.of,
            scorer,
        )
        if isinstance(reference, str):
            return undecided(f"reference {gate.against}: {reference}")
        lacking = sum(item not in reference for item in candidate)
        if lacking:
            return undecided(
                f"reference {gate.against}: {lacking:,} of {answer_count(len(candidate))} are not"
                " in it, or are errors"
            )
        test = twin_gap_over_reference(candidate, reference)
    if test is None:
        return undecided("no items")
    return PendingTest(test.p_value, _twin_verdict(scope, gate, test))


def _right(outcomes: tuple[Outcome, Outcome]) -> tuple[bool, bool]:
    original, twin = outcomes
    return original is Outcome.CORRECT, twin is Outcome.CORRECT


def _reference_pairs(
    reference: Reference | str, origins: Origins, scope: Scope, twin: str, scorer: str
) -> Mapping[str, tuple[bool, bool]] | str:
    """Return the answers of a reference run to both benchmarks, or why there are none."""
    if isinstance(reference, str):
        return reference
    models = {
        model
        for model, benchmark, other in reference.outcomes
        if (benchmark, other) == (scope.benchmark, scorer)
    }
    if not models:
        return f"has no result {scope.benchmark}[{scorer}]"
    if len(models) > 1 and scope.model not in models:
        return f"has {len(models)} models, none of which is called {scope.model}"
    model = scope.model if scope.model in models else min(models)
    originals = reference.outcomes[model, scope.benchmark, scorer]
    twins = reference.outcomes.get((model, twin, scorer))
    if twins is None:
        return f"has no result {twin}[{scorer}]"
    for benchmark in (scope.benchmark, twin):
        mine = origins.get((scope.model, benchmark, scorer))
        theirs = reference.origins.get((model, benchmark, scorer))
        if mine is None or theirs is None or mine[:2] != theirs[:2]:
            return f"not comparable: other protocol or data of {benchmark}"
        if mine.weights is not None and mine.weights == theirs.weights:
            return "has the same weights: a model shows nothing against itself"
    return {
        item: _right((originals[item], outcome))
        for item, outcome in twins.items()
        if item in originals and Outcome.ERROR not in (originals[item], outcome)
    }


def _twin_verdict(scope: Scope, gate: TwinGates, test: TwinGap) -> Callable[[float, str], Verdict]:
    against = f" against {gate.against}" if gate.against is not None else ""
    counts = (
        f"{test.original_only:,} of {answer_count(test.items)} count for the original,"
        f" {test.twin_only:,} for {gate.of}{against}"
    )

    def decide(adjusted: float, p_text: str) -> Verdict:
        beyond = test.gap > gate.max_gap + TOLERANCE
        status: Status = "fail" if beyond and adjusted <= gate.alpha else "pass"
        reason = f"{counts}, {p_text}"
        warning = None
        if status == "fail":
            reason += " if both are equally hard"
        elif beyond:
            warning = (
                f"more than {gate.max_gap:.12g} but not significant at alpha {gate.alpha:.12g}"
            )
        else:
            reason += ": no sign that the wording matters, which is no proof"
        verdict = scope.verdict(
            "max_gap",
            None,
            status,
            reason,
            text=gate.text,
            measured=test.gap,
            n=test.items,
            maximum=gate.max_gap,
            warning=warning,
        )
        return replace(verdict, p_value=adjusted)

    return decide
