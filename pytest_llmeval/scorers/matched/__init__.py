"""``matched``: the answer's text compared with the options' texts, as one text and by meaning.

The scorer of Nowak et al. 2026 (arXiv:2602.17445) for prompts whose options have no letters
(``prompts.uniform_labels``). A text that is an option, but for case and punctuation, is that option; the
others go to the option with the most similar sentence embedding, whatever the similarity. Options
of equal text, and equal similarities, are told apart by a draw that depends on the item and sample
alone: taking the first would be a position bias. Where the paper guesses, a reply without a word is
``unparsed`` here; so is a bare letter that is no option, since no letters were shown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core.matched_detail import MatchedReading
from pytest_llmeval.core.seeded_random import SeededRandom
from pytest_llmeval.scorers import normalization
from pytest_llmeval.scorers.choice import phrases
from pytest_llmeval.scorers.matched.embedding import DEFAULT
from pytest_llmeval.scorers.matched.embedding import load_embedder
from pytest_llmeval.scorers.matched.spans import Span
from pytest_llmeval.scorers.matched.spans import find_span
from pytest_llmeval.scorers.response_text import own_answer
from pytest_llmeval.scorers.response_text import what_is_wrong

if TYPE_CHECKING:
    from pytest_llmeval.scorers.matched.embedding import Matrix

Embed = Callable[[Sequence[str]], "Matrix"]
"""Texts → a row each. Need not be of length 1."""

_EQUAL = 1e-6  # cosines no further apart are equal: float32, and batches of other texts
_AROUND = '*_`"“”„«»$ '
_MARK = re.compile(r"^(?:[-–—•*]\s+|\$(?=[A-Za-z]))")
_LABEL = re.compile(r"^(?:\(?(?:[A-Za-z]|\d{1,2})[).:]|\([A-Za-z]\))\s+(?=\S)")
_STOP = re.compile(r"[.。।]\s*$")
_REMARK = re.compile(r"(?<=\S)\.? \([^()]{3,}\)?\.?$")
_ASIDE = re.compile(r"(?<=\S) \([^()]{3,}\)")
_BOX = re.compile(r"\\f?box(?:ed)?\s*(?=\{)")


def matched(item: Item, response: Response) -> Score:
    """With the default embedding model, loaded when the first text is no option."""
    return matched_with(DEFAULT)(item, response)


def matched_with(model: str) -> Callable[[Item, Response], Score]:
    """With another model, such as ``minilm``."""

    def score(item: Item, response: Response) -> Score:
        return _scored(item, response, lambda: load_embedder(model))

    return score


def matched_by(embed: Embed) -> Callable[[Item, Response], Score]:
    """With any function from texts to vectors."""

    def score(item: Item, response: Response) -> Score:
        return _scored(item, response, lambda: embed)

    return score


def _scored(item: Item, response: Response, load: Callable[[], Embed]) -> Score:
    fault = what_is_wrong(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    reply = own_answer(response.text or "", lambda part: _names_an_answer(part, item.options))
    span = find_span(reply, item.options) if reply else None
    if span is None:
        return Score(Outcome.UNPARSED)
    draws = SeededRandom("matched", item.id, response.sample or 0)
    same = span.options or equal_options(span.text, item.options)
    reading, seconds = MatchedReading(span.level, "text"), 0.0
    if not same:
        embed = load()
        started = time.perf_counter()
        same, reading = _most_similar(span, item.options, embed)
        seconds = time.perf_counter() - started
    index = draws.choice(same)
    return Score(
        Outcome.CORRECT if index == item.gold else Outcome.WRONG,
        answer=LABELS[index],
        tie=len(same) > 1,
        detail=reading.text,
        seconds=seconds,
    )


def _names_an_answer(text: str, options: Sequence[str]) -> bool:
    span = find_span(text, options)
    return span is not None and span.level != "last"


def _most_similar(
    span: Span, options: Sequence[str], embed: Embed
) -> tuple[tuple[int, ...], MatchedReading]:
    """The options that are nearest in meaning to what the span says, and how sure that is."""
    texts = list(dict.fromkeys(options))
    similarities = _cosines(embed([_tidy(span.text), *texts]))
    highest = max(similarities)
    nearest = [t for t, s in zip(texts, similarities, strict=True) if s >= highest - _EQUAL]
    others = [s for t, s in zip(texts, similarities, strict=True) if t not in nearest]
    same = tuple(n for n, option in enumerate(options) if option in nearest)
    margin = 0.0 if len(nearest) > 1 else highest - max(others, default=highest)
    return same, MatchedReading(span.level, "similarity", highest, margin)


def equal_options(text: str, options: Sequence[str]) -> tuple[int, ...]:
    """The options that are this text, or that it starts with; several only if they are equal.

    From strict to lenient: as it stands; without marks around it; without case and markup; without
    a dash, a label or a remark in brackets that was added; what a clause starts with ("Paris,
    because …"). A lenient form that two different options share tells nothing.
    """
    said = _tidy(text)
    bare = _MARK.sub("", said)
    unlabelled, remark = _LABEL.sub("", bare), _REMARK.sub("", said)
    forms: tuple[tuple[str, Callable[[str], str]], ...] = (
        (text, _spaced),
        (_STOP.sub("", text), _spaced),
        (said, _tidy),
        *((one, normalization.plain) for one in (said, bare, unlabelled, remark)),
    )
    for one, form in forms:
        wanted = form(one)
        same = tuple(n for n, option in enumerate(options) if wanted and form(option) == wanted)
        if same and len({_spaced(options[n]) for n in same}) == 1:
            return same
    started = _started(normalization.plain(said), options)
    return started or _started(normalization.plain(_ASIDE.sub("", said)), options)


def _started(said: str, options: Sequence[str]) -> tuple[int, ...]:
    plain = [normalization.plain(option) for option in options]
    for option in sorted(set(plain), key=lambda text: -len(text)):
        if len(option) < 2 or not said.startswith(option):
            continue
        rest = said[len(option) :]
        if not phrases.clause_ends_at(said, len(option)):
            continue
        if any(phrases.offers_text(rest, other) for other in plain if other and other != option):
            return ()
        same = tuple(n for n, text in enumerate(plain) if text == option)
        return same if len({_spaced(options[n]) for n in same}) == 1 else ()
    return ()


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _tidy(text: str) -> str:
    """Without a box, quotes and stars around it and a full stop behind it."""
    unboxed = _BOX.sub("", text)
    said = _spaced(unboxed).strip(_AROUND)
    if unboxed != text and said.startswith("{") and said.rstrip(".$ ").endswith("}"):
        said = said.rstrip(".$ ")[1:-1]
    # Not the mark that an ellipsis or an abbreviation such as "U.S." ends in.
    if said.endswith((".", "。", "।")) and not said.endswith("..") and said.count(".") < 2:
        said = said[:-1]
    return said.strip(_AROUND)


def _cosines(vectors: Matrix) -> list[float]:
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return [float(value) for value in rows[1:] @ rows[0]]
