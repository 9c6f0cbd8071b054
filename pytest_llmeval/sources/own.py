"""A user's own benchmark: a jsonl file as the ``source`` of a ``core.Benchmark``."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.sources.find import data_folder
from pytest_llmeval.sources.local import read_jsonl
from pytest_llmeval.sources.names import row_id
from pytest_llmeval.sources.names import safe_id


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
    """The source of a benchmark kept in a jsonl file (or ``.jsonl.gz``), one object a line.

    ``question``, ``options``, ``answer``, ``subject`` and ``id`` are the names of the fields.
    The answer of a row with options is a letter (``"B"``) or a 0-based number (``1``), nothing
    else; without options it is the text itself. A row without a subject belongs to the file's
    own name. Item ids are ``<subject>-<row>`` unless a field is named for them.

    ``shots`` is a file of the same shape that few-shot examples come from; those without a
    subject serve every subject.

    A relative path is looked up in the run's data folder first, then in the working folder.
    The source raises DataError with file and line for a row that cannot be used.
    """
    fields = Fields(question, options, answer, subject, id)

    def source(data_dir: Any = None) -> Dataset:
        file = _locate(Path(path), data_dir)
        items = read_items(file, fields)
        pool = _pool(_locate(Path(shots), data_dir), fields, items) if shots else {}
        return Dataset(items=items, pool=pool)

    return source


@dataclass(frozen=True, slots=True)
class Fields:
    """What the fields of a row are called; ``id`` is None where ids are made from the position."""

    question: str = "question"
    options: str = "options"
    answer: str = "answer"
    subject: str = "subject"
    id: str | None = None


def read_items(path: Path, fields: Fields) -> tuple[Item, ...]:
    """All rows of a jsonl file as items, in file order.

    Raises DataError with file and line for a row that cannot be used or an id that occurs
    twice, and for a file without rows.
    """
    items: list[Item] = []
    lines: dict[str, int] = {}
    for number, item, _ in _rows(path, fields):
        if item.id in lines:
            raise DataError(
                f"{path}, line {number}: item id {item.id!r} occurs twice"
                f" (first in line {lines[item.id]})"
            )
        lines[item.id] = number
        items.append(item)
    if not items:
        raise DataError(f"{path}: no rows")
    return tuple(items)


def _locate(path: Path, data_dir: Any) -> Path:
    path = path.expanduser()
    if path.is_absolute():
        return path
    folder = data_folder(data_dir)
    if folder is not None and (folder / path).is_file():
        return folder / path
    if folder is not None and not path.is_file():
        raise DataError(f"{path}: no such file, neither in {folder} nor in {Path.cwd()}")
    return path


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _rows(path: Path, fields: Fields) -> Iterator[tuple[int, Item, bool]]:
    """Every row's line number, its item, and whether the row names a subject itself."""
    sizes: dict[str, int] = {}
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        named = row.get(fields.subject)
        if named is not None and not isinstance(named, str):
            raise DataError(f"{where}: field {fields.subject!r} is not text")
        subject = named or _stem(path)
        position = sizes.get(subject, 0)
        sizes[subject] = position + 1
        yield number, make_item(where, row, fields, subject, position), bool(named)


def make_item(where: str, row: dict[str, Any], fields: Fields, subject: str, position: int) -> Item:
    """The item of one row; ``where`` opens the message of the DataError for an unusable one."""
    question = row.get(fields.question)
    if not isinstance(question, str):
        raise DataError(f"{where}: no text in field {fields.question!r}")
    options = _options(where, row.get(fields.options), fields.options)
    return Item(
        id=_id(where, row, fields.id) if fields.id else row_id(subject, position),
        subject=subject,
        question=question,
        gold=_gold(where, row.get(fields.answer), fields.answer, len(options)),
        options=options,
    )


def _options(where: str, value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(option, str) for option in value):
        raise DataError(f"{where}: field {name!r} must be a list of texts (numbers in quotes)")
    if not 2 <= len(value) <= len(LABELS):
        raise DataError(f"{where}: {len(value)} options; 2 to {len(LABELS)} can be asked for")
    return tuple(value)


def _gold(where: str, value: Any, name: str, options: int) -> int | str:
    # An empty key, or -1 on the hub, is how publishers mark a split whose answers are secret.
    if value is None or value == -1 or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{where}: no gold label in this split (field {name!r} is empty)")
    if not options:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise DataError(f"{where}: field {name!r} must be text")
        return str(value)
    index = value
    if isinstance(value, str) and len(value.strip()) == 1 and value.strip() in LABELS:
        index = LABELS.index(value.strip())
    if isinstance(index, bool) or not isinstance(index, int):
        raise DataError(
            f"{where}: answer {value!r} is neither a letter A to {LABELS[options - 1]}"
            " nor a 0-based number"
        )
    if not 0 <= index < options:
        raise DataError(f"{where}: gold {value!r} is outside the {options} options")
    return index


def _id(where: str, row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise DataError(f"{where}: no id in field {name!r}")
    return safe_id(str(value))


def _pool(path: Path, fields: Fields, items: tuple[Item, ...]) -> dict[str, tuple[Item, ...]]:
    """Shots by subject, in file order; those without a subject are in every subject's pool."""
    subjects = dict.fromkeys(item.subject for item in items)
    pool: dict[str, list[Item]] = {}
    for _, row, named in _rows(path, fields):
        # A shot is not the item that stands in the same row of the other file.
        shot = replace(row, id=f"shot-{row.id}")
        for subject in (shot.subject,) if named else subjects:
            pool.setdefault(subject, []).append(shot)
    return {subject: tuple(shots) for subject, shots in pool.items()}
