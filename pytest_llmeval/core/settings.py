"""Settings of a session, from the command line and the ini file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    from pytest_llmeval.core.prices import Prices


@dataclass(frozen=True)
class ReplicaSettings:
    """Replicas of models on Ray. None: as many as fit, and one GPU each if there are GPUs."""

    #: ``local``, or HOST:PORT of the head node.
    address: str
    replicas: int | None = None
    #: GPUs per replica.
    gpus: float | None = None
    #: Allow replicas on different kinds of GPU.
    allow_mixed: bool = False


@dataclass(frozen=True)
class Settings:
    """The settings of the user, from the command line or the ini file.

    ``endpoint``: options of endpoints, as arguments of their ``open_model``. ``decoding``: fields
    of ``Decoding`` that replace those of the protocol. ``system``: system prompt of protocols with
    ``chat``. ``trials``: limits of the
    containers in which tests of SWE-bench are run.

    ``shard`` is (i, n), counted from 1. ``baseline`` is a path, or the name of a baseline in the
    folder ``baselines``.
    """

    models: tuple[str, ...]
    endpoint: Mapping[str, Any]
    replicas: ReplicaSettings | None
    prices: Prices
    dry_run: bool
    cache: Path | None
    data: Path | None
    protocol: str | None
    system: str | None
    shots: int | None
    samples: int
    decoding: Mapping[str, Any]
    permutations: str | None
    debias: tuple[str, ...]
    contamination: tuple[str, ...]
    hybrid: Mapping[str, float]
    seed: int
    limit: int | None
    shard: tuple[int, int] | None
    thresholds: Path | None
    baseline: str | None
    baselines: Path
    overlap: Path | None
    allow_mismatch: bool
    sandbox: str
    trials: Mapping[str, Any]
    runs: Path
    resume: bool
    sequential: bool
    reports: tuple[str, ...]
    junit: str
    wrong_fails: bool
    allow_undecided: bool
