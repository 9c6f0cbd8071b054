"""(item, response) → score. A scorer is a function; ``get_scorer`` finds it by its name.

An error response is an error score under every scorer, never a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.choice import choice
from pytest_llmeval.scorers.choice import extract_choice
from pytest_llmeval.scorers.likelihood import cloze
from pytest_llmeval.scorers.likelihood import letter
from pytest_llmeval.scorers.text import exact_match
from pytest_llmeval.spelling import suggestion

Scorer = Callable[[Item, Response], Score]

SCORERS: Mapping[str, Scorer] = {
    "letter": letter,
    "cloze": cloze,
    "choice": choice,
    "exact_match": exact_match,
}

__all__ = ["SCORERS", "Scorer", "extract_choice", "get_scorer"]


def get_scorer(name: str) -> Scorer:
    """The scorer of that name; ConfigError with the nearest valid name for an unknown one."""
    try:
        return SCORERS[name]
    except KeyError:
        raise ConfigError(f"unknown scorer {name!r}{suggestion(name, SCORERS)}") from None
