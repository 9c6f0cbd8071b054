"""Answers that are expected, are arriving, or are already on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from pytest_llmeval.core import Record
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.record import AnswerKey


class AwaitedAnswers:
    """The blank records of the requests of one model call that have no response yet.

    They belong to one call, so that a response without sample and arm (from a custom model) can be
    matched with a request of that call.
    """

    def __init__(self, requests: Iterable[tuple[Request, Record]]) -> None:
        #: By item id and answer key, in the order of the requests; items without blanks are removed.
        self._awaited: dict[str, dict[AnswerKey, tuple[Request, Record]]] = {}
        for request, blank in requests:
            self._awaited.setdefault(request.id, {})[blank.answer_key] = (request, blank)

    def __bool__(self) -> bool:
        return bool(self._awaited)

    def __iter__(self) -> Iterator[Record]:
        return (blank for _, blank in self.requests())

    def requests(self) -> list[tuple[Request, Record]]:
        """Return the requests that have no response yet, with their blank records."""
        return [pair for pairs in self._awaited.values() for pair in pairs.values()]

    def pop(self, response: Response) -> Record | None:
        """Remove and return the blank record that a response answers; None if none is awaited.

        Raises ValueError if the response is ambiguous: it names no arm, several arms are possible,
        and it does not follow the order of the requests.
        """
        awaited = self._awaited.get(response.id, {})
        possible = [
            (arm, sample)
            for arm, sample in awaited
            if response.arm in (None, arm) and response.sample in (None, sample)
        ]
        if not possible:
            return None
        if len({arm for arm, _ in possible}) > 1 and not self._is_next(response.id, possible[0]):
            raise ValueError(
                "responses to one item in several option orders do not follow the order of the requests:"
                " set the arm of each, Response(…, arm=request.arm)"
            )
        _, blank = awaited.pop(possible[0])
        if not awaited:
            del self._awaited[response.id]
        return blank

    def _is_next(self, item: str, answer: AnswerKey) -> bool:
        """Return true if an answer is the first of the awaited ones."""
        first = next(iter(self._awaited))
        return item == first and answer == next(iter(self._awaited[first]))


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
