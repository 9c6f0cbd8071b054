"""What every model has in common.

A backend is one module in this folder; nothing outside it knows its name. A module is found
through the scheme of the spec (``hf:…`` → ``models/hf.py``) and offers ``open_model(rest)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Protocol
from typing import runtime_checkable

from pytest_llmeval.core import Ask
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests.

    ``name``: short and readable, part of test ids and reports. ``asks``: the kinds of request
    it can answer. ``fingerprint``: identifies weights, revision, dtype and chat template; must
    be available without loading weights; None where the model cannot tell.

    Constructing a model is cheap; weights are loaded by the first ``answer``.

    What a model may have beside: ``ways``, how each kind of request is put where there are several;
    ``template_date``, the date that its chat template writes, empty where it writes none;
    ``wanted``, how many requests it wants waiting: it answers in threads of its own, and its
    iterators have ``available``, whether a response is there, and ``listen(arrived)``, which has a
    function called whenever one has come; ``prompts_sent(request)``, how often a prompt is sent and
    billed; ``usage_by_benchmark``, counts as in ``core.usage.Usage``; ``close()``.
    """

    name: str
    asks: frozenset[Ask]

    @property
    def fingerprint(self) -> str | None: ...

    def answer(self, requests: Iterable[Request]) -> Iterable[Response]:
        """One response per request, in any order: an iterator yields each as it is completed.

        A collection (a list, say) is written to disk at once. One bad request never stops the others: it becomes a Response with ``error``.
        ModelError is raised only when the model cannot be used at all.
        """
        ...


class ResponseStore(Protocol):
    """Keeps responses, so that nothing is asked twice: ``runs.cache.ResponseCache``.

    ``fingerprint`` is the model's. Used from several threads.
    """

    def get(self, fingerprint: str, request: Request) -> Response | None: ...

    def put(self, fingerprint: str, answered: Sequence[tuple[Request, Response]]) -> None: ...
