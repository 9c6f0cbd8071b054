"""Parsing and validation of ``thresholds.toml``, before anything runs."""

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
from pytest_llmeval.gates.bounds import GainLimit
from pytest_llmeval.gates.bounds import Level
from pytest_llmeval.gates.bounds import NotEmpty
from pytest_llmeval.gates.bounds import PlainRate
from pytest_llmeval.gates.bounds import PlainShare
from pytest_llmeval.gates.bounds import Rate
from pytest_llmeval.gates.bounds import Share
from pytest_llmeval.gates.bounds import Table
from pytest_llmeval.gates.bounds import merge
from pytest_llmeval.gates.bounds import table_error
from pytest_llmeval.gates.contamination import ContaminationGates
from pytest_llmeval.gates.contamination import TwinGates
from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_weights

# Nine digits exceed any number of samples; int() rejects strings of thousands of digits.
_PASS = re.compile(r"pass[@^]([1-9][0-9]{0,8})")

_WHOLE = "a gate of a whole benchmark, not of a subject"


def pass_key(key: str) -> tuple[str, int] | None:
    """Parse ``pass@10`` as ("@", 10) and ``pass^10`` as ("^", 10); None for any other key."""
    match = _PASS.fullmatch(key)
    return (key[4], int(match[1])) if match else None


MAX_GAIN = "max_gain"
"""Key of the gate on the gain from items that overlap with a corpus."""


class RegressionGates(Table):
    """Largest drops allowed against a baseline; a model's table may set only some of the keys."""

    baseline: Annotated[str, NotEmpty] | None = None
    """Run to compare with; ``--llm-baseline`` takes precedence."""
    max_drop: Drop | None = None
    max_subject_drop: Drop | None = None
    alpha: Alpha = 0.05
    sequential: bool = True
    """False: the gates need all items under ``--llm-sequential``."""


class Sequential(Table):
    """Certainty of the verdicts of ``--llm-sequential``."""

    empty: ClassVar[str] = "needs alpha or wave"

    alpha: Level = 0.01
    """Probability that a verdict differs from that of a full run, over all gates of a model."""
    wave: Annotated[int, Field(ge=1)] = 512
    """Number of items between two decisions."""


class _MetricGates(Table):
    """Gates that every set of items can have: the fields, and any ``pass@k``, ``pass^k``."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Share]

    accuracy: Accuracy | None = None
    unparsed_rate: Rate | None = None
    refused_rate: Rate | None = None
    truncated_rate: Rate | None = None
    error_rate: Rate | None = None
    resolved_rate: Accuracy | None = None

    @classmethod
    def accepts(cls, key: str) -> bool:
        """Return True for ``pass@k`` and ``pass^k``."""
        if not key.startswith(("pass@", "pass^")):
            return False
        if pass_key(key) is None:
            raise table_error(f"k must be a whole number from 1: {key[:5]}1", key)
        return True

    def bounds(self) -> dict[str, Bound]:
        """Return the bounds that are set, by metric, in the order in which they are judged."""
        bounds = {key: getattr(self, key, None) for key in _METRICS}
        extra = self.__pydantic_extra__ or {}
        bounds.update(sorted(extra.items(), key=lambda item: pass_key(item[0]) or ("", 0)))
        return {key: bound for key, bound in bounds.items() if bound is not None}


_METRICS = (
    "accuracy",
    "macro_accuracy",
    "normalized_gain",
    "unparsed_rate",
    "refused_rate",
    "truncated_rate",
    "error_rate",
    "resolved_rate",
    *AUDITED,
    MAX_GAIN,
)


class _Gates(_MetricGates):
    """Gates that both benchmarks and subjects can have."""

    max_errors: Errors | None = None


class SubjectGates(_Gates):
    """Gates of one subject, or of every subject."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {
        **{
            key: f"{key} is {_WHOLE}"
            for key in ("macro_accuracy", "normalized_gain", "required", *AUDITED)
        },
        "regression": f"regression is {_WHOLE}: write regression.max_subject_drop for subjects",
    }


