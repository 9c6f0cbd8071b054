"""Bodies of an endpoint's requests and responses, as the stand-in server reads and writes them."""

from __future__ import annotations

import hashlib
import math
from typing import Any

Body = dict[str, Any]
LETTERS = "ABCD"


def right_letter(text: str) -> str:
    """The letter that the server gives for a prompt."""
    return LETTERS[int(chance(f"letter {text}") * len(LETTERS))]


def thought_and_said(thought: str, text: str, body: Body) -> Body:
    """A message as vLLM takes it apart, after stop strings have ended all that was generated."""
    whole = f"{thought}</think>\n\n{text}"
    for stop in body.get("stop") or ():
        whole = whole.split(stop)[0]
    reasoning, closed, content = whole.partition("</think>")
    return {
        "role": "assistant",
        "content": content if closed else None,
        "reasoning_content": reasoning,
    }


def letter_logprobs(text: str, spelled: tuple[str, ...]) -> dict[str, float]:
    """Natural-log probabilities of the letters' spellings; the right letter has 0.6."""
    right = right_letter(text)
    shares = {letter: (0.6 if letter == right else 0.1) for letter in LETTERS}
    return {
        form.format(letter): math.log(share / len(spelled))
        for letter, share in shares.items()
        for form in spelled
    }


def prompt_text(body: Body) -> str:
    """All of a request, as one text."""
    if "messages" in body:
        return "\n".join(str(message["content"]) for message in body["messages"])
    return "\n".join(
        prompt if isinstance(prompt, str) else " ".join(map(str, prompt))
        for prompt in prompts(body)
    )


def prompts(body: Body) -> list[Any]:
    """The prompts of a completions request: one text, several, or token ids."""
    given = body.get("prompt", [])
    several = isinstance(given, list) and given and not isinstance(given[0], int)
    return given if several else [given] if given else []


def chance(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7]) / 2**56


def envelope(kind: str, body: Body, choices: list[Body], text: str) -> Body:
    """The fields around the choices: model, usage."""
    completion = sum(
        len((choice.get("message", {}).get("content") or choice.get("text") or "").split())
        for choice in choices
    )
    prompt = len(text) // 4
    return {
        "id": "stand-in",
        "object": kind,
        "created": 0,
        "model": body.get("model"),
        "system_fingerprint": "fp_stand_in",
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": prompt // 2},
        },
    }


def error(message: str, code: str | None) -> Body:
    """An error as OpenAI words it."""
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}
