"""What the JSON documents of a run folder must hold, checked once, where they are read.

A folder may be of another tool, of another version, or edited by hand: all that reads a run leans
on these fields. What is not named here is read only where it is there.
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
from pytest_llmeval.core.plan import PlannedResult

_Interval = Annotated[list[float], Field(min_length=2, max_length=2)]


class _Part(BaseModel):
    # Built where a document is read: most sessions read one of four.
    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class _Protocol(_Part):
    name: str
    ask: str
    scorer: str
    samples: int


class _Way(_Part):
    fingerprint: str
    protocol: _Protocol


class _Planned(_Part):
    """As ``PlannedResult``, which is made of it."""

    benchmark: str
    version: str
    data_hash: str
    chance: float | None
    subjects: dict[str, int]
    drawn: dict[str, int] | None
    ways: Annotated[list[_Way], Field(min_length=1)]
    shots: dict[str, list[str]]
    asked: int = 0
    warnings: list[str] = []
    excluded: str = ""
    responses_of: int | None = None
    arms: list[str] = []
    debias: str | None = None

    @model_validator(mode="after")
    def _known(self) -> _Planned:
        known = {field.name for field in fields(PlannedResult)}
        if unknown := sorted((self.model_extra or {}).keys() - known):
            raise ValueError(f"unknown {unknown[0]!r}")
        return self


class _Manifest(_Part):
    models: list[str]
    own_model: bool
    results: list[_Planned]
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
    asked: dict[str, dict[str, str]] = {}
    command: list[str] = []
    baseline: str | None = None
    template_dates: dict[str, str] = {}
    versions: dict[str, str] = {}
    usage: list[Annotated[list[str | dict[str, float]], Field(min_length=3, max_length=3)]] = []
    prices: dict[str, Any] | None = None


class _Passes(_Part):
    value: float | None
    interval95: _Interval


class _Draw(_Part):
    items: int


class _Counts(_Part):
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
    sampled: _Draw | None
    subjects: dict[str, _Counts]
    pass_at_k: Annotated[dict[str, _Passes | None] | None, Field(alias="pass@k")] = None
    pass_hat_k: Annotated[dict[str, _Passes | None] | None, Field(alias="pass^k")] = None


class _Metrics(_Part):
    results: list[_Result]


class _Gate(_Part):
    """As ``gates.Verdict``, which is made of it."""

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


class _Gates(_Part):
    verdict: str
    gates: list[_Gate]
    items_failed: int = 0
    thresholds: str | None = None


class _Difference(_Part):
    items: int
    baseline: float | None
    candidate: float | None
    drop: float | None
    adjusted: float
    newly_wrong: int
    newly_right: int


class _Compared(_Part):
    benchmark: str
    scorer: str
    baseline: str
    candidate: str
    comparable: bool
    overall: _Difference
    subjects: dict[str, _Difference]
    newly_wrong: list[str]
    newly_right: list[str]


class _Comparison(_Part):
    baseline: str
    candidate: str
    comparisons: list[_Compared]


_DOCUMENTS: Mapping[str, type[_Part]] = {
    "run.json": _Manifest,
    "metrics.json": _Metrics,
    "gates.json": _Gates,
    "comparison.json": _Comparison,
}


def check_document(name: str, value: Mapping[str, Any], file: Path) -> None:
    """Raise RunError, in one line, unless ``value`` is what a run's document of that name holds.

    A document of another name may hold anything.
    """
    kind = _DOCUMENTS.get(name)
    if kind is None:
        return
    try:
        kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise RunError(f"{file}: damaged, or of another version: {where}: {first['msg']}") from None
