"""Option-order experiments of a stored run: audits, texts against letters, debiased results."""

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
from pytest_llmeval.runs.usage import ResourceUse
from pytest_llmeval.runs.usage import resource_use

TEXTS = "matched"
LETTERS = ("choice", "letter")
"""Scorers of answers that are letters: generated, or compared by their likelihood."""


def text_letter_pairs(
    measurements: Sequence[Measurement], records: Callable[[], Iterable[Record]]
) -> Iterator[dict[str, Any]]:
    """Yield the comparisons of answers as texts with answers as letters, as JSON values.

    They are "M&D" and "S&L" of Nowak et al. 2026 (arXiv:2602.17445), for every benchmark of which a
    run has both, over the same items in the same orders. ``records`` reads those of the run, for
    time and tokens.

    ``mean``, ``variance``, ``consistency`` and ``recall_std`` are those of the audit's main family
    of arms (``FamilyResult``; ``mean`` is its ``moved_mean``), ``variance_ratio`` is texts over
    letters.
    """
    matches = [
        (texts, letters, *families)
        for texts in measurements
        for letters in measurements
        if (families := _comparable(texts, letters)) is not None
    ]
    use = resource_use(records()) if matches else {}
    for texts, letters, of_texts, of_letters in matches:
        yield {
            "model": texts.result.model,
            "benchmark": texts.result.benchmark,
            "items": of_texts.items,
            "arms": list(of_texts.arms),
            "texts": _side(texts, of_texts, use),
            "letters": _side(letters, of_letters, use),
            "variance_ratio": variance_ratio(of_texts.variance, of_letters.variance),
        }


