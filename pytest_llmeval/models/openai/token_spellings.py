"""Spellings of tokens in the responses of servers.

A spelling maps the text of a returned token to the byte patterns that it can represent.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

# A separately decoded fragment of a character, or a lone UTF-16 surrogate.
PLACEHOLDER = re.compile("[\ufffd\ud800-\udfff]")

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ESCAPED = re.compile(r"\\x([0-9A-Fa-f]{2})")


class Gap(Enum):
    """One or more bytes of one character that are missing in the text of a token."""

    #: Replaced by one U+FFFD.
    PLACEHOLDER = 1
    #: Replaced by nothing; never a whole character.
    DROPPED = 2


Pattern = tuple[bytes | Gap, ...]
Patterns = tuple[Pattern, ...]


@lru_cache(1 << 16)
def plain(text: str) -> Patterns:
    r"""Return the patterns of a token that is spelled as its text.

    Fragments of a character: U+FFFD; ``bytes:\xe2\x80`` (OpenAI's older completions), ``<0xE2>``
    (byte fallback of SentencePiece), or nothing, if the token that completes the character has
    all of it (vLLM from 0.11, ``v1/engine/logprobs.py``).
    """
    parts: list[bytes | Gap] = []
    at = 0
    for match in PLACEHOLDER.finditer(text):
        parts += [text[at : match.start()].encode(), Gap.PLACEHOLDER]
        at = match.end()
    pattern = tuple(part for part in (*parts, text[at:].encode()) if part)
    if text.startswith("bytes:"):
        escaped = text.removeprefix("bytes:").encode("latin-1", "replace").decode("latin-1")
        whole = _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), escaped)
        return pattern, (whole.encode("latin-1"),)
    if byte := _BYTE_TOKEN.fullmatch(text):
        return pattern, (bytes.fromhex(byte.group(1)),)
    return (pattern,)


@lru_cache(1 << 16)
def byte_level(text: str) -> Patterns:
    """Return the patterns of an entry of a byte-level vocabulary (GPT-2's ``ĠThe``)."""
    try:
        content = bytes(_BYTES[letter] for letter in text)
    except KeyError:
        return plain(text)
    return ((content,),) if text else plain(text)


def sentencepiece(text: str) -> Patterns:
    """Return the patterns of an entry of a SentencePiece vocabulary (``▁The``)."""
    return plain(text.replace("▁", " "))


@lru_cache(1 << 16)
def blank_lost(text: str) -> Patterns:
    """Return the patterns of a token decoded alone by a tokenizer that strips a leading blank.

    SGLang (``detokenize_logprob_tokens``) with SentencePiece tokenizers such as Llama 2's.
    """
    patterns = plain(text)
    return (*patterns, *((b" ", *pattern) for pattern in patterns))


def fragments_lost(text: str) -> Patterns:
    """Return the patterns of a token decoded alone with errors ignored.

    Source: llama-cpp-python (``Llama._create_completion``). Only for a fragment with at most a
    blank before it: any other text with a missing character next to it comes from a server that
    drops characters of the prompt.
    """
    patterns = plain(text)
    return (*patterns, (*patterns[0], Gap.DROPPED)) if text in ("", " ") else patterns


@lru_cache(1 << 16)
def bytes_lost(text: str) -> Patterns:
    """Return the patterns with a fragment missing at either end (possible, but not proof)."""
    patterns = plain(text)
    patterns += tuple((Gap.DROPPED, *pattern) for pattern in patterns)
    return (*patterns, *((*pattern, Gap.DROPPED) for pattern in patterns))


# From the strictest to the most lenient.
SPELLINGS = (plain, byte_level, sentencepiece, blank_lost, fragments_lost)


def _alphabet() -> dict[str, int]:
    """Return the byte of each letter; unprintable bytes have letters from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + number): byte for number, byte in enumerate(others)}


_BYTES = _alphabet()


def strip_blank(pattern: Pattern) -> Pattern | None:
    """Return the pattern without its leading blank; None if it has none."""
    if pattern and isinstance(pattern[0], bytes) and pattern[0].startswith(b" "):
        rest = pattern[0][1:]
        return (rest, *pattern[1:]) if rest else pattern[1:]
    return None
