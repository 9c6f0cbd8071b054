"""Verdicts on the gates of order tests.

A test of the published order shows a preference, never its absence: a pass is reported as "no sign",
with the smallest visible effect and what the test cannot see. Without a measurement, or without a
valid null hypothesis, a gate is undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_llmeval.core.plan import ITEM_ORDER
from pytest_llmeval.core.plan import OPTION_ORDER
from pytest_llmeval.gates.contamination import ContaminationGates
from pytest_llmeval.gates.contamination import OrderGate
from pytest_llmeval.gates.evidence import Evidence
from pytest_llmeval.gates.evidence import MeasuredOrders
from pytest_llmeval.gates.evidence import PendingTest
from pytest_llmeval.gates.evidence import Reference
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import error_count
from pytest_llmeval.metrics.contamination.orders import LEAST_ITEMS
from pytest_llmeval.metrics.contamination.orders import LEAST_SHARDS
from pytest_llmeval.metrics.contamination.orders import OrderTest
from pytest_llmeval.metrics.contamination.orders import differences
from pytest_llmeval.metrics.contamination.orders import order_test

LEAST_GROUPS = {OPTION_ORDER: LEAST_ITEMS, ITEM_ORDER: LEAST_SHARDS}

GROUP_NOUNS = {OPTION_ORDER: "items", ITEM_ORDER: "shards"}

BLINDNESS = {
    OPTION_ORDER: "blind to rewritten and translated items, and to questions without their options",
    ITEM_ORDER: "blind to items that were read singly or in another order",
}
"""What a passed order test does not exclude."""

_SAME_FIELDS = ("format", "orders", "seed", "data", "shards")


def judge_orders(
    scope: Scope, gates: ContaminationGates | None, evidence: Evidence
) -> Iterator[Verdict | PendingTest]:
    """Judge the order tests of a benchmark."""
    inner = replace(scope, id=f"{scope.id}::contamination")
    for name, gate in () if gates is None else gates.orders():
        yield _judge_order(inner, name, gate, evidence)


def _judge_order(
    scope: Scope, name: str, gate: OrderGate, evidence: Evidence
) -> Verdict | PendingTest:
    measured = evidence.orders.get((scope.model, scope.benchmark, name))
    status: Status = "undecided"
    if measured is None:
        reason = f"not measured: run it with --llm-contamination {name.replace('_', '-')}"
    elif measured.errors:
        status, reason = "fail", f"incomplete: {error_count(measured.errors)}: {measured.error}"
    else:
        outcome = _order_test(scope, name, gate, measured, evidence)
        if not isinstance(outcome, str):
            return PendingTest(outcome.p_value, _order_verdict(scope, name, gate, outcome))
        reason = outcome
    maximum = 0.5 + gate.tolerance
    return scope.verdict(name, None, status, reason, text=gate.text, maximum=maximum)


def _order_test(
    scope: Scope, name: str, gate: OrderGate, measured: MeasuredOrders, evidence: Evidence
) -> OrderTest | str:
    """Return the test of a gate, or why there is none."""
    if (problem := measured.problem) is not None:
        return problem
    groups = measured.groups
    if gate.against is None:
        if measured.document["not_random"]:
            return (
                f"the published orders are not random ({measured.document['not_random']});"
                " name a run to compare with (against = …)"
            )
        values: Sequence[Sequence[float]] = list(groups.values())
    else:
        reference = reference_orders(
            evidence.references.get(gate.against, "cannot be read"),
            scope.model,
            scope.benchmark,
            name,
            measured,
        )
        if isinstance(reference, str):
            return f"reference {gate.against}: {reference}"
        used = [group for group in groups if group not in measured.natural]
        missing = sum(group not in reference.groups for group in used)
        if missing:
            noun = GROUP_NOUNS[name]
            return f"reference {gate.against}: {missing:,} of {len(used):,} {noun} are not in it"
        values = differences(
            [groups[group] for group in used], [reference.groups[group] for group in used]
        )
    test = order_test(values, gate.tolerance, gate.alpha)
    if test is None or test.groups < LEAST_GROUPS[name]:
        number = 0 if test is None else test.groups
        return (
            f"{number} {GROUP_NOUNS[name]} without an order by content; at least"
            f" {LEAST_GROUPS[name]} are needed"
        )
    return test


def reference_orders(
    reference: Reference | str, model: str, benchmark: str, name: str, measured: MeasuredOrders
) -> MeasuredOrders | str:
    """Return the order test of a reference run, or why it cannot be compared with a measured one.

    ``model`` chooses among several models of the reference run.
    """
    if isinstance(reference, str):
        return reference
    orders = reference.orders_of(model, benchmark, name)
    if isinstance(orders, str):
        return orders
    if "refused" in orders.document:
        return f"not possible: {orders.document['refused']}"
    if orders.document["fingerprint"] != measured.document["fingerprint"]:
        return f"not comparable: {_differing(measured.document, orders.document)}"
    mine, theirs = measured.model_fingerprint, orders.model_fingerprint
    if mine is not None and mine == theirs:
        return "has the same weights: a model shows nothing against itself"
    return orders.tied_problem or orders


def _differing(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    differing = [name for name in _SAME_FIELDS if mine.get(name) != theirs.get(name)]
    return "; ".join(
        f"{name} {mine.get(name)!r} here, {theirs.get(name)!r} there" for name in differing
    )


def _order_verdict(
    scope: Scope, name: str, gate: OrderGate, test: OrderTest
) -> Callable[[float, str], Verdict]:
    low, high = test.orders
    orders = f"{high}" if low == high else f"{low} to {high}"
    size = f"{test.groups:,} {GROUP_NOUNS[name]} x {orders} orders"
    against = f" against {gate.against}" if gate.against is not None else ""
    sees = f"sees a mean rank from {test.sees:.3f}"
    blind = BLINDNESS[name]
    if gate.against is not None:
        blind += ", and to texts that the reference has read as well"

    def decide(adjusted: float, p_text: str) -> Verdict:
        if adjusted <= gate.alpha:
            status: Status = "fail"
            share = f"{test.mean_rank:.1%}".replace("%", " %")
            reason = (
                f"published order above {share} of the others{against}, {size}, {p_text}; {sees}"
            )
        else:
            status = "pass"
            reason = f"{p_text}{against}, {size}: no sign of it, which is no proof; {sees}; {blind}"
        verdict = scope.verdict(
            name,
            None,
            status,
            reason,
            text=gate.text,
            measured=test.mean_rank,
            n=test.groups,
            maximum=0.5 + gate.tolerance,
        )
        return replace(verdict, p_value=adjusted)

    return decide
