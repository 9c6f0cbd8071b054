"""(item, response) → score; ``get_scorer`` finds a scorer by its name.

An error response is an error score under every scorer, never a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Scorer:
    """A scorer by name. ``version`` grows whenever a change makes it score anything differently.

    The version is part of every protocol's fingerprint, so that numbers of two versions are not
    compared unnoticed.
    """

    name: str
    version: int
    score: Callable[[Item, Response], Score]

    def __call__(self, item: Item, response: Response) -> Score:
        return self.score(item, response)


SCORERS: Mapping[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        Scorer("letter", 1, letter),
        Scorer("cloze", 1, cloze),
        Scorer("choice", 1, choice),
        Scorer("exact_match", 1, exact_match),
    )
}

__all__ = ["SCORERS", "Scorer", "extract_choice", "get_scorer"]


def get_scorer(name: str) -> Scorer:
    """The scorer of that name; ConfigError with the nearest valid name for an unknown one."""
    try:
        return SCORERS[name]
    except KeyError:
        raise ConfigError(f"unknown scorer {name!r}{suggestion(name, SCORERS)}") from None
