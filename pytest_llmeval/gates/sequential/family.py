"""The gates of a model that can be decided early, and their shares of the probability of error."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import NamedTuple

from pytest_llmeval.gates.sequential.metric_rules import drop_rule
from pytest_llmeval.gates.sequential.metric_rules import metric_rule
from pytest_llmeval.gates.sequential.rules import Answered
from pytest_llmeval.gates.sequential.rules import Decision
from pytest_llmeval.gates.sequential.rules import DropRule
from pytest_llmeval.gates.sequential.rules import Rule
from pytest_llmeval.gates.thresholds import BenchmarkGates
from pytest_llmeval.gates.thresholds import RegressionGates
from pytest_llmeval.gates.thresholds import ScorerGates
from pytest_llmeval.gates.thresholds import SubjectGates
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.metrics import Result

NOT_SEQUENTIAL = "sequential = false"
CLEAN = "the items without overlap are judged as a whole"
NO_COMPLETE_BASELINE = "the baseline has not one answer without error to every item"

BaselineItems = Mapping[str, tuple[str, bool]]
"""Item id → its subject, and whether the baseline has it right."""


@dataclass(frozen=True)
class EarlyGate:
    """A gate that can be decided before all of its items are answered."""

    scope: Scope
    metric: str
    bound: str
    """The bound as reports show it."""
    rule: Rule
    alpha: float
    """Probability of another verdict than that of a full run."""
    own_errors: int | None
    """Errors allowed in the gate's subject, if its table sets a limit."""
    shared_errors: int
    """Errors allowed in all subjects of the result."""

    @property
    def id(self) -> str:
        """Id of the gate's verdict."""
        return f"{self.scope.id}::{self.metric}"

    @property
    def subject(self) -> str | None:
        """Subject of the gate's items; None for all items."""
        return self.scope.subject

    def decide(self, answered: Answered, errors: int) -> Decision | None:
        """Return the verdict on the answers so far; ``errors``: those in all subjects of the result.

        A gate with more errors than allowed fails at once.
        """
        own = sum(len(item.outcomes) - item.answered for _, item in answered)
        if self.own_errors is not None:
            incomplete = own > self.own_errors
        else:
            incomplete = own > 0 and errors > self.shared_errors
        if incomplete and self.metric != "error_rate":
            return Decision("fail", float("inf"))
        return self.rule.decide(answered, self.alpha)


class CompleteGate(NamedTuple):
    """A gate that is decided only after all of its items."""

    scope: Scope
    metric: str
    reason: str


class _WeightedGate(NamedTuple):
    """A gate with the share of its line in the file: 1, divided by subjects for ``every_subject``."""

    scope: Scope
    metric: str
    bound: str
    rule: Rule | str
    share: float
    own_errors: int | None
    shared_errors: int


@dataclass(frozen=True)
class Family:
    """All gates of one model; together they have the probability ``alpha`` of a wrong verdict."""

    early: Sequence[EarlyGate]
    complete: Sequence[CompleteGate]

    def for_any_bound(self) -> Family:
        """Return the gates for bounds that were chosen after the answers were seen.

        Each side has half of the probability of error, as in the confidence sequence of the number
        of right answers, which holds for all bounds together. Gates on means and drops have no such
        sequence.
        """
        early, complete = [], list(self.complete)
        for gate in self.early:
            if isinstance(gate.rule, DropRule) or not hasattr(gate.rule, "statuses"):
                reason = "it was not a gate of the run when the run stopped"
                complete.append(CompleteGate(gate.scope, gate.metric, reason))
            else:
                early.append(replace(gate, alpha=gate.alpha / 2))
        return Family(early, complete)


def model_family(
    prefix: str,
    model: str,
    tables: Mapping[str, BenchmarkGates],
    results: Sequence[Result],
    baseline: Mapping[tuple[str, str], BaselineItems | None] | None,
    alpha: float,
) -> Family:
    """Return the gates of a model over its planned results.

    ``prefix``: beginning of the verdicts' ids. ``baseline``: (benchmark, scorer) → outcomes of the
    baseline, or None if it is not complete; without a baseline regression gates are left out. Each of
    the L lines of the file has alpha / L (Bonferroni), a line for every subject divided by their
    number.
    """
    lines: list[_WeightedGate] = []
    complete: list[CompleteGate] = []
    for benchmark, table in tables.items():
        by_scorer = {result.scorer: result for result in results if result.benchmark == benchmark}
        scope = Scope(f"{prefix}{benchmark}", model, benchmark)
        if table.direct and len(by_scorer) == 1:
            lines += _result_lines(scope, table, next(iter(by_scorer.values())), baseline)
        for scorer, gates in table.scorers.items():
            if scorer in by_scorer:
                inner = replace(scope, id=f"{scope.id}::scorers.{scorer}")
                lines += _result_lines(inner, gates, by_scorer[scorer], baseline)
        if by_scorer:
            complete += [
                CompleteGate(scope, name, "a hybrid score needs all items of its scorers")
                for name in table.hybrids
            ]
    early = [line for line in lines if not isinstance(line.rule, str)]
    total = round(sum(line.share for line in early))
    return Family(
        [
            EarlyGate(
                line.scope,
                line.metric,
                line.bound,
                line.rule,
                alpha * line.share / max(1, total),
                line.own_errors,
                line.shared_errors,
            )
            for line in early
            if not isinstance(line.rule, str)
        ],
        complete
        + [
            CompleteGate(line.scope, line.metric, line.rule)
            for line in lines
            if isinstance(line.rule, str)
        ],
    )


