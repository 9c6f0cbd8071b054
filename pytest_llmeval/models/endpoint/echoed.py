"""A choice's log-likelihood from a prompt that a server echoes with its log-probabilities."""

from __future__ import annotations

from typing import Any


def choice_logprob(echoed: dict[str, Any], context: int, length: int) -> float:
    """The sum over the tokens that hold any of the characters from ``context`` to ``length``.

    A token that begins in the context and ends in the choice counts whole: it is the same
    text for every choice up to there. Raises ValueError where the echo does not cover them.
    """
    tokens, values = echoed.get("tokens"), echoed.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        raise ValueError("no log-probabilities of the prompt's tokens")
    starts = _starts(echoed.get("text_offset"), tokens)
    ends = [*starts[1:], max(length, starts[-1] + len(tokens[-1]))]
    wanted = [
        value
        for value, start, end in zip(values, starts, ends, strict=True)
        if end > context and start < length
    ]
    if not wanted or any(not isinstance(value, int | float) for value in wanted):
        raise ValueError("the choice's tokens have no log-probabilities")
    return float(sum(wanted))


def _starts(offsets: object, tokens: list[str]) -> list[int]:
    if isinstance(offsets, list) and len(offsets) == len(tokens):
        # Some servers count from where the last prompt ended.
        return [int(offset) - int(offsets[0]) for offset in offsets]
    starts, at = [], 0
    for token in tokens:
        starts.append(at)
        at += len(token)
    return starts