def _comparable(
    texts: Measurement, letters: Measurement
) -> tuple[FamilyResult, FamilyResult] | None:
    """Return the main families of both; None if items or arms differ, or there are errors."""
    first, second = texts.result, letters.result
    if (
        texts.shares_responses
        or letters.shares_responses
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
    mine, theirs = first.audit.main, second.audit.main
    if mine is None or theirs is None or (mine.arms, mine.items) != (theirs.arms, theirs.items):
        return None
    return mine, theirs


def _side(
    measurement: Measurement, family: FamilyResult, use: Mapping[Key, ResourceUse]
) -> dict[str, Any]:
    result = measurement.result
    used = use.get(result.key, ResourceUse())
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
    """Return the option-order audit of items with their records in every arm.

    ``same``: ``same_options`` of the items that have equal options. Items that have an error in the
    original order, or no other arm, are left out. None if no item remains.
    """
    table: dict[str, dict[str, ArmAnswer]] = {}
    for item, records in items:
        in_arms = [r for r in records if not (r.content_free or r.order_test)]
        any_order = next((record.order for record in in_arms if record.order), "")
        if not any_order:
            continue
        original = "".join(sorted(any_order, key=LABELS.index))
        answers = {
            record.arm or ORIGINAL: _answer(record, record.order or original, same.get(item, ()))
            for record in in_arms
            if record.outcome is not Outcome.ERROR
        }
        if ORIGINAL in answers:
            table[item] = answers
    return audit_table(table, arms=(ORIGINAL, *arms)) if table else None


def _answer(record: Record, order: str, same: Sequence[int]) -> ArmAnswer:
    label = record.answer if record.answer is not None and record.answer in tuple(order) else None
    return arm_answer(
        [LABELS.index(label) for label in order],
        LABELS.index(record.gold),
        None if label is None else LABELS.index(label),
        record.outcome is Outcome.CORRECT,
        same,
    )


DEBIASED = tuple(f"letter+{how}" for how in debiasing.METHODS)
"""Scorers of the results that ``--llm-debias`` adds to those of ``letter``.

Such a result is separate from the one that it is computed from (``mmlu[letter+pride]``). It depends
on all orders of an item, and for some methods on all items, so it is computed at the end and has no
records.
"""


class _ItemAnswers(NamedTuple):
    """An item with its log-probabilities: one row per option order, the original first."""

    item: str
    subject: str
    gold: int
    logprobs: list[tuple[float, ...]]
    orders: list[tuple[int, ...]]


def debiased_outcomes(
    planned: PlannedResult,
    fingerprint: str,
    items: Mapping[str, ItemOutcomes],
    records: Iterable[Record],
    seed: int,
) -> dict[str, ItemOutcomes]:
    """Return the outcomes of a debiased result, from those of the result that it is computed from.

    ``fingerprint`` is that of the protocol variant of the answers, which ``records`` hold. An item
    without log-probabilities (an error, or a generated letter) is unchanged, and so is one with more
    options than orders, which are not equally often at every position. Empty if no item has
    log-probabilities. Contextual calibration leaves out items without a content-free answer; if that
    has an error, or lacks a label, they are errors.
    """
    assert planned.debias is not None
    own = [record for record in records if record.benchmark == planned.benchmark]
    item_answers = _item_answers(
        [arm for arm in planned.arms if not is_content_free(arm)], fingerprint, items, own
    )
    if not item_answers:
        return {}
    if planned.debias in debiasing.AVERAGING:
        item_answers = [
            answers for answers in item_answers if debiasing.is_balanced(answers.orders)
        ]
    if planned.debias == "contextual":
        free = _content_free(
            [arm for arm in planned.arms if is_content_free(arm)], fingerprint, own
        )
        chosen = _contextual(item_answers, free)
    else:
        chosen = {}
        for alike in _by_size(item_answers):
            options = _METHODS[planned.debias](alike, seed)
            chosen.update(zip((answers.item for answers in alike), options, strict=True))
    golds = {answers.item: answers.gold for answers in item_answers}
    outcomes = {}
    for name, item in items.items():
        if name not in golds or Outcome.ERROR in item.outcomes:
            outcomes[name] = item
        elif name in chosen:
            outcomes[name] = _outcome(item, chosen[name], golds[name])
    return outcomes


def missing_debiased_items(
    name: str, first: Mapping[str, ItemOutcomes], items: Mapping[str, ItemOutcomes]
) -> str | None:
    """Return why a debiased result is missing, or has errors that its source has not; else None."""
    if not items:
        return f"{name} is not computed: no item has log-probabilities of its labels"
    errors = sum(
        Outcome.ERROR in item.outcomes and Outcome.ERROR not in first[item_id].outcomes
        for item_id, item in items.items()
    )
    if errors:
        return (
            f"{name}: {errors:,} items are errors: their content-free prompt has no"
            " log-probability for some labels"
        )
    return None


def _outcome(item: ItemOutcomes, chosen: int | None, gold: int) -> ItemOutcomes:
    if chosen is None:
        outcome = Outcome.ERROR
    else:
        outcome = Outcome.CORRECT if chosen == gold else Outcome.WRONG
    return replace(item, outcomes=(outcome,), tie=False)


def _by_size(item_answers: Iterable[_ItemAnswers]) -> Iterable[list[_ItemAnswers]]:
    sizes: dict[int, list[_ItemAnswers]] = {}
    for answers in item_answers:
        sizes.setdefault(len(answers.orders[0]), []).append(answers)
    return sizes.values()


def _item_answers(
    arms: Sequence[str],
    fingerprint: str,
    items: Mapping[str, ItemOutcomes],
    records: Iterable[Record],
) -> list[_ItemAnswers]:
    """Return the items that have log-probabilities in every requested order."""
    protocols = {fingerprint, *(arm_fingerprint(fingerprint, arm) for arm in arms)}
    by_item: dict[str, dict[str, Record]] = {}
    for record in records:
        if record.protocol in protocols and record.item in items:
            by_item.setdefault(record.item, {})[record.arm] = record
    item_answers = []
    for name, by_arm in sorted(by_item.items()):
        first = by_arm.get("")
        if first is None or not all(record.logprobs for record in by_arm.values()):
            continue
        labels = LABELS[: len(first.logprobs)]
        gold = labels.find(first.gold)
        if gold >= 0:
            # In the order of the arms, not in that of their answers.
            rows = [by_arm[arm] for arm in ("", *arms) if arm in by_arm]
            orders = [tuple(map(LABELS.index, record.order or labels)) for record in rows]
            logprobs = [record.logprobs for record in rows]
            item_answers.append(_ItemAnswers(name, rows[0].subject, gold, logprobs, orders))
    return item_answers


def _content_free(
    arms: Sequence[str], fingerprint: str, records: Iterable[Record]
) -> dict[tuple[str, int], list[Record]]:
    """Return the content-free answers by (subject, number of options), where all of them exist.

    Every shard requests each of them: the first by item id that has no error counts.
    """
    fingerprints = {arm_fingerprint(fingerprint, arm) for arm in arms}
    groups: dict[tuple[str, int], dict[str, Record]] = {}
    for record in sorted(records, key=lambda record: (not record.logprobs, record.item)):
        if record.protocol in fingerprints:
            group = groups.setdefault((record.subject, len(record.order)), {})
            group.setdefault(record.arm, record)
    return {
        key: list(group.values())
        for key, group in groups.items()
        if len(group) == len(fingerprints)
    }


def _contextual(
    item_answers: Iterable[_ItemAnswers], free: Mapping[tuple[str, int], Sequence[Record]]
) -> dict[str, int | None]:
    """Return the chosen option by item id; None if content-free answers lack a label."""
    chosen: dict[str, int | None] = {}
    for item in item_answers:
        answers = free.get((item.subject, len(item.orders[0])))
        if answers is None:
            continue
        rows = [answer.logprobs for answer in answers]
        is_complete = all(row and all(map(math.isfinite, row)) for row in rows)
        chosen[item.item] = (
            int(debiasing.contextually_calibrated(item.logprobs[0], rows).argmax())
            if is_complete
            else None
        )
    return chosen


def _averaged(items: Sequence[_ItemAnswers], _seed: int) -> list[int]:
    return [
        int(debiasing.averaged_probabilities(item.logprobs, item.orders).argmax()) for item in items
    ]


def _pride(items: Sequence[_ItemAnswers], seed: int) -> list[int]:
    estimated = debiasing.estimation_items([item.item for item in items], seed=seed)
    prior = debiasing.mean_prior(
        [
            debiasing.prior(item.logprobs, item.orders).tolist()
            for item in items
            if item.item in estimated
        ]
    ).tolist()
    return [
        int(
            debiasing.averaged_probabilities(item.logprobs, item.orders).argmax()
            if item.item in estimated
            else debiasing.without_prior(item.logprobs[0], prior).argmax()
        )
        for item in items
    ]


def _batch(items: Sequence[_ItemAnswers], _seed: int) -> list[int]:
    rows = debiasing.batch_calibrated([item.logprobs[0] for item in items])
    return [int(row.argmax()) for row in rows]


_METHODS = {"cyclic": _averaged, "pride": _pride, "batch": _batch}
