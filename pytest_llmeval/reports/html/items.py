"""The items of a run for the page's browser: a slim index, and blocks of details to be opened.

The index has one column a property, so that 14,042 items compress well and are filtered at once.
Details (prompts, responses, log-likelihoods) are read only when an item is opened or searched for.
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
from pytest_llmeval.reports.formatting import shorten
from pytest_llmeval.reports.wording import why
from pytest_llmeval.scorers.likelihood import per_character
from pytest_llmeval.storage.prompts import StoredPrompt

CLOZE = "cloze"
"""The scorer that compares other values than the log-likelihoods themselves."""


def scored_values(record: Record, stored: StoredPrompt | None) -> Sequence[float] | None:
    """What the record's scorer compared; None where that is not known.

    That is so where the texts of the options are not stored, and where the highest value is not
    that of the answer, as under a scorer of the user that compares something else.
    """
    values: Sequence[float] = record.logprobs
    if record.scorer == CLOZE:
        if stored is None or len(stored.compared) != len(values) or not all(stored.compared):
            return None
        values = per_character(values, stored.compared)
    chosen = LABELS.find(record.answer) if record.answer and len(record.answer) == 1 else -1
    return values if 0 <= chosen < len(values) and values[chosen] == max(values) else None


TEXT_LIMIT = 100_000
"""Characters of a response that are shown; a longer one ends with a pointer to its record."""

BLOCK = 400
"""Items in one block of details."""

_SHORT = 60
_LETTERS = {Outcome.CORRECT: "c", Outcome.WRONG: "w", Outcome.UNPARSED: "u", Outcome.ERROR: "e"}
_ORDER = {outcome: rank for rank, outcome in enumerate(Outcome)}

ItemRecords = Mapping[str, Sequence[Record]]
"""Item → the records of its samples, in order."""


def index(
    items: ItemRecords,
    flips: Mapping[str, str],
    before: ItemRecords,
) -> dict[str, Any]:
    """The columns of a result's items, sorted by id.

    ``flips``: item → ``w`` (newly wrong) or ``r`` (newly right). ``before``: the baseline's
    records. An item's outcome is the best of its samples', as its test's is.
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
        "answer": [_short(items[name][0].answer) for name in names],
        "gold": [_short(items[name][0].gold) for name in names],
        "right": [sum(_right(one) for one in items[name]) for name in names] if several else [],
        "samples": [len(items[name]) for name in names] if several else [],
        "before": [_short(one[0].answer) if one else None for one in old],
        "before_outcome": "".join(_outcome(one) if one else "-" for one in old),
    }


def details(
    items: ItemRecords,
    scored_too: Mapping[str, ItemRecords],
    prompts: Mapping[str, StoredPrompt],
    shots: dict[tuple[str, str], int],
) -> list[list[Any]]:
    """Blocks of what is shown of an item when it is opened, in the order of the index.

    ``scored_too``: other scorers of the same responses. ``shots``: a table that all results
    share; new ones are added to it.
    """
    names = sorted(items)
    return [
        [
            {
                "prompt": _prompt(prompts.get(name), items[name][0], shots),
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


def _prompt(
    stored: StoredPrompt | None, record: Record, shots: dict[tuple[str, str], int]
) -> dict[str, Any] | None:
    """The prompt as it was sent; None where it is not stored or is not the one that was sent."""
    if stored is None or stored.prompt.sha256 != record.prompt_sha256:
        return None
    prompt = stored.prompt
    # The first are left in, as every backend drops from the end.
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
        # Letters go without saying.
        "choices": [] if "".join(stored.choices) in LABELS else list(stored.choices),
    }


def _sample(
    record: Record, prompt: StoredPrompt | None, others: Iterable[Record]
) -> dict[str, Any]:
    """What one sample gave; what is absent is left out."""
    scored = scored_values(record, prompt) if record.logprobs else None
    shown: dict[str, Any] = {
        "outcome": str(record.outcome),
        "answer": _limited(record.answer),
        "why": why(record, None if prompt is None else prompt.prompt.question),
        "text": _limited(record.text),
        "reasoning": _limited(record.reasoning),
        "finish": record.finish_reason,
        "prompt_tokens": record.prompt_tokens,
        "tokens": record.completion_tokens,
        "seconds": None if record.seconds is None else round(record.seconds, 3),
        "error": _limited(record.error),
        "tie": record.tie or None,
        "dropped": record.dropped_shots or None,
        "left_out": record.left_out or None,
        # Null where a choice is impossible: JSON has no infinity.
        "logprobs": _finite(record.logprobs) or None,
        # Left out where they are the same; empty where they are not known.
        "scored": None if scored is record.logprobs else _finite(scored or ()),
        "also": {one.scorer: [str(one.outcome), _limited(one.answer)] for one in others} or None,
    }
    if not record.logprobs:
        del shown["scored"]
    return {name: value for name, value in shown.items() if value is not None}


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
    return _LETTERS[min((one.outcome for one in samples), key=_ORDER.__getitem__)]


def _right(record: Record) -> bool:
    return record.outcome is Outcome.CORRECT
