"""Registry of scorers, which turn an item and a response into a score.

Every scorer scores an error response as an error, never as a wrong answer. Scorers that are named
after a tool reproduce how that tool reads answers; ``choice`` and ``number`` do not follow a tool.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.core.scorer import Jobs
from pytest_llmeval.core.scorer import ScoreFunction
from pytest_llmeval.core.scorer import Scorer
from pytest_llmeval.core.scorer import add_scorer
from pytest_llmeval.core.scorer import registered_scorers

if TYPE_CHECKING:
    from pytest_llmeval.scorers.choice.reader import extract_choice
    from pytest_llmeval.scorers.code.extract import extract_code
    from pytest_llmeval.scorers.exact_match import normalise
    from pytest_llmeval.scorers.number import extract_number
    from pytest_llmeval.scorers.number import numbers_equal
    from pytest_llmeval.scorers.published import with_random_guesses
    from pytest_llmeval.scorers.response_text import text_score

_PUBLIC = {
    "extract_choice": "choice.reader",
    "extract_code": "code.extract",
    "extract_number": "number",
    "normalise": "exact_match",
    "numbers_equal": "number",
    "text_score": "response_text",
    "with_random_guesses": "published",
}
"""Public function → its module."""


def __getattr__(name: str) -> Any:
    # Compiling the patterns of all scorers takes longer than a command that reads a run.
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _function(_PUBLIC[name], name)


@cache
def _function(module: str, name: str) -> Any:
    return getattr(import_module(f"{__name__}.{module}"), name)


def _scorer(name: str, version: int, module: str, needs: tuple[str, str] | None = None) -> Scorer:
    """Return a scorer whose function has its name and is loaded for the first response."""
    return Scorer(name, version, lambda *answer: _function(module, name)(*answer), needs)


def _running(name: str, version: int, jobs: Jobs) -> Scorer:
    """Return a scorer whose jobs are to be run."""

    def not_run(item: Item, response: Response) -> Score:
        made = jobs.job(item, response)
        if isinstance(made, Score):
            return made
        return Score(Outcome.ERROR, error="nothing was run: this scorer needs a sandbox")

    return Scorer(name, version, not_run, jobs=jobs)


def _program(name: str, version: int) -> Scorer:
    """Return a scorer that has programs run, each a candidate with its checks."""

    def of(function: str) -> Any:
        return _function("execution", function)

    return _running(
        name,
        version,
        Jobs(
            "program",
            lambda item, response: of(name)(item, response),
            lambda item, job, result: of("execution_score")(result),
            lambda item: of("reference_program")(item),
        ),
    )


def _trial(name: str, version: int, *, guarded: bool) -> Scorer:
    """Return a scorer that has the tests of an instance run on a patch."""

    def of(function: str) -> Any:
        return _function("swebench.resolved", function)

    return _running(
        name,
        version,
        Jobs(
            "trial",
            lambda item, response: of(name)(item, response),
            lambda item, job, result: of("score_of")(item, job, result),
            lambda item: of("reference_trial")(item, guarded=guarded),
        ),
    )


SCORERS: Mapping[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        _scorer("letter", 1, "likelihood"),
        _scorer("cloze", 1, "likelihood"),
        _scorer("likelihood", 1, "likelihood"),
        _scorer("choice", 6, "choice.reader"),
        _scorer("number", 5, "number"),
        _scorer("math", 3, "exact_match", needs=("math_verify", "math")),
        _scorer("exact_match", 3, "exact_match"),
        _scorer("contains", 2, "exact_match"),
        _scorer("lmeval_strict", 1, "published"),
        _scorer("lmeval_flexible", 1, "published"),
        _scorer("lmeval_cot_strict", 1, "published"),
        _scorer("mmlu_pro_lmeval", 1, "published"),
        _scorer("mmlu_pro_official", 1, "published"),
        _scorer("mmlu_pro_official_first", 1, "published"),
        _scorer("simple_evals", 1, "published"),
        _scorer("zero_shot_cot", 1, "published"),
        _scorer("matched", 4, "matched", needs=("sentence_transformers", "bias")),
        _program("execution", 2),
        _program("execution_raw", 1),
        _program("execution_until_fence", 1),
        _program("execution_first_block", 1),
        _trial("resolved", 1, guarded=True),
        _trial("resolved_official", 1, guarded=False),
    )
}

__all__ = [
    "SCORERS",
    "Jobs",
    "Score",
    "Scorer",
    "counts_all_items",
    "extract_choice",
    "extract_code",
    "extract_number",
    "get_scorer",
    "normalise",
    "numbers_equal",
    "register_scorer",
    "scorer_names",
    "text_score",
    "with_random_guesses",
]


def register_scorer(name: str, *, version: int) -> Callable[[ScoreFunction], ScoreFunction]:
    """Return a decorator that registers a function from item and response as a scorer.

    Protocols name it like a scorer of this package. ``version`` is part of the fingerprint of these
    protocols: increment it with every change that scores anything differently. The function is not
    called for responses with an error, and an exception that it raises is an error of the item.
    Registration is per process: write it in a module that every process imports, such as
    ``conftest.py`` or the module of the test. Raises ConfigError for a name that a scorer of this
    package or another function has.
    """
    if name in SCORERS:
        raise ConfigError(f"scorer {name!r} is one of this package: choose another name")

    def register(score: ScoreFunction) -> ScoreFunction:
        add_scorer(Scorer(name, version, score))
        return score

    return register


def scorer_names() -> set[str]:
    """Return the names of all scorers, those of this package and registered ones."""
    return {*SCORERS, *registered_scorers}


def counts_all_items(name: str) -> bool:
    """Whether the official rate of a scorer is over all items, errors and missing ones not right.

    So it is where patches are tried: the leaderboards of SWE-bench give resolved / all instances.
    """
    scorer = SCORERS.get(name)
    return scorer is not None and scorer.jobs is not None and scorer.jobs.kind == "trial"


def get_scorer(name: str) -> Scorer:
    """Return the scorer with this name.

    ``exact_match`` may be followed by options of ``normalise``: ``exact_match+case+articles``;
    ``matched`` by an embedding model: ``matched+minilm``. Raises ConfigError for an unknown name,
    with the nearest valid one, and if the scorer's library is not installed.
    """
    base, *options = name.split("+")
    if options and base == "exact_match":
        return _exact_match(name, options)
    if options and base == "matched":
        return _matched(name, name.partition("+")[2])
    scorer = SCORERS.get(name) or registered_scorers.get(name)
    if scorer is None:
        raise ConfigError(f"unknown scorer {name!r}{suggestion(name, scorer_names())}")
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
        raise ConfigError(f"scorer {name!r}: add an embedding model after '+', or remove the '+'")
    for needed in _function("matched.embedding", "required_modules")(model):
        _check_library(name, needed)
    return Scorer(name, SCORERS["matched"].version, _function("matched", "matched_with")(model))


def _exact_match(name: str, options: list[str]) -> Scorer:
    valid = _function("exact_match", "OPTIONS")
    for option in options:
        if option not in valid:
            raise ConfigError(
                f"scorer {name!r}: unknown option {option!r}{suggestion(option, valid)}"
            )
    ordered = "+".join(("exact_match", *sorted(set(options))))
    if name != ordered:
        # A scorer has one name only: results under two names would look like two results.
        raise ConfigError(f"scorer {name!r}: write {ordered!r}")
    return Scorer(
        name, SCORERS["exact_match"].version, _function("exact_match", "exact_match_with")(options)
    )
