"""Answers that are expected, arriving, or already on disk."""

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
    """The blank records of the requests of one call that have no response yet.

    Of one call alone, so that a response that names neither sample nor arm (a function's) belongs
    to a request of that call.
    """

    def __init__(self, asked: Iterable[tuple[Request, Record]]) -> None:
        #: By item and answer, in the order of the requests; items without any are taken out.
        self._blanks: dict[str, dict[AnswerKey, Record]] = {}
        for request, blank in asked:
            self._blanks.setdefault(request.id, {})[blank.answer_key] = blank

    def __bool__(self) -> bool:
        return bool(self._blanks)

    def __iter__(self) -> Iterator[Record]:
        for blanks in self._blanks.values():
            yield from blanks.values()

    def pop(self, response: Response) -> Record | None:
        """The blank record of what the response answers; None of what is not awaited.

        Raises ValueError where that cannot be known: the response could be to several arms, names
        none, and is not given in the order of the requests.
        """
        blanks = self._blanks.get(response.id, {})
        possible = [
            (arm, sample)
            for arm, sample in blanks
            if response.arm in (None, arm) and response.sample in (None, sample)
        ]
        if not possible:
            return None
        if len({arm for arm, _ in possible}) > 1 and not self._is_next(response.id, possible[0]):
            raise ValueError(
                "the responses to one item in several orders of its options come in another order"
                " than the requests: give each its arm, Response(…, arm=request.arm)"
            )
        found = blanks.pop(possible[0])
        if not blanks:
            del self._blanks[response.id]
        return found

    def _is_next(self, item: str, answer: AnswerKey) -> bool:
        """Whether an answer is the first of those that are awaited."""
        first = next(iter(self._blanks))
        return item == first and answer == next(iter(self._blanks[first]))


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


# How long the saving of what has arrived may still take when the session ends.
_END_SECONDS = 10


class Arrivals:
    """Wakes the test that waits for an answer, and saves answers while the bodies of tests run."""

    def __init__(self) -> None:
        self._new = threading.Event()
        self._unsaved = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def note(self) -> None:
        """Note, in any thread, that something is here."""
        self._new.set()
        self._unsaved.set()

    def clear(self) -> None:
        """Forget what was noted so far: it is about to be looked for."""
        self._new.clear()

    def wait(self) -> None:
        """Wait until something is noted that was not yet when ``clear`` was called."""
        self._new.wait()

    def save_by(self, save: Callable[[], None]) -> None:
        """Call ``save`` in a thread of its own after everything that is noted, until the end."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._save, args=(save,), name="llmeval-saver", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """Save no more."""
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
