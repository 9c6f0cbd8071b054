"""Letters from the likeliest tokens, and choices from an echo: arithmetic without a server."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.models.endpoint.echoed import choice_logprob
from pytest_llmeval.models.endpoint.letters import _SPELLINGS
from pytest_llmeval.models.endpoint.letters import are_letters
from pytest_llmeval.models.endpoint.letters import read_letters

ABCD = ("A", "B", "C", "D")


def top(**shares: float) -> list[tuple[str, float]]:
    return [(token.replace("_", " "), math.log(share)) for token, share in shares.items()]


def test_the_spellings_of_a_letter_are_added() -> None:
    reading = read_letters(ABCD, top(A=0.3, B=0.25, _B=0.2, _C=0.1, D=0.1))
    assert reading.logprobs == pytest.approx([math.log(p) for p in (0.3, 0.45, 0.1, 0.1)])
    # B leads by 0.15; what was not told is 0.05.
    assert reading.decided


def test_blanks_as_tokenizers_write_them() -> None:
    told = [("ĠA", math.log(0.2)), ("▁A", math.log(0.2)), ("(A", math.log(0.1)), ("ĊB", -3.0)]
    assert read_letters(ABCD, told).logprobs[:2] == pytest.approx([math.log(0.5), -3.0])


def test_words_that_begin_with_a_letter_are_not_it() -> None:
    assert read_letters(ABCD, top(Actually=0.5, a=0.3, B=0.1, AB=0.05)).logprobs[0] == -math.inf


def test_a_missing_letter_that_cannot_come_first_changes_nothing() -> None:
    reading = read_letters(ABCD, top(A=0.6, B=0.2, C=0.1))
    assert reading.logprobs[3] == -math.inf
    assert reading.decided


def test_a_missing_letter_that_may_come_first_leaves_it_open() -> None:
    # D may have all of the 0.35 that were not told, in up to five spellings of up to 0.15.
    assert not read_letters(ABCD, top(A=0.3, B=0.2, C=0.15)).decided
    # Here no spelling can have more than 0.01.
    assert read_letters(ABCD, top(A=0.3, B=0.2, C=0.15, word=0.01)).decided


def test_no_letter_at_all_and_a_tie_are_left_open() -> None:
    assert not read_letters(ABCD, top(The=0.9, I=0.05)).decided
    assert not read_letters(ABCD, []).decided
    assert not read_letters(("A", "B"), top(A=0.5, B=0.5)).decided


@given(
    st.dictionaries(
        st.sampled_from([form.format(letter) for form in _SPELLINGS for letter in ABCD] + ["x"]),
        st.floats(0.001, 1),
        min_size=2,
    ),
    st.integers(1, 21),
)
def test_what_is_decided_is_right_whatever_was_not_told(
    shares: dict[str, float], count: int
) -> None:
    whole = sum(shares.values())
    logprobs = {token: math.log(share / whole) for token, share in shares.items()}
    told = sorted(logprobs.items(), key=lambda pair: -pair[1])[:count]
    reading = read_letters(ABCD, told)
    if not reading.decided:
        return
    true = [
        sum(shares.get(form.format(letter), 0.0) for form in _SPELLINGS) / whole for letter in ABCD
    ]
    assert reading.logprobs.index(max(reading.logprobs)) == true.index(max(true))


def test_only_single_letters_can_be_read_from_one_token() -> None:
    assert are_letters(ABCD)
    assert not are_letters(("yes", "no"))
    assert not are_letters(("1", "2"))


# --- echo


def test_an_echo_counts_the_tokens_of_the_choice_alone() -> None:
    echoed = {
        "tokens": ["Answer", ":", " blue", " sky", "!"],
        "token_logprobs": [None, -9.0, -1.0, -2.0, -7.0],
        "text_offset": [0, 6, 7, 12, 16],
    }
    assert choice_logprob(echoed, len("Answer:"), len("Answer: blue sky")) == -3.0
    # The same where the server tells no offsets, or counts on from the prompt before.
    assert choice_logprob(echoed | {"text_offset": None}, 7, 16) == -3.0
    assert choice_logprob(echoed | {"text_offset": [20, 26, 27, 32, 36]}, 7, 16) == -3.0


def test_a_token_across_the_join_counts_whole() -> None:
    echoed = {
        "tokens": ["x", "=(", "A", ")"],
        "token_logprobs": [None, -1.0, -0.5, -4.0],
        "text_offset": [0, 1, 3, 4],
    }
    assert choice_logprob(echoed, len("x="), len("x=(A")) == -1.5


@pytest.mark.parametrize(
    "echoed",
    [
        {},
        {"tokens": ["a"], "token_logprobs": []},
        {"tokens": ["Answer:", " A"], "token_logprobs": [None, None]},
        {"tokens": [" A"], "token_logprobs": [-1.0], "text_offset": [0]} | {"tokens": None},
    ],
)
def test_an_echo_without_the_choice_is_no_answer(echoed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="log-probabilities"):
        choice_logprob(echoed, 7, 9)
