"""thresholds.toml as frozen models: every mistake in the file is told before anything runs."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
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
from pydantic import ValidationError
from pydantic import model_validator
from pydantic_core import PydanticCustomError

from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_weights
from pytest_llmeval.spelling import suggestion

from .audit import AUDITED
from .mistakes import EMPTY_TABLE
from .mistakes import explain
from .mistakes import kind
from .mistakes import mistake
from .mistakes import read_text
from .mistakes import toml_problem

# More digits than anybody has samples; int() itself refuses thousands of them.
_PASS = re.compile(r"pass[@^]([1-9][0-9]{0,8})")


def _problem(text: str, key: str | None = None) -> PydanticCustomError:
    """A mistake in the table or value being validated, or in one ``key`` of it."""
    return PydanticCustomError("gate", "{text}", {"text": text, "key": key})


class _Table(BaseModel):
    """A TOML table with known keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    # What is said instead of "unknown key" about a key that is right in another table.
    elsewhere: ClassVar[Mapping[str, str]] = {}
    empty: ClassVar[str] = EMPTY_TABLE

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        # First of all checks: a misspelt key explains whatever else is wrong with the table.
        if isinstance(data, dict):
            for key in data:
                if key in cls.model_fields:
                    continue
                if key in cls.elsewhere:
                    raise _problem(cls.elsewhere[key], key)
                if cls.model_config.get("extra") == "allow" and key.startswith(("pass@", "pass^")):
                    if _PASS.fullmatch(key) is None:
                        raise _problem(f"k must be a whole number from 1: {key[:5]}1", key)
                    continue
                raise _problem(f"unknown key {key!r}{suggestion(key, cls.model_fields)}", key)
            if not data:
                raise _problem(cls.empty)
        return data

    def merged(self, over: Self) -> Self:
        """The table with what ``over`` sets laid over it: tables key by key, bounds as a whole."""
        update: dict[str, Any] = {}
        for key in over.model_fields_set:
            mine, theirs = getattr(self, key, None), getattr(over, key)
            update[key] = _merge(mine, theirs)
        return self.model_copy(update=update)


def _probability(name: str) -> Callable[[float], float]:
    """Checks that a value lies between 0 and 1, both excluded."""

    def check(value: float) -> float:
        if not 0 < value < 1:
            raise _problem(f"{name} = {value:.12g} is not between 0 and 1")
        return value

    return check


