"""Scorer: a named and versioned function from item and response to a score, and its registration."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_llmeval.core.errors import ConfigError
from pytest_llmeval.core.items import Item
from pytest_llmeval.core.record import Score
from pytest_llmeval.core.request import Response
from pytest_llmeval.core.validation import check_number

ScoreFunction = Callable[[Item, Response], Score]


@dataclass(frozen=True, slots=True)
class Jobs:
    """What a scorer has run, and the score of what was run.

    ``kind``: of the jobs, which selects what runs them (``evaluation.jobs``). ``job`` makes one of a
    response, or scores it at once where there is nothing to run. ``score_of`` is given the item,
    its job and the result. ``reference``: the job of the item's own solution, which must be scored
    as correct.
    """

    kind: str
    job: Callable[[Item, Response], Any]
    score_of: Callable[[Item, Any, Any], Score]
    reference: Callable[[Item], Any]


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scorer with its name and version."""

    name: str
    version: int
    """Incremented by every change that scores anything differently; part of the fingerprint."""
    score: ScoreFunction
    """With ``jobs``, only scores responses without a job; others are errors."""
    needs: tuple[str, str] | None = None
    """Module of an optional library, and the extra that installs it."""
    jobs: Jobs | None = None
    """For code to be run: the jobs, and the scores of their results."""

    def __call__(self, item: Item, response: Response) -> Score:
        return self.score(item, response)


_registered: dict[str, Scorer] = {}

registered_scorers: Mapping[str, Scorer] = MappingProxyType(_registered)
"""Name → scorer, of those that ``add_scorer`` registered in this process."""


def add_scorer(scorer: Scorer) -> None:
    """Register a scorer in this process, under its name.

    The same function may be registered again, since a module can be imported twice. Raises
    ConfigError for a name that cannot be part of tables and file names, for a version that is not a
    positive whole number, and for a name that another function has.
    """
    name = scorer.name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise ConfigError(f"scorer name {name!r}: use letters, digits, '_', '.', '-'")
    check_number(f"scorer {name!r}", "version", scorer.version, lowest=1)
    if not callable(scorer.score):
        raise ConfigError(f"scorer {name!r}: {scorer.score!r:.60} is not a function")
    present = _registered.get(name)
    if present is not None and _origin(present.score) != _origin(scorer.score):
        raise ConfigError(
            f"scorer {name!r} is defined twice, in {_place(present.score)} and in"
            f" {_place(scorer.score)}: rename one"
        )
    _registered[name] = scorer


def _origin(function: ScoreFunction) -> Any:
    """Return what identifies a function, also when its module is imported again."""
    code = getattr(function, "__code__", None)
    return function if code is None else (code.co_filename, code.co_name)


def _place(function: ScoreFunction) -> str:
    code = getattr(function, "__code__", None)
    if code is None:
        return f"an object of {type(function).__module__}"
    return f"{code.co_filename}:{code.co_firstlineno}"
