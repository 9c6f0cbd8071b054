"""Which of the tokens that a server returned hold the end of the text that was sent.

The tokens are laid over the UTF-8 bytes of the text, in every way that is possible: a token of
plain text fits in one place, a placeholder for a fragment of a character in several. The answer
counts only if all of them agree on it. Offsets that the server reports are not used: vLLM counts
the text of a leading special token in them, SGLang sets all of them to -1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from unicodedata import is_normalized
from unicodedata import normalize

# A special token that a tokenizer puts before the text: <s>, <bos>, <|begin_of_text|>, [BOS],
# ChatGLM's [gMASK] and <sop>; empty where the server leaves special tokens out of its texts.
_SPECIAL = re.compile(r"<[^<>\s]{1,40}>|\[[A-Za-z_]{1,20}\]|")
_MOST_SPECIAL = 2
_TOKEN_ID = re.compile(r"token_id:\d+")
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ESCAPED = re.compile(r"\\x([0-9A-Fa-f]{2})")
# A fragment of a character, decoded by itself; or one half of its UTF-16 form.
_PLACEHOLDER = re.compile("[�\ud800-\udfff]")
# Alternatives that are followed at once. Only a long row of placeholders has more.
_MOST_STATES = 4096
_NOT_YET, _INSIDE_A_TOKEN = -1, -2


@dataclass(frozen=True, slots=True)
class Token:
    """A returned token: its text as the server spells it, and its natural-log probability.

    ``content``: the bytes it stands for, where the server reports them. ``likeliest``: the text of
    the token that was expected in its place, where the server reports that.
    """

    text: str
    logprob: object
    content: bytes | None = None
    likeliest: str | None = None


class _Gap(Enum):
    """Bytes that are not in a token's text: of one character, one byte or more."""

    #: One U+FFFD in their place.
    PLACEHOLDER = 1
    #: Nothing in their place; never a whole character.
    DROPPED = 2


_Pattern = tuple[bytes | _Gap, ...]


def tail_of(tokens: Sequence[Token], text: str, start: int) -> tuple[int, int]:
    """The range of tokens, first and one past the last, that hold exactly ``text[start:]``.

    ``start`` counts characters. Special tokens before the text are set aside, and one token may
    follow it: the one that was generated. Where a tokenizer composes characters first (Qwen's,
    GPT-NeoX's), the tokens may reproduce the NFC form. Raises ValueError, with the reason, where
    the tokens do not reproduce the text, where one of them spans ``start``, and where it cannot be
    decided.
    """
    if start >= len(text):
        raise ValueError("the choice is empty")
    before, after = text[:start].encode(), text[start:].encode()
    walk = _walk(tokens, before, after)
    if not walk.tails and not is_normalized("NFC", text):
        parts = [normalize("NFC", part).encode() for part in (text[:start], text[start:])]
        if b"".join(parts) == normalize("NFC", text).encode():
            composed = _walk(tokens, *parts)
            walk = composed if composed.tails else walk
    return walk.tail()


def _walk(tokens: Sequence[Token], before: bytes, after: bytes) -> _Walk:
    """The first walk to the end; without one, the furthest.

    Where a token is empty or a placeholder, the walks in all spellings count, together, and so do
    those with bytes missing next to any token.
    """
    special = 0
    while special < min(_MOST_SPECIAL, len(tokens)) and _SPECIAL.fullmatch(tokens[special].text):
        special += 1
    open_to_doubt = any(not token.text or _PLACEHOLDER.search(token.text) for token in tokens)
    best = _Walk(tokens, before + after, len(before), 0)
    for spelled in (*_SPELLINGS, _bytes_lost):
        if spelled is _bytes_lost and not (best.tails and open_to_doubt):
            break
        for skipped in range(special + 1):
            walk = _Walk(tokens, before + after, len(before), skipped)
            walk.run(spelled)
            if walk.tails:
                walk.tails |= best.tails
                best = walk
                break
            if walk.reached > best.reached and not best.tails:
                best = walk
        if best.tails and not open_to_doubt:
            break
    return best


