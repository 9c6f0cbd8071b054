"""Scorer ``matched``: compares the answer's text with the options' texts, by text and by meaning.

The scorer of Nowak et al. 2026 (arXiv:2602.17445) for prompts whose options have no letters
(``prompts.uniform_labels``). A text that equals an option up to case and punctuation is that option; any
other text is the option with the most similar sentence embedding. Ties between options of equal
text or similarity are broken at random, seeded by item and sample: the first option would be a
position bias. A reply without words is ``unparsed``, where the paper guesses; so is a bare letter
that is not an option, because the prompt has no letters.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core import option_label
from pytest_llmeval.core.matched_detail import MatchedReading
from pytest_llmeval.core.seeded_random import SeededRandom
from pytest_llmeval.scorers import normalization
from pytest_llmeval.scorers.choice import phrases
from pytest_llmeval.scorers.matched.embedding import DEFAULT
from pytest_llmeval.scorers.matched.embedding import load_embedder
from pytest_llmeval.scorers.matched.spans import Span
from pytest_llmeval.scorers.matched.spans import find_span
from pytest_llmeval.scorers.response_text import answer_to_item
from pytest_llmeval.scorers.response_text import scoring_fault

if TYPE_CHECKING:
    from pytest_llmeval.scorers.matched.embedding import Matrix

Embed = Callable[[Sequence[str]], "Matrix"]
"""Texts → array of shape (texts, dimensions); rows may have any length."""

_EQUAL = 1e-6  # difference up to which cosines are equal: float32, and batches of other texts
_AROUND = '*_`"“”„«»$ '
_MARK = re.compile(r"^(?:[-–—•*]\s+|\$(?=[A-Za-z]))")
_LABEL = re.compile(r"^(?:\(?(?:[A-Za-z]|\d{1,2})[).:]|\([A-Za-z]\))\s+(?=\S)")
_STOP = re.compile(r"[.。।]\s*$")
_REMARK = re.compile(r"(?<=\S)\.? \([^()]{3,}\)?\.?$")
_ASIDE = re.compile(r"(?<=\S) \([^()]{3,}\)")
_BOX = re.compile(r"\\f?box(?:ed)?\s*(?=\{)")


def matched(item: Item, response: Response) -> Score:
    """Score with the default embedding model, which is loaded for the first text that needs it."""
    return matched_with(DEFAULT)(item, response)


def matched_with(model: str) -> Callable[[Item, Response], Score]:
    """Return the scorer with another embedding model, such as ``minilm``."""

    def score(item: Item, response: Response) -> Score:
        return _scored(item, response, lambda: load_embedder(model))

    return score


def matched_by(embed: Embed) -> Callable[[Item, Response], Score]:
    """Return the scorer with any function from texts to vectors."""

    def score(item: Item, response: Response) -> Score:
        return _scored(item, response, lambda: embed)

    return score


def _scored(item: Item, response: Response, load: Callable[[], Embed]) -> Score:
    fault = scoring_fault(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    reply = answer_to_item(response.text or "", lambda part: _names_an_answer(part, item.options))
    span = find_span(reply, item.options) if reply else None
    if span is None:
        return Score(Outcome.UNPARSED)
    draws = SeededRandom("matched", item.id, response.sample or 0)
    matches = span.options or equal_options(span.text, item.options)
    reading, seconds = MatchedReading(span.level, "text"), 0.0
    if not matches:
        embed = load()
        started = time.perf_counter()
        matches, reading = _most_similar(span, item.options, embed)
        seconds = time.perf_counter() - started
    index = draws.choice(matches)
    return Score(
        Outcome.CORRECT if index == item.gold else Outcome.WRONG,
        answer=option_label(index),
        tie=len(matches) > 1,
        detail=reading.text,
        seconds=seconds,
    )


def _names_an_answer(text: str, options: Sequence[str]) -> bool:
    span = find_span(text, options)
    return span is not None and span.level != "last"


def _most_similar(
    span: Span, options: Sequence[str], embed: Embed
) -> tuple[tuple[int, ...], MatchedReading]:
    """Return the options nearest in meaning to the span, and the similarity with its margin."""
    texts = list(dict.fromkeys(options))
    similarities = _cosines(embed([_tidy(span.text), *texts]))
    highest = max(similarities)
    nearest = [t for t, s in zip(texts, similarities, strict=True) if s >= highest - _EQUAL]
    others = [s for t, s in zip(texts, similarities, strict=True) if t not in nearest]
    same = tuple(n for n, option in enumerate(options) if option in nearest)
    margin = 0.0 if len(nearest) > 1 else highest - max(others, default=highest)
    return same, MatchedReading(span.level, "similarity", highest, margin)


def equal_options(text: str, options: Sequence[str]) -> tuple[int, ...]:
    """Return the options that equal this text or its beginning; several only if they are equal.

    Forms are compared from strict to lenient: unchanged; without marks around it; without case and
    markup; without an added dash, label or remark in brackets; the beginning of a clause ("Paris,
    because …"). A lenient form that two different options share is ignored.
    """
    tidy = _tidy(text)
    bare = _MARK.sub("", tidy)
    unlabelled, unremarked = _LABEL.sub("", bare), _REMARK.sub("", tidy)
    variants: tuple[tuple[str, Callable[[str], str]], ...] = (
        (text, _spaced),
        (_STOP.sub("", text), _spaced),
        (tidy, _tidy),
        *((variant, normalization.plain_text) for variant in (tidy, bare, unlabelled, unremarked)),
    )
    for variant, form in variants:
        target = form(variant)
        same = tuple(n for n, option in enumerate(options) if target and form(option) == target)
        if same and len({_spaced(options[n]) for n in same}) == 1:
            return same
    at_start = _options_at_start(normalization.plain_text(tidy), options)
    return at_start or _options_at_start(normalization.plain_text(_ASIDE.sub("", tidy)), options)


def _options_at_start(text: str, options: Sequence[str]) -> tuple[int, ...]:
    plain = [normalization.plain_text(option) for option in options]
    for option in sorted(set(plain), key=lambda other: -len(other)):
        if len(option) < 2 or not text.startswith(option):
            continue
        rest = text[len(option) :]
        if not phrases.clause_ends_at(text, len(option)):
            continue
        if any(phrases.offers_text(rest, other) for other in plain if other and other != option):
            return ()
        same = tuple(n for n, other in enumerate(plain) if other == option)
        return same if len({_spaced(options[n]) for n in same}) == 1 else ()
    return ()


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _tidy(text: str) -> str:
    """Return the text without a box, quotes and stars around it and without a final full stop."""
    unboxed = _BOX.sub("", text)
    tidy = _spaced(unboxed).strip(_AROUND)
    if unboxed != text and tidy.startswith("{") and tidy.rstrip(".$ ").endswith("}"):
        tidy = tidy.rstrip(".$ ")[1:-1]
    # The final mark of an ellipsis or of an abbreviation such as "U.S." is not a full stop.
    if tidy.endswith((".", "。", "।")) and not tidy.endswith("..") and tidy.count(".") < 2:
        tidy = tidy[:-1]
    return tidy.strip(_AROUND)


def _cosines(vectors: Matrix) -> list[float]:
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return [float(value) for value in rows[1:] @ rows[0]]
