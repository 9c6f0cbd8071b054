"""How servers spell the tokens of a text.

A spelling gives the patterns of bytes that a token's text can stand for.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

# A fragment of a character, decoded by itself; or one half of its UTF-16 form.
PLACEHOLDER = re.compile("[\ufffd\ud800-\udfff]")

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ESCAPED = re.compile(r"\\x([0-9A-Fa-f]{2})")


class Gap(Enum):
    """Bytes that are not in a token's text: of one character, one byte or more."""

    #: One U+FFFD in their place.
    PLACEHOLDER = 1
    #: Nothing in their place; never a whole character.
    DROPPED = 2


Pattern = tuple[bytes | Gap, ...]
Patterns = tuple[Pattern, ...]


@lru_cache(1 << 16)
def plain(text: str) -> Patterns:
    r"""The text itself.

    Fragments of a character: U+FFFD; ``bytes:\xe2\x80`` (OpenAI's older completions), ``<0xE2>``
    (byte fallback of SentencePiece), or nothing, when the token that completes the character has
    all of it (vLLM from 0.11, ``v1/engine/logprobs.py``).
    """
    parts: list[bytes | Gap] = []
    at = 0
    for found in PLACEHOLDER.finditer(text):
        parts += [text[at : found.start()].encode(), Gap.PLACEHOLDER]
        at = found.end()
    pattern = tuple(part for part in (*parts, text[at:].encode()) if part)
    if text.startswith("bytes:"):
        escaped = text.removeprefix("bytes:").encode("latin-1", "replace").decode("latin-1")
        whole = _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), escaped)
        return pattern, (whole.encode("latin-1"),)
    if byte := _BYTE_TOKEN.fullmatch(text):
        return pattern, (bytes.fromhex(byte.group(1)),)
    return (pattern,)


@lru_cache(1 << 16)
def byte_level(text: str) -> Patterns:
    """An entry of a byte-level vocabulary (``ĠThe``): one letter for each byte, as GPT-2 has it."""
    try:
        content = bytes(_BYTES[letter] for letter in text)
    except KeyError:
        return plain(text)
    return ((content,),) if text else plain(text)


def sentencepiece(text: str) -> Patterns:
    """An entry of a SentencePiece vocabulary: ``▁The``."""
    return plain(text.replace("▁", " "))


@lru_cache(1 << 16)
def blank_lost(text: str) -> Patterns:
    """Decoded one by one, by a tokenizer that takes a blank off the beginning of every text.

    SGLang (``detokenize_logprob_tokens``) with SentencePiece tokenizers such as Llama 2's.
    """
    patterns = plain(text)
    return (*patterns, *((b" ", *pattern) for pattern in patterns))


def fragments_lost(text: str) -> Patterns:
    """Decoded one by one with errors ignored: llama-cpp-python (``Llama._create_completion``).

    A fragment with no more than a blank before it. Any other text, with a character missing next
    to it, is what a server makes of a prompt that leaves characters out.
    """
    patterns = plain(text)
    return (*patterns, (*patterns[0], Gap.DROPPED)) if text in ("", " ") else patterns


@lru_cache(1 << 16)
def bytes_lost(text: str) -> Patterns:
    """Any fragment missing at either end: possible, but no proof of a prompt by itself."""
    patterns = plain(text)
    patterns += tuple((Gap.DROPPED, *pattern) for pattern in patterns)
    return (*patterns, *((*pattern, Gap.DROPPED) for pattern in patterns))


# The strictest first.
SPELLINGS = (plain, byte_level, sentencepiece, blank_lost, fragments_lost)


def _alphabet() -> dict[str, int]:
    """The byte of each letter. Bytes that cannot be printed have letters from U+0100 on."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {chr(byte): byte for byte in shown}
    return letters | {chr(256 + number): byte for number, byte in enumerate(hidden)}


_BYTES = _alphabet()


def without_blank(pattern: Pattern) -> Pattern | None:
    """The pattern without the blank it begins with; None where it begins with none."""
    if pattern and isinstance(pattern[0], bytes) and pattern[0].startswith(b" "):
        rest = pattern[0][1:]
        return (rest, *pattern[1:]) if rest else pattern[1:]
    return None
