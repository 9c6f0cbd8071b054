"""A letter's log-probability, summed over the tokens that spell it among the likeliest few.

A server tells the likeliest tokens only. What it does not tell is bounded by what it tells: no
other token is likelier than the last of them, and all others together have what is left of 1.
Where that could change which letter comes first, nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# The ways to begin an answer that are the letter and nothing else.
_SPELLINGS = ("{}", " {}", "\n{}", "({}", " ({}")
# Tokenizers write a leading blank as a letter of their own, and some servers pass that on.
_BLANKS = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})


@dataclass(frozen=True, slots=True)
class Reading:
    """One natural-log probability for each letter, -inf for one that is missing.

    ``decided``: whatever was not told, the same letter comes first.
    """

    logprobs: tuple[float, ...]
    decided: bool


def read_letters(letters: Sequence[str], top: Sequence[tuple[str, float]]) -> Reading:
    """Read the letters' probabilities from the likeliest tokens.

    A letter has more than one way to be spelled (``A``, `` A``, ``(A``); their probabilities
    are added.
    """
    told: dict[str, float] = {}
    for token, logprob in top:
        # A blank more or less may make two tokens look the same: both count.
        name = token.translate(_BLANKS)
        told[name] = told.get(name, 0.0) + math.exp(min(logprob, 0.0))
    least = math.exp(min((min(logprob, 0.0) for _, logprob in top), default=0.0))
    rest = max(0.0, 1.0 - sum(told.values()))
    seen = [sum(told.get(form.format(letter), 0.0) for form in _SPELLINGS) for letter in letters]
    unseen = [sum(form.format(letter) not in told for form in _SPELLINGS) for letter in letters]
    first = max(range(len(seen)), key=lambda n: seen[n])
    decided = seen[first] > 0 and all(
        seen[first] > seen[n] + min(rest, unseen[n] * least) for n in range(len(seen)) if n != first
    )
    return Reading(tuple(math.log(p) if p > 0 else -math.inf for p in seen), decided)


def are_letters(choices: Sequence[str]) -> bool:
    """Whether the choices are single letters, which is all that one token can tell."""
    return all(len(choice) == 1 and choice.isalpha() for choice in choices)
