"""thresholds.toml as frozen models: every mistake in the file is told before anything runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from typing import Any
from typing import ClassVar

from pydantic import AfterValidator
from pydantic import ConfigDict
from pydantic import Field
from pydantic import ValidationError
from pydantic import model_validator

from pytest_llmeval.core.validation import explain_validation_error
from pytest_llmeval.core.validation import located_error
from pytest_llmeval.core.validation import read_text
from pytest_llmeval.core.validation import toml_problem
from pytest_llmeval.core.validation import toml_type
from pytest_llmeval.gates.bounds import AUDITED
from pytest_llmeval.gates.bounds import Accuracy
from pytest_llmeval.gates.bounds import Alpha
from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.bounds import Drop
from pytest_llmeval.gates.bounds import Errors
from pytest_llmeval.gates.bounds import Gain
from pytest_llmeval.gates.bounds import NotEmpty
from pytest_llmeval.gates.bounds import PlainRate
from pytest_llmeval.gates.bounds import PlainShare
from pytest_llmeval.gates.bounds import Rate
from pytest_llmeval.gates.bounds import Share
from pytest_llmeval.gates.bounds import Table
from pytest_llmeval.gates.bounds import merge
from pytest_llmeval.gates.bounds import problem
from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_weights

# More digits than anybody has samples; int() itself refuses thousands of them.
_PASS = re.compile(r"pass[@^]([1-9][0-9]{0,8})")

_WHOLE = "a gate of a whole benchmark, not of a subject"


def pass_key(key: str) -> tuple[str, int] | None:
    """``pass@10`` as ("@", 10) and ``pass^10`` as ("^", 10); None for any other key."""
    found = _PASS.fullmatch(key)
    return (key[4], int(found[1])) if found else None


class RegressionGates(Table):
    """What may be lost against a baseline; a model's own table may give only what differs.

    ``baseline`` names the run to compare with, as ``--llm-baseline`` does, which goes first.
    """

    baseline: Annotated[str, NotEmpty] | None = None
    max_drop: Drop | None = None
    max_subject_drop: Drop | None = None
    alpha: Alpha = 0.05


class _Gates(Table):
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

    @classmethod
    def accepts(cls, key: str) -> bool:
        """True for ``pass@k`` and ``pass^k``."""
        if not key.startswith(("pass@", "pass^")):
            return False
        if pass_key(key) is None:
            raise problem(f"k must be a whole number from 1: {key[:5]}1", key)
        return True

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

    elsewhere: ClassVar[Mapping[str, str]] = {
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

    elsewhere: ClassVar[Mapping[str, str]] = {
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
    subjects: Annotated[dict[str, SubjectGates], NotEmpty] = Field(default_factory=dict)
    regression: RegressionGates | None = None


def _named_hybrids(bounds: dict[str, Bound]) -> dict[str, Bound]:
    """The bounds by the names that reports give to the hybrids."""
    named: dict[str, Bound] = {}
    for key, bound in bounds.items():
        try:
            name = hybrid_name(hybrid_weights(key))
        except ValueError as error:
            raise problem(str(error), key) from None
        if name in named:
            raise problem(f"{name} is gated twice", key)
        named[name] = bound
    return named


class BenchmarkGates(ScorerGates):
    """Gates of one benchmark: its own, by scorer where it runs under several, and of hybrid scores.

    A hybrid's key says what it is made of: ``"0.7*matched+0.3*letter"``. It is computed whether or
    not ``--llm-hybrid`` asks for it.
    """

    elsewhere: ClassVar[Mapping[str, str]] = _IN_REGRESSION

    required: bool | None = None
    """True: must be run. False: need not be known. None: known, and judged where it is run."""
    scorers: Annotated[dict[str, ScorerGates], NotEmpty] = Field(default_factory=dict)
    hybrids: Annotated[dict[str, Share], NotEmpty, AfterValidator(_named_hybrids)] = Field(
        default_factory=dict
    )

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


class ModelGates(Table):
    """What differs for one model; ``required`` as that of a benchmark."""

    required: bool | None = None
    benchmarks: dict[str, BenchmarkGates] = Field(default_factory=dict)


class Thresholds(Table):
    """A thresholds file. ``file`` is its path as the user wrote it, for messages."""

    version: int
    benchmarks: dict[str, BenchmarkGates] = Field(default_factory=dict)
    models: dict[str, ModelGates] = Field(default_factory=dict)
    _file: str = "thresholds.toml"
    _text: str = ""

    @model_validator(mode="before")
    @classmethod
    def _check_version(cls, data: Any) -> Any:
        # Runs before _check_keys: a file of another version may well have other keys.
        if isinstance(data, dict) and "version" in data:
            version = data["version"]
            if isinstance(version, bool) or not isinstance(version, int) or version != 1:
                shown = repr(version) if isinstance(version, int | str) else toml_type(version)
                raise problem(f"{shown} is not supported: write version = 1", "version")
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
        merged: dict[str, BenchmarkGates] = merge(self.benchmarks, own.benchmarks if own else {})
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
        raise located_error(file, (), toml_problem(str(error), text)) from None
    if "version" not in data and all(key in Thresholds.model_fields for key in data):
        raise located_error(file, ("version",), "missing: write version = 1 at the top of the file")
    try:
        thresholds = Thresholds.model_validate(data)
    except ValidationError as error:
        raise located_error(
            file, *explain_validation_error(error.errors(include_url=False)[0])
        ) from None
    thresholds._file, thresholds._text = file, text
    _check_regressions(thresholds)
    return thresholds


def _check_regressions(thresholds: Thresholds) -> None:
    """Every regression table must give a drop, a model's own by itself or from the benchmark's.

    A run is compared with one baseline, so the tables that name one name the same.
    """
    for place, name in thresholds._baselines():
        if name != thresholds.baseline:
            raise located_error(
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
                raise located_error(
                    thresholds.file, keys, "gives neither max_drop nor max_subject_drop"
                )
