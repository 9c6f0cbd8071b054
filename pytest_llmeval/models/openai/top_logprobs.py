"""Log-probabilities of letters, summed over their spellings among the likeliest tokens.

A server lists only the likeliest tokens. The list bounds the others: none of them is likelier than
the last listed one, and their total is at most the rest of 1. If that could change the likeliest
letter, the result is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

# Rounding leaves values just above 0.
_TOLERANCE = 1e-3
# Placeholders for a probability of 0: -9999 (vLLM, OpenAI), -100 and -1000 (gateways), -3.4e38.
_LEAST = -100.0


def is_placeholder(value: object) -> bool:
    """Return True for placeholders of a probability of 0 or of one that was not computed."""
    if value is None or value == -math.inf:
        return True
    return is_number(value) and value <= _LEAST and value == round(value)


def as_logprob(value: object) -> float:
    """Return the value as a natural-log probability, at most 0; raise ValueError if it is none."""
    if is_number(value) and value > _TOLERANCE:
        raise ValueError(f"a log-probability above 0 ({value})")
    if is_placeholder(value) or not is_number(value) or math.isnan(value):
        raise ValueError(f"{value!r} in place of a log-probability")
    return min(float(value), 0.0)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True for numbers, including NaN and infinities, but not for booleans."""
    return isinstance(value, int | float) and not isinstance(value, bool)


# Tokens that spell a letter at the beginning of an answer.
_SPELLINGS = ("{}", " {}", "\n{}", "({}", " ({}", "（{}")
# Tokenizers encode blanks as these letters, and some servers return them.
_BLANKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})
_FULL_WIDTH = ord("Ａ") - ord("A")
# Error of a sum of probabilities in reduced precision.
_ROUNDING = 0.02


@dataclass(frozen=True, slots=True)
class ListedToken:
    """Entry of a server's list of likeliest tokens."""

    text: str
    logprob: object
    #: Id and bytes, if reported: distinguishes tokens with the same text.
    identity: Hashable = None


@dataclass(frozen=True, slots=True)
class TopTokens:
    """The likeliest next tokens with their natural-log probabilities."""

    tokens: tuple[tuple[str, float], ...]
    #: Maximum probability of a single unlisted token.
    unlisted: float = 1.0


@dataclass(frozen=True, slots=True)
class LetterProbabilities:
    """Natural-log probabilities of letters."""

    #: One per letter; -inf for a letter that is not listed.
    logprobs: tuple[float, ...]
    #: True if the likeliest letter is the same for all probabilities of the unlisted tokens.
    decided: bool


def verify_top_tokens(
    listed: Sequence[ListedToken], sampled: str | None = None, by_text: int = 0
) -> TopTokens:
    """Verify the list of a server and convert it.

    ``sampled``: text of the generated token, which is listed even if it is not among the likeliest.
    ``by_text``: number of requested tokens for a server that lists them by text. Tokens with the
    same text share an entry there, so a shorter list lacks some of the likeliest tokens.

    Placeholders for a probability of 0 are omitted, and a token that is listed twice counts once.
    Raises ValueError for invalid log-probabilities, and for probabilities that sum to more than 1.
    """
    distinct: dict[Hashable, tuple[str, float]] = {}
    for token in listed:
        if is_placeholder(token.logprob):
            continue
        try:
            value = as_logprob(token.logprob)
        except ValueError as error:
            raise ValueError(f"the token {token.text!r} has {error}") from None
        distinct[token.text, token.identity, value] = (token.text, value)
    tokens = tuple(distinct.values())
    if not tokens:
        raise ValueError("no log-probability in the list of the likeliest tokens")
    total = math.fsum(math.exp(value) for _, value in tokens)
    if total > 1 + _ROUNDING:
        raise ValueError(f"the probabilities of the likeliest tokens sum to {total:.2f}")
    others = [value for text, value in tokens if text != sampled]
    if not others:
        return TopTokens(tokens)
    least = min(others)
    likeliest = sum(value >= least for _, value in tokens)
    return TopTokens(tokens, math.exp(least) if likeliest >= by_text else 1.0)


def read_letters(letters: Sequence[str], top: TopTokens) -> LetterProbabilities:
    """Read the letters' probabilities from the likeliest tokens.

    The probabilities of all spellings of a letter (``A``, `` A``, ``(A``, ``Ａ``) are added.
    """
    listed: dict[str, float] = {}
    for token, logprob in top.tokens:
        # Two tokens may be equal after the replacement of blanks: add both.
        name = token.translate(_BLANKS)
        listed[name] = listed.get(name, 0.0) + math.exp(logprob)
    rest = max(0.0, 1.0 - sum(listed.values()))
    forms = [spellings(letter) for letter in letters]
    seen = [sum(listed.get(form, 0.0) for form in spelled) for spelled in forms]
    unseen = [sum(form not in listed for form in spelled) for spelled in forms]
    first = max(range(len(seen)), key=lambda n: seen[n])
    decided = seen[first] > 0 and all(
        seen[first] > seen[n] + min(rest, unseen[n] * top.unlisted)
        for n in range(len(seen))
        if n != first
    )
    return LetterProbabilities(
        tuple(min(math.log(p), 0.0) if p > 0 else -math.inf for p in seen), decided
    )


def spellings(letter: str) -> list[str]:
    """Return the tokens that spell the letter, including full-width forms."""
    forms = [form.format(letter) for form in _SPELLINGS]
    if letter.isascii():
        wide = chr(ord(letter) + _FULL_WIDTH)
        forms += [wide, f"（{wide}"]
    return forms


def are_letters(choices: Sequence[str]) -> bool:
    """Return True if all choices are single letters, so that one token can represent each."""
    return all(len(choice) == 1 and choice.isalpha() for choice in choices)
