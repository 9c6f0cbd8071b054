"""Debiased results: what the log-probabilities of a run say once position bias is taken out.

A result of its own beside the one that it is computed from (``mmlu[letter+pride]``), only where
``--llm-debias`` asks for it. All of an item's orders enter, and of some methods all items, so it is
computed at the end and has no records.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_llmeval import debias
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.plan import PlannedResult
from pytest_llmeval.plan import arm_fingerprint


class _Asked(NamedTuple):
    """An item with its log-probabilities, a row an order of its options, the original first."""

    item: str
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
    position as often. Empty where no item has any.
    """
    assert planned.debias is not None
    own = (record for record in records if record.benchmark == planned.benchmark)
    asked = _asked(planned.arms, fingerprint, items, own)
    if planned.debias in debias.AVERAGING:
        asked = [one for one in asked if debias.balanced(one.orders)]
    sizes: dict[int, list[_Asked]] = {}
    for one in asked:
        sizes.setdefault(len(one.orders[0]), []).append(one)
    chosen: dict[str, tuple[int, int]] = {}
    for alike in sizes.values():
        found = _METHODS[planned.debias](alike, seed)
        chosen.update(
            (one.item, (index, one.gold)) for one, index in zip(alike, found, strict=True)
        )
    if not chosen:
        return {}
    return {name: _outcome(item, chosen.get(name)) for name, item in items.items()}


def _outcome(item: ItemOutcomes, chosen: tuple[int, int] | None) -> ItemOutcomes:
    if chosen is None or Outcome.ERROR in item.outcomes:
        return item
    index, gold = chosen
    outcome = Outcome.CORRECT if index == gold else Outcome.WRONG
    return replace(item, outcomes=(outcome,), tie=False)


def _asked(
    arms: Sequence[str],
    fingerprint: str,
    items: Mapping[str, ItemOutcomes],
    records: Iterable[Record],
) -> list[_Asked]:
    """Items with log-probabilities in every order that was asked for of them."""
    protocols = (fingerprint, *(arm_fingerprint(fingerprint, arm) for arm in arms))
    numbers = {protocol: number for number, protocol in enumerate(protocols)}
    found: dict[str, dict[int, Record]] = {}
    for record in records:
        if record.protocol in numbers and record.item in items:
            found.setdefault(record.item, {})[numbers[record.protocol]] = record
    asked = []
    for name, by_arm in sorted(found.items()):
        if 0 not in by_arm or not all(one.logprobs for one in by_arm.values()):
            continue
        usual = LABELS[: len(by_arm[0].logprobs)]
        gold = usual.find(by_arm[0].gold)
        if gold >= 0:
            # In the order of the arms, not that in which their answers came.
            rows = [by_arm[number] for number in sorted(by_arm)]
            orders = [tuple(map(LABELS.index, one.order or usual)) for one in rows]
            asked.append(_Asked(name, gold, [one.logprobs for one in rows], orders))
    return asked


def _averaged(items: Sequence[_Asked], _seed: int) -> list[int]:
    return [int(debias.averaged(one.logprobs, one.orders).argmax()) for one in items]


def _pride(items: Sequence[_Asked], seed: int) -> list[int]:
    estimated = debias.estimation_items([one.item for one in items], seed=seed)
    prior = debias.mean_prior(
        [debias.prior(one.logprobs, one.orders).tolist() for one in items if one.item in estimated]
    ).tolist()
    return [
        int(
            debias.averaged(one.logprobs, one.orders).argmax()
            if one.item in estimated
            else debias.without_prior(one.logprobs[0], prior).argmax()
        )
        for one in items
    ]


def _batch(items: Sequence[_Asked], _seed: int) -> list[int]:
    rows = debias.batch_calibrated([one.logprobs[0] for one in items])
    return [int(row.argmax()) for row in rows]


_METHODS = {"cyclic": _averaged, "pride": _pride, "batch": _batch}
