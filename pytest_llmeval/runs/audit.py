"""A permutation audit read back: from what was recorded of every arm to the audit's table."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from pytest_llmeval.bias.arms import ORIGINAL
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core.plan import is_content_free
from pytest_llmeval.metrics import Answer
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import answered
from pytest_llmeval.metrics import audit_table


class InArm(NamedTuple):
    """The outcome of an item in one arm.

    ``number``: 0 for the original, then as in ``PlannedResult.arms``. ``answer`` and ``gold`` are
    labels of the original order, ``order`` has them as shown (empty: as they are).
    """

    number: int
    outcome: str
    answer: str | None
    gold: str
    order: str

    @classmethod
    def of(cls, record: Record, number: int) -> InArm:
        return cls(number, str(record.outcome), record.answer, record.gold, record.order)


def audit_of(
    arms: Sequence[str],
    items: Iterable[tuple[str, Sequence[InArm]]],
    same: Mapping[str, Sequence[int]],
) -> Audit | None:
    """The audit of items with what became of each in every arm it is in.

    ``same``: ``same_options`` of the items that have equal ones.
    Items that have an error in the original order, or no other arm, say nothing. None where no
    item is left.
    """
    names = (ORIGINAL, *arms)
    orders = {number for number, name in enumerate(names) if not is_content_free(name)}
    table: dict[str, dict[str, Answer]] = {}
    for item, everything in items:
        found = [one for one in everything if one.number in orders]
        usual = next((one.order for one in found if one.order), "")
        if not usual:
            continue
        shown = "".join(sorted(usual, key=LABELS.index))
        answers = {
            names[one.number]: _answer(one, one.order or shown, same.get(item, ()))
            for one in found
            if one.outcome != Outcome.ERROR
        }
        if ORIGINAL in answers:
            table[item] = answers
    return audit_table(table, arms=names) if table else None


def _answer(one: InArm, order: str, same: Sequence[int]) -> Answer:
    read = one.answer if one.answer is not None and one.answer in tuple(order) else None
    return answered(
        [LABELS.index(label) for label in order],
        LABELS.index(one.gold),
        None if read is None else LABELS.index(read),
        one.outcome == Outcome.CORRECT,
        same,
    )
