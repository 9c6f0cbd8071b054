"""Order tests of a stored run: their likelihoods, entries of ``metrics.json``, and wording."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.gates.evidence import Key
from pytest_llmeval.gates.evidence import MeasuredOrders
from pytest_llmeval.gates.evidence import Origin
from pytest_llmeval.gates.order_verdicts import GROUP_NOUNS
from pytest_llmeval.metrics.contamination.orders import order_test
from pytest_llmeval.runs.measurement import Measurement


def orders_of_records(document: Mapping[str, Any], records: Iterable[Record]) -> MeasuredOrders:
    """Return an order test from its planned properties and its records."""
    records = list(records)
    valid = [record for record in records if record.outcome is not Outcome.ERROR]
    errors = [record.error or "" for record in records if record.outcome is Outcome.ERROR]
    return MeasuredOrders(
        document,
        {record.item: record.logprobs for record in valid},
        errors=len(errors),
        error=errors[0] if errors else "",
        all_tied=sum(record.all_tied for record in valid),
        model_fingerprint=next((r.model_fingerprint for r in valid if r.model_fingerprint), None),
    )


def origins_of(measurements: Iterable[Measurement]) -> dict[tuple[str, str, str], Origin]:
    """Return the origins of the answers of results, by their keys."""
    return {
        measurement.result.key: Origin(
            measurement.fingerprint, measurement.data_hash, measurement.model_fingerprint
        )
        for measurement in measurements
    }


def contamination_entries(orders: Mapping[Key, MeasuredOrders]) -> list[dict[str, Any]]:
    """Return the entries ``contamination`` of ``metrics.json``.

    ``p_value`` is that of the test without a reference, None where the published orders are not
    random or the measurement is incomplete; the reason is then in ``problem``.
    """
    return [
        {"model": model, "benchmark": benchmark, "test": name, **_entry(measured)}
        for (model, benchmark, name), measured in orders.items()
    ]


def _entry(measured: MeasuredOrders) -> dict[str, Any]:
    document = measured.document
    problem = measured.problem
    if problem is None and measured.errors:
        problem = f"incomplete: {measured.errors:,} errors: {measured.error}"
    test = None if problem is not None else order_test(list(measured.groups.values()))
    not_random = document.get("not_random", "")
    if not_random:
        problem = problem or f"the published orders are not random ({not_random})"
    return {
        "fingerprint": document.get("fingerprint"),
        "groups": len(measured.groups),
        "planned": document.get("groups", 0),
        "errors": measured.errors,
        "orders": None if test is None else list(test.orders),
        "mean_rank": None if test is None else test.mean_rank,
        "p_value": None if test is None or not_random else test.p_value,
        "sees": None if test is None or not_random else test.sees,
        "natural": len(measured.natural),
        "problem": problem,
    }


def order_lines(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Describe the order tests, entries of ``metrics.json``, one line each."""
    entries = list(entries)
    several = len({entry["model"] for entry in entries}) > 1
    for entry in entries:
        model = f"{entry['model']} " if several else ""
        yield f"{model}{entry['benchmark']}: {entry['test'].replace('_', '-')}: {order_words(entry)}"


def order_words(entry: Mapping[str, Any]) -> str:
    """Describe the outcome of an order test, an entry of ``metrics.json``."""
    if entry["mean_rank"] is None:
        return str(entry["problem"])
    low, high = entry["orders"]
    orders = f"{high}" if low == high else f"{low} to {high}"
    text = (
        (
            f"published order above {entry['mean_rank']:.1%} of the others (50 % by chance),"
            f" {entry['groups']:,} {GROUP_NOUNS[entry['test']]} x {orders} orders"
        )
        .replace("%", " %")
        .replace("  %", " %")
    )
    if entry["p_value"] is None:
        return f"{text}; no p value without a reference: {entry['problem']}"
    return f"{text}, p = {entry['p_value']:.2g}; sees a mean rank from {entry['sees']:.3f}"