class Bound(_Table):
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
        raise _problem(
            f"expected a number or a table such as {{ {side} = 0.28 }}, got {kind(value)}"
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
                raise _problem(f"{side} = {value} is not a finite number")
            if not low <= value <= high:
                raise _problem(
                    f"{side} = {value:.12g} is outside [{low:g}, {high:g}],"
                    f" the range of this metric{_fraction(value)}"
                )
        if bound.chance and not chance:
            raise _problem("only accuracy can be compared with chance", "chance")
        if bound.chance and (bound.min is not None or bound.max is not None):
            raise _problem("chance is a bound of its own: give neither min nor max", "chance")
        if bound.min is None and bound.max is None and not bound.chance:
            raise _problem(bound.empty)
        if bound.min is not None and bound.max is not None and bound.min > bound.max:
            raise _problem(f"min = {bound.min:.12g} is above max = {bound.max:.12g}")
        return bound

    return check


def _drop(value: float) -> float:
    if not 0 <= value <= 1:
        raise _problem(f"{value:.12g} is outside [0, 1], the range of a drop{_fraction(value)}")
    return value


def _fraction(value: float) -> str:
    """What to write instead of a percentage."""
    return f"; write {value / 100:.12g} for {value:.12g} %" if 1 < value <= 100 else ""


def _without_interval(bound: Bound) -> Bound:
    if bound.confidence is not None:
        raise _problem("a permutation audit is judged by its value", "confidence")
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

_WHOLE = "a gate of a whole benchmark, not of a subject"


def pass_key(key: str) -> tuple[str, int] | None:
    """``pass@10`` as ("@", 10) and ``pass^10`` as ("^", 10); None for any other key."""
    found = _PASS.fullmatch(key)
    return (key[4], int(found[1])) if found else None


class RegressionGates(_Table):
    """What may be lost against a baseline; a model's own table may give only what differs.

    ``baseline`` names the run to compare with, as ``--llm-baseline`` does, which goes first.
    """

    baseline: Annotated[str, NotEmpty] | None = None
    max_drop: Drop | None = None
    max_subject_drop: Drop | None = None
    alpha: Alpha = 0.05


class _Gates(_Table):
    """Gates of whatever items: of a benchmark or of a subject.

    Beside its fields it may have any ``pass@k`` and ``pass^k``.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Share]

    accuracy: Accuracy | None = None
    unparsed_rate: Rate | None = None
    truncated_rate: Rate | None = None
    error_rate: Rate | None = None
    max_errors: Errors | None = None

    def bounds(self) -> dict[str, Bound]:
        """The bounds given, by metric, in the order in which they are judged."""
        bounds = {key: getattr(self, key, None) for key in _METRICS}
        extra = self.__pydantic_extra__ or {}
        bounds.update(sorted(extra.items(), key=lambda item: pass_key(item[0]) or ("", 0)))
        return {key: bound for key, bound in bounds.items() if bound is not None}


_METRICS = (
    "accuracy",
    "macro_accuracy",
    "normalized_gain",
    "unparsed_rate",
    "truncated_rate",
    "error_rate",
    *AUDITED,
)


class SubjectGates(_Gates):
    """Gates of one subject, or of every subject."""

    elsewhere = {
        **{
            key: f"{key} is {_WHOLE}"
            for key in ("macro_accuracy", "normalized_gain", "required", *AUDITED)
        },
        "regression": f"regression is {_WHOLE}: its max_subject_drop is what guards subjects",
    }


_IN_REGRESSION = {
    key: f"{key} belongs to the table regression: regression.{key}"
    for key in RegressionGates.model_fields
}


class ScorerGates(_Gates):
    """Gates of one result: a benchmark under one scorer."""

    elsewhere = {
        **_IN_REGRESSION,
        **{
            key: f"{key} belongs to the benchmark's own table, not to a scorer's"
            for key in ("required", "scorers", "hybrids")
        },
    }

    macro_accuracy: Share | None = None
    normalized_gain: Gain | None = None
    position_range: PlainRate | None = None
    consistency: PlainShare | None = None
    recall_std: PlainRate | None = None
    every_subject: SubjectGates | None = None
    subjects: Annotated[dict[str, SubjectGates], NotEmpty] = {}
    regression: RegressionGates | None = None


def _named_hybrids(bounds: dict[str, Bound]) -> dict[str, Bound]:
    """The bounds by the names that reports give to the hybrids."""
    named: dict[str, Bound] = {}
    for key, bound in bounds.items():
        try:
            name = hybrid_name(hybrid_weights(key))
        except ValueError as error:
            raise _problem(str(error), key) from None
        if name in named:
            raise _problem(f"{name} is gated twice", key)
        named[name] = bound
    return named


class BenchmarkGates(ScorerGates):
    """Gates of one benchmark: its own, by scorer where it runs under several, and of hybrid scores.

    A hybrid's key says what it is made of: ``"0.7*matched+0.3*letter"``. It is computed whether or
    not ``--llm-hybrid`` asks for it.
    """

    elsewhere = _IN_REGRESSION

    required: bool | None = None
    """True: must be run. False: need not be known. None: known, and judged where it is run."""
    scorers: Annotated[dict[str, ScorerGates], NotEmpty] = {}
    hybrids: Annotated[dict[str, Share], NotEmpty, AfterValidator(_named_hybrids)] = {}

    @property
    def direct(self) -> list[str]:
        """The keys given that gate the benchmark itself, without naming a scorer."""
        fields = [key for key in ScorerGates.model_fields if key in self.model_fields_set]
        return fields + sorted(self.__pydantic_extra__ or ())

    def parts(self) -> Iterator[tuple[tuple[str, ...], ScorerGates]]:
        """The table itself and those of its scorers, each with where it stands in this one."""
        yield (), self
        for scorer, gates in self.scorers.items():
            yield ("scorers", scorer), gates


class ModelGates(_Table):
    """What differs for one model; ``required`` as that of a benchmark."""

    required: bool | None = None
    benchmarks: dict[str, BenchmarkGates] = {}


class Thresholds(_Table):
    """A thresholds file. ``file`` is its path as the user wrote it, for messages."""

    version: int
    benchmarks: dict[str, BenchmarkGates] = {}
    models: dict[str, ModelGates] = {}
    _file: str = "thresholds.toml"
    _text: str = ""

    @model_validator(mode="before")
    @classmethod
    def _check_version(cls, data: Any) -> Any:
        # Runs before _check_keys: a file of another version may well have other keys.
        if isinstance(data, dict) and "version" in data:
            version = data["version"]
            if isinstance(version, bool) or not isinstance(version, int) or version != 1:
                shown = repr(version) if isinstance(version, int | str) else kind(version)
                raise _problem(f"{shown} is not supported: write version = 1", "version")
        return data

    @property
    def file(self) -> str:
        """The file's path as the user wrote it."""
        return self._file

    @property
    def text(self) -> str:
        """The file's text."""
        return self._text

    def for_model(self, model: str) -> dict[str, BenchmarkGates]:
        """The gates that apply to a model: the file's, with the model's own laid over them."""
        own = self.models.get(model)
        merged: dict[str, BenchmarkGates] = _merge(self.benchmarks, own.benchmarks if own else {})
        return merged

    @property
    def baseline(self) -> str | None:
        """The baseline that the regression tables name; None where none does."""
        return next((name for _, name in self._baselines()), None)

    def _baselines(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Every ``baseline`` of the file: the keys of its table, and its value."""
        for place, _, table in self.tables():
            for inner, gates in table.parts():
                if gates.regression is not None and gates.regression.baseline is not None:
                    yield (*place, *inner, "regression"), gates.regression.baseline

    def tables(self) -> list[tuple[tuple[str, ...], str, BenchmarkGates]]:
        """Every benchmark table of the file: where it stands, the benchmark, the table."""
        found: list[tuple[tuple[str, ...], str, BenchmarkGates]] = []
        for name, table in self.benchmarks.items():
            found.append((("benchmarks", name), name, table))
        for model, own in self.models.items():
            for name, table in own.benchmarks.items():
                found.append((("models", model, "benchmarks", name), name, table))
        return found


def load_thresholds(path: str | Path) -> Thresholds:
    """Read and check a thresholds file; ConfigError, in one line, for any mistake in it."""
    return parse_thresholds(read_text(path, "thresholds file"), str(path))


def parse_thresholds(text: str, file: str = "thresholds.toml") -> Thresholds:
    """Check the text of a thresholds file; ``file`` is what messages call it."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise mistake(file, (), toml_problem(str(error), text)) from None
    if "version" not in data and all(key in Thresholds.model_fields for key in data):
        raise mistake(file, ("version",), "missing: write version = 1 at the top of the file")
    try:
        thresholds = Thresholds.model_validate(data)
    except ValidationError as error:
        keys, problem = explain(error.errors(include_url=False)[0])
        raise mistake(file, keys, problem) from None
    thresholds._file, thresholds._text = file, text
    _check_regressions(thresholds)
    return thresholds


def _check_regressions(thresholds: Thresholds) -> None:
    """Every regression table must give a drop, a model's own by itself or from the benchmark's.

    A run is compared with one baseline, so the tables that name one name the same.
    """
    for place, name in thresholds._baselines():
        if name != thresholds.baseline:
            raise mistake(
                thresholds.file,
                (*place, "baseline"),
                f"{name!r}, but another table names {thresholds.baseline!r}: a run is compared"
                " with one baseline",
            )
    for place, name, given in thresholds.tables():
        table = thresholds.for_model(place[1])[name] if place[0] == "models" else given
        for inner, gates in table.parts():
            drops = gates.regression
            if drops and drops.max_drop is None and drops.max_subject_drop is None:
                keys = (*place, *inner, "regression")
                raise mistake(thresholds.file, keys, "gives neither max_drop nor max_subject_drop")


def _merge(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: _merge(base.get(key), value) for key, value in over.items()}}
    if isinstance(base, _Table) and isinstance(over, _Table) and not isinstance(over, Bound):
        return base.merged(over)
    return over
