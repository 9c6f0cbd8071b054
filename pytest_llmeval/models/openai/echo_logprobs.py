"""Log-likelihoods of choices from prompts that a server echoes with their log-probabilities.

A choice's value is the sum over the tokens that hold exactly the choice. A token that spans the
end of the prompt and the beginning of the choice is refused: what it is worth without the prompt's
part is unknown, so that the value would not be the choice's (sums could still be ranked where all
choices have the same such part, but neither divided by a length nor subtracted from each other).

What a server returns is verified twice. Once for a model, before anything is scored, by a probe
(``PROBE``, ``check_probe``) whose values can be compared with each other; then for every choice.
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
from pytest_llmeval.models.openai.echo_alignment import tail_of
from pytest_llmeval.models.openai.top_logprobs import as_logprob
from pytest_llmeval.models.openai.top_logprobs import is_number
from pytest_llmeval.models.openai.top_logprobs import is_placeholder

# Differences between two computations of one value, in nats: reduced precision, other batches.
_NOISE = 1.0

#: Two choices of one prompt, of which one begins like the other and goes on as every language
#: model expects, and a prompt of characters that tokenizers take apart.
PROBE = Request(
    "echo-probe",
    Prompt("", (), ""),
    choices=("Wednesday", "Wednesday, Thursday, Friday", "Ende"),
    given=("Monday, Tuesday,", "Monday, Tuesday,", "Größe \U0001f600 日本 \U00020bb7:"),
)


@dataclass(frozen=True, slots=True)
class Echo:
    """One echoed prompt: its tokens, and which of them are the choice's."""

    tokens: Sequence[Token]
    first: int
    end: int

    @property
    def values(self) -> list[float]:
        """The choice's natural-log probabilities, token by token. ValueError for a missing one."""
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
        """The choice's natural-log likelihood."""
        return math.fsum(self.values)


def texts_of(request: Request) -> list[tuple[str, int]]:
    """What is sent for each choice, and where in it the choice begins, in characters.

    Blanks at the end of a prompt belong to the choice, as they do to tokenizers and where the
    model is computed here.
    """
    texts = []
    for prompt, choice in zip(request.prompts, request.choices, strict=True):
        context = replace_lone_surrogates(prompt.text)
        texts.append(
            (context + replace_lone_surrogates(prompt.delimiter + choice), len(context.rstrip()))
        )
    return texts


def read_echoes(request: Request, data: Mapping[str, Any]) -> list[Echo]:
    """The echoes in the order of the request's choices.

    Raises ValueError, with the reason, where one of them is not proved to be its prompt's.
    """
    texts, choices = texts_of(request), data["choices"]
    if len(choices) != len(texts):
        raise ValueError(f"{len(choices)} choices returned for {len(texts)} prompts")
    indices = [choice.get("index") for choice in choices]
    if sorted(map(repr, indices)) == sorted(map(repr, range(len(choices)))):
        choices = sorted(choices, key=lambda choice: choice["index"])
    listed = [_tokens(choice.get("logprobs")) for choice in choices]
    return [_echo(number, listed, texts) for number in range(len(texts))]


def check_probe(data: Mapping[str, Any]) -> None:
    """Raise ValueError, with the reason, for an answer to ``PROBE`` that is not to be relied on.

    The long choice begins with the short one and, if the model expects that, with the token it
    generates after it: the same values, twice.
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
    for number, (once, again) in enumerate(pairs, start=short.first):
        if once.text != again.text:
            return
        # 0 is what greedy sampling leaves of it where servers report what they sampled from.
        if number == short.end and (once.logprob == 0 or is_placeholder(once.logprob)):
            return
        value, other = as_logprob(once.logprob), as_logprob(again.logprob)
        if abs(value - other) > _NOISE:
            where = "when generated" if number == short.end else "in another prompt"
            raise ValueError(
                f"{once.text!r} has {other:g} when echoed and {value:g} {where}, after the same"
                " text"
            )


def unusable(reason: str, *, refused: bool = True) -> str:
    """The error for a model whose server does not echo as needed, or could not be probed."""
    if not refused:
        return f"the probe for choices=echo ({len(PROBE.choices)} prompts in one request): {reason}"
    return (
        f"choices=echo cannot be used: {reason}; use choices=top_logprobs, or no choices= (the"
        " letter is generated)"
    )


def _check_positions(echo: Echo) -> None:
    """Raise ValueError where the values are those of the next position.

    Then the token that was expected in the place of each is the one that follows it. llama-cpp-python
    reads the wrong row where a model has no BOS token (``Llama._create_completion``, 0.3.36).
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
        return Echo(listed[number], *tail_of(listed[number], text, start))
    except ValueError as error:
        for other, tokens in enumerate(listed):
            if other != number and tokens and _reproduces(tokens, text, start):
                raise ValueError(
                    f"prompt {number + 1} echoed in the place of prompt {other + 1}"
                ) from None
        raise ValueError(str(error)) from None


def _reproduces(tokens: Sequence[Token], text: str, start: int) -> bool:
    try:
        tail_of(tokens, text, start)
    except ValueError:
        return False
    return True


def _tokens(logprobs: object) -> list[Token]:
    """The tokens of one choice, from the lists of the completions API or the chat API's objects."""
    if not isinstance(logprobs, dict):
        raise ValueError(f"no log-probabilities (logprobs: {logprobs!r})")
    content = logprobs.get("content")
    if isinstance(content, list):
        return [_of_object(entry) for entry in content]
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


def _of_object(entry: object) -> Token:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        raise ValueError("tokens that are not texts")
    try:
        content = bytes(entry["bytes"]) if entry.get("bytes") else None
    except (TypeError, ValueError):
        content = None
    return Token(entry["token"], entry.get("logprob"), content)


def _likeliest(listed: object) -> str | None:
    """The likeliest of the tokens listed for a position."""
    if not isinstance(listed, dict):
        return None
    values = {text: value for text, value in listed.items() if is_number(value)}
    return max(values, key=lambda text: values[text]) if values else None
