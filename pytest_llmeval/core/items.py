"""Items and data sets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from pytest_llmeval.core.errors import DataError
from pytest_llmeval.core.hashing import canonical_json
from pytest_llmeval.core.validation import check_text

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Labels of the first 26 options; ``option_label`` has those of any number."""


ITEM_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""Pattern of item ids, which are part of test ids, file names and command lines."""

SUBJECT_LENGTH = 200
"""The longest name of a subject, in characters."""


def option_label(index: int) -> str:
    """Return the label of the option with this 0-based index: A to Z, then AA, AB, … as columns.

    >>> option_label(0), option_label(25), option_label(26), option_label(702)
    ('A', 'Z', 'AA', 'AAA')
    """
    label = ""
    while index >= 0:
        index, letter = divmod(index, len(LABELS))
        label, index = LABELS[letter] + label, index - 1
    return label


def option_labels(count: int) -> tuple[str, ...]:
    """Return the labels of ``count`` options."""
    return tuple(map(option_label, range(count)))


def option_index(label: str) -> int | None:
    """Return the 0-based index of the option with this label; None for a text that is no label."""
    if not label or not set(label) <= set(LABELS):
        return None
    index = -1
    for letter in label:
        index = (index + 1) * len(LABELS) + LABELS.index(letter)
    return index


@dataclass(frozen=True, slots=True)
class Item:
    """One benchmark question.

    ``gold`` is the 0-based index of the right option if there are options, otherwise the text of
    the answer. ``id`` is unique in its benchmark and depends on the source row alone, never on
    order, limit or seed. ``fields`` holds values that only some benchmarks need (reasoning of a
    shot, tests). ``row`` is the complete source row, if its source keeps it, until
    ``exclude`` has been applied, and ``line`` its 1-based line in the file; neither is part of the
    content hash.
    """

    id: str
    subject: str
    question: str
    gold: int | str
    options: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    line: int | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        # Shots are looked up by item thousands of times, so their texts are not hashed.
        return hash((self.subject, self.id))

    @property
    def gold_label(self) -> str:
        """The gold option's label, or the gold text of an item without options."""
        return option_label(self.gold) if isinstance(self.gold, int) else self.gold

    @property
    def gold_text(self) -> str:
        """The gold option's text, or the gold text of an item without options."""
        return self.options[self.gold] if isinstance(self.gold, int) else self.gold

    def as_json(self) -> dict[str, Any]:
        """Return the item as plain JSON values, the input of the content hash."""
        return {
            "id": self.id,
            "subject": self.subject,
            "question": self.question,
            "gold": self.gold,
            "options": list(self.options),
            "fields": dict(self.fields),
        }


@dataclass(frozen=True, slots=True)
class Dataset:
    """The items of a benchmark and its pool of few-shot examples by subject.

    ``warnings``: one line for each problem of the data itself (contradictory keys, equal options).
    ``drawn_orders``: the orders of options and items were selected at random (``llmeval seal``).
    """

    items: tuple[Item, ...]
    pool: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    drawn_orders: bool = False

    def content_hash(self) -> str:
        """Return 16 hexadecimal digits of the SHA-256 over all items and the pool.

        The order of the items does not change it; that of the pool does, because it decides which
        shots come first.
        """
        digest = hashlib.sha256()
        for item in sorted(self.items, key=lambda item: item.id):
            digest.update(canonical_json(item.as_json()))
        for subject in sorted(self.pool):
            for item in self.pool[subject]:
                digest.update(canonical_json(["shot", item.as_json()]))
        return digest.hexdigest()[:16]

    def chance(self) -> float | None:
        """Return the mean of 1/K over the items with K options each; None without options."""
        if not self.items or not all(item.options for item in self.items):
            return None
        return sum(1 / len(item.options) for item in self.items) / len(self.items)

    def subject_sizes(self) -> dict[str, int]:
        """Return the number of items by subject, in the order of first appearance."""
        return subject_sizes(self.items)


def subject_sizes(items: Iterable[Item]) -> dict[str, int]:
    """Return the number of items by subject, in the order of first appearance."""
    sizes: dict[str, int] = {}
    for item in items:
        sizes[item.subject] = sizes.get(item.subject, 0) + 1
    return sizes


def check_dataset(name: str, dataset: Dataset) -> None:
    """Raise DataError for a benchmark without items, or with invalid names, ids or options."""
    if not isinstance(dataset.items, Sequence):
        raise DataError(
            f"benchmark {name!r}: items is of type {type(dataset.items).__name__}, not a tuple"
        )
    if not dataset.items:
        raise DataError(f"benchmark {name!r} has no items")
    seen: set[str] = set()
    for item in (*dataset.items, *(shot for pool in dataset.pool.values() for shot in pool)):
        _check_types(name, item)
        if isinstance(item.gold, int) and not 0 <= item.gold < len(item.options):
            raise DataError(
                f"benchmark {name!r}, item {item.id!r}: gold {item.gold} is outside its"
                f" {len(item.options)} options"
            )
        if len(item.options) == 1:
            raise DataError(
                f"benchmark {name!r}, item {item.id!r}: one option; at least two were expected"
            )
    for subject in dataset.subject_sizes():
        _check_subject(name, subject)
    for item in dataset.items:
        if not ITEM_ID.fullmatch(item.id):
            raise DataError(
                f"benchmark {name!r}: item id {item.id[:120]!r} is not 1 to 100 of the characters"
                " A-Z a-z 0-9 _ . - (pytest_llmeval.sources.safe_id makes one from any text)"
            )
        if item.id in seen:
            raise DataError(f"benchmark {name!r}: item id {item.id!r} occurs twice")
        seen.add(item.id)


def _check_types(name: str, item: Item) -> None:
    if not isinstance(item, Item):
        raise DataError(
            f"benchmark {name!r}: {item!r:.100} is of type {type(item).__name__}, not Item"
        )
    owner = f"benchmark {name!r}, item {item.id!r}"
    for part, text in (("id", item.id), ("subject", item.subject), ("question", item.question)):
        check_text(owner, part, text)
    if not isinstance(item.options, tuple | list):
        raise DataError(f"{owner}: options are of type {type(item.options).__name__}, not a tuple")
    for option in item.options:
        check_text(owner, "an option", option)
    if isinstance(item.gold, bool) or not isinstance(item.gold, int | str):
        raise DataError(f"{owner}: gold {item.gold!r} is neither the index of an option nor a text")


def _check_subject(name: str, subject: str) -> None:
    """Raise DataError for a subject that cannot be part of test ids, files and tables."""
    if len(subject) > SUBJECT_LENGTH:
        raise DataError(
            f"benchmark {name!r}: subject {subject[:40]!r}… has {len(subject):,} characters;"
            f" a subject's name has {SUBJECT_LENGTH} at most"
        )
    if re.search("[\ud800-\udfff]", subject):
        raise DataError(f"benchmark {name!r}: subject {subject!r} holds half of a surrogate pair")
