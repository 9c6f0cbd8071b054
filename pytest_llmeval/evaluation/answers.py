"""Answers that are arriving, or are already on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

from pytest_llmeval.core import Record


class ReusableAnswers:
    """Answers from earlier sessions or workers, each returned at most once.

    With ``own_model``, there is one custom model, whatever name the records give it.
    """

    def __init__(self, own_model: bool = False) -> None:
        self._own_model = own_model
        self._answers: dict[tuple[Any, ...], Record] = {}
        self._latest: dict[tuple[Any, ...], Record] = {}

    def add(self, records: Iterable[Record]) -> None:
        """Add records in the order in which they were written."""
        for record in records:
            # A later error does not invalidate an earlier answer.
            if record.logprobs or record.text is not None:
                self._answers[_key(record)] = record
            if not record.response_of:
                self._latest[self._answer_id(record)] = record

    def pop_matching(self, planned: Record) -> Record | None:
        """Remove and return the same model's answer to the prompt of a planned record, if any."""
        record = self._answers.pop(_key(planned), None)
        return record if record is not None and _is_answer_to(record, planned) else None

    def is_latest(self, record: Record) -> bool:
        """Return true if no later record of the same answer was added."""
        return self._latest.get(self._answer_id(record)) is record

    def _answer_id(self, record: Record) -> tuple[Any, ...]:
        model = "" if self._own_model else record.model
        return (model, record.benchmark, record.item, *record.answer_key)


def _key(record: Record) -> tuple[Any, ...]:
    """Return the fields, except the prompt, that a stored answer shares with its planned record."""
    return (record.model, record.protocol, record.benchmark, record.item, *record.answer_key)


def _is_answer_to(stored: Record, planned: Record) -> bool:
    return (
        stored.prompt_sha256 == planned.prompt_sha256
        and stored.model_fingerprint == planned.model_fingerprint
        and stored.data == planned.data
    )


# Seconds to wait for the saving thread when the session ends.
_END_SECONDS = 10


class Arrivals:
    """Signal that answers have arrived, and the thread that saves them while test bodies run."""

    def __init__(self) -> None:
        self._new = threading.Event()
        self._unsaved = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def note(self) -> None:
        """Signal an arrival, from any thread."""
        self._new.set()
        self._unsaved.set()

    def clear(self) -> None:
        """Reset the signal, before checking for arrivals."""
        self._new.clear()

    def wait(self) -> None:
        """Block until ``note`` has been called since the last ``clear``."""
        self._new.wait()

    def save_by(self, save: Callable[[], None]) -> None:
        """Start a thread that calls ``save`` after every arrival, until ``end``."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._save, args=(save,), name="llmeval-saver", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """Stop saving, and wait for the thread."""
        self._ended = True
        self._unsaved.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def _save(self, save: Callable[[], None]) -> None:
        while True:
            self._unsaved.wait()
            self._unsaved.clear()
            if self._ended:
                return
            save()
