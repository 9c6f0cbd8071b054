"""Which of the tokens that a server returned hold the end of the text that was sent.

The tokens are laid over the UTF-8 bytes of the text, in every possible alignment: a token of plain
text fits in one place, a placeholder for a fragment of a character in several. The result counts
only if all alignments agree on it. Offsets that the server reports are not used: vLLM counts the
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
from pytest_llmeval.models.openai.token_spellings import without_blank

# A special token that a tokenizer puts before the text: <s>, <bos>, <|begin_of_text|>, [BOS],
# ChatGLM's [gMASK] and <sop>; empty where the server leaves special tokens out of its texts.
_SPECIAL = re.compile(r"<[^<>\s]{1,40}>|\[[A-Za-z_]{1,20}\]|")
_MOST_SPECIAL = 2
_TOKEN_ID = re.compile(r"token_id:\d+")
_SPANNING = -1


@dataclass(frozen=True, slots=True)
class Token:
    """A returned token: its text as the server spells it, and its natural-log probability.

    ``content``: the bytes it stands for, where the server reports them. ``top``: the tokens that
    were expected in its place, with their values, where the server lists them by text.
    """

    text: str
    logprob: object
    content: bytes | None = None
    top: object = None


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
    text = _Text(before + after)
    special = 0
    while special < min(_MOST_SPECIAL, len(tokens)) and _SPECIAL.fullmatch(tokens[special].text):
        special += 1
    doubtful = any(not token.text or PLACEHOLDER.search(token.text) for token in tokens)
    best = _Walk(tokens, [], text, len(before), 0)
    tried: list[list[Patterns]] = []
    for spelled in (*SPELLINGS, bytes_lost):
        if spelled is bytes_lost and not (best.tails and doubtful):
            break
        patterns = [_patterns(token, spelled) for token in tokens]
        if patterns in tried:
            continue
        tried.append(patterns)
        for skipped in range(special + 1):
            walk = _Walk(tokens, patterns, text, len(before), skipped)
            walk.run()
            if walk.tails:
                walk.tails |= best.tails
                best = walk
                break
            if walk.reached > best.reached and not best.tails:
                best = walk
        if best.tails and not doubtful:
            break
    return best


def _patterns(token: Token, spelled: Callable[[str], Patterns]) -> Patterns:
    # Bytes that are the text's own say no more than the text.
    if token.content is not None and token.content != token.text.encode(errors="replace"):
        return ((token.content,),)
    return spelled(token.text)


class _Walk:
    """All alignments of the tokens, those before ``skipped`` set aside, with the text.

    ``tails``: the ranges of tokens that they have for the text from the byte ``begin`` on.
    ``reached``: the furthest byte that any of them came to.
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
        """Follow the alignments, as sets of bytes reached, from the first token to the last."""
        text, count = self._text, len(self._tokens)
        #: Before ``begin``; and from there on, by the first token of the tail.
        waiting, begun = (0, {self._skipped: 1}) if self._begin == 0 else (1, {})
        index = self._skipped - 1
        while (index := index + 1) < count:
            if not begun and waiting & waiting - 1 == 0:
                index, waiting = self._past_plain_text(index, waiting)
            patterns = self._patterns[index]
            if index == self._skipped:
                # Tokenizers that begin every text with a blank, which was not sent.
                shorter = [without_blank(one) for one in patterns]
                patterns += tuple(one for one in shorter if one is not None)
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
        """Pass over the tokens before ``begin`` that fit in one place only.

        Nearly all tokens do: nothing but speed depends on it.
        """
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
        """Add the alignments whose token ``index`` ends at ``begin`` or beyond it."""
        if from_begin & 1:
            begun[index + 1] = 1 << self._begin
        if from_begin >> 1:
            begun[_SPANNING] = begun.get(_SPANNING, 0) | from_begin >> 1 << self._begin + 1
            self._spanning = index

    def _end_tails(self, begun: dict[int, int], index: int) -> dict[int, int]:
        """What is left of the alignments that have not come to the end of the text."""
        end = 1 << len(self._text.data)
        for first, ends in begun.items():
            if ends & end and len(self._tokens) - index <= 2:
                self.tails.add((first, index + 1))
            elif ends & end:
                self._too_many = True
        return {first: left for first, ends in begun.items() if (left := ends & ~end)}

    def tail(self) -> tuple[int, int]:
        """The tail that all alignments have. Raises ValueError, with the reason, if none."""
        tokens = self._tokens
        if not self.tails:
            raise ValueError(self._failure())
        if len(self.tails) > 1:
            raise ValueError(
                "with placeholders for fragments of characters it is undecided which tokens are"
                " the choice's"
            )
        ((first, end),) = self.tails
        if first == _SPANNING:
            raise ValueError(
                f"the token {tokens[self._spanning].text!r} spans the end of the prompt and the"
                " beginning of the choice"
            )
        if not tokens[first].text and not self._empty_before_their_character(end):
            raise ValueError(
                "it is undecided whether tokens without text are the prompt's or the choice's"
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
        missing = self._text.data[self.reached : self.reached + 80].decode(errors="replace")[:20]
        if self._stuck == count:
            return f"the {count} tokens end where the prompt goes on with {missing!r}"
        return (
            f"token {self._stuck + 1} of {count} is {tokens[self._stuck].text!r} where the prompt"
            f" goes on with {missing!r}"
        )


class _Text:
    """The bytes that are aligned with. Sets of places in them are the bits of an integer."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._found: dict[bytes, int] = {}
        self._gaps: dict[Gap, list[int]] = {}

    def after(self, patterns: Patterns, places: int) -> int:
        """Where a token can end that begins at one of the places."""
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
        if places & places - 1 == 0:  # a single one, as for nearly all tokens
            at = places.bit_length() - 1
            return places << len(part) if self.data.startswith(part, at) else 0
        if part not in self._found:
            self._found[part] = _bits(
                [self.data.startswith(part, at) for at in range(len(self.data))]
            )
        return (places & self._found[part]) << len(part)

    def _gap(self, gap: Gap) -> list[int]:
        """Where gaps of one byte, of two, of three and of four can begin."""
        if gap not in self._gaps:
            lengths = [_gap_lengths(gap, self.data, at) for at in range(len(self.data))]
            self._gaps[gap] = [_bits([size in one for one in lengths]) for size in range(1, 5)]
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
