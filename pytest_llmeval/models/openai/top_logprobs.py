"""A letter's log-probability, summed over the tokens that spell it among the likeliest few.

A server lists the likeliest tokens only. The others are bounded by the list: none of them is
likelier than the last one listed, and all together have what is left of 1. Where that could change
which letter comes first, nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

# Rounding leaves values just above 0.
_TOLERANCE = 1e-3
# Stands for a probability of 0: -9999 (vLLM, OpenAI), -100 and -1000 (gateways), -3.4e38.
_LEAST = -100.0


def is_placeholder(value: object) -> bool:
    """Whether the value stands for a probability of 0 or for one that was not computed."""
    if value is None or value == -math.inf:
        return True
    return is_number(value) and value <= _LEAST and value == round(value)


def as_logprob(value: object) -> float:
    """The value as a natural-log probability, at most 0. Raises ValueError for what is none."""
    if is_number(value) and value > _TOLERANCE:
        raise ValueError(f"a log-probability above 0 ({value})")
    if is_placeholder(value) or not is_number(value) or math.isnan(value):
        raise ValueError(f"{value!r} in place of a log-probability")
    return min(float(value), 0.0)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a number of JSON, NaN and infinities included."""
    return isinstance(value, int | float) and not isinstance(value, bool)


# The beginnings of an answer that are the letter and nothing else.
_SPELLINGS = ("{}", " {}", "\n{}", "({}", " ({}", "（{}")
# Tokenizers write a leading blank as a letter of their own, and some servers pass that on.
_BLANKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})
_FULL_WIDTH = ord("Ａ") - ord("A")
# What reduced precision adds to a sum of probabilities.
_ROUNDING = 0.02


@dataclass(frozen=True, slots=True)
class Listed:
    """A token as a server lists it.

    ``identity`` tells two tokens with one text apart (id, bytes), where the server reports that.
    """

    text: str
    logprob: object
    identity: Hashable = None


@dataclass(frozen=True, slots=True)
class Top:
    """The likeliest next tokens with their natural-log probabilities.

    ``unlisted``: the most that one token that is not listed can have, as a probability.
    """

    tokens: tuple[tuple[str, float], ...]
    unlisted: float = 1.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One natural-log probability for each letter, -inf for one that is missing.

    ``decided``: the same letter comes first whatever the unlisted tokens have.
    """

    logprobs: tuple[float, ...]
    decided: bool


def top_of(listed: Sequence[Listed], sampled: str | None = None, by_text: int = 0) -> Top:
    """The list of a server, verified.

    ``sampled``: the text of the generated token, which is listed even where it is not among the
    likeliest. ``by_text``: the number requested of a server that lists them by their text. TokenUsage
    with one text have one entry there, so that a list of fewer lacks some of the likeliest.
    Placeholders for a probability of 0 are left out, and a token that is listed twice counts once.
    Raises ValueError for values that are no log-probabilities, and for probabilities that sum to
    more than 1.
    """
    distinct: dict[Hashable, tuple[str, float]] = {}
    for one in listed:
        if is_placeholder(one.logprob):
            continue
        try:
            value = as_logprob(one.logprob)
        except ValueError as error:
            raise ValueError(f"the token {one.text!r} has {error}") from None
        distinct[one.text, one.identity, value] = (one.text, value)
    tokens = tuple(distinct.values())
    if not tokens:
        raise ValueError("no log-probability in the list of the likeliest tokens")
    total = math.fsum(math.exp(value) for _, value in tokens)
    if total > 1 + _ROUNDING:
        raise ValueError(f"the probabilities of the likeliest tokens sum to {total:.2f}")
    others = [value for text, value in tokens if text != sampled]
    if not others:
        return Top(tokens)
    least = min(others)
    likeliest = sum(value >= least for _, value in tokens)
    return Top(tokens, math.exp(least) if likeliest >= by_text else 1.0)


def read_letters(letters: Sequence[str], top: Top) -> Reading:
    """Read the letters' probabilities from the likeliest tokens.

    The probabilities of all spellings of a letter (``A``, `` A``, ``(A``, ``Ａ``) are added.
    """
    listed: dict[str, float] = {}
    for token, logprob in top.tokens:
        # A blank more or less may make two tokens look the same: both count.
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
    return Reading(tuple(min(math.log(p), 0.0) if p > 0 else -math.inf for p in seen), decided)


def spellings(letter: str) -> list[str]:
    """The tokens that are the letter and nothing else, in full width as well."""
    forms = [form.format(letter) for form in _SPELLINGS]
    if letter.isascii():
        wide = chr(ord(letter) + _FULL_WIDTH)
        forms += [wide, f"（{wide}"]
    return forms


def are_letters(choices: Sequence[str]) -> bool:
    """Whether the choices are single letters, which is all that one token can tell."""
    return all(len(choice) == 1 and choice.isalpha() for choice in choices)
