"""Scorers that users register, and labels of more than 26 options in scorers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval import Item
from pytest_llmeval import Outcome
from pytest_llmeval import Protocol
from pytest_llmeval import Response
from pytest_llmeval import Template
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Score
from pytest_llmeval.core import scorer as registry
from pytest_llmeval.core.scorer import Scorer
from pytest_llmeval.core.scorer import add_scorer
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.evaluation.scoring import score_response
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers import register_scorer
from pytest_llmeval.scorers import scorer_names
from pytest_llmeval.scorers import text_score

ITEM = Item("i-1", "s", "Q?", "four")
TEMPLATE = Template("t", lambda subject: "", lambda item: item.question, lambda item: ())


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    scorers: dict[str, Scorer] = {}
    monkeypatch.setattr(registry, "_registered", scorers)
    monkeypatch.setattr("pytest_llmeval.scorers.registered_scorers", scorers)


def lenient(item: Item, response: Response) -> Score:
    return text_score(response.text, str(item.gold) in (response.text or ""))


def test_a_registered_scorer_scores_responses() -> None:
    assert register_scorer("lenient", version=1)(lenient) is lenient
    assert "lenient" in scorer_names()
    assert get_scorer("lenient").version == 1
    right = score_response(ITEM, Response("i-1", text="It is four."), "lenient")
    assert right == Score(Outcome.CORRECT, answer="It is four.")
    failed = score_response(ITEM, Response("i-1", error="no answer"), "lenient")
    assert failed == Score(Outcome.ERROR, error="no answer")


def test_an_unknown_name_suggests_a_registered_one() -> None:
    register_scorer("lenient", version=1)(lenient)
    with pytest.raises(ConfigError, match="unknown scorer 'lenent'; did you mean 'lenient'"):
        get_scorer("lenent")


def test_the_version_is_part_of_the_fingerprint() -> None:
    protocol = Protocol("p", TEMPLATE, scorer="lenient", ask="text")
    register_scorer("lenient", version=1)(lenient)
    first = fingerprint(protocol)
    register_scorer("lenient", version=2)(lenient)  # its module was imported again
    assert fingerprint(protocol) != first


def test_a_name_has_one_function() -> None:
    register_scorer("lenient", version=1)(lenient)
    with pytest.raises(ConfigError, match=r"'lenient' is defined twice, in .*:\d+ and in .*:\d+"):
        register_scorer("lenient", version=1)(lambda item, response: Score(Outcome.WRONG))
    with pytest.raises(ConfigError, match="'exact_match' is one of this package"):
        register_scorer("exact_match", version=1)


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("a+b", 1, "scorer name 'a\\+b': use letters"),
        ("", 1, "scorer name ''"),
        ("a", 0, "scorer 'a': version = 0 is below 1"),
        ("a", "1", "scorer 'a': version = '1' is not a whole number"),
    ],
)
def test_names_and_versions_are_checked(name: str, version: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        register_scorer(name, version=version)(lenient)


def test_a_scorer_is_a_function() -> None:
    with pytest.raises(ConfigError, match="scorer 'a': 3 is not a function"):
        add_scorer(Scorer("a", 1, 3))  # type: ignore[arg-type]


MANY = Item("many", "s", "Q?", 27, tuple(f"option {number}" for number in range(30)))


def test_the_highest_of_thirty_choices_has_a_label() -> None:
    values = [-5.0] * 30
    values[27] = -1.0
    score = get_scorer("likelihood")(MANY, Response("many", logprobs=tuple(values)))
    assert (score.outcome, score.answer) == (Outcome.CORRECT, "AB")
    assert MANY.gold_label == "AB"


def test_a_generated_letter_cannot_be_one_of_thirty() -> None:
    score = get_scorer("choice")(MANY, Response("many", text="B"))
    assert (score.outcome, score.error) == (
        Outcome.ERROR,
        "30 options: only the labels of 26 can be read",
    )
    few = replace(MANY, gold=1, options=MANY.options[:26])
    assert get_scorer("choice")(few, Response("many", text="B")).outcome is Outcome.CORRECT
