"""Custom benchmarks: a jsonl file as the ``source`` of a ``core.Benchmark``."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import option_index
from pytest_llmeval.core import option_labels
from pytest_llmeval.sources.data_warnings import abbreviate
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.data_warnings import normalize
from pytest_llmeval.sources.files import read_jsonl
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.item_ids import safe_id
from pytest_llmeval.sources.locate import find_file

Row = dict[str, Any]


def jsonl(
    path: str | PathLike[str],
    shots: str | PathLike[str] | None = None,
    *,
    question: str = "question",
    options: str = "options",
    answer: str = "answer",
    subject: str = "subject",
    id: str | None = None,
) -> Callable[[Any], Dataset]:
    """Return the source of a benchmark in a jsonl file (or ``.jsonl.gz``), one object per line.

    ``question``, ``options``, ``answer``, ``subject`` and ``id`` are the names of the fields.
    The answer of a row with options must be a letter (``"B"``) or a 0-based number (``1``);
    without options it is a text or a number, with the digits of the file. The subject of a row
    without one is the name of the file. Item ids are ``<subject>-<row>`` unless ``id`` names a
    field.

    ``shots`` is a file of the same format with few-shot examples; those without a subject are
    used for every subject.

    Rows that all have ``"drawn_orders": true`` are in orders that ``llmeval seal`` selected at random,
    which tests of contamination rely on.

    A relative path is looked up in the run's data folder first, then in the working directory.
    The source raises DataError with file and line for a row that cannot be used. The data set's
    ``warnings`` are those of ``item_warnings`` and those about ambiguous answers.
    """
    fields = JsonlFields(question, options, answer, subject, id)

    def source(data_dir: Any = None) -> Dataset:
        file = find_file(Path(path), data_dir)
        items = read_items(file, fields)
        warnings = (*item_warnings(file.name, items), *_ambiguous(file.name, items, fields))
        drawn = all(item.row.get("drawn_orders") is True for item in items)
        if not shots:
            return Dataset(items, warnings=warnings, drawn_orders=drawn)
        examples = find_file(Path(shots), data_dir)
        rows = list(_rows(examples, fields))
        warnings += _ambiguous(examples.name, [item for item, _ in rows], fields)
        return Dataset(items, _pool(rows, items), warnings, drawn)

    return source


@dataclass(frozen=True, slots=True)
class JsonlFields:
    """Names of the fields of a row; with ``id`` None, ids are made from the position."""

    question: str = "question"
    options: str = "options"
    answer: str = "answer"
    subject: str = "subject"
    id: str | None = None


def read_items(path: Path, fields: JsonlFields) -> tuple[Item, ...]:
    """Return the items of a jsonl file, in file order.

    Raises DataError with file and line for a row that cannot be used and for a duplicate id, and
    for a file without rows.
    """
    items: list[Item] = []
    lines: dict[str, int] = {}
    for item, _ in _rows(path, fields):
        assert item.line is not None
        if item.id in lines:
            raise DataError(
                f"{path}, line {item.line}: item id {item.id!r} occurs twice"
                f" (first in line {lines[item.id]})"
            )
        lines[item.id] = item.line
        items.append(item)
    if not items:
        raise DataError(f"{path}: no rows")
    return tuple(items)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _rows(path: Path, fields: JsonlFields) -> Iterator[tuple[Item, bool]]:
    """Yield the item of every row, and whether the row has a subject."""
    sizes: dict[str, int] = {}
    rows = list(read_jsonl(path, exact=True))
    _check_counting(path, rows, fields)
    for number, row in rows:
        where = f"{path}, line {number}"
        named = row.get(fields.subject)
        if named is not None and not isinstance(named, str):
            raise DataError(f"{where}: field {fields.subject!r} is not text")
        subject = named or _stem(path)
        position = sizes.get(subject, 0)
        sizes[subject] = position + 1
        yield make_item(where, row, fields, subject, position, line=number), bool(named)


def make_item(
    where: str,
    row: dict[str, Any],
    fields: JsonlFields,
    subject: str,
    position: int,
    *,
    line: int | None = None,
) -> Item:
    """Return the item of one row.

    ``position``: 0-based row within the subject. ``line``: 1-based line of the file, with which the
    item keeps its row. Raises DataError, with ``where`` at the beginning of the message, for a row
    that cannot be used.
    """
    question = row.get(fields.question)
    if not isinstance(question, str):
        raise DataError(f"{where}: no text in field {fields.question!r}")
    if not question.strip():
        raise DataError(f"{where}: the question is empty (field {fields.question!r})")
    options = _options(where, row.get(fields.options), fields.options)
    return Item(
        id=_id(where, row, fields.id) if fields.id else row_id(subject, position),
        subject=subject,
        question=question,
        gold=_gold(where, row.get(fields.answer), fields.answer, options),
        options=options,
        row={} if line is None else row,
        line=line,
    )


def _options(where: str, value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(option, str) for option in value):
        raise DataError(f"{where}: field {name!r} must be a list of texts (numbers in quotes)")
    if len(value) < 2:
        raise DataError(f"{where}: {len(value)} options; at least 2 were expected")
    return tuple(value)


def _gold(where: str, value: Any, name: str, options: tuple[str, ...]) -> int | str:
    # Publishers mark splits with secret answers with an empty key, or -1 on the hub.
    secret = bool(options) and _is_number(value) and value == -1
    if value is None or secret or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{where}: no gold label in this split (field {name!r} is empty)")
    if not options:
        if not isinstance(value, str) and not _is_number(value):
            raise DataError(f"{where}: field {name!r} must be text or a number, not {value!r:.40}")
        return str(value)
    labels = option_labels(len(options))
    index = value
    if isinstance(value, str) and (len(value.strip()) == 1 or value.strip() in labels):
        index = option_index(value.strip())
    if isinstance(index, bool) or not isinstance(index, int):
        matches = [label for label, text in zip(labels, options, strict=True) if text == value]
        hint = f"; write {matches[0]!r}" if len(matches) == 1 else ""
        raise DataError(
            f"{where}: answer {value!r:.80} is neither a letter A to {labels[-1]}"
            f" nor a 0-based number{hint}"
        )
    if not 0 <= index < len(options):
        raise DataError(f"{where}: gold {value!r} is outside the {len(options)} options")
    if not options[index].strip():
        raise DataError(f"{where}: gold {value!r} points to an empty option")
    return index


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _check_counting(path: Path, rows: Iterable[tuple[int, Row]], fields: JsonlFields) -> None:
    """Raise DataError if the answers are evidently numbers that count from 1.

    That is, if an answer equals the number of options and no answer is 0.
    """
    numbers = {
        line: (value, len(options))
        for line, row in rows
        if type(value := row.get(fields.answer)) is int
        and isinstance(options := row.get(fields.options), list)
    }
    beyond = [str(line) for line, (value, options) in numbers.items() if value == options]
    fits = all(1 <= value <= options for value, options in numbers.values())
    if beyond and fits and len(numbers) > 1:
        raise DataError(
            f"{path}, line {abbreviate(beyond)}: the answer is the number of options, and no answer"
            f" is 0: numbers in field {fields.answer!r} count from 0, not from 1 (or write letters)"
        )


def _ambiguous(name: str, items: Sequence[Item], fields: JsonlFields) -> tuple[str, ...]:
    """Return a warning for each kind of answer that may have been interpreted wrongly."""
    chosen = [item for item in items if isinstance(item.gold, int)]
    letters = [item for item in chosen if isinstance(item.row[fields.answer], str)]
    numbers = [item for item in chosen if not isinstance(item.row[fields.answer], str)]
    warnings = []
    if len({item.gold for item in numbers}) > 1 and all(item.gold for item in numbers):
        warnings.append(
            f"no answer of {len(numbers):,} is 0, the number of the first option: do they count"
            f" from 1? ({_lines(numbers)})"
        )
    if numbers and letters:
        groups = (letters, "letters"), (numbers, "numbers")
        fewer, kind = min(groups, key=lambda group: len(group[0]))
        warnings.append(
            f"answers are letters and numbers, {len(fewer):,} of {len(items):,} are {kind}"
            f" ({_lines(fewer)})"
        )
    for kind, group in (("letter", letters), ("number", numbers)):
        # A single answer that is not the text of an option shows that none is meant as text.
        texts = [normalize(str(item.row[fields.answer])) for item in group]
        own = [list(map(normalize, item.options)) for item in group]
        if all(text in options for text, options in zip(texts, own, strict=True)):
            other = [
                item
                for item, text in zip(group, texts, strict=True)
                if normalize(item.gold_text) != text
            ]
            if other:
                warnings.append(
                    f"every answer is a {kind} and the text of an option as well, of another one in"
                    f" {len(other):,} of {len(group):,} ({_lines(other)})"
                )
    return tuple(f"{name}: {warning}" for warning in warnings)


def _lines(items: Sequence[Item]) -> str:
    return f"line{'s' if len(items) > 1 else ''} {abbreviate([str(item.line) for item in items])}"


def _id(where: str, row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise DataError(f"{where}: no id in field {name!r}")
    return safe_id(str(value))


def _pool(
    rows: Iterable[tuple[Item, bool]], items: tuple[Item, ...]
) -> dict[str, tuple[Item, ...]]:
    """Return subject → shots in file order; shots without a subject are in every pool."""
    subjects = dict.fromkeys(item.subject for item in items)
    pool: dict[str, list[Item]] = {}
    for row, named in rows:
        # The id distinguishes a shot from the item in the same row of the other file.
        shot = replace(row, id=f"shot-{row.id}")
        for subject in (shot.subject,) if named else subjects:
            pool.setdefault(subject, []).append(shot)
    return {subject: tuple(shots) for subject, shots in pool.items()}
