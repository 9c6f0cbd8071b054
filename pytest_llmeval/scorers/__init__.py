"""(item, response) → score; ``get_scorer`` finds a scorer by its name.

An error response is an error score under every scorer, never a wrong answer. ``choice`` and
``number`` are ours; scorers that are named for a tool reproduce what that tool reads.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.core.suggestions import suggestion
from pytest_llmeval.scorers.choice.reader import choice
from pytest_llmeval.scorers.choice.reader import extract_choice
from pytest_llmeval.scorers.code.extract import extract_code
from pytest_llmeval.scorers.exact_match import OPTIONS
from pytest_llmeval.scorers.exact_match import contains
from pytest_llmeval.scorers.exact_match import exact_match
from pytest_llmeval.scorers.exact_match import exact_match_with
from pytest_llmeval.scorers.exact_match import normalise
from pytest_llmeval.scorers.execution import ProgramOf
from pytest_llmeval.scorers.execution import execution
from pytest_llmeval.scorers.execution import execution_first_block
from pytest_llmeval.scorers.execution import execution_raw
from pytest_llmeval.scorers.execution import execution_until_fence
from pytest_llmeval.scorers.execution import not_run
from pytest_llmeval.scorers.likelihood import cloze
from pytest_llmeval.scorers.likelihood import letter
from pytest_llmeval.scorers.likelihood import likelihood
from pytest_llmeval.scorers.matched import matched
from pytest_llmeval.scorers.matched import matched_with
from pytest_llmeval.scorers.matched.embedding import needs
from pytest_llmeval.scorers.math_expressions import math
from pytest_llmeval.scorers.number import extract_number
from pytest_llmeval.scorers.number import number
from pytest_llmeval.scorers.number import numbers_equal
from pytest_llmeval.scorers.published.lmeval import lmeval_cot_strict
from pytest_llmeval.scorers.published.lmeval import lmeval_flexible
from pytest_llmeval.scorers.published.lmeval import lmeval_strict
from pytest_llmeval.scorers.published.lmeval import mmlu_pro_lmeval
from pytest_llmeval.scorers.published.mmlu_pro import mmlu_pro_official
from pytest_llmeval.scorers.published.mmlu_pro import mmlu_pro_official_first
from pytest_llmeval.scorers.published.mmlu_pro import with_random_guesses
from pytest_llmeval.scorers.published.simple_evals import simple_evals
from pytest_llmeval.scorers.published.zero_shot_cot import zero_shot_cot


@dataclass(frozen=True, slots=True)
class Scorer:
    """A scorer by name. ``version`` grows whenever a change makes it score anything differently.

    The version is part of every protocol's fingerprint, so that numbers of two versions are not
    compared unnoticed. ``needs``: the module of an optional library, and the extra that has it.
    ``program``: where code is to be run, what makes it of a response (or scores it at once, where
    there is none); whoever runs it has the score from ``execution.score_of``. ``score`` then only
    scores what needs no run, anything else is an error.
    """

    name: str
    version: int
    score: Callable[[Item, Response], Score]
    needs: tuple[str, str] | None = None
    program: ProgramOf | None = None

    def __call__(self, item: Item, response: Response) -> Score:
        return self.score(item, response)


def _running(name: str, version: int, program: ProgramOf) -> Scorer:
    return Scorer(name, version, not_run(program), program=program)


SCORERS: Mapping[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        Scorer("letter", 1, letter),
        Scorer("cloze", 1, cloze),
        Scorer("likelihood", 1, likelihood),
        Scorer("choice", 6, choice),
        Scorer("number", 5, number),
        Scorer("math", 3, math, needs=("math_verify", "math")),
        Scorer("exact_match", 3, exact_match),
        Scorer("contains", 2, contains),
        Scorer("lmeval_strict", 1, lmeval_strict),
        Scorer("lmeval_flexible", 1, lmeval_flexible),
        Scorer("lmeval_cot_strict", 1, lmeval_cot_strict),
        Scorer("mmlu_pro_lmeval", 1, mmlu_pro_lmeval),
        Scorer("mmlu_pro_official", 1, mmlu_pro_official),
        Scorer("mmlu_pro_official_first", 1, mmlu_pro_official_first),
        Scorer("simple_evals", 1, simple_evals),
        Scorer("zero_shot_cot", 1, zero_shot_cot),
        Scorer("matched", 4, matched, needs=("sentence_transformers", "bias")),
        _running("execution", 2, execution),
        _running("execution_raw", 1, execution_raw),
        _running("execution_until_fence", 1, execution_until_fence),
        _running("execution_first_block", 1, execution_first_block),
    )
}

__all__ = [
    "SCORERS",
    "Scorer",
    "extract_choice",
    "extract_code",
    "extract_number",
    "get_scorer",
    "normalise",
    "numbers_equal",
    "with_random_guesses",
]


def get_scorer(name: str) -> Scorer:
    """The scorer of that name; ConfigError with the nearest valid name for an unknown one.

    ``exact_match`` may be followed by options of its normaliser: ``exact_match+case+articles``,
    ``matched`` by the embedding model that it uses: ``matched+minilm``. ConfigError also where the
    scorer's library is not installed.
    """
    base, *options = name.split("+")
    if options and base == "exact_match":
        return _exact_match(name, options)
    if options and base == "matched":
        return _matched(name, name.partition("+")[2])
    try:
        scorer = SCORERS[name]
    except KeyError:
        raise ConfigError(f"unknown scorer {name!r}{suggestion(name, SCORERS)}") from None
    _check_library(name, scorer.needs)
    return scorer


def _check_library(name: str, needed: tuple[str, str] | None) -> None:
    if needed is not None and find_spec(needed[0]) is None:
        module, extra = needed
        raise ConfigError(
            f"scorer {name!r} needs {module.replace('_', '-')}: {install_hint(extra)}"
        )


def _matched(name: str, model: str) -> Scorer:
    if not model.strip():
        raise ConfigError(f"scorer {name!r}: an embedding model was expected after '+'")
    for needed in needs(model):
        _check_library(name, needed)
    return Scorer(name, SCORERS["matched"].version, matched_with(model))


def _exact_match(name: str, options: list[str]) -> Scorer:
    for option in options:
        if option not in OPTIONS:
            raise ConfigError(
                f"scorer {name!r}: unknown option {option!r}{suggestion(option, OPTIONS)}"
            )
    ordered = "+".join(("exact_match", *sorted(set(options))))
    if name != ordered:
        # One scorer, one name: results under two names would look like two results.
        raise ConfigError(f"scorer {name!r}: write it {ordered!r}")
    return Scorer(name, SCORERS["exact_match"].version, exact_match_with(options))
