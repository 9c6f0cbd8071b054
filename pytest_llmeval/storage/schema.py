"""Schemas of the JSON documents of a run folder, checked once, when a document is read.

A folder may come from another tool or version, or have been edited by hand. Fields that are not
declared here are optional for every reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated
from typing import Any
from typing import Literal

from pydantic import BaseModel
from pydantic import ConfigDict
from pydantic import Field
from pydantic import ValidationError
from pydantic import model_validator

from pytest_llmeval.core import RunError
from pytest_llmeval.core.plan import RESULT_KEYS
from pytest_llmeval.core.plan import PlannedResult

_Interval = Annotated[list[float], Field(min_length=2, max_length=2)]


class _Document(BaseModel):
    # Built on first use: most sessions read one of the four documents.
    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class _Protocol(_Document):
    name: str
    ask: str
    scorer: str
    samples: int


class _ProtocolVariant(_Document):
    fingerprint: str
    protocol: _Protocol


class _OrderTest(_Document):
    """Fields of an order test: either why it is not run, or its groups and its fingerprint."""

    refused: str = ""
    fingerprint: str = ""
    groups: int = 0
    not_random: str = ""
    natural: str = ""


class _PlannedResult(_Document):
    """Fields of ``PlannedResult``, which is constructed from it."""

    benchmark: str
    version: str
    data_hash: str
    chance: float | None
    subjects: dict[str, int]
    drawn: dict[str, int] | None
    variants: Annotated[list[_ProtocolVariant], Field(min_length=1, alias="ways")]
    shots: dict[str, list[str]]
    requested: int = Field(0, alias="asked")
    warnings: list[str] = []
    excluded: str = ""
    responses_of: int | None = None
    arms: list[str] = []
    debias: str | None = None
    contamination: dict[str, _OrderTest] = {}

    @model_validator(mode="after")
    def _check_field_names(self) -> _PlannedResult:
        names = {RESULT_KEYS.get(field.name, field.name) for field in fields(PlannedResult)}
        if unknown := sorted((self.model_extra or {}).keys() - names):
            raise ValueError(f"unknown {unknown[0]!r}")
        return self


class _Sequential(_Document):
    alpha: float
    wave: int
    gates: str


class _Imported(_Document):
    """Origin of an imported run; ``from`` is a keyword of Python."""

    origin: Annotated[str, Field(alias="from")]
    harness: str
    sha256: str


class _Manifest(_Document):
    models: list[str]
    own_model: bool
    results: list[_PlannedResult]
    status: str = ""
    started: str = ""
    finished: str = ""
    seconds: float = 0
    seed: int = 0
    limit: int | None = None
    shard: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None
    answers: int = 0
    failed_tests: int = 0
    hybrid: dict[str, float] = {}
    request_modes: dict[str, dict[str, str]] = Field({}, alias="asked")
    additions: dict[str, dict[str, Any]] = {}
    command: list[str] = []
    baseline: str | None = None
    template_dates: dict[str, str] = {}
    versions: dict[str, str] = {}
    usage: list[Annotated[list[str | dict[str, float]], Field(min_length=3, max_length=3)]] = []
    prices: dict[str, Any] | None = None
    sequential: _Sequential | None = None
    imported: _Imported | None = None
    notes: list[str] = []


class _PassEstimate(_Document):
    value: float | None
    interval95: _Interval


class _Sample(_Document):
    items: int


class _Stopped(_Document):
    answered: int = Field(alias="asked")
    population: int


class _Counts(_Document):
    items: int
    answered: int
    correct: int
    unparsed: int
    errors: int
    missing: int
    n_total: int
    complete: bool
    accuracy: float | None
    wilson95: _Interval | None


class _Result(_Counts):
    model: str
    benchmark: str
    scorer: str
    protocol: str
    protocol_fingerprint: str
    data_hash: str
    macro_accuracy: float | None
    macro_interval95: _Interval | None
    normalized_gain: float | None
    chance: float | None
    sampled: _Sample | None
    stopped: _Stopped | None = None
    subjects: dict[str, _Counts]
    pass_at_k: Annotated[dict[str, _PassEstimate | None] | None, Field(alias="pass@k")] = None
    pass_hat_k: Annotated[dict[str, _PassEstimate | None] | None, Field(alias="pass^k")] = None


class _MeasuredOrders(_Document):
    model: str
    benchmark: str
    test: Literal["option_order", "item_order"]
    groups: int
    orders: Annotated[list[int], Field(min_length=2, max_length=2)] | None
    mean_rank: float | None
    p_value: float | None
    sees: float | None
    problem: str | None


class _Metrics(_Document):
    results: list[_Result]
    contamination: list[_MeasuredOrders] = []


class _Gate(_Document):
    """Fields of ``gates.Verdict``, which is constructed from it."""

    id: str
    model: str | None
    benchmark: str
    scorer: str | None
    subject: str | None
    metric: str | None
    bound: str
    measured: float | None
    interval: _Interval | None
    n: int
    status: Literal["pass", "fail", "undecided", "not run"]
    reason: str
    min: float | None = None
    max: float | None = None
    detectable: float | None = None
    warning: str | None = None
    sequential: dict[str, float | None] | None = None
    p_value: float | None = None


class _Verdicts(_Document):
    verdict: str
    gates: list[_Gate]
    items_failed: int = 0
    thresholds: str | None = None


class _Difference(_Document):
    items: int
    baseline: float | None
    candidate: float | None
    drop: float | None
    adjusted: float
    newly_wrong: int
    newly_right: int


class _ResultComparison(_Document):
    benchmark: str
    scorer: str
    baseline: str
    candidate: str
    comparable: bool
    overall: _Difference
    subjects: dict[str, _Difference]
    newly_wrong: list[str]
    newly_right: list[str]


class _Comparison(_Document):
    baseline: str
    candidate: str
    comparisons: list[_ResultComparison]


class _Course(_Document):
    model: int
    result: int
    items: list[Annotated[list[str], Field(min_length=2, max_length=2)]]


class _Order(_Document):
    courses: list[_Course]


_DOCUMENTS: Mapping[str, type[_Document]] = {
    "run.json": _Manifest,
    "metrics.json": _Metrics,
    "gates.json": _Verdicts,
    "comparison.json": _Comparison,
    "order.json": _Order,
}


def check_document(name: str, value: Mapping[str, Any], file: Path) -> None:
    """Check a document of a run folder. Raises RunError, in one line, if it violates its schema.

    Documents of other names are not checked.
    """
    schema = _DOCUMENTS.get(name)
    if schema is None:
        return
    try:
        schema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise RunError(f"{file}: damaged, or of another version: {path}: {first['msg']}") from None