class CleanGates(_MetricGates):
    """Gates of the items that do not overlap with a corpus (``--llm-overlap``), and of the gain."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {
        key: f"{key} is {_WHOLE.replace('a subject', 'its clean items')}"
        for key in ("required", "max_errors", "every_subject", "subjects", "regression", *AUDITED)
    }

    macro_accuracy: Share | None = None
    normalized_gain: Gain | None = None
    max_gain: GainLimit | None = None
    """Largest difference of the accuracy of all judged items to that of the clean ones."""


_IN_OTHER_TABLES = {
    **{
        key: f"{key} belongs to the table regression: write regression.{key}"
        for key in RegressionGates.model_fields
    },
    "max_overlap": "max_overlap belongs to the table contamination: write contamination.max_overlap",
    MAX_GAIN: f"{MAX_GAIN} belongs to the table clean: write clean.{MAX_GAIN}",
}


class ScorerGates(_Gates):
    """Gates of one result: a benchmark under one scorer."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {
        **_IN_OTHER_TABLES,
        **{
            key: f"{key} belongs to the benchmark's table, not to a scorer's"
            for key in ("required", "scorers", "hybrids", "contamination", "twin")
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
    clean: CleanGates | None = None


def _named_hybrids(bounds: dict[str, Bound]) -> dict[str, Bound]:
    """Return the bounds by the hybrids' normalized names."""
    named: dict[str, Bound] = {}
    for key, bound in bounds.items():
        try:
            name = hybrid_name(hybrid_weights(key))
        except ValueError as error:
            raise table_error(str(error), key) from None
        if name in named:
            raise table_error(f"{name} is gated twice", key)
        named[name] = bound
    return named


class BenchmarkGates(ScorerGates):
    """Gates of one benchmark: of its only result, of its results by scorer, and of hybrid scores."""

    misplaced_keys: ClassVar[Mapping[str, str]] = _IN_OTHER_TABLES

    required: bool | None = None
    """True: must be run. False: may be an unknown name. None: must be a known name."""
    scorers: Annotated[dict[str, ScorerGates], NotEmpty] = Field(default_factory=dict)
    """Gates by scorer, for a benchmark that runs under several."""
    hybrids: Annotated[dict[str, Share], NotEmpty, AfterValidator(_named_hybrids)] = Field(
        default_factory=dict
    )
    """Bounds by weights, such as ``"0.7*matched+0.3*letter"``; independent of ``--llm-hybrid``."""
    contamination: ContaminationGates | None = None
    """Order tests of the benchmark, independent of its scorers."""
    twin: TwinGates | None = None
    """Comparison with a rewritten copy of the benchmark."""

    @property
    def direct(self) -> list[str]:
        """Keys that gate the benchmark without naming a scorer."""
        fields = [key for key in ScorerGates.model_fields if key in self.model_fields_set]
        return fields + sorted(self.__pydantic_extra__ or ())

    def parts(self) -> Iterator[tuple[tuple[str, ...], ScorerGates]]:
        """Yield this table and those of its scorers, each with its keys inside this table."""
        yield (), self
        for scorer, gates in self.scorers.items():
            yield ("scorers", scorer), gates


class ModelGates(Table):
    """Overrides for one model."""

    required: bool | None = None
    """As ``BenchmarkGates.required``."""
    benchmarks: dict[str, BenchmarkGates] = Field(default_factory=dict)


class Thresholds(Table):
    """A validated thresholds file."""

    version: int
    sequential: Sequential = Field(default_factory=lambda: Sequential(alpha=0.01))
    benchmarks: dict[str, BenchmarkGates] = Field(default_factory=dict)
    models: dict[str, ModelGates] = Field(default_factory=dict)
    _file: str = "thresholds.toml"
    _text: str = ""

    @model_validator(mode="before")
    @classmethod
    def _check_version(cls, data: Any) -> Any:
        # Runs before _check_keys: a file of another version may have other keys.
        if isinstance(data, dict) and "version" in data:
            version = data["version"]
            if isinstance(version, bool) or not isinstance(version, int) or version != 1:
                shown = repr(version) if isinstance(version, int | str) else toml_type(version)
                raise table_error(f"{shown} is not supported: write version = 1", "version")
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
        """Return the gates of a model: the file's, with the model's overrides merged into them."""
        own = self.models.get(model)
        merged: dict[str, BenchmarkGates] = merge(self.benchmarks, own.benchmarks if own else {})
        return merged

    @property
    def baseline(self) -> str | None:
        """Baseline that the regression tables name; None if none does."""
        return next((name for _, name in self._baselines()), None)

    def _baselines(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield every ``baseline`` of the file: the keys of its table, and its value."""
        for place, _, table in self.tables():
            for inner, gates in table.parts():
                if gates.regression is not None and gates.regression.baseline is not None:
                    yield (*place, *inner, "regression"), gates.regression.baseline

    def tables(self) -> list[tuple[tuple[str, ...], str, BenchmarkGates]]:
        """Return every benchmark table of the file: its keys, the benchmark, the table."""
        tables: list[tuple[tuple[str, ...], str, BenchmarkGates]] = []
        for name, table in self.benchmarks.items():
            tables.append((("benchmarks", name), name, table))
        for model, overrides in self.models.items():
            for name, table in overrides.benchmarks.items():
                tables.append((("models", model, "benchmarks", name), name, table))
        return tables


def load_thresholds(path: str | Path) -> Thresholds:
    """Read and check a thresholds file.

    Raises ConfigError, in one line, for a file that cannot be read and for any mistake in it.
    """
    return parse_thresholds(read_text(path, "thresholds file"), str(path))


def parse_thresholds(text: str, file: str = "thresholds.toml") -> Thresholds:
    """Check the text of a thresholds file.

    ``file``: path for messages. Raises ConfigError, in one line, for any mistake.
    """
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
    """Raise ConfigError for a regression table without a drop and for a second baseline.

    A model's table may take its drop from the benchmark's. A run is compared with one baseline, so
    all tables must name the same.
    """
    for place, name in thresholds._baselines():
        if name != thresholds.baseline:
            raise located_error(
                thresholds.file,
                (*place, "baseline"),
                f"{name!r}, but another table names {thresholds.baseline!r}: a run is compared"
                " with one baseline",
            )
    for place, name, written in thresholds.tables():
        table = thresholds.for_model(place[1])[name] if place[0] == "models" else written
        for inner, gates in table.parts():
            drops = gates.regression
            if drops and drops.max_drop is None and drops.max_subject_drop is None:
                keys = (*place, *inner, "regression")
                raise located_error(thresholds.file, keys, "needs max_drop or max_subject_drop")
