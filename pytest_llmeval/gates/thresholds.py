"""thresholds.toml as frozen models: every mistake in the file is told before anything runs."""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Callable
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
from pydantic_core import ErrorDetails
from pydantic_core import PydanticCustomError

from pytest_llmeval.spelling import suggestion

from .mistakes import mistake

# Keys of DESIGN section 8 that are not built yet: told apart from misspelt ones.
_LATER = re.compile(r"truncated_rate|error_rate|regression|chance|pass[@^].*")


def _problem(text: str, key: str | None = None) -> PydanticCustomError:
    """A mistake in the table or value being validated, or in one ``key`` of it."""
    return PydanticCustomError("gate", "{text}", {"text": text, "key": key})


class _Table(BaseModel):
    """A TOML table with known keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    # What is said instead of "unknown key" about a key that is right in another table.
    elsewhere: ClassVar[Mapping[str, str]] = {}
    empty: ClassVar[str] = "empty table: it gates nothing"

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
                if _LATER.fullmatch(key):
                    raise _problem(f"not supported yet: {key}", key)
                raise _problem(f"unknown key {key!r}{suggestion(key, cls.model_fields)}", key)
            if not data:
                raise _problem(cls.empty)
        return data

    def merged(self, over: Self) -> Self:
        """The table with what ``over`` sets laid over it: tables key by key, bounds as a whole."""
        update: dict[str, Any] = {}
        for key in over.model_fields_set:
            mine, theirs = getattr(self, key), getattr(over, key)
            update[key] = _merge(mine, theirs)
        return self.model_copy(update=update)


class Bound(_Table):
    """The values that a metric may have: at least ``min``, at most ``max``.

    With ``confidence`` the two-sided Wilson interval of that level decides, not the estimate:
    the whole interval inside passes, the whole interval outside fails, else it is undecided.
    """

    empty = "gives neither min nor max"

    min: float | None = None
    max: float | None = None
    confidence: float | None = None

    @property
    def text(self) -> str:
        """The bound as a report shows it, such as ``>= 0.28``."""
        parts = []
        if self.min is not None:
            parts.append(f">= {self.min:.12g}")
        if self.max is not None:
            parts.append(f"<= {self.max:.12g}")
        level = f" ({self.confidence * 100:.12g} % interval)" if self.confidence else ""
        return " and ".join(parts) + level


def _short(side: Literal["min", "max"]) -> Callable[[Any], Any]:
    """Reads the short form, a bare number, as that side of the bound."""

    def expand(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {side: value}
        if isinstance(value, dict | Bound):
            return value
        raise _problem(
            f"expected a number or a table such as {{ {side} = 0.28 }}, got {_kind(value)}"
        )

    return expand


def _within(low: float, high: float, *, confidence: bool) -> Callable[[Bound], Bound]:
    """Checks a bound against the range of its metric."""

    def check(bound: Bound) -> Bound:
        for side in ("min", "max"):
            value = getattr(bound, side)
            if value is None:
                continue
            if not math.isfinite(value):
                raise _problem(f"{side} = {value} is not a finite number")
            if not low <= value <= high:
                percent = (
                    f"; write {value / 100:.12g} for {value:.12g} %" if 1 < value <= 100 else ""
                )
                raise _problem(
                    f"{side} = {value:.12g} is outside [{low:g}, {high:g}],"
                    f" the range of this metric{percent}"
                )
        if bound.min is None and bound.max is None:
            raise _problem(bound.empty)
        if bound.min is not None and bound.max is not None and bound.min > bound.max:
            raise _problem(f"min = {bound.min:.12g} is above max = {bound.max:.12g}")
        if bound.confidence is not None:
            if not confidence:
                raise _problem("not supported yet: confidence for this metric", "confidence")
            if not 0 < bound.confidence < 1:
                raise _problem(
                    f"confidence = {bound.confidence:.12g} is not between 0 and 1", "confidence"
                )
        return bound

    return check


Accuracy = Annotated[
    Bound, BeforeValidator(_short("min")), AfterValidator(_within(0, 1, confidence=True))
]
Macro = Annotated[
    Bound, BeforeValidator(_short("min")), AfterValidator(_within(0, 1, confidence=False))
]
Gain = Annotated[
    Bound, BeforeValidator(_short("min")), AfterValidator(_within(-1, 1, confidence=True))
]
Rate = Annotated[
    Bound, BeforeValidator(_short("max")), AfterValidator(_within(0, 1, confidence=False))
]
Errors = Annotated[int, Field(ge=0)]
NotEmpty = Field(min_length=1)

_WHOLE = "a gate of a whole benchmark, not of a subject"


class SubjectGates(_Table):
    """Gates of one subject, or of every subject."""

    elsewhere = {
        key: f"{key} is {_WHOLE}" for key in ("macro_accuracy", "normalized_gain", "required")
    }

    accuracy: Accuracy | None = None
    unparsed_rate: Rate | None = None
    max_errors: Errors | None = None


class ScorerGates(_Table):
    """Gates of one result: a benchmark under one scorer."""

    elsewhere = {
        key: f"{key} belongs to the benchmark's own table, not to a scorer's"
        for key in ("required", "scorers")
    }

    accuracy: Accuracy | None = None
    macro_accuracy: Macro | None = None
    normalized_gain: Gain | None = None
    unparsed_rate: Rate | None = None
    max_errors: Errors | None = None
    every_subject: SubjectGates | None = None
    subjects: Annotated[dict[str, SubjectGates], NotEmpty] = {}


class BenchmarkGates(ScorerGates):
    """Gates of one benchmark: its own, and by scorer where it runs under several."""

    elsewhere = {}

    required: bool = False
    scorers: Annotated[dict[str, ScorerGates], NotEmpty] = {}

    @property
    def direct(self) -> list[str]:
        """The keys given that gate the benchmark itself, without naming a scorer."""
        return [key for key in ScorerGates.model_fields if key in self.model_fields_set]


class ModelGates(_Table):
    """What differs for one model."""

    benchmarks: dict[str, BenchmarkGates] = {}


class Thresholds(_Table):
    """A thresholds file. ``file`` is its path as the user wrote it, for messages."""

    version: int
    benchmarks: dict[str, BenchmarkGates] = {}
    models: dict[str, ModelGates] = {}
    _file: str = "thresholds.toml"

    @model_validator(mode="before")
    @classmethod
    def _check_version(cls, data: Any) -> Any:
        # Runs before _check_keys: a file of another version may well have other keys.
        if isinstance(data, dict) and "version" in data:
            version = data["version"]
            if isinstance(version, bool) or not isinstance(version, int) or version != 1:
                shown = repr(version) if isinstance(version, int | str) else _kind(version)
                raise _problem(f"{shown} is not supported: write version = 1", "version")
        return data

    @property
    def file(self) -> str:
        """The file's path as the user wrote it."""
        return self._file

    def for_model(self, model: str) -> dict[str, BenchmarkGates]:
        """The gates that apply to a model: the file's, with the model's own laid over them."""
        own = self.models.get(model)
        merged: dict[str, BenchmarkGates] = _merge(self.benchmarks, own.benchmarks if own else {})
        return merged

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
    file = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise mistake(file, (), "no such thresholds file") from None
    except UnicodeDecodeError as error:
        raise mistake(file, (), f"not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise mistake(file, (), f"cannot be read: {reason}") from None
    return parse_thresholds(text, file)


def parse_thresholds(text: str, file: str = "thresholds.toml") -> Thresholds:
    """Check the text of a thresholds file; ``file`` is what messages call it."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise mistake(file, (), _toml_problem(str(error), text)) from None
    if "version" not in data and all(key in Thresholds.model_fields for key in data):
        raise mistake(file, ("version",), "missing: write version = 1 at the top of the file")
    try:
        thresholds = Thresholds.model_validate(data)
    except ValidationError as error:
        keys, problem = _explain(error.errors(include_url=False)[0])
        raise mistake(file, keys, problem) from None
    thresholds._file = file
    return thresholds


def _merge(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: _merge(base.get(key), value) for key, value in over.items()}}
    if isinstance(base, _Table) and isinstance(over, _Table) and not isinstance(over, Bound):
        return base.merged(over)
    return over


def _toml_problem(message: str, text: str) -> str:
    """Tomllib's message with the line in front."""
    at = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if at:
        return f"line {at[1]}, column {at[2]}: {message[: at.start()]}"
    end = " (at end of document)"
    if message.endswith(end):
        return f"line {len(text.splitlines())}, at the end: {message.removesuffix(end)}"
    return f"not valid TOML: {message}"


def _explain(error: ErrorDetails) -> tuple[list[str], str]:
    """Where a pydantic error is and what it means in the words of the file."""
    keys = [str(key) for key in error["loc"]]
    context = error.get("ctx", {})
    if error["type"] == "gate":
        if context["key"] is not None:
            keys.append(context["key"])
        return keys, context["text"]
    value = error["input"]
    match error["type"]:
        case "dict_type" | "model_type":
            return keys, f"expected a table, got {_kind(value)}"
        case "bool_type":
            return keys, f"expected true or false, got {_kind(value)}"
        case "float_type" if isinstance(value, int) and not isinstance(value, bool):
            return keys, "too large a number"
        case "float_type":
            return keys, f"expected a number, got {_kind(value)}"
        case "int_type":
            return keys, f"expected a whole number, got {_kind(value)}"
        case "greater_than_equal":
            return keys, f"{value} is negative"
        case "too_short":
            return keys, _Table.empty
        case _:
            return keys, error["msg"]


def _kind(value: object) -> str:
    """What TOML calls the type of a value."""
    names: dict[type, str] = {
        bool: "a boolean",
        int: "a whole number",
        float: "a number with a fraction",
        str: "a string",
        list: "an array",
        dict: "a table",
    }
    if isinstance(value, datetime.date | datetime.time):
        return "a date or time"
    return names.get(type(value), type(value).__name__)
