"""Answers on disk that may be used again: of an earlier session, or of a worker that died."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_llmeval.core import Record


class Stored:
    """The records that hold an answer, each until it is taken.

    ``own_model``: a project's own model is one, whatever it was called when an answer was lost.
    """

    def __init__(self, own_model: bool = False) -> None:
        self._own_model = own_model
        self._answers: dict[tuple[Any, ...], Record] = {}
        self._last: dict[tuple[Any, ...], Record] = {}

    def add(self, records: Iterable[Record]) -> None:
        """Take up records, in the order in which they were written."""
        for record in records:
            # An error that was met later takes nothing back of an answer that was paid for.
            if record.logprobs or record.text is not None:
                self._answers[_key(record)] = record
            if not record.response_of:
                self._last[self._about(record)] = record

    def take(self, planned: Record) -> Record | None:
        """The same model's answer to the prompt of a planned record, if it is there."""
        found = self._answers.pop(_key(planned), None)
        return found if found is not None and _answers(found, planned) else None

    def is_last(self, record: Record) -> bool:
        """Whether nothing was written about the same answer after the record."""
        return self._last.get(self._about(record)) is record

    def _about(self, record: Record) -> tuple[Any, ...]:
        model = "" if self._own_model else record.model
        return (model, record.benchmark, record.item, *record.answer_key)


def _key(record: Record) -> tuple[Any, ...]:
    """What an answer must share with a planned sample to be its answer, beside the prompt."""
    return (record.model, record.protocol, record.benchmark, record.item, *record.answer_key)


def _answers(stored: Record, planned: Record) -> bool:
    return (
        stored.prompt_sha256 == planned.prompt_sha256
        and stored.model_fingerprint == planned.model_fingerprint
        and stored.data == planned.data
    )
