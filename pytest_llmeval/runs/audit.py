"""A permutation audit read back: from what was recorded of every arm to the audit's table."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from pytest_llmeval.bias.arms import ORIGINAL
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.metrics import Answer
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import answered
from pytest_llmeval.metrics import audit_table


def audit_of(
    arms: Sequence[str],
    items: Iterable[tuple[str, Sequence[Record]]],
    same: Mapping[str, Sequence[int]],
) -> Audit | None:
    """The audit of items with the records of each in every arm it is in.

    ``same``: ``same_options`` of the items that have equal ones. Items that have an error in the
    original order, or no other arm, are left out. None where no item is left.
    """
    table: dict[str, dict[str, Answer]] = {}
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


def _answer(one: Record, order: str, same: Sequence[int]) -> Answer:
    read = one.answer if one.answer is not None and one.answer in tuple(order) else None
    return answered(
        [LABELS.index(label) for label in order],
        LABELS.index(one.gold),
        None if read is None else LABELS.index(read),
        one.outcome is Outcome.CORRECT,
        same,
    )
