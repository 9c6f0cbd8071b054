"""Tables of ``thresholds.toml`` about contamination: order tests, and the twin of a benchmark.

A gate of an order test fails if the model prefers the published order of options or items: the test
is significant at ``alpha`` after Holm's adjustment over all tests of the file. It is short for
``{ alpha = 0.01 }`` as a bare number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from typing import Any
from typing import ClassVar

from pydantic import AfterValidator
from pydantic import BeforeValidator

from pytest_llmeval.core.validation import toml_type
from pytest_llmeval.gates.bounds import Drop
from pytest_llmeval.gates.bounds import Level
from pytest_llmeval.gates.bounds import NotEmpty
from pytest_llmeval.gates.bounds import Table
from pytest_llmeval.gates.bounds import table_error

MAX_EXCESS = 0.05
"""Excess of the mean rank over 1/2 that a comparison with a reference tolerates by default."""


def _excess(value: float) -> float:
    if not 0 <= value < 0.5:
        raise table_error(f"max_excess = {value:.12g} is outside [0, 0.5)")
    return value


class OrderGate(Table):
    """Gate of an order test; with ``against``, the preference of a reference run is subtracted."""

    alpha: Level = 0.01
    max_excess: Annotated[float, AfterValidator(_excess)] | None = None
    """Tolerated excess of the mean rank over 1/2 (0.05 with ``against``, otherwise 0)."""
    against: Annotated[str, NotEmpty] | None = None
    """Reference run: a run folder, a baseline file or the name of a baseline."""

    def merged(self, over: OrderGate) -> OrderGate:
        """Return ``over``: a gate replaces another gate as a whole."""
        return over

    @property
    def tolerance(self) -> float:
        """Tolerated excess of the mean rank over 1/2, a proportion."""
        if self.max_excess is not None:
            return self.max_excess
        return 0.0 if self.against is None else MAX_EXCESS

    @property
    def text(self) -> str:
        """The bound as reports show it: ``<= 0.55, alpha 0.01``."""
        return f"<= {0.5 + self.tolerance:.12g}, alpha {self.alpha:.12g}"


def _expand(value: Any) -> Any:
    """Read a bare number as ``alpha``."""
    if isinstance(value, float):
        return {"alpha": value}
    if isinstance(value, dict | OrderGate):
        return value
    raise table_error(
        f"expected alpha, such as 0.01, or a table such as {{ alpha = 0.01 }}, got {toml_type(value)}"
    )


Order = Annotated[OrderGate, BeforeValidator(_expand)]


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        hint = f"; write {value / 100:.12g} for {value:.12g} %" if 1 < value <= 100 else ""
        raise table_error(f"{value:.12g} is outside [0, 1], the range of a share{hint}")
    return value


class ContaminationGates(Table):
    """Gates against contamination of one benchmark."""

    option_order: Order | None = None
    item_order: Order | None = None
    max_overlap: Annotated[float, AfterValidator(_share)] | None = None
    """Largest share of the judged items that overlap with a corpus (``llmeval overlap``)."""

    def orders(self) -> Iterator[tuple[str, OrderGate]]:
        """Yield the order tests that are gated, by name."""
        for name in ORDER_TESTS:
            gate = getattr(self, name)
            if gate is not None:
                yield name, gate


ORDER_TESTS = ("option_order", "item_order")
"""Names of the order tests, which are keys of the table."""


class TwinGates(Table):
    """Gate of the gap between a benchmark and its rewritten copy, item by item.

    It fails if the score is higher on the original by more than ``max_gap`` and the exact paired
    test is significant at ``alpha``.
    """

    empty: ClassVar[str] = "needs of = NAME, the rewritten benchmark"

    of: Annotated[str, NotEmpty]
    max_gap: Drop = 0.0
    alpha: Level = 0.05
    against: Annotated[str, NotEmpty] | None = None
    """Reference run whose gap is subtracted, as for order tests."""

    @property
    def text(self) -> str:
        """The bound as reports show it: ``<= 0.03, alpha 0.05``."""
        return f"<= {self.max_gap:.12g}, alpha {self.alpha:.12g}"
