"""Debiased results: what the log-probabilities of a run say once position bias is taken out.

A result of its own beside the one that it is computed from (``mmlu[letter+pride]``), only where
``--llm-debias`` asks for it. All of an item's orders enter, and of some methods all items, so it is
computed at the end and has no records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_llmeval.bias import debiasing
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.core.plan import is_content_free
from pytest_llmeval.metrics import ItemOutcomes

DEBIASED = tuple(f"letter+{how}" for how in debiasing.METHODS)
"""Results that ``--llm-debias`` adds to those by letter."""


class _Asked(NamedTuple):
    """An item with its log-probabilities, a row an order of its options, the original first."""

    item: str
    subject: str
    gold: int
    logprobs: list[tuple[float, ...]]
    orders: list[tuple[int, ...]]


def debiased(
    planned: PlannedResult,
    fingerprint: str,
    items: Mapping[str, ItemOutcomes],
    records: Iterable[Record],
    seed: int,
) -> dict[str, ItemOutcomes]:
    """The outcomes of a debiased result, from those of the result that it is computed from.

    ``fingerprint`` is that of the way in which the answers were asked for, ``records`` hold them.
    An item without log-probabilities (an error, or a letter that had to be generated) stays as it
    is, and so does one of more options than there are orders, in which they are not at every
    position as often. Empty where no item has any. Contextual calibration leaves out items whose
    content-free prompt was not asked; where it has an error, or not every label was told, so have
    they.
    """
    assert planned.debias is not None
    own = [record for record in records if record.benchmark == planned.benchmark]
    asked = _asked(
        [arm for arm in planned.arms if not is_content_free(arm)], fingerprint, items, own
    )
    if not asked:
        return {}
    if planned.debias in debiasing.AVERAGING:
        asked = [one for one in asked if debiasing.balanced(one.orders)]
    if planned.debias == "contextual":
        free = _content_free(
            [arm for arm in planned.arms if is_content_free(arm)], fingerprint, own
        )
        chosen = _contextual(asked, free)
    else:
        chosen = {}
        for alike in _by_size(asked):
            found = _METHODS[planned.debias](alike, seed)
            chosen.update(zip((one.item for one in alike), found, strict=True))
    golds = {one.item: one.gold for one in asked}
    outcomes = {}
    for name, item in items.items():
        if name not in golds or Outcome.ERROR in item.outcomes:
            outcomes[name] = item
        elif name in chosen:
            outcomes[name] = _outcome(item, chosen[name], golds[name])
    return outcomes


def what_is_lacking(
    name: str, first: Mapping[str, ItemOutcomes], items: Mapping[str, ItemOutcomes]
) -> str | None:
    """Why a debiased result is not computed, or not for all items of the one that it is made of."""
    if not items:
        return f"{name} is not computed: no item has log-probabilities of its labels"
    errors = sum(
        Outcome.ERROR in item.outcomes and Outcome.ERROR not in first[item_id].outcomes
        for item_id, item in items.items()
    )
    if errors:
        return (
            f"{name}: {errors:,} items are errors: not all of their labels' log-probabilities are"
            " known without a question"
        )
    return None


def _outcome(item: ItemOutcomes, chosen: int | None, gold: int) -> ItemOutcomes:
    if chosen is None:
        outcome = Outcome.ERROR
    else:
        outcome = Outcome.CORRECT if chosen == gold else Outcome.WRONG
    return replace(item, outcomes=(outcome,), tie=False)


def _by_size(asked: Iterable[_Asked]) -> Iterable[list[_Asked]]:
    sizes: dict[int, list[_Asked]] = {}
    for one in asked:
        sizes.setdefault(len(one.orders[0]), []).append(one)
    return sizes.values()


def _asked(
    arms: Sequence[str],
    fingerprint: str,
    items: Mapping[str, ItemOutcomes],
    records: Iterable[Record],
) -> list[_Asked]:
    """Items with log-probabilities in every order that was asked for of them."""
    protocols = {fingerprint, *(arm_fingerprint(fingerprint, arm) for arm in arms)}
    found: dict[str, dict[str, Record]] = {}
    for record in records:
        if record.protocol in protocols and record.item in items:
            found.setdefault(record.item, {})[record.arm] = record
    asked = []
    for name, by_arm in sorted(found.items()):
        first = by_arm.get("")
        if first is None or not all(one.logprobs for one in by_arm.values()):
            continue
        usual = LABELS[: len(first.logprobs)]
        gold = usual.find(first.gold)
        if gold >= 0:
            # In the order of the arms, not that in which their answers came.
            rows = [by_arm[arm] for arm in ("", *arms) if arm in by_arm]
            orders = [tuple(map(LABELS.index, one.order or usual)) for one in rows]
            logprobs = [one.logprobs for one in rows]
            asked.append(_Asked(name, rows[0].subject, gold, logprobs, orders))
    return asked


def _content_free(
    arms: Sequence[str], fingerprint: str, records: Iterable[Record]
) -> dict[tuple[str, int], list[Record]]:
    """(subject, number of options) → its content-free answers, where all of them are known.

    Shards ask for each of them once: what has no error and comes first by item counts.
    """
    known = {arm_fingerprint(fingerprint, arm) for arm in arms}
    found: dict[tuple[str, int], dict[str, Record]] = {}
    for record in sorted(records, key=lambda one: (not one.logprobs, one.item)):
        if record.protocol in known:
            group = found.setdefault((record.subject, len(record.order)), {})
            group.setdefault(record.arm, record)
    return {group: list(own.values()) for group, own in found.items() if len(own) == len(known)}


def _contextual(
    asked: Iterable[_Asked], free: Mapping[tuple[str, int], Sequence[Record]]
) -> dict[str, int | None]:
    """Item → the option chosen, None where not all labels were told without content."""
    chosen: dict[str, int | None] = {}
    for one in asked:
        answers = free.get((one.subject, len(one.orders[0])))
        if answers is None:
            continue
        rows = [answer.logprobs for answer in answers]
        told = all(row and all(map(math.isfinite, row)) for row in rows)
        chosen[one.item] = (
            int(debiasing.contextually_calibrated(one.logprobs[0], rows).argmax()) if told else None
        )
    return chosen


def _averaged(items: Sequence[_Asked], _seed: int) -> list[int]:
    return [int(debiasing.averaged(one.logprobs, one.orders).argmax()) for one in items]


def _pride(items: Sequence[_Asked], seed: int) -> list[int]:
    estimated = debiasing.estimation_items([one.item for one in items], seed=seed)
    prior = debiasing.mean_prior(
        [
            debiasing.prior(one.logprobs, one.orders).tolist()
            for one in items
            if one.item in estimated
        ]
    ).tolist()
    return [
        int(
            debiasing.averaged(one.logprobs, one.orders).argmax()
            if one.item in estimated
            else debiasing.without_prior(one.logprobs[0], prior).argmax()
        )
        for one in items
    ]


def _batch(items: Sequence[_Asked], _seed: int) -> list[int]:
    rows = debiasing.batch_calibrated([one.logprobs[0] for one in items])
    return [int(row.argmax()) for row in rows]


_METHODS = {"cyclic": _averaged, "pride": _pride, "batch": _batch}
