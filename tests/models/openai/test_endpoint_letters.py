"""Letters from the likeliest tokens: arithmetic without a server."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.models.openai.top_logprobs import LetterProbabilities
from pytest_llmeval.models.openai.top_logprobs import ListedToken
from pytest_llmeval.models.openai.top_logprobs import TopTokens
from pytest_llmeval.models.openai.top_logprobs import are_letters
from pytest_llmeval.models.openai.top_logprobs import read_letters
from pytest_llmeval.models.openai.top_logprobs import spellings
from pytest_llmeval.models.openai.top_logprobs import verify_top_tokens

ABCD = ("A", "B", "C", "D")


def top(**shares: float) -> list[tuple[str, float]]:
    return [(token.replace("_", " "), math.log(share)) for token, share in shares.items()]


def read(
    letters: Sequence[str], listed: Sequence[tuple[str, float]], sampled: str = ""
) -> LetterProbabilities:
    return read_letters(
        letters, verify_top_tokens([ListedToken(*entry) for entry in listed], sampled)
    )


def test_the_spellings_of_a_letter_are_added() -> None:
    reading = read(ABCD, top(A=0.3, B=0.25, _B=0.2, _C=0.1, D=0.1))
    assert reading.logprobs == pytest.approx([math.log(p) for p in (0.3, 0.45, 0.1, 0.1)])
    # B leads by 0.15; 0.05 is missing from the list.
    assert reading.decided


def test_blanks_as_tokenizers_write_them() -> None:
    listed = [("ĠA", math.log(0.2)), ("▁A", math.log(0.2)), ("(A", math.log(0.1)), ("ĊB", -3.0)]
    assert read(ABCD, listed).logprobs[:2] == pytest.approx([math.log(0.5), -3.0])


def test_words_that_begin_with_a_letter_are_not_it() -> None:
    assert read(ABCD, top(Actually=0.5, a=0.3, B=0.1, AB=0.05)).logprobs[0] == -math.inf


def test_a_missing_letter_that_cannot_come_first_changes_nothing() -> None:
    reading = read(ABCD, top(A=0.6, B=0.2, C=0.1))
    assert reading.logprobs[3] == -math.inf
    assert reading.decided


def test_a_missing_letter_that_may_come_first_leaves_it_open() -> None:
    # D may have all of the 0.35 that are missing, in up to five spellings of up to 0.15.
    assert not read(ABCD, top(A=0.3, B=0.2, C=0.15)).decided
    # Here no spelling can have more than 0.01.
    assert read(ABCD, top(A=0.3, B=0.2, C=0.15, word=0.01)).decided


def test_no_letter_at_all_and_a_tie_are_left_open() -> None:
    assert not read(ABCD, top(The=0.9, I=0.05)).decided
    assert not read_letters(ABCD, TopTokens(())).decided
    assert not read(("A", "B"), top(A=0.5, B=0.5)).decided


@given(
    st.dictionaries(
        st.sampled_from([form for letter in ABCD for form in spellings(letter)] + ["x"]),
        st.floats(0.001, 1),
        min_size=2,
    ),
    st.integers(1, 21),
)
def test_decided_letters_are_right_for_any_missing_probabilities(
    shares: dict[str, float], count: int
) -> None:
    whole = sum(shares.values())
    logprobs = {token: math.log(share / whole) for token, share in shares.items()}
    listed = sorted(logprobs.items(), key=lambda pair: -pair[1])[:count]
    reading = read(ABCD, listed)
    if not reading.decided:
        return
    true = [sum(shares.get(form, 0.0) for form in spellings(letter)) / whole for letter in ABCD]
    assert reading.logprobs.index(max(reading.logprobs)) == true.index(max(true))


def test_only_single_letters_can_be_read_from_one_token() -> None:
    assert are_letters(ABCD)
    assert not are_letters(("yes", "no"))
    assert not are_letters(("1", "2"))


def test_a_letter_in_full_width_is_the_letter() -> None:
    reading = read(ABCD, [("A", math.log(0.2)), ("Ｂ", math.log(0.5)), ("（Ｂ", math.log(0.2))])
    assert reading.logprobs[:2] == pytest.approx([math.log(0.2), math.log(0.7)])
    assert reading.decided


def test_the_generated_token_bounds_no_unlisted_token() -> None:
    # Two are the likeliest; the third is listed because it was generated.
    listed = [("A", math.log(0.3)), ("B", math.log(0.25)), ("D", math.log(0.001))]
    assert read(ABCD, listed).decided
    assert not read(ABCD, listed, "D").decided
