"""Run folders of format 2, in which the ``sample`` of an arm's record was the number of the arm.

They are read as of this format: the protocol's fingerprint in a record is that of one arm, and
``run.json`` lists the arms by name.
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
    """Fingerprint of a protocol in an arm → the arm's name, for all results of a ``run.json``."""
    results = [PlannedResult.from_json(value) for value in manifest["results"]]
    found: dict[str, str] = {}
    for result in results:
        asked = result if result.responses_of is None else results[result.responses_of]
        for way in result.ways:
            found.update((arm_fingerprint(way.fingerprint, arm), arm) for arm in asked.arms)
    return found


def with_arm(record: Record, arms: Mapping[str, str]) -> Record:
    """The record as of this format; one that is so already stays as it is.

    ``arms``: ``arms_by_protocol``. Raises ValueError for a record of an order that is none of them.
    """
    arm = arms.get(record.protocol)
    if arm is not None:
        return replace(record, arm=arm, sample=0)
    if record.order:
        raise ValueError("its order of options is none of run.json")
    return record
