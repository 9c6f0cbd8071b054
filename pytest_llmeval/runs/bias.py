"""Option-order experiments of a stored run: audits, texts against letters, debiased results.

Answers as texts against answers as letters: what either's labels and reading do to one audit.

"M&D" against "S&L" of Nowak et al. 2026 (arXiv:2602.17445), wherever a run has both of one
benchmark, over the same items in the same orders.

Debiased results: what the log-probabilities of a run say once position bias is taken out.

A result of its own beside the one that it is computed from (``mmlu[letter+pride]``), only where
``--llm-debias`` asks for it. All of an item's orders enter, and of some methods all items, so it is
computed at the end and has no records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from typing import NamedTuple

from pytest_llmeval.bias import debiasing
from pytest_llmeval.bias.arms import ORIGINAL
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.core.plan import is_content_free
from pytest_llmeval.metrics import ArmAnswer
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import arm_answer
from pytest_llmeval.metrics import audit_table
from pytest_llmeval.metrics import variance_ratio
from pytest_llmeval.metrics.bias.audit import FamilyResult
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import Spent
from pytest_llmeval.runs.usage import spent

TEXTS = "matched"
LETTERS = ("choice", "letter")
"""Scorers of answers that are letters: generated, or compared by their likelihood."""


def pairs(
    measurements: Sequence[Measurement], records: Callable[[], Iterable[Record]]
) -> Iterator[dict[str, Any]]:
    """Every pair as JSON values. ``records`` reads those of the run, for what the answers took.

    ``mean``, ``variance``, ``consistency`` and ``recall_std`` are those of the audit's main family
    of arms (``FamilyResult``; ``mean`` is its ``moved_mean``), ``variance_ratio`` is texts over
    letters.
    """
    found = [
        (texts, letters, *families)
        for texts in measurements
        for letters in measurements
        if (families := _comparable(texts, letters)) is not None
    ]
    took = spent(records()) if found else {}
    for texts, letters, of_texts, of_letters in found:
        yield {
            "model": texts.result.model,
            "benchmark": texts.result.benchmark,
            "items": of_texts.items,
            "arms": list(of_texts.arms),
            "texts": _side(texts, of_texts, took),
            "letters": _side(letters, of_letters, took),
            "variance_ratio": variance_ratio(of_texts.variance, of_letters.variance),
        }


def _comparable(
    texts: Measurement, letters: Measurement
) -> tuple[FamilyResult, FamilyResult] | None:
    """The arms of both that are compared; None of unlike items or arms, or with errors."""
    first, second = texts.result, letters.result
    if (
        texts.scored_again
        or letters.scored_again
        or first.scorer.partition("+")[0] != TEXTS
        or second.scorer not in LETTERS
        or (first.model, first.benchmark) != (second.model, second.benchmark)
        or first.counts.error
        or second.counts.error
        or texts.data_hash != letters.data_hash
        or texts.items.keys() != letters.items.keys()
        or first.audit is None
        or second.audit is None
    ):
        return None
    one, other = first.audit.main, second.audit.main
    if one is None or other is None or (one.arms, one.items) != (other.arms, other.items):
        return None
    return one, other


def _side(one: Measurement, family: FamilyResult, took: Mapping[Key, Spent]) -> dict[str, Any]:
    result = one.result
    used = took.get(result.key, Spent())
    return {
        "scorer": result.scorer,
        "protocol": result.protocol,
        "accuracy": result.accuracy,
        "mean": family.moved_mean,
        "variance": family.variance,
        "consistency": family.consistency,
        "recall_std": family.recall_std,
        "seconds": used.seconds,
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
    }


def audit_of(
    arms: Sequence[str],
    items: Iterable[tuple[str, Sequence[Record]]],
    same: Mapping[str, Sequence[int]],
) -> Audit | None:
    """The audit of items with the records of each in every arm it is in.

    ``same``: ``same_options`` of the items that have equal ones. Items that have an error in the
    original order, or no other arm, are left out. None where no item is left.
    """
    table: dict[str, dict[str, ArmAnswer]] = {}
    for item, records in items:
        found = [one for one in records if not one.content_free]
        usual = next((one.order for one in found if one.order), "")
        if not usual:
            continue
        shown = "".join(sorted(usual, key=LABELS.index))
        answers = {
            one.arm or ORIGINAL: _answer(one, one.order or shown, same.get(item, ()))
            for one in found
            if one.outcome is not Outcome.ERROR
        }
        if ORIGINAL in answers:
            table[item] = answers
    return audit_table(table, arms=(ORIGINAL, *arms)) if table else None


def _answer(one: Record, order: str, same: Sequence[int]) -> ArmAnswer:
    read = one.answer if one.answer is not None and one.answer in tuple(order) else None
    return arm_answer(
        [LABELS.index(label) for label in order],
        LABELS.index(one.gold),
        None if read is None else LABELS.index(read),
        one.outcome is Outcome.CORRECT,
        same,
    )


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
        asked = [one for one in asked if debiasing.is_balanced(one.orders)]
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
    return [
        int(debiasing.averaged_probabilities(one.logprobs, one.orders).argmax()) for one in items
    ]


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
            debiasing.averaged_probabilities(one.logprobs, one.orders).argmax()
            if one.item in estimated
            else debiasing.without_prior(one.logprobs[0], prior).argmax()
        )
        for one in items
    ]


def _batch(items: Sequence[_Asked], _seed: int) -> list[int]:
    rows = debiasing.batch_calibrated([one.logprobs[0] for one in items])
    return [int(row.argmax()) for row in rows]


_METHODS = {"cyclic": _averaged, "pride": _pride, "batch": _batch}
