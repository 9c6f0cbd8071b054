"""Reference runs that gates of contamination compare with, checked before a run starts."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.validation import located_error
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates.evidence import MeasuredOrders
from pytest_llmeval.gates.evidence import Reference
from pytest_llmeval.gates.order_verdicts import reference_orders
from pytest_llmeval.runs.baseline import load_baseline
from pytest_llmeval.runs.measured_orders import origins_of
from pytest_llmeval.runs.measurement import first_outcomes
from pytest_llmeval.runs.run import Run


def load_references(
    thresholds: Thresholds, planned: Sequence[PlannedResult], folder: Path
) -> dict[str, Reference]:
    """Load the reference runs that gates of these results name, and check the gates.

    ``folder``: that of baselines. Raises ConfigError, with file and key, for a test that is not
    possible for its benchmark, for a reference that cannot be read, and for one whose test differs.
    """
    documents = {
        result.benchmark: result.contamination for result in planned if result.contamination
    }
    benchmarks = {result.benchmark for result in planned}
    references: dict[str, Reference] = {}

    def load(place: Sequence[str], name: str) -> Reference:
        if name not in references:
            try:
                references[name] = _reference(load_baseline(name, folder))
            except ConfigError as error:
                raise located_error(thresholds.file, (*place, "against"), str(error)) from None
        return references[name]

    for place, benchmark, table in thresholds.tables():
        if table.contamination is not None:
            for test, gate in table.contamination.orders():
                keys = (*place, "contamination", test)
                document = documents.get(benchmark, {}).get(test)
                if document is None:
                    continue
                if "refused" in document:
                    raise located_error(
                        thresholds.file, keys, f"not possible: {document['refused']}"
                    )
                if gate.against is not None:
                    problem = _mismatch(load(keys, gate.against), benchmark, test, document)
                    if problem is not None:
                        text = f"{gate.against} {problem}"
                        raise located_error(thresholds.file, (*keys, "against"), text)
        twin = table.twin
        if twin is not None and twin.against is not None and {benchmark, twin.of} <= benchmarks:
            load((*place, "twin"), twin.against)
    return references


def _reference(run: Run) -> Reference:
    measurements = run.measurements()
    return Reference(run.measured_orders, first_outcomes(measurements), origins_of(measurements))


def _mismatch(
    reference: Reference, benchmark: str, test: str, document: Mapping[str, Any]
) -> str | None:
    """Return why no model of a reference run has a comparable test; None if one has."""
    planned = MeasuredOrders(document)
    models = [model for model, *rest in reference.orders if rest == [benchmark, test]] or [""]
    problems = [reference_orders(reference, model, benchmark, test, planned) for model in models]
    texts = [problem for problem in problems if isinstance(problem, str)]
    return texts[0] if len(texts) == len(problems) else None