class _Walk:
    """The ways to lay tokens over the data, those before ``skipped`` set aside.

    ``tails``: what each of them says of the tail, which begins at the byte ``begin``. ``reached``:
    the furthest byte that any of them came to.
    """

    def __init__(self, tokens: Sequence[Token], data: bytes, begin: int, skipped: int) -> None:
        self.tails: set[tuple[int, int]] = set()
        self.reached = 0
        self._tokens = tokens
        self._data = data
        self._begin = begin
        self._skipped = skipped
        self._stuck = skipped
        self._spanning = 0
        self._too_many = False

    def run(self, spelled: Callable[[str], Iterable[_Pattern]]) -> None:
        """Follow all ways from the first byte to the last."""
        total, count = len(self._data), len(self._tokens)
        states = {(0, self._skipped if self._begin == 0 else _NOT_YET)}
        for index in range(self._skipped, count):
            self._stuck = index
            patterns = list(_patterns(self._tokens[index], spelled))
            if index == self._skipped:
                # Tokenizers that begin every text with a blank, which was not sent.
                shorter = [_without_blank(one) for one in patterns]
                patterns += [one for one in shorter if one is not None]
            reached: set[tuple[int, int]] = set()
            for at, first in states:
                for end in {end for one in patterns for end in _ends(one, self._data, at)}:
                    begun = self._first(first, index, end)
                    if end < total:
                        reached.add((end, begun))
                    elif count - index <= 2:
                        self.tails.add((begun, index + 1))
                    else:
                        self._too_many = True
            if not reached:
                return
            if len(reached) > _MOST_STATES:
                self.tails = {(_INSIDE_A_TOKEN, 0), (_NOT_YET, 0)}
                return
            states = reached
            self.reached = max(at for at, _ in states)
        self._stuck = count

    def _first(self, first: int, index: int, end: int) -> int:
        """The first token of the tail, once it is known."""
        if first != _NOT_YET or end < self._begin:
            return first
        if end == self._begin:
            return index + 1
        self._spanning = index
        return _INSIDE_A_TOKEN

    def tail(self) -> tuple[int, int]:
        """The tail that all ways agree on. Raises ValueError, with the reason, where none is."""
        tokens = self._tokens
        if not self.tails:
            raise ValueError(self._failure())
        if len(self.tails) > 1:
            raise ValueError(
                "placeholders for fragments of characters leave it open which tokens are the"
                " choice's"
            )
        ((first, end),) = self.tails
        if first == _INSIDE_A_TOKEN:
            raise ValueError(
                f"the token {tokens[self._spanning].text!r} spans the end of the prompt and"
                " the beginning of the choice"
            )
        if not tokens[first].text and not self._empty_before_their_character(end):
            raise ValueError(
                "tokens without text leave it open whether they are the prompt's or the choice's"
            )
        return first, end

    def _empty_before_their_character(self, end: int) -> bool:
        """Whether a token without text comes before the one that completes its character.

        It does where one follows a letter of one byte, which has no fragments.
        """
        before = "a"
        for token in self._tokens[self._skipped : end]:
            if not token.text and before.isascii():
                return True
            before = token.text[-1:] or before
        return False

    def _failure(self) -> str:
        tokens, count = self._tokens, len(self._tokens)
        if count <= 1:
            only = f": {tokens[0].text!r}" if tokens else ""
            return f"{count} token{'s' * (count != 1)} in place of the prompt's{only}"
        if all(_TOKEN_ID.fullmatch(token.text) for token in tokens):
            return f"ids in place of the tokens' texts ({tokens[0].text!r}, …)"
        if self._too_many:
            return "more than one token after the prompt, where max_tokens is 1"
        missing = self._data[self.reached : self.reached + 80].decode(errors="replace")[:20]
        if self._stuck == count:
            return f"the {count} tokens end where the prompt goes on with {missing!r}"
        return (
            f"token {self._stuck + 1} of {count} is {tokens[self._stuck].text!r} where the prompt"
            f" goes on with {missing!r}"
        )


# --- how servers spell tokens


def _patterns(token: Token, spelled: Callable[[str], Iterable[_Pattern]]) -> Iterable[_Pattern]:
    # Bytes that are the text's own say no more than the text.
    if token.content is not None and token.content != token.text.encode(errors="replace"):
        return [(token.content,)]
    return spelled(token.text)


