"""Answers as texts against answers as letters, as one small table."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from pytest_llmeval.core.plan import family_of
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.terminal.tables import add_numbers
from pytest_llmeval.reports.terminal.tables import open_table

HEADER = ("answers", "accuracy", "mean", "variance", "SCORE", "RStd", "seconds", "tokens")

Pair = Mapping[str, Any]


def pair_parts(pairs: Iterable[Pair]) -> Iterable[Any]:
    """The pairs as rich renderables."""
    for pair in pairs:
        yield Text(pair_title(pair), style="bold")
        table = open_table(collapse=True)
        table.add_column(HEADER[0], overflow="fold")
        add_numbers(table, *HEADER[1:])
        for name, *cells in pair_rows(pair):
            table.add_row(Text(name), *cells)
        yield table
        yield Text(pair_words(pair))


def pair_title(pair: Pair) -> str:
    """What is compared: over which items, in which orders."""
    arms = pair["arms"]
    return (
        f"{pair['benchmark']}, texts against letters: {count(pair['items'], 'item')}, as they are"
        f" and in {count(len(arms), 'order')} of {family_of(arms[0])!r}"
    )


def pair_rows(pair: Pair) -> list[Sequence[str]]:
    """A row for the texts, one for the letters, with the columns of ``HEADER``."""
    return [_row(pair[side]) for side in ("texts", "letters")]


def pair_words(pair: Pair) -> str:
    """The ratio of the variances, in a sentence."""
    ratio = pair["variance_ratio"]
    if ratio is None:
        return "variance ratio: not defined, that of the letters is 0"
    which = "texts" if ratio < 1 else "letters"
    steadier = "neither is the steadier" if ratio == 1 else f"the {which} are the steadier"
    return f"variance ratio, texts over letters: {ratio:.4g}: {steadier}"


def _row(side: Mapping[str, Any]) -> Sequence[str]:
    tokens = [side["prompt_tokens"], side["completion_tokens"]]
    known = [value for value in tokens if value is not None]
    return (
        side["scorer"],
        number(side["accuracy"]),
        number(side["mean"]),
        number(side["variance"], 5),
        number(side["consistency"]),
        number(side["recall_std"]),
        number(side["seconds"], 1),
        f"{sum(known):,}" if known else "-",
    )
