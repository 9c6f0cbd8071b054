"""Answers as texts against answers as letters: what either's labels and reading do to one audit.

"M&D" against "S&L" of Nowak et al. 2026 (arXiv:2602.17445), wherever a run has both of one
benchmark, over the same items in the same orders.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from pytest_llmeval.core import Record
from pytest_llmeval.metrics import variance_ratio
from pytest_llmeval.metrics.bias.audit import FamilyResult
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import Spent
from pytest_llmeval.runs.usage import spent

TEXTS = "matched"
LETTERS = ("choice", "letter")
"""Scorers of answers that are letters: generated, or compared by their likelihood."""


def pairs(
    measurements: Sequence[Measurement], records: Callable[[], Iterable[Record]]
) -> Iterator[dict[str, Any]]:
    """Every pair as JSON values. ``records`` reads those of the run, for what the answers took.

    ``mean``, ``variance``, ``consistency`` and ``recall_std`` are those of the audit's main family
    of arms (``FamilyResult``; ``mean`` is its ``moved_mean``), ``variance_ratio`` is texts over
    letters.
    """
    found = [
        (texts, letters, *families)
        for texts in measurements
        for letters in measurements
        if (families := _comparable(texts, letters)) is not None
    ]
    took = spent(records()) if found else {}
    for texts, letters, of_texts, of_letters in found:
        yield {
            "model": texts.result.model,
            "benchmark": texts.result.benchmark,
            "items": of_texts.items,
            "arms": list(of_texts.arms),
            "texts": _side(texts, of_texts, took),
            "letters": _side(letters, of_letters, took),
            "variance_ratio": variance_ratio(of_texts.variance, of_letters.variance),
        }


def _comparable(
    texts: Measurement, letters: Measurement
) -> tuple[FamilyResult, FamilyResult] | None:
    """The arms of both that are compared; None of unlike items or arms, or with errors."""
    first, second = texts.result, letters.result
    if (
        texts.scored_again
        or letters.scored_again
        or first.scorer.partition("+")[0] != TEXTS
        or second.scorer not in LETTERS
        or (first.model, first.benchmark) != (second.model, second.benchmark)
        or first.counts.error
        or second.counts.error
        or texts.data_hash != letters.data_hash
        or texts.items.keys() != letters.items.keys()
        or first.audit is None
        or second.audit is None
    ):
        return None
    one, other = first.audit.main, second.audit.main
    if one is None or other is None or (one.arms, one.items) != (other.arms, other.items):
        return None
    return one, other


def _side(one: Measurement, family: FamilyResult, took: Mapping[Key, Spent]) -> dict[str, Any]:
    result = one.result
    used = took.get(result.key, Spent())
    return {
        "scorer": result.scorer,
        "protocol": result.protocol,
        "accuracy": result.accuracy,
        "mean": family.moved_mean,
        "variance": family.variance,
        "consistency": family.consistency,
        "recall_std": family.recall_std,
        "seconds": used.seconds,
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
    }
