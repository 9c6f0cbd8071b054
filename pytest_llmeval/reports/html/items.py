"""Items of a run for the page's item browser: a small index, and blocks of details.

The index is stored by column, so that 14,042 items compress well and are filtered quickly. Details
(prompts, responses, log-likelihoods) are decoded only when an item is opened or searched for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import option_index
from pytest_llmeval.overlap.report import ItemOverlap
from pytest_llmeval.reports.extraction import extraction_reason
from pytest_llmeval.reports.formatting import shorten
from pytest_llmeval.reports.overlap import match_words
from pytest_llmeval.scorers.likelihood import per_character
from pytest_llmeval.scorers.swebench.doubts import PREFIX
from pytest_llmeval.storage.prompts import StoredPrompt

CLOZE = "cloze"
"""The scorer that compares other values than the log-likelihoods themselves."""


def scored_values(record: Record, stored: StoredPrompt | None) -> Sequence[float] | None:
    """Return the values that the record's scorer compared; None if they are not known.

    They are not known if the texts of the options are not stored, or if the highest value is not
    that of the answer, for example for a custom scorer that compares something else.
    """
    values: Sequence[float] = record.logprobs
    if record.scorer == CLOZE:
        if (
            stored is None
            or len(stored.compared_texts) != len(values)
            or not all(stored.compared_texts)
        ):
            return None
        values = per_character(values, stored.compared_texts)
    chosen = option_index(record.answer or "")
    if chosen is None:
        return None
    return values if chosen < len(values) and values[chosen] == max(values) else None


TEXT_LIMIT = 100_000
"""Characters of a response on the page; a longer one ends with a reference to its record."""

BLOCK = 400
"""Items in one block of details."""

_SHORT = 60
_LETTERS = {Outcome.CORRECT: "c", Outcome.WRONG: "w", Outcome.UNPARSED: "u", Outcome.ERROR: "e"}
_ORDER = {outcome: rank for rank, outcome in enumerate(Outcome)}

ItemRecords = Mapping[str, Sequence[Record]]
"""Item → the records of its samples, in order."""


def item_index(
    items: ItemRecords,
    flips: Mapping[str, str],
    before: ItemRecords,
    corpus: Mapping[str, str],
) -> dict[str, Any]:
    """Return the columns of a result's items, sorted by id.

    ``flips``: item → ``w`` (newly wrong) or ``r`` (newly right). ``before``: the baseline's
    records. ``corpus``: item → ``o`` (it overlaps with the corpus) or ``n`` (not judged). An item's outcome is the best of its samples, as that of its test is.
    """
    names = sorted(items)
    subjects = sorted({items[name][0].subject for name in names})
    number = {subject: n for n, subject in enumerate(subjects)}
    several = any(len(items[name]) > 1 for name in names)
    old = [before.get(name, ()) for name in names] if before else []
    return {
        "ids": names,
        "subjects": subjects,
        "subject": [number[items[name][0].subject] for name in names],
        "outcome": "".join(_outcome(items[name]) for name in names),
        "flip": "".join(flips.get(name, "-") for name in names) if flips else "",
        "corpus": "".join(corpus.get(name, "-") for name in names) if corpus else "",
        "answer": [_short(items[name][0].answer) for name in names],
        "gold": [_short(items[name][0].gold) for name in names],
        "right": [sum(map(_right, items[name])) for name in names] if several else [],
        "samples": [len(items[name]) for name in names] if several else [],
        "before": [_short(samples[0].answer) if samples else None for samples in old],
        "before_outcome": "".join(_outcome(samples) if samples else "-" for samples in old),
    }


def item_details(
    items: ItemRecords,
    scored_too: Mapping[str, ItemRecords],
    prompts: Mapping[str, StoredPrompt],
    shots: dict[tuple[str, str], int],
    overlaps: Mapping[str, ItemOverlap],
) -> list[list[Any]]:
    """Return blocks of the items' details, in the order of the index.

    ``scored_too``: other scorers of the same responses. ``shots``: a table that all results share,
    to which new shots are added. ``overlaps``: matches of the items that overlap with the corpus.
    """
    names = sorted(items)
    return [
        [
            {
                "prompt": _prompt(prompts.get(name), items[name][0], shots),
                **_overlap(overlaps.get(name)),
                "samples": [
                    _sample(
                        record,
                        prompts.get(name),
                        [
                            other[name][n]
                            for other in scored_too.values()
                            if n < len(other.get(name, ()))
                        ],
                    )
                    for n, record in enumerate(items[name])
                ],
            }
            for name in names[start : start + BLOCK]
        ]
        for start in range(0, len(names), BLOCK)
    ]


def _overlap(match: ItemOverlap | None) -> dict[str, Any]:
    if match is None:
        return {}
    words = match_words(match)
    return {"overlap": {"words": words, "document": match.document, "passage": match.passage}}


def _prompt(
    stored: StoredPrompt | None, record: Record, shots: dict[tuple[str, str], int]
) -> dict[str, Any] | None:
    """Return the prompt as it was sent; None if the sent one is not stored."""
    if stored is None or stored.prompt.sha256 != record.prompt_sha256:
        return None
    prompt = stored.prompt
    # Every backend drops shots from the end.
    sent = prompt.shots[: max(0, len(prompt.shots) - record.dropped_shots)]
    return {
        "description": prompt.description,
        "shots": [shots.setdefault(shot, len(shots)) for shot in sent],
        "question": prompt.question,
        "delimiter": prompt.delimiter,
        "separator": prompt.separator,
        "prefix": prompt.prefix,
        "as_text": prompt.shots_as_text,
        "dropped": record.dropped_shots,
        # Letters are not repeated.
        "choices": [] if "".join(stored.choices) in LABELS else list(stored.choices),
    }


def _sample(
    record: Record, prompt: StoredPrompt | None, others: Iterable[Record]
) -> dict[str, Any]:
    """Return the details of one sample without empty values."""
    scored = scored_values(record, prompt) if record.logprobs else None
    entry: dict[str, Any] = {
        "outcome": str(record.outcome),
        "answer": _limited(record.answer),
        "why": extraction_reason(record, None if prompt is None else prompt.prompt.question),
        "text": _limited(record.text),
        "reasoning": _limited(record.reasoning),
        "doubt": record.detail.removeprefix(PREFIX) if record.detail.startswith(PREFIX) else None,
        "log": record.log or None,
        "node": record.node or None,
        "finish": record.finish_reason,
        "prompt_tokens": record.prompt_tokens,
        "tokens": record.completion_tokens,
        "seconds": None if record.seconds is None else round(record.seconds, 3),
        "error": _limited(record.error),
        "tie": record.tie or None,
        "dropped": record.dropped_shots or None,
        "left_out": record.left_out or None,
        # Null for an impossible choice: JSON has no infinity.
        "logprobs": _finite(record.logprobs) or None,
        # Absent if they are the same; empty if they are not known.
        "scored": None if scored is record.logprobs else _finite(scored or ()),
        "also": {r.scorer: [str(r.outcome), _limited(r.answer)] for r in others} or None,
    }
    if not record.logprobs:
        del entry["scored"]
    return {name: value for name, value in entry.items() if value is not None}


def _finite(values: Iterable[float]) -> list[float | None]:
    return [None if value == -math.inf else round(value, 4) for value in values]


def _limited(text: str | None) -> str | None:
    if text is None or len(text) <= TEXT_LIMIT:
        return text
    rest = len(text) - TEXT_LIMIT
    return f"{text[:TEXT_LIMIT]}\n[cut here: {rest:,} more characters in records.jsonl]"


def _short(text: str | None) -> str | None:
    return None if text is None else shorten(text, _SHORT)


def _outcome(samples: Sequence[Record]) -> str:
    return _LETTERS[min((record.outcome for record in samples), key=_ORDER.__getitem__)]


def _right(record: Record) -> bool:
    return record.outcome is Outcome.CORRECT
