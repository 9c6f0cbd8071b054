"""Records made by hand, and a process that writes many."""

from __future__ import annotations

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.storage.records import RecordWriter


def make(item: str = "i", **more) -> Record:
    return Record("m", "b", "letter", item, "s", Outcome.CORRECT, "A", "A", **more)


def write_many(path, name) -> None:
    writer = RecordWriter(path)
    for number in range(200):
        writer.append(make(f"{name}-{number}", text="x" * (number * 50)))
