"""Log-likelihoods of choices from prompts that a server echoes with log-probabilities.

The value of a choice is the sum over the tokens that spell exactly the choice. A token that spans
the end of the prompt and the beginning of the choice is an error: its log-probability includes the
prompt's part, so the sum would not be that of the choice (sums could still be ranked if all choices
have the same such part, but neither divided by a length nor subtracted from each other).

Echoes are verified twice: once per model, before any item, by a probe (``PROBE``, ``check_probe``)
whose values can be compared with each other, and then for every choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import replace_lone_surrogates
from pytest_llmeval.models.openai.echo_alignment import Token
from pytest_llmeval.models.openai.echo_alignment import find_tail
from pytest_llmeval.models.openai.top_logprobs import as_logprob
from pytest_llmeval.models.openai.top_logprobs import is_number
from pytest_llmeval.models.openai.top_logprobs import is_placeholder

# Tolerance in nats between two computations of a value: reduced precision, other batches.
_NOISE = 1.0

#: Two choices of one prompt, of which one starts with the other and continues as every language
#: model expects, and a prompt of characters that tokenizers split into bytes.
PROBE = Request(
    "echo-probe",
    Prompt("", (), ""),
    choices=("Wednesday", "Wednesday, Thursday, Friday", "Ende"),
    given=("Monday, Tuesday,", "Monday, Tuesday,", "Größe \U0001f600 日本 \U00020bb7:"),
)


@dataclass(frozen=True, slots=True)
class Echo:
    """Tokens of an echoed prompt; those of the choice are ``tokens[first:end]``."""

    tokens: Sequence[Token]
    first: int
    end: int

    @property
    def values(self) -> list[float]:
        """Natural-log probabilities of the choice's tokens; ValueError if one is missing."""
        values = []
        for token in self.tokens[self.first : self.end]:
            if token.logprob is None:
                raise ValueError(f"no log-probability of the choice's token {token.text!r}")
            try:
                values.append(as_logprob(token.logprob))
            except ValueError as error:
                raise ValueError(f"the choice's token {token.text!r} has {error}") from None
        return values

    @property
    def logprob(self) -> float:
        """Natural-log likelihood of the choice."""
        return math.fsum(self.values)


def echo_prompts(request: Request) -> list[tuple[str, int]]:
    """Return, per choice, the text to send and the position of the choice in characters.

    Blanks at the end of a prompt belong to the choice, as in tokenizers and in ``models.hf``.
    """
    texts = []
    for prompt, choice in zip(request.prompts, request.choices, strict=True):
        context = replace_lone_surrogates(prompt.text)
        texts.append(
            (context + replace_lone_surrogates(prompt.delimiter + choice), len(context.rstrip()))
        )
    return texts


def read_echoes(request: Request, data: Mapping[str, Any]) -> list[Echo]:
    """Return the echoes in the order of the request's choices.

    Raises ValueError, with the reason, if one of them does not reproduce its prompt.
    """
    texts, choices = echo_prompts(request), data["choices"]
    if len(choices) != len(texts):
        raise ValueError(f"{len(choices)} choices returned for {len(texts)} prompts")
    indices = [choice.get("index") for choice in choices]
    if sorted(map(repr, indices)) == sorted(map(repr, range(len(choices)))):
        choices = sorted(choices, key=lambda choice: choice["index"])
    listed = [_tokens(choice.get("logprobs")) for choice in choices]
    return [_echo(number, listed, texts) for number in range(len(texts))]


