"""``exact_match``, ``contains``, ``normalise`` and the registry."""

from __future__ import annotations

from importlib.machinery import ModuleSpec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import scorers
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.scorers import SCORERS
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers import normalise

ITEM = Item("i", "s", "q", 1, ("iron", "iron oxide", "copper", "zinc"))


@pytest.mark.parametrize(
    ("gold", "text", "outcome"),
    [
        ("1,000", " 1,000\n", "correct"),  # not split at the comma
        ("1,000", "1", "wrong"),
        ("x", "X", "wrong"),
        ("x", "x.", "wrong"),
        ("x", "the x", "wrong"),
        ("x y", "x  y", "wrong"),
        ("x", "<think>y</think>x", "correct"),
        ("x", "<think>x", "unparsed"),
        ("x", "  ", "unparsed"),
    ],
)
def test_exact_match_of_texts(gold: str, text: str, outcome: str) -> None:
    score = get_scorer("exact_match")(Item("i", "s", "q", gold), Response("i", text=text))
    assert score.outcome == outcome


@pytest.mark.parametrize(
    ("scorer", "text", "outcome"),
    [
        ("exact_match", " B\n", "correct"),
        ("exact_match", "A", "wrong"),
        ("exact_match", "B.", "unparsed"),
        ("exact_match", "b", "unparsed"),
        ("exact_match+case", "b", "correct"),
        ("exact_match+case+punctuation", "(b).", "correct"),
    ],
)
def test_exact_match_of_letters(scorer: str, text: str, outcome: str) -> None:
    assert get_scorer(scorer)(ITEM, Response("i", text=text)).outcome == outcome


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("case", "The QUICK, fox!"),
        ("punctuation", "The quick fox"),
        ("articles", "quick, fox!"),
        ("spaces", "The   quick,\nfox!"),
        ("articles+case+punctuation+spaces", "a QUICK fox"),
    ],
)
def test_each_option_forgives_its_own_difference(options: str, text: str) -> None:
    item, response = Item("i", "s", "q", "The quick, fox!"), Response("i", text=text)
    assert get_scorer("exact_match")(item, response).outcome == "wrong"
    if "articles" in options and "spaces" not in options:
        options += "+spaces"  # what an article leaves behind
    score = get_scorer(f"exact_match+{options}")(item, response)
    assert (score.outcome, score.answer) == ("correct", text)


def test_normalise() -> None:
    text = " The  cat’s «hat», an A! "
    assert normalise(text) == "The  cat’s «hat», an A!"
    assert normalise(text, case=True) == "the  cat’s «hat», an a!"
    assert normalise(text, punctuation=True) == "The  cats hat an A"
    assert normalise(text, articles=True, spaces=True) == "cat’s «hat», !"
    assert normalise(text, case=True, punctuation=True, articles=True, spaces=True) == "cats hat"
    assert normalise("STRASSE", case=True) == normalise("straße", case=True)


@given(st.text(), *[st.booleans()] * 4)
def test_normalising_twice_changes_nothing(
    text: str, spaces: bool, case: bool, punctuation: bool, articles: bool
) -> None:
    def once(text: str) -> str:
        return normalise(text, spaces=spaces, case=case, punctuation=punctuation, articles=articles)

    # Without `case`, and with it, an article may appear where another character was folded away.
    if not (articles and (case or punctuation)):
        assert once(once(text)) == once(text)


@pytest.mark.parametrize(
    ("gold", "text", "outcome"),
    [
        ("iron oxide", "It must be Iron  Oxide, I think.", "correct"),
        ("5", "25 or 50 or 5.", "correct"),
        ("5", "25 or 50", "wrong"),
        ("5", "", "unparsed"),
        ("$5", "for $5", "correct"),
        (1, "Either iron oxide or copper", "correct"),
        (1, "B", "wrong"),
        ("x", "<think>x</think>y", "wrong"),
    ],
)
def test_contains(gold: str | int, text: str, outcome: str) -> None:
    item = Item("i", "s", "q", gold, ITEM.options if isinstance(gold, int) else ())
    assert get_scorer("contains")(item, Response("i", text=text)).outcome == outcome


# The registry


@pytest.mark.parametrize("name", sorted(SCORERS))
def test_an_error_is_never_an_answer(name: str) -> None:
    response = Response("i", logprobs=(0.0, -1.0, -1.0, -1.0), text="B", error="timed out")
    score = SCORERS[name](ITEM, response)
    assert (score.outcome, score.answer, score.error) == (Outcome.ERROR, None, "timed out")


@pytest.mark.parametrize("name", sorted(SCORERS))
def test_a_response_of_the_wrong_kind_is_an_error(name: str) -> None:
    assert SCORERS[name](ITEM, Response("i")).outcome is Outcome.ERROR


LETTERS_ONLY = ["choice", "mmlu_pro_lmeval", "mmlu_pro_official", "mmlu_pro_official_first"]


@pytest.mark.parametrize("name", [*LETTERS_ONLY, "simple_evals"])
def test_a_choice_needs_options(name: str) -> None:
    score = get_scorer(name)(Item("i", "s", "q", "text"), Response("i", text="B"))
    assert score.outcome is Outcome.ERROR


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("exact-match", "unknown scorer 'exact-match'; did you mean 'exact_match'?"),
        ("choice+case", "unknown scorer 'choice+case'"),
        ("exact_match+cases", "unknown option 'cases'; did you mean 'case'?"),
        ("exact_match+", "unknown option ''; known: articles, case, punctuation, spaces"),
        ("exact_match+spaces+case", "write 'exact_match+case+spaces'"),
        ("exact_match+case+case", "write 'exact_match+case'"),
    ],
)
def test_mistaken_names(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        get_scorer(name)
    assert message in str(caught.value)


def test_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(scorers, "find_spec", find_spec)
    with pytest.raises(ConfigError, match=r"'math' needs math-verify: pip install 'math-verify"):
        get_scorer("math")
    assert get_scorer("number").name == "number"