def _result_lines(
    scope: Scope,
    gates: ScorerGates,
    result: Result,
    baseline: Mapping[tuple[str, str], BaselineItems | None] | None,
) -> Iterator[_WeightedGate]:
    """Yield the gates of a table over one result, with the ids of ``judge``."""
    scope, limit = replace(scope, scorer=result.scorer), gates.max_errors or 0
    yield from _bound_lines(scope, gates, result, 1.0, None, limit)
    subjects = sorted(subject for subject, counts in result.subjects.items() if counts.total)
    if gates.every_subject is not None:
        for subject in subjects:
            inner = _inside(scope, f"every_subject::{subject}", subject)
            yield from _subject_lines(inner, gates.every_subject, result, 1 / len(subjects), limit)
    for subject, table in gates.subjects.items():
        inner = _inside(scope, f"subjects.{subject}", subject)
        yield from _subject_lines(inner, table, result, 1.0, limit)
    if gates.regression is not None and baseline is not None:
        items = baseline.get((result.benchmark, result.scorer))
        yield from _drop_lines(scope, gates.regression, result, items, subjects, limit)
    if gates.clean is not None:
        inner = _inside(scope, "clean", None)
        for metric, bound in gates.clean.bounds().items():
            yield _WeightedGate(inner, metric, bound.text, CLEAN, 1.0, None, limit)


def _subject_lines(
    scope: Scope, gates: SubjectGates, result: Result, share: float, limit: int
) -> Iterator[_WeightedGate]:
    assert scope.subject is not None
    counts = result.subjects.get(scope.subject)
    own = replace(result, subjects={} if counts is None else {scope.subject: counts})
    yield from _bound_lines(scope, gates, own, share, gates.max_errors, limit)


def _bound_lines(
    scope: Scope,
    gates: ScorerGates | SubjectGates,
    result: Result,
    share: float,
    own_errors: int | None,
    limit: int,
) -> Iterator[_WeightedGate]:
    for metric, bound in gates.bounds().items():
        rule = metric_rule(metric, bound, result) if bound.sequential else NOT_SEQUENTIAL
        yield _WeightedGate(scope, metric, bound.text, rule, share, own_errors, limit)


def _drop_lines(
    scope: Scope,
    gates: RegressionGates,
    result: Result,
    items: BaselineItems | None,
    subjects: Sequence[str],
    limit: int,
) -> Iterator[_WeightedGate]:
    scope = _inside(scope, "regression", None)
    missing = NO_COMPLETE_BASELINE if gates.sequential else NOT_SEQUENTIAL
    is_complete = items is not None and result.samples == 1 and gates.sequential
    text = f"alpha {gates.alpha:.12g}"
    if gates.max_drop is not None:
        rule: Rule | str = missing
        if is_complete and items is not None:
            whole = {item: right for item, (_, right) in items.items()}
            rule = drop_rule(gates.max_drop, gates.alpha, whole, None)
        bound = f"<= {gates.max_drop:.12g}, {text}"
        yield _WeightedGate(scope, "max_drop", bound, rule, 1.0, None, limit)
    if gates.max_subject_drop is None:
        return
    for subject in subjects:
        rule = missing
        if is_complete and items is not None:
            own = {item: right for item, (other, right) in items.items() if other == subject}
            rule = drop_rule(gates.max_subject_drop, gates.alpha, own, len(subjects))
        inner = _inside(scope, f"every_subject::{subject}", subject)
        bound = f"<= {gates.max_subject_drop:.12g}, {text}"
        yield _WeightedGate(inner, "max_subject_drop", bound, rule, 1 / len(subjects), None, limit)


def _inside(scope: Scope, name: str, subject: str | None) -> Scope:
    return replace(scope, id=f"{scope.id}::{name}", subject=subject)