def check_probe(data: Mapping[str, Any]) -> None:
    """Raise ValueError, with the reason, for an unreliable reply to ``PROBE``.

    The long choice starts with the short one and usually continues with the token that the model
    generates after it, so both must have the same values.
    """
    short, long, _ = echoes = read_echoes(PROBE, data)
    likelihoods = [echo.logprob for echo in echoes]
    if likelihoods[0] == likelihoods[1]:
        raise ValueError(
            f"the same log-likelihood, {likelihoods[0]:g}, of {PROBE.choices[0]!r} and"
            f" {PROBE.choices[1]!r}"
        )
    _check_positions(long)
    pairs = zip(short.tokens[short.first :], long.tokens[long.first : long.end], strict=False)
    for number, (token, repeated) in enumerate(pairs, start=short.first):
        if token.text != repeated.text:
            return
        # Servers that report the distribution after greedy sampling return 0 here.
        if number == short.end and (token.logprob == 0 or is_placeholder(token.logprob)):
            return
        value, other = as_logprob(token.logprob), as_logprob(repeated.logprob)
        if abs(value - other) > _NOISE:
            where = "when generated" if number == short.end else "in another prompt"
            raise ValueError(
                f"{token.text!r} has {other:g} when echoed and {value:g} {where}, after the same"
                " text"
            )


def echo_error(reason: str, *, refused: bool = True) -> str:
    """Return the error for a server that cannot echo (``refused``) or whose probe failed."""
    if not refused:
        return f"the probe for choices=echo ({len(PROBE.choices)} prompts in one request): {reason}"
    return (
        f"choices=echo cannot be used: {reason}; use choices=top_logprobs, or remove choices= from"
        " the spec to generate the letter instead"
    )


def _check_positions(echo: Echo) -> None:
    """Raise ValueError if the values are shifted by one position.

    Then the likeliest token at each position equals the following token. llama-cpp-python reads the
    wrong row for models without BOS token (``Llama._create_completion``, 0.3.36).
    """
    tokens = echo.tokens[: echo.end]
    likeliest = [_likeliest(token.top) for token in tokens]
    own = sum(text == token.text for text, token in zip(likeliest, tokens, strict=True))
    following = sum(
        text == after.text != token.text
        for text, (token, after) in zip(likeliest, pairwise(tokens), strict=False)
    )
    if following > max(own, 1):
        raise ValueError("each token has the log-probability of the position after it")


def _echo(number: int, listed: Sequence[Sequence[Token]], texts: Sequence[tuple[str, int]]) -> Echo:
    text, start = texts[number]
    try:
        return Echo(listed[number], *find_tail(listed[number], text, start))
    except ValueError as error:
        for other, tokens in enumerate(listed):
            if other != number and tokens and _reproduces(tokens, text, start):
                raise ValueError(
                    f"prompt {number + 1} echoed in the place of prompt {other + 1}"
                ) from None
        raise ValueError(str(error)) from None


def _reproduces(tokens: Sequence[Token], text: str, start: int) -> bool:
    try:
        find_tail(tokens, text, start)
    except ValueError:
        return False
    return True


def _tokens(logprobs: object) -> list[Token]:
    """Return the tokens of a choice, from the completions API's lists or the chat API's objects."""
    if not isinstance(logprobs, dict):
        raise ValueError(f"no log-probabilities (logprobs: {logprobs!r})")
    content = logprobs.get("content")
    if isinstance(content, list):
        return [_token_from_object(entry) for entry in content]
    texts, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if not isinstance(texts, list) or not isinstance(values, list):
        raise ValueError("no log-probabilities of the prompt's tokens")
    if len(texts) != len(values):
        raise ValueError(f"{len(values)} log-probabilities of {len(texts)} tokens")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("tokens that are not texts")
    tops = logprobs.get("top_logprobs")
    if not isinstance(tops, list) or len(tops) != len(texts):
        tops = [None] * len(texts)
    return [
        Token(text, value, top=top) for text, value, top in zip(texts, values, tops, strict=True)
    ]


def _token_from_object(entry: object) -> Token:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        raise ValueError("tokens that are not texts")
    try:
        content = bytes(entry["bytes"]) if entry.get("bytes") else None
    except (TypeError, ValueError):
        content = None
    return Token(entry["token"], entry.get("logprob"), content)


def _likeliest(listed: object) -> str | None:
    """Return the likeliest of the tokens listed for a position."""
    if not isinstance(listed, dict):
        return None
    values = {text: value for text, value in listed.items() if is_number(value)}
    return max(values, key=lambda text: values[text]) if values else None
