"""Tables of thresholds.toml as frozen models, and the bounds that they may hold.

The bounds of thresholds.toml: the values that a metric may have, and how a file writes them.

A bound is a table with ``min`` or ``max``, or a bare number: the ``min`` of an accuracy, the ``max``
of a rate of errors.
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
"""Metrics of an audit. Only ``consistency`` has an interval."""


def problem(text: str, key: str | None = None) -> PydanticCustomError:
    """A mistake in the table or value being validated, or in one ``key`` of it."""
    return PydanticCustomError("gate", "{text}", {"text": text, "key": key})


class Table(BaseModel):
    """A TOML table with known keys."""

    # Built by the first file that is read: most sessions import the gates and have no such file.
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)

    # Message instead of "unknown key" for a key that is right in another table.
    elsewhere: ClassVar[Mapping[str, str]] = {}
    empty: ClassVar[str] = EMPTY_TABLE

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        # First of all checks: a misspelt key explains whatever else is wrong with the table.
        if isinstance(data, dict):
            for key in data:
                if key in cls.model_fields or cls.accepts(key):
                    continue
                if key in cls.elsewhere:
                    raise problem(cls.elsewhere[key], key)
                raise problem(f"unknown key {key!r}{suggestion(key, cls.model_fields)}", key)
            if not data:
                raise problem(cls.empty)
        return data

    @classmethod
    def accepts(cls, key: str) -> bool:
        """True for a key that is valid although it is no field; may raise a ``problem``."""
        return False

    def merged(self, over: Self) -> Self:
        """The table with the keys that ``over`` sets, each merged with its own value."""
        update = {
            key: merge(getattr(self, key, None), getattr(over, key))
            for key in over.model_fields_set
        }
        return self.model_copy(update=update)


def merge(base: Any, over: Any) -> Any:
    """Return ``over`` where it is a single value, else the tables of both, merged key by key."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: merge(base.get(key), value) for key, value in over.items()}}
    if isinstance(base, Table) and isinstance(over, Table):
        return base.merged(over)
    return over


def _probability(name: str) -> Callable[[float], float]:
    """Checks that a value lies between 0 and 1, both excluded."""

    def check(value: float) -> float:
        if not 0 < value < 1:
            raise problem(f"{name} = {value:.12g} is not between 0 and 1")
        return value

    return check


class Bound(Table):
    """The values that a metric may have: at least ``min``, at most ``max``.

    With ``confidence`` the two-sided interval of that level decides, not the estimate: the
    whole interval inside passes, the whole interval outside fails, else it is undecided.
    ``chance``: the interval, of 95 % unless said otherwise, must hold the chance level.
    """

    empty = "gives neither min nor max"

    min: float | None = None
    max: float | None = None
    confidence: Annotated[float, AfterValidator(_probability("confidence"))] | None = None
    chance: bool = False

    def merged(self, over: Self) -> Self:
        """``over``: a bound replaces another as a whole."""
        return over

    @property
    def level(self) -> float:
        """The confidence of the interval to compute: that which decides, or else 95 %."""
        return 0.95 if self.confidence is None else self.confidence

    @property
    def by_interval(self) -> bool:
        """Whether the interval decides, not the estimate."""
        return self.chance or self.confidence is not None

    @property
    def text(self) -> str:
        """The bound as a report shows it, such as ``>= 0.28``."""
        parts = ["= chance"] if self.chance else []
        if self.min is not None:
            parts.append(f">= {self.min:.12g}")
        if self.max is not None:
            parts.append(f"<= {self.max:.12g}")
        level = f" ({percent(self.level)} interval)" if self.by_interval else ""
        return " and ".join(parts) + level


def percent(level: float) -> str:
    """A level of confidence as a report shows it: ``95 %``."""
    return f"{level * 100:.12g} %"


def _short(side: Literal["min", "max"]) -> Callable[[Any], Any]:
    """Reads the short form, a bare number, as that side of the bound."""

    def expand(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {side: value}
        if isinstance(value, dict | Bound):
            return value
        raise problem(
            f"expected a number or a table such as {{ {side} = 0.28 }}, got {toml_type(value)}"
        )

    return expand


def _within(low: float, high: float, *, chance: bool = False) -> Callable[[Bound], Bound]:
    """Checks a bound against the range of its metric, and whether it may be the chance level."""

    def check(bound: Bound) -> Bound:
        for side in ("min", "max"):
            value = getattr(bound, side)
            if value is None:
                continue
            if not math.isfinite(value):
                raise problem(f"{side} = {value} is not a finite number")
            if not low <= value <= high:
                raise problem(
                    f"{side} = {value:.12g} is outside [{low:g}, {high:g}],"
                    f" the range of this metric{_fraction(value)}"
                )
        if bound.chance and not chance:
            raise problem("only accuracy can be compared with chance", "chance")
        if bound.chance and (bound.min is not None or bound.max is not None):
            raise problem("chance is a bound of its own: give neither min nor max", "chance")
        if bound.min is None and bound.max is None and not bound.chance:
            raise problem(bound.empty)
        if bound.min is not None and bound.max is not None and bound.min > bound.max:
            raise problem(f"min = {bound.min:.12g} is above max = {bound.max:.12g}")
        return bound

    return check


def _drop(value: float) -> float:
    if not 0 <= value <= 1:
        raise problem(f"{value:.12g} is outside [0, 1], the range of a drop{_fraction(value)}")
    return value


def _fraction(value: float) -> str:
    """What to write instead of a percentage."""
    return f"; write {value / 100:.12g} for {value:.12g} %" if 1 < value <= 100 else ""


def _without_interval(bound: Bound) -> Bound:
    if bound.confidence is not None:
        raise problem("a permutation audit is judged by its value", "confidence")
    return bound


Accuracy = Annotated[
    Bound, BeforeValidator(_short("min")), AfterValidator(_within(0, 1, chance=True))
]
Share = Annotated[Bound, BeforeValidator(_short("min")), AfterValidator(_within(0, 1))]
Gain = Annotated[Bound, BeforeValidator(_short("min")), AfterValidator(_within(-1, 1))]
Rate = Annotated[Bound, BeforeValidator(_short("max")), AfterValidator(_within(0, 1))]
PlainShare = Annotated[Share, AfterValidator(_without_interval)]
PlainRate = Annotated[Rate, AfterValidator(_without_interval)]
Errors = Annotated[int, Field(ge=0)]
Drop = Annotated[float, AfterValidator(_drop)]
Alpha = Annotated[float, AfterValidator(_probability("alpha"))]
NotEmpty = Field(min_length=1)
