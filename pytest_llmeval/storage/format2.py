"""Reader of run folders of format 2, in which an arm's record has the arm's number as ``sample``.

Records are converted to the current format: the protocol fingerprint of a record identifies the
arm, and ``run.json`` lists the arms by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import Record
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.plan import arm_fingerprint

FORMAT = 2


def arms_by_protocol(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Map the fingerprint of a protocol in an arm to the arm's name, for all results of a ``run.json``."""
    results = [PlannedResult.from_json(value) for value in manifest["results"]]
    names: dict[str, str] = {}
    for result in results:
        answered = result if result.responses_of is None else results[result.responses_of]
        for variant in result.variants:
            names.update((arm_fingerprint(variant.fingerprint, arm), arm) for arm in answered.arms)
    return names


def with_arm(record: Record, arms: Mapping[str, str]) -> Record:
    """Return the record in the current format, unchanged if it already is.

    ``arms``: ``arms_by_protocol``. Raises ValueError for an option order that is not in ``run.json``.
    """
    arm = arms.get(record.protocol)
    if arm is not None:
        return replace(record, arm=arm, sample=0)
    if record.order:
        raise ValueError("its option order is not in run.json")
    return record
