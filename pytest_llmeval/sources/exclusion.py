"""Exclusion of items from a benchmark (``exclude=``), by id or by fields of their rows.

An example are the wrong keys that MMLU-Redux (Gema et al., 2024, arXiv:2406.04127) found in MMLU
and marks in its column ``error_type``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core.benchmark import Exclusion
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.sources.data_warnings import abbreviate
from pytest_llmeval.sources.data_warnings import warnings_after_exclusion

_MOST_LISTED = 5
"""The most values of a field in the description of an exclusion."""


def exclude_items(name: str, dataset: Dataset, exclusion: Exclusion) -> tuple[Dataset, str]:
    """Return the data set of benchmark ``name`` without excluded items, and a description.

    A field is the item's id or subject, one of its ``fields``, or a column of its row. Texts are
    compared without regard to case, surrounding white space, and the separator of words (``_``,
    ``-`` or a blank), since the spelling of annotators varies and an item missed for its spelling
    would not be noticed. Ids are compared exactly. The pool of shots is not changed. The
    description is empty if nothing is excluded.

    Raises DataError, with the nearest valid name, for a field that no item has and for a value
    that no item has; also if no item remains.
    """
    if not exclusion:
        return dataset, ""
    excluded: set[str] = set()
    reasons = []
    for field, values in exclusion:
        spellings = _spellings(name, dataset.items, field)
        used: dict[str, None] = {}
        for value in values:
            ids_by_spelling = spellings.get(_key(field, value))
            if ids_by_spelling is None:
                valid = [text for by_spelling in spellings.values() for text in by_spelling]
                raise DataError(
                    f"benchmark {name!r}: exclude: no item has {field} {value!r}"
                    f"{suggestion(str(value), valid)}"
                )
            for text, ids in ids_by_spelling.items():
                used[text] = None
                excluded.update(ids)
        reasons.append(f"{field} = {abbreviate(list(used), _MOST_LISTED)}")
    rest = tuple(item for item in dataset.items if item.id not in excluded)
    if not rest:
        raise DataError(
            f"benchmark {name!r}: exclude leaves none of its {len(dataset.items):,} items"
        )
    warnings = warnings_after_exclusion(dataset.warnings, dataset.items, rest)
    description = (
        f"excluded {len(excluded):,} of {len(dataset.items):,} items: {'; '.join(reasons)}"
    )
    return replace(dataset, items=rest, warnings=warnings), description


def _spellings(
    name: str, items: Iterable[Item], field: str
) -> Mapping[str, Mapping[str, list[str]]]:
    """Return key of a value → spelling of the value in the items → ids of the items."""
    spellings: dict[str, dict[str, list[str]]] = {}
    names: set[str] = set()
    for item in items:
        values = _values(item)
        names |= values.keys()
        for value in values.get(field, ()):
            by_spelling = spellings.setdefault(_key(field, value), {})
            by_spelling.setdefault(_text(value), []).append(item.id)
    if not spellings:
        raise DataError(
            f"benchmark {name!r}: exclude: no item has a field {field!r}{suggestion(field, names)}"
        )
    return spellings


def _values(item: Item) -> Mapping[str, list[Any]]:
    """Return the values of an item by field; a name may occur in both the item and its row."""
    own = {"id": item.id, "subject": item.subject, **item.fields}
    return {
        field: [part[field] for part in (own, item.row) if field in part]
        for field in (*own, *item.row)
    }


def _key(field: str, value: Any) -> str:
    """Return a key that is equal for values that are treated as equal."""
    if not isinstance(value, str):
        return f"= {json.dumps(value, sort_keys=True, default=repr)}"
    return value if field == "id" else re.sub(r"[\s_-]+", "_", value.strip()).casefold()


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value, default=repr)
