"""Items that a benchmark leaves out (``exclude=``), by id or by what their rows say of them.

Such as the wrong keys that MMLU-Redux (Gema et al., 2024, arXiv:2406.04127) found in MMLU, which
its column ``error_type`` names.
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
from pytest_llmeval.sources.data_warnings import few
from pytest_llmeval.sources.data_warnings import without_items

_LISTED = 5
"""Values of a field that are named in the words on what was left out."""


def without(name: str, dataset: Dataset, exclusion: Exclusion) -> tuple[Dataset, str]:
    """The data set of benchmark ``name`` without the items of an exclusion, and that in words.

    A field is the item's id or subject, one of its ``fields``, or a column of its row. Texts are
    compared without regard to case, blanks around them, and ``_``, ``-`` or a blank between words:
    annotators spell freely, and an item that is left in by its spelling would go unseen. Ids are
    compared exactly. The pool of shots stays. The words are empty where nothing is excluded.

    Raises DataError, offering the nearest, for a field that no item has and for a value that occurs
    in no item; and where no item is left.
    """
    if not exclusion:
        return dataset, ""
    left_out: set[str] = set()
    reasons = []
    for field, values in exclusion:
        found = _spellings(name, dataset.items, field)
        spelt: dict[str, None] = {}
        for value in values:
            entry = found.get(_key(field, value))
            if entry is None:
                known = [text for entry in found.values() for text in entry]
                raise DataError(
                    f"benchmark {name!r}: exclude: no item has {field} {value!r}"
                    f"{suggestion(str(value), known)}"
                )
            for text, ids in entry.items():
                spelt[text] = None
                left_out.update(ids)
        reasons.append(f"{field} = {few(list(spelt), _LISTED)}")
    rest = tuple(item for item in dataset.items if item.id not in left_out)
    if not rest:
        raise DataError(
            f"benchmark {name!r}: exclude leaves none of its {len(dataset.items):,} items"
        )
    warnings = without_items(dataset.warnings, dataset.items, rest)
    words = f"excluded {len(left_out):,} of {len(dataset.items):,} items: {'; '.join(reasons)}"
    return replace(dataset, items=rest, warnings=warnings), words


def _spellings(
    name: str, items: Iterable[Item], field: str
) -> Mapping[str, Mapping[str, list[str]]]:
    """Key of a value → the value as the items have it → their ids."""
    found: dict[str, dict[str, list[str]]] = {}
    names: set[str] = set()
    for item in items:
        values = _values(item)
        names |= values.keys()
        for value in values.get(field, ()):
            entry = found.setdefault(_key(field, value), {})
            entry.setdefault(_text(value), []).append(item.id)
    if not found:
        raise DataError(
            f"benchmark {name!r}: exclude: no item has a field {field!r}{suggestion(field, names)}"
        )
    return found


def _values(item: Item) -> Mapping[str, list[Any]]:
    """Everything that is known of an item by its name; both its id and what its row calls so."""
    own = {"id": item.id, "subject": item.subject, **item.fields}
    return {
        field: [part[field] for part in (own, item.row) if field in part]
        for field in (*own, *item.row)
    }


def _key(field: str, value: Any) -> str:
    """What values have in common that are taken for the same."""
    if not isinstance(value, str):
        return f"= {json.dumps(value, sort_keys=True, default=repr)}"
    return value if field == "id" else re.sub(r"[\s_-]+", "_", value.strip()).casefold()


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value, default=repr)
