"""Validated tables of ``thresholds.toml`` and the bounds that they contain.

A bound is a table with ``min`` or ``max``, or a bare number, which is the ``min`` of an accuracy and
the ``max`` of an error rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from typing import Annotated
from typing import Any
from typing import ClassVar
from typing import Literal
from typing import Self

from pydantic import AfterValidator
from pydantic import BaseModel
from pydantic import BeforeValidator
from pydantic import ConfigDict
from pydantic import Field
from pydantic import model_validator
from pydantic_core import PydanticCustomError

from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.validation import EMPTY_TABLE
from pytest_llmeval.core.validation import toml_type

AUDITED = ("position_range", "consistency", "recall_std")
"""Metrics of a permutation audit. Only ``consistency`` has an interval."""


def table_error(text: str, key: str | None = None) -> PydanticCustomError:
    """Return a validation error for the current table or value, or for one ``key`` of it."""
    return PydanticCustomError("gate", "{text}", {"text": text, "key": key})


class Table(BaseModel):
    """TOML table that accepts only its declared keys."""

    # Validators are built when the first file is read: most sessions have no thresholds file.
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)

    # Key that is valid in another table → message that replaces "unknown key".
    misplaced_keys: ClassVar[Mapping[str, str]] = {}
    empty: ClassVar[str] = EMPTY_TABLE

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        # Runs before all other checks: a misspelt key explains what else is wrong with the table.
        if isinstance(data, dict):
            for key in data:
                if key in cls.model_fields or cls.accepts(key):
                    continue
                if key in cls.misplaced_keys:
                    raise table_error(cls.misplaced_keys[key], key)
                raise table_error(f"unknown key {key!r}{suggestion(key, cls.model_fields)}", key)
            if not data:
                raise table_error(cls.empty)
        return data

    @classmethod
    def accepts(cls, key: str) -> bool:
        """Return True for a valid key that is not a field; may raise a ``table_error``."""
        return False

    def merged(self, over: Self) -> Self:
        """Return a copy in which the keys that ``over`` sets are merged into this table's."""
        update = {
            key: merge(getattr(self, key, None), getattr(over, key))
            for key in over.model_fields_set
        }
        return self.model_copy(update=update)


def merge(base: Any, over: Any) -> Any:
    """Merge two tables key by key; return ``over`` if it is not a table."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: merge(base.get(key), value) for key, value in over.items()}}
    if isinstance(base, Table) and isinstance(over, Table):
        return base.merged(over)
    return over


def _probability(name: str) -> Callable[[float], float]:
    """Return a validator for values between 0 and 1, both excluded."""

    def check(value: float) -> float:
        if not 0 < value < 1:
            raise table_error(f"{name} = {value:.12g} is not between 0 and 1")
        return value

    return check


class Bound(Table):
    """Range of values that a metric may have: at least ``min``, at most ``max``.

    With ``confidence`` the two-sided interval of that level decides instead of the estimate: the
    gate passes if the whole interval is inside the bound, fails if the whole interval is outside,
    and is undecided otherwise. With ``chance`` the interval (95 % by default) must contain the
    chance level. Without ``sequential`` the gate needs all items under ``--llm-sequential``.
    """

    empty = "needs min or max"

    min: float | None = None
    max: float | None = None
    confidence: Annotated[float, AfterValidator(_probability("confidence"))] | None = None
    chance: bool = False
    sequential: bool = True

    def merged(self, over: Self) -> Self:
        """Return ``over``: a bound replaces another bound as a whole."""
        return over

    @property
    def level(self) -> float:
        """Confidence level of the interval; 0.95 unless the bound sets one."""
        return 0.95 if self.confidence is None else self.confidence

    @property
    def by_interval(self) -> bool:
        """True if the interval decides instead of the estimate."""
        return self.chance or self.confidence is not None

    @property
    def text(self) -> str:
        """The bound as reports show it, such as ``>= 0.28``."""
        parts = ["= chance"] if self.chance else []
        if self.min is not None:
            parts.append(f">= {self.min:.12g}")
        if self.max is not None:
            parts.append(f"<= {self.max:.12g}")
        level = f" ({percent(self.level)} interval)" if self.by_interval else ""
        return " and ".join(parts) + level


def percent(level: float) -> str:
    """Format a confidence level: ``95 %``."""
    return f"{level * 100:.12g} %"


def _short(side: Literal["min", "max"]) -> Callable[[Any], Any]:
    """Return a validator that reads a bare number as this side of the bound."""

    def expand(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {side: value}
        if isinstance(value, dict | Bound):
            return value
        raise table_error(
            f"expected a number or a table such as {{ {side} = 0.28 }}, got {toml_type(value)}"
        )

    return expand


def _within(low: float, high: float, *, chance: bool = False) -> Callable[[Bound], Bound]:
    """Return a validator that checks a bound against the range of its metric.

    ``chance``: the metric can be compared with the chance level.
    """

    def check(bound: Bound) -> Bound:
        for side in ("min", "max"):
            value = getattr(bound, side)
            if value is None:
                continue
            if not math.isfinite(value):
                raise table_error(f"{side} = {value} is not a finite number")
            if not low <= value <= high:
                raise table_error(
                    f"{side} = {value:.12g} is outside [{low:g}, {high:g}],"
                    f" the range of this metric{_fraction(value)}"
                )
        if bound.chance and not chance:
            raise table_error("only accuracy can be compared with chance", "chance")
        if bound.chance and (bound.min is not None or bound.max is not None):
            raise table_error("chance is a bound by itself: remove min and max", "chance")
        if bound.min is None and bound.max is None and not bound.chance:
            raise table_error(bound.empty)
        if bound.min is not None and bound.max is not None and bound.min > bound.max:
            raise table_error(f"min = {bound.min:.12g} is above max = {bound.max:.12g}")
        return bound

    return check


def _drop(value: float) -> float:
    if not 0 <= value <= 1:
        raise table_error(f"{value:.12g} is outside [0, 1], the range of a drop{_fraction(value)}")
    return value


def _level(value: float) -> float:
    if not 0 < value < 0.5:
        raise table_error(f"alpha = {value:.12g} is not between 0 and 0.5")
    return value


def _fraction(value: float) -> str:
    """Suggest the proportion to write in place of a percentage (28 → 0.28)."""
    return f"; write {value / 100:.12g} for {value:.12g} %" if 1 < value <= 100 else ""


def _without_interval(bound: Bound) -> Bound:
    if bound.confidence is not None:
        raise table_error("metrics of a permutation audit have no interval", "confidence")
    return bound


Accuracy = Annotated[
    Bound, BeforeValidator(_short("min")), AfterValidator(_within(0, 1, chance=True))
]
Share = Annotated[Bound, BeforeValidator(_short("min")), AfterValidator(_within(0, 1))]
Gain = Annotated[Bound, BeforeValidator(_short("min")), AfterValidator(_within(-1, 1))]
GainLimit = Annotated[Bound, BeforeValidator(_short("max")), AfterValidator(_within(-1, 1))]
Rate = Annotated[Bound, BeforeValidator(_short("max")), AfterValidator(_within(0, 1))]
PlainShare = Annotated[Share, AfterValidator(_without_interval)]
PlainRate = Annotated[Rate, AfterValidator(_without_interval)]
Errors = Annotated[int, Field(ge=0)]
Drop = Annotated[float, AfterValidator(_drop)]
Level = Annotated[float, AfterValidator(_level)]
Alpha = Annotated[float, AfterValidator(_probability("alpha"))]
NotEmpty = Field(min_length=1)
