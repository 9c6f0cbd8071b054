"""Measured order tests and reference runs, and tests whose p values are adjusted together."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import NamedTuple

from pytest_llmeval.gates.verdict import NOT_A_MEASUREMENT
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.metrics import ALL_TIED_LIMIT
from pytest_llmeval.metrics import FirstOutcomes
from pytest_llmeval.metrics import holm

Key = tuple[str, str, str]
"""(model, benchmark, order test)."""


@dataclass(frozen=True)
class MeasuredOrders:
    """The log-likelihoods of an order test of one model and benchmark."""

    #: Entry of ``PlannedResult.contamination``: fingerprint and properties of the test.
    document: Mapping[str, Any]
    #: Id of a group → log-likelihoods of its orders, the published one first.
    groups: Mapping[str, Sequence[float]] = field(default_factory=dict)
    errors: int = 0
    #: Reason of one of the errors.
    error: str = ""
    #: Groups whose orders all have the same log-likelihood.
    all_tied: int = 0
    model_fingerprint: str | None = None

    @property
    def natural(self) -> frozenset[str]:
        """Ids of the items whose options have an order by their content."""
        return frozenset(self.document.get("natural", "").split())

    @property
    def tied_problem(self) -> str | None:
        """Why the likelihoods do not depend on the order at all; None if they do."""
        if self.all_tied <= ALL_TIED_LIMIT * len(self.groups):
            return None
        tied = f"{self.all_tied:,} of {len(self.groups):,}"
        return f"{NOT_A_MEASUREMENT}: all orders have the same log-likelihood in {tied}"

    @property
    def problem(self) -> str | None:
        """Why the likelihoods are no complete measurement; None if they are. Errors are not considered."""
        if "refused" in self.document:
            return f"not possible: {self.document['refused']}"
        expected, measured = self.document["groups"], len(self.groups)
        if self.tied_problem is not None:
            return self.tied_problem
        if measured + self.errors < expected:
            return f"only {measured:,} of {expected:,} were measured"
        return None


class Origin(NamedTuple):
    """Origin of the answers of a result: fingerprint of the protocol, hash of the data, weights."""

    protocol: str
    data: str
    weights: str | None = None


Origins = Mapping[tuple[str, str, str], Origin]
"""(model, benchmark, scorer) → the origin of the answers."""


@dataclass(frozen=True)
class Reference:
    """A reference run: its order tests, and its outcomes by item with their origins."""

    orders: Mapping[Key, MeasuredOrders] = field(default_factory=dict)
    outcomes: FirstOutcomes = field(default_factory=dict)
    origins: Origins = field(default_factory=dict)

    def orders_of(self, model: str, benchmark: str, test: str) -> MeasuredOrders | str:
        """Return the order test of its only model, or of the one with the same name; else a reason."""
        own = {key[0]: o for key, o in self.orders.items() if key[1:] == (benchmark, test)}
        if not own:
            option = test.replace("_", "-")
            return f"has no such test: run it with --llm-contamination {option}"
        if len(own) > 1 and model not in own:
            return f"has {len(own)} models, none of which is called {model}"
        return own.get(model) or next(iter(own.values()))


@dataclass(frozen=True)
class Evidence:
    """The order tests of a run, and the reference runs that gates name (or why they are unusable).

    ``origins``: those of the run's own results.
    """

    orders: Mapping[Key, MeasuredOrders] = field(default_factory=dict)
    origins: Origins = field(default_factory=dict)
    references: Mapping[str, Reference | str] = field(default_factory=dict)


NO_EVIDENCE = Evidence()


@dataclass(frozen=True)
class PendingTest:
    """A test whose verdict depends on the number of tests; ``decide``: from p as it is and adjusted."""

    p_value: float
    decide: Callable[[float, str], Verdict]


def settle(verdicts: Iterable[Verdict | PendingTest]) -> list[Verdict]:
    """Return the verdicts, those of pending tests by their Holm-adjusted p values."""
    verdicts = list(verdicts)
    p_values = [entry.p_value for entry in verdicts if isinstance(entry, PendingTest)]
    adjusted = iter(holm(p_values))
    settled = []
    for entry in verdicts:
        if isinstance(entry, PendingTest):
            value = next(adjusted)
            holms = f" (Holm {value:.2g})" if len(p_values) > 1 else ""
            entry = entry.decide(value, f"p = {entry.p_value:.2g}{holms}")
        settled.append(entry)
    return settled
