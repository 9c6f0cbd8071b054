"""``math``: expressions compared by the math-verify library (extra ``math``)."""

from __future__ import annotations

import importlib
import threading

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.response_text import own_answer
from pytest_llmeval.scorers.response_text import verdict
from pytest_llmeval.scorers.response_text import what_is_wrong

_SECONDS = 5
_END = 4000  # characters: the answer is at the end, and the library's time is not linear


def math(item: Item, response: Response) -> Score:
    """The expression that the text ends up with is equal to the gold expression.

    An expression that cannot be read, or not in five seconds, is unparsed; a comparison that takes
    longer is wrong. A gold answer that cannot be read is an error.
    """
    fault = what_is_wrong(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    library = importlib.import_module("math_verify")
    # Its time limits are signals, which only the main thread may set.
    limit = _SECONDS if threading.current_thread() is threading.main_thread() else None
    gold = library.parse(f"${item.gold_label}$", parsing_timeout=limit)
    if not gold:
        return Score(
            Outcome.ERROR, error=f"the gold answer cannot be read: {item.gold_label[:60]!r}"
        )
    said = own_answer(response.text or "")
    answer = library.parse(said[-_END:], parsing_timeout=limit) if said else []
    if not answer:
        return verdict(None, False)
    # The text as it stood comes last.
    return verdict(str(answer[-1]), bool(library.verify(gold, answer, timeout_seconds=limit)))
