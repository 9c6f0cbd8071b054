"""``FakeModel``: a model with scripted responses, for tests without weights or a server.

>>> from pytest_llmeval import Request
>>> from pytest_llmeval.core import Prompt
>>> model = FakeModel({"art-1": "B", "art-2": (-2.5, -0.1)}, errors={"art-3": "time-out"})
>>> requests = [Request(f"art-{n}", Prompt("", (), "Who painted it?")) for n in (1, 2, 3)]
>>> for response in model.answer(requests):
...     print(response.id, response.text, response.logprobs, response.error)
art-1 B () None
art-2 None (-2.5, -0.1) None
art-3 None () time-out
>>> model.requested["art-1"]
1
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial

from pytest_llmeval.core import Ask
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.base import Model

__all__ = ["FakeModel"]

Answer = str | Sequence[float] | Response
"""A text, one log-likelihood per choice (natural logarithm), or the whole response."""


class FakeModel(Model):
    """Model with scripted answers, delays and errors that counts the requests it answers.

    ``answers``: by item id, or a function from the request. ``errors``, by item id, take
    precedence: a text is the error of the response; an exception is raised, which ends the
    responses (a ModelError ends the session). An item with neither gets a response with an error.
    ``delays``: seconds before a response is returned, for every item or by item id.

    ``requests`` has the requests in the order in which they were answered, in this process (every
    xdist worker has a model of its own); ``closed`` is True after ``close``.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer] | Callable[[Request], Answer],
        *,
        errors: Mapping[str, str | BaseException] | None = None,
        delays: float | Mapping[str, float] = 0.0,
        name: str = "fake",
        fingerprint: str | None = "fake",
        asks: Iterable[Ask] = ("choices", "text"),
    ) -> None:
        self.name = name
        self.fingerprint: str | None = fingerprint
        self.asks = frozenset(asks)
        self.requests: list[Request] = []
        self.closed = False
        self._answers = answers
        self._errors = errors or {}
        self._delays = delays

    @property
    def requested(self) -> Counter[str]:
        """The number of requests that were answered, by item id."""
        return Counter(request.id for request in self.requests)

    def answer(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield the scripted response to every request, in the order of the requests.

        Raises what ``errors`` has for an item, or ``answers`` as a function.
        """
        for request in requests:
            self.requests.append(request)
            yield self._response(request)

    def close(self) -> None:
        """Record that the session has closed the model."""
        self.closed = True

    def _response(self, request: Request) -> Response:
        delays = self._delays
        seconds = delays.get(request.id, 0.0) if isinstance(delays, Mapping) else delays
        time.sleep(seconds)
        response = partial(Response, request.id, sample=request.sample, seconds=seconds or None)
        error = self._errors.get(request.id)
        if isinstance(error, BaseException):
            raise error
        if error is not None:
            return response(error=error)
        if not isinstance(self._answers, Mapping):
            answer = self._answers(request)
        elif request.id in self._answers:
            answer = self._answers[request.id]
        else:
            return response(error=f"FakeModel has no answer for item {request.id!r}")
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, str):
            return response(text=answer, finish_reason="stop")
        return response(logprobs=tuple(answer))
