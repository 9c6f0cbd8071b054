"""Responses that are awaited: matched with their requests, or filled in by threads of a model."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Generic
from typing import TypeVar

from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.record import AnswerKey

T = TypeVar("T")


class AwaitedAnswers(Generic[T]):
    """The requests of one model call that have no response yet, each with a value of the caller.

    They belong to one call, so that a response without sample and arm (from a custom model) can be
    matched with a request of that call.
    """

    def __init__(self, requests: Iterable[tuple[Request, T]]) -> None:
        #: By item id and (arm, sample), in the order of the requests; answered items are removed.
        self._awaited: dict[str, dict[AnswerKey, tuple[Request, T]]] = {}
        for request, value in requests:
            answers = self._awaited.setdefault(request.id, {})
            answers[request.arm, request.sample] = (request, value)

    def __bool__(self) -> bool:
        return bool(self._awaited)

    def __iter__(self) -> Iterator[T]:
        return (value for _, value in self.requests())

    def requests(self) -> list[tuple[Request, T]]:
        """Return the requests that have no response yet, with their values."""
        return [pair for pairs in self._awaited.values() for pair in pairs.values()]

    def pop(self, response: Response) -> T | None:
        """Remove and return the value of the request that a response answers; None if none is awaited.

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
        _, value = awaited.pop(possible[0])
        if not awaited:
            del self._awaited[response.id]
        return value

    def _is_next(self, item: str, answer: AnswerKey) -> bool:
        """Return true if an answer is the first of the awaited ones."""
        first = next(iter(self._awaited))
        return item == first and answer == next(iter(self._awaited[first]))


class ResponseBatch(Iterator[Response]):
    """Iterator over the responses of jobs that were submitted together, as they complete.

    ``next`` blocks until a response is ready and raises ModelError if the model cannot be used. If
    the consumer closes or drops the iterator, jobs that have not started are cancelled.
    """

    def __init__(self, jobs: int, ready: Iterable[Response] = ()) -> None:
        self.cancelled = False
        self._jobs = jobs
        self._ready = deque(ready)
        self._done: queue.SimpleQueue[Sequence[Response] | ModelError] = queue.SimpleQueue()
        self._arrived: Callable[[], None] = lambda: None

    def put(self, result: Sequence[Response] | ModelError) -> None:
        self._done.put(result)
        self._arrived()

    def listen(self, arrived: Callable[[], None]) -> None:
        """Call ``arrived``, in the loop's thread, whenever ``available`` may have changed."""
        self._arrived = arrived
        arrived()

    @property
    def available(self) -> bool:
        """True if ``next`` would not block: a response is ready, or the iterator is exhausted."""
        return bool(self._ready) or self._jobs == 0 or not self._done.empty()

    def __next__(self) -> Response:
        while not self._ready:
            if self._jobs == 0:
                self.close()
                raise StopIteration
            result = self._done.get()
            if isinstance(result, ModelError):
                self.close()
                raise ModelError(str(result))
            self._jobs -= 1
            self._ready.extend(result)
        return self._ready.popleft()

    def close(self) -> None:
        self.cancelled = True
        self._jobs = 0

    def __del__(self) -> None:
        self.close()