def _plain(text: str) -> list[_Pattern]:
    r"""The text itself.

    Fragments of a character: U+FFFD; ``bytes:\xe2\x80`` (OpenAI's older completions), ``<0xE2>``
    (byte fallback of SentencePiece), or nothing, when the token that completes the character has
    all of it (vLLM from 0.11, ``v1/engine/logprobs.py``).
    """
    if not text:
        return [()]
    parts: list[bytes | _Gap] = []
    at = 0
    for found in _PLACEHOLDER.finditer(text):
        parts += [text[at : found.start()].encode(), _Gap.PLACEHOLDER]
        at = found.end()
    patterns: list[_Pattern] = [tuple(part for part in (*parts, text[at:].encode()) if part)]
    if text.startswith("bytes:"):
        escaped = text.removeprefix("bytes:").encode("latin-1", "replace").decode("latin-1")
        whole = _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), escaped)
        patterns.append((whole.encode("latin-1"),))
    elif byte := _BYTE_TOKEN.fullmatch(text):
        patterns.append((bytes.fromhex(byte.group(1)),))
    return patterns


def _byte_level(text: str) -> list[_Pattern]:
    """An entry of a byte-level vocabulary (``ĠThe``): one letter for each byte, as GPT-2 has it."""
    try:
        return [(bytes(_BYTES[letter] for letter in text),)]
    except KeyError:
        return _plain(text)


def _sentencepiece(text: str) -> list[_Pattern]:
    """An entry of a SentencePiece vocabulary: ``▁The``."""
    return _plain(text.replace("▁", " "))


def _blank_lost(text: str) -> list[_Pattern]:
    """Decoded one by one, by a tokenizer that takes a blank off the beginning of every text.

    SGLang (``detokenize_logprob_tokens``) with SentencePiece tokenizers such as Llama 2's.
    """
    patterns = _plain(text)
    return [*patterns, *((b" ", *pattern) for pattern in patterns)]


def _fragments_lost(text: str) -> list[_Pattern]:
    """Decoded one by one with errors ignored: llama-cpp-python (``Llama._create_completion``).

    A fragment with no more than a blank before it. Any other text, with a character missing next
    to it, is what a server makes of a prompt that leaves characters out.
    """
    patterns = _plain(text)
    return [*patterns, (*patterns[0], _Gap.DROPPED)] if text in ("", " ") else patterns


def _bytes_lost(text: str) -> list[_Pattern]:
    """Any fragment missing at either end: what could be, but is no proof of a prompt by itself."""
    patterns = _plain(text)
    patterns += [(_Gap.DROPPED, *pattern) for pattern in patterns]
    return [*patterns, *((*pattern, _Gap.DROPPED) for pattern in patterns)]


# The strictest first.
_SPELLINGS = (_plain, _byte_level, _sentencepiece, _blank_lost, _fragments_lost)


def _alphabet() -> dict[str, int]:
    """The byte of each letter. Bytes that cannot be printed have letters from U+0100 on."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {chr(byte): byte for byte in shown}
    return letters | {chr(256 + number): byte for number, byte in enumerate(hidden)}


_BYTES = _alphabet()


# --- matching


def _without_blank(pattern: _Pattern) -> _Pattern | None:
    if pattern and isinstance(pattern[0], bytes) and pattern[0].startswith(b" "):
        rest = pattern[0][1:]
        return (rest, *pattern[1:]) if rest else pattern[1:]
    return None


def _ends(pattern: _Pattern, data: bytes, at: int) -> set[int]:
    """Where a token that begins at a byte can end."""
    ends = {at}
    for part in pattern:
        if isinstance(part, bytes):
            ends = {end + len(part) for end in ends if data.startswith(part, end)}
        else:
            ends = {further for end in ends for further in _gap_ends(part, data, end)}
    return ends


def _gap_ends(gap: _Gap, data: bytes, at: int) -> range:
    if at >= len(data) or data[at] < 0x80:
        return range(0)
    end = at + 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    whole = data[at] & 0xC0 == 0xC0
    return range(at + 1, end if whole and gap is _Gap.DROPPED else end + 1)
