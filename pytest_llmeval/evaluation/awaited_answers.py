"""Which request a response answers: of the requests of one call of a model."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator

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
