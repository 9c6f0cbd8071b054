"""Alignment of returned tokens with the text that was sent, to find those of its end.

The tokens are aligned with the UTF-8 bytes of the text in every possible manner: a token of plain
text fits at one position, a placeholder for a fragment of a character at several. The result is
valid only if all alignments agree. Offsets that the server reports are not used: vLLM counts the
text of a leading special token in them, SGLang sets all of them to -1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import is_normalized
from unicodedata import normalize

from pytest_llmeval.models.openai.token_spellings import PLACEHOLDER
from pytest_llmeval.models.openai.token_spellings import SPELLINGS
from pytest_llmeval.models.openai.token_spellings import Gap
from pytest_llmeval.models.openai.token_spellings import Patterns
from pytest_llmeval.models.openai.token_spellings import bytes_lost
from pytest_llmeval.models.openai.token_spellings import strip_blank

# A special token that a tokenizer adds before the text: <s>, <bos>, <|begin_of_text|>, [BOS],
# ChatGLM's [gMASK] and <sop>; empty if the server omits the texts of special tokens.
_SPECIAL = re.compile(r"<[^<>\s]{1,40}>|\[[A-Za-z_]{1,20}\]|")
_MAX_SPECIAL = 2
_TOKEN_ID = re.compile(r"token_id:\d+")
_SPANNING = -1


@dataclass(frozen=True, slots=True)
class Token:
    """Token as a server returns it."""

    text: str
    #: Natural-log probability, not validated yet.
    logprob: object
    #: Bytes of the token, if the server reports them.
    content: bytes | None = None
    #: Likeliest tokens at this position with their values, if the server lists them by text.
    top: object = None


def find_tail(tokens: Sequence[Token], text: str, start: int) -> tuple[int, int]:
    """Return the range of tokens (first, one past the last) that spell exactly ``text[start:]``.

    ``start`` counts characters. Special tokens before the text are skipped, and one generated token
    may follow it. The tokens may spell the NFC form of the text, because some tokenizers compose
    characters first (Qwen's, GPT-NeoX's).

    Raises ValueError, with the reason, if the tokens do not reproduce the text, if one of them
    spans ``start``, and if the range is ambiguous.
    """
    if start >= len(text):
        raise ValueError("the choice is empty")
    before, after = text[:start].encode(), text[start:].encode()
    alignment = _align(tokens, before, after)
    if not alignment.tails and not is_normalized("NFC", text):
        parts = [normalize("NFC", part).encode() for part in (text[:start], text[start:])]
        if b"".join(parts) == normalize("NFC", text).encode():
            composed = _align(tokens, *parts)
            alignment = composed if composed.tails else alignment
    return alignment.tail()


def _align(tokens: Sequence[Token], before: bytes, after: bytes) -> _Alignment:
    """Return the first complete alignment over all spellings, else the furthest one.

    If a token is empty or a placeholder, the tails of all spellings are combined, including those
    with bytes missing next to any token.
    """
    text = _Text(before + after)
    special = 0
    while special < min(_MAX_SPECIAL, len(tokens)) and _SPECIAL.fullmatch(tokens[special].text):
        special += 1
    ambiguous = any(not token.text or PLACEHOLDER.search(token.text) for token in tokens)
    best = _Alignment(tokens, [], text, len(before), 0)
    tried: list[list[Patterns]] = []
    for spelled in (*SPELLINGS, bytes_lost):
        if spelled is bytes_lost and not (best.tails and ambiguous):
            break
        patterns = [_patterns(token, spelled) for token in tokens]
        if patterns in tried:
            continue
        tried.append(patterns)
        for skipped in range(special + 1):
            alignment = _Alignment(tokens, patterns, text, len(before), skipped)
            alignment.run()
            if alignment.tails:
                alignment.tails |= best.tails
                best = alignment
                break
            if alignment.reached > best.reached and not best.tails:
                best = alignment
        if best.tails and not ambiguous:
            break
    return best


def _patterns(token: Token, spelled: Callable[[str], Patterns]) -> Patterns:
    # Bytes that only encode the text add no information.
    if token.content is not None and token.content != token.text.encode(errors="replace"):
        return ((token.content,),)
    return spelled(token.text)


class _Alignment:
    """All alignments of the tokens, except the first ``skipped``, with the text.

    ``tails``: the ranges of tokens that spell the text from byte ``begin`` on. ``reached``: the
    furthest byte of any alignment.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        patterns: Sequence[Patterns],
        text: _Text,
        begin: int,
        skipped: int,
    ) -> None:
        self.tails: set[tuple[int, int]] = set()
        self.reached = 0
        self._tokens = tokens
        self._patterns = patterns
        self._text = text
        self._begin = begin
        self._skipped = skipped
        self._stuck = skipped
        self._spanning = 0
        self._too_many = False

    def run(self) -> None:
        """Extend all alignments token by token, represented by the sets of bytes they reach."""
        text, count = self._text, len(self._tokens)
        #: Positions before ``begin``, and positions from there on by the first token of the tail.
        waiting, begun = (0, {self._skipped: 1}) if self._begin == 0 else (1, {})
        index = self._skipped - 1
        while (index := index + 1) < count:
            if not begun and waiting & waiting - 1 == 0:
                index, waiting = self._past_plain_text(index, waiting)
            patterns = self._patterns[index]
            if index == self._skipped:
                # Some tokenizers add a blank at the beginning of a text, which was not sent.
                shorter = [strip_blank(pattern) for pattern in patterns]
                patterns += tuple(pattern for pattern in shorter if pattern is not None)
            if begun:
                further = {first: text.after(patterns, ends) for first, ends in begun.items()}
                begun = {first: ends for first, ends in further.items() if ends}
            if waiting:
                waiting = text.after(patterns, waiting)
                if waiting >> self._begin:
                    self._begin_tails(waiting >> self._begin, index, begun)
                    waiting &= (1 << self._begin) - 1
            if begun:
                begun = self._end_tails(begun, index)
            if not waiting and not begun:
                self._stuck = index
                return
            self.reached = max(ends.bit_length() for ends in (waiting, *begun.values())) - 1
        self._stuck = count

    def _past_plain_text(self, index: int, place: int) -> tuple[int, int]:
        """Skip the tokens before ``begin`` that fit at one position only (an optimisation)."""
        data, at = self._text.data, place.bit_length() - 1
        while self._skipped < index < len(self._patterns) - 1 and len(self._patterns[index]) == 1:
            (pattern,) = self._patterns[index]
            part = pattern[0] if len(pattern) == 1 else None
            if not isinstance(part, bytes) or not data.startswith(part, at):
                break
            if at + len(part) >= self._begin:
                break
            at += len(part)
            index += 1
        self.reached = at
        return index, 1 << at

    def _begin_tails(self, from_begin: int, index: int, begun: dict[int, int]) -> None:
        """Add the alignments whose token ``index`` ends at or after ``begin``."""
        if from_begin & 1:
            begun[index + 1] = 1 << self._begin
        if from_begin >> 1:
            begun[_SPANNING] = begun.get(_SPANNING, 0) | from_begin >> 1 << self._begin + 1
            self._spanning = index

    def _end_tails(self, begun: dict[int, int], index: int) -> dict[int, int]:
        """Record the alignments that reach the end of the text; return the others."""
        end = 1 << len(self._text.data)
        for first, ends in begun.items():
            if ends & end and len(self._tokens) - index <= 2:
                self.tails.add((first, index + 1))
            elif ends & end:
                self._too_many = True
        return {first: rest for first, ends in begun.items() if (rest := ends & ~end)}

    def tail(self) -> tuple[int, int]:
        """Return the tail of all alignments; raise ValueError, with the reason, if they differ."""
        tokens = self._tokens
        if not self.tails:
            raise ValueError(self._failure())
        if len(self.tails) > 1:
            raise ValueError(
                "placeholders for fragments of characters leave open which tokens belong to the"
                " choice"
            )
        ((first, end),) = self.tails
        if first == _SPANNING:
            raise ValueError(
                f"the token {tokens[self._spanning].text!r} spans the end of the prompt and the"
                " beginning of the choice"
            )
        if not tokens[first].text and not self._empty_before_their_character(end):
            raise ValueError("tokens without text may belong to the prompt or to the choice")
        return first, end

    def _empty_before_their_character(self, end: int) -> bool:
        """Return True if tokens without text precede the token that completes their character.

        They do if one follows an ASCII letter, which has no fragments.
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
        missing = self._text.data[self.reached : self.reached + 80].decode(errors="replace")[:20]
        if self._stuck == count:
            return f"the {count} tokens end where the prompt continues with {missing!r}"
        return (
            f"token {self._stuck + 1} of {count} is {tokens[self._stuck].text!r} where the prompt"
            f" continues with {missing!r}"
        )


class _Text:
    """Bytes of the text; sets of positions are represented as bits of an integer."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._positions: dict[bytes, int] = {}
        self._gaps: dict[Gap, list[int]] = {}

    def after(self, patterns: Patterns, places: int) -> int:
        """Return the positions where a token can end that begins at one of ``places``."""
        ends = 0
        for pattern in patterns:
            reached = places
            for part in pattern:
                if not reached:
                    break
                reached = self._after_part(part, reached)
            ends |= reached
        return ends

    def _after_part(self, part: bytes | Gap, places: int) -> int:
        if isinstance(part, Gap):
            ends = 0
            for length, begins in enumerate(self._gap(part), start=1):
                ends |= (places & begins) << length
            return ends
        if places & places - 1 == 0:  # a single position, as for nearly all tokens
            at = places.bit_length() - 1
            return places << len(part) if self.data.startswith(part, at) else 0
        if part not in self._positions:
            self._positions[part] = _bits(
                [self.data.startswith(part, at) for at in range(len(self.data))]
            )
        return (places & self._positions[part]) << len(part)

    def _gap(self, gap: Gap) -> list[int]:
        """Return the positions where gaps of one, two, three and four bytes can begin."""
        if gap not in self._gaps:
            lengths = [_gap_lengths(gap, self.data, at) for at in range(len(self.data))]
            self._gaps[gap] = [_bits([size in sizes for sizes in lengths]) for size in range(1, 5)]
        return self._gaps[gap]


def _gap_lengths(gap: Gap, data: bytes, at: int) -> range:
    if data[at] < 0x80:
        return range(0)
    end = at + 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    whole = data[at] & 0xC0 == 0xC0
    return range(1, end - at + (not (whole and gap is Gap.DROPPED)))


def _bits(flags: Sequence[bool]) -> int:
    return int("".join("01"[flag] for flag in reversed(flags)) or "0", 2)
