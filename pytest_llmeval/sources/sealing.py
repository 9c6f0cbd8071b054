"""Sealed benchmarks: jsonl files whose orders of options and items were selected at random.

The orders and a canary, a GUID that occurs nowhere else, are pure functions of a secret seed. The
commitment, a hash of the seed and of the file before, can be published with the sealed file: with the
seed it shows later that the orders are those of the seed, and which file they belong to.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import DataError
from pytest_llmeval.core.hashing import canonical_json
from pytest_llmeval.core.seeded_random import SeededRandom
from pytest_llmeval.sources.files import VerbatimFloat
from pytest_llmeval.sources.files import read_jsonl
from pytest_llmeval.sources.jsonl_benchmark import JsonlFields
from pytest_llmeval.sources.jsonl_benchmark import read_items

Row = Mapping[str, Any]

DRAWN = "drawn_orders"
"""Field of a sealed row: true, because the published orders were selected at random."""
CANARY = "canary"
_FIELDS = JsonlFields()
_KEY = ("llmeval seal", 1)
_BY_PLACE = re.compile(
    r"(?i:\b(?:all|none|any|both|neither|either|some|one|two|three|each|most|only)\b.{0,24}"
    r"\b(?:above|below|preceding|previous|following)\b)"
    # An option that has nothing but labels: (A) and (B), both A and C, A, B and D are right.
    r"|^\W*(?i:(?:both|either|neither|only|all of|options?|answers?)\W+)*"
    r"[A-J]\b\W*(?:,\W*[A-J]\b\W*)*(?:(?i:,?\s*(?:and|or|nor|&)\W*)[A-J]\b\W*)+"
    r"(?i:(?:only|are|is|both|correct|right|true)\W*)*$"
)
_NOTICE = "This benchmark must not be part of training data. Canary GUID"


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a benchmark's file.

    An answer that is a number with a fraction becomes text, with its digits. Raises DataError, with
    the line, for a row that is not an item of the benchmark.
    """
    read_items(path, _FIELDS)
    rows: list[Row] = []
    for _, row in read_jsonl(path, exact=True):
        answer = row.get(_FIELDS.answer)
        rows.append({**row, _FIELDS.answer: str(answer)} if type(answer) is VerbatimFloat else row)
    return rows


def refers_by_place(option: str) -> bool:
    """Return true if an option refers to others by label or place (all of the above, A and B)."""
    return _BY_PLACE.search(option) is not None


def seal(rows: Sequence[Row], seed: str) -> list[Row]:
    """Return the rows with the orders and the canary of a seed."""
    canary = f"{_NOTICE} {canary_guid(seed)}"
    return [
        {
            **_with_order(rows[number], _option_order(rows[number], seed, number)),
            CANARY: canary,
            DRAWN: True,
        }
        for number in _item_order(len(rows), seed)
    ]


def unseal(rows: Sequence[Row], seed: str) -> list[Row]:
    """Return the rows before ``seal``, for the same seed."""
    before: list[Row] = [{}] * len(rows)
    for row, number in zip(rows, _item_order(len(rows), seed), strict=True):
        order = _option_order(row, seed, number)
        inverse = sorted(range(len(order)), key=order.__getitem__)
        plain = {name: value for name, value in row.items() if name not in (CANARY, DRAWN)}
        before[number] = _with_order(plain, inverse)
    return before


def is_sealed(rows: Iterable[Row]) -> bool:
    """Return true if all rows declare that their orders were selected at random."""
    return all(row.get(DRAWN) is True for row in rows)


def canary_guid(seed: str) -> str:
    """Return the canary of a seed, a GUID of version 4."""
    digest = hashlib.sha256(canonical_json([*_KEY, "canary", seed])).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def commitment(rows: Sequence[Row], seed: str) -> str:
    """Return the SHA-256 of the seed and of the rows before ``seal``, in hexadecimal."""
    content = hashlib.sha256(canonical_json([dict(row) for row in rows])).hexdigest()
    return hashlib.sha256(canonical_json([*_KEY, "commitment", seed, content])).hexdigest()


def jsonl_text(rows: Iterable[Row]) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def check_sealed(path: Path, seed: str, published: str) -> list[Row]:
    """Return the rows of a sealed file before it was sealed.

    Raises DataError if the file is not sealed, or was changed after the commitment ``published``,
    and if the seed is another.
    """
    rows = read_rows(path)
    if not is_sealed(rows):
        raise DataError(f"{path}: not sealed: no field {DRAWN!r}")
    if any(canary_guid(seed) not in str(row.get(CANARY)) for row in rows):
        raise DataError(f"{path}: not sealed with this seed: it has another canary")
    before = unseal(rows, seed)
    if commitment(before, seed) != published:
        raise DataError(
            f"{path}: changed after it was sealed, or the commitment is of another file"
        )
    return before


def _item_order(items: int, seed: str) -> list[int]:
    return SeededRandom(*_KEY, "items", seed).shuffled(range(items))


def _option_order(row: Row, seed: str, number: int) -> list[int]:
    options = range(len(row.get(_FIELDS.options) or ()))
    return SeededRandom(*_KEY, "options", seed, number).shuffled(options)


def _with_order(row: Row, order: Sequence[int]) -> Row:
    """Return the row with its options in this order, and the answer that follows its option."""
    if not order:
        return row
    options, answer = row[_FIELDS.options], row[_FIELDS.answer]
    is_letter = isinstance(answer, str)
    place = order.index(LABELS.index(answer.strip()) if is_letter else answer)
    return {
        **row,
        _FIELDS.options: [options[old] for old in order],
        _FIELDS.answer: LABELS[place] if is_letter else place,
    }
