"""Errors of items by their reason, and modules that programs of models did not find.

Hundreds of items fail for one reason, such as an endpoint that is down: it is shown once, with how
many items it cost and one of them as an example.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record

REASON = 300
"""Characters of a reason that are kept."""

_MODULES = 5  # modules that are named

# What differs between errors of one kind: ids of requests, addresses in memory, dates; counts of
# tokens and times. Not numbers of three digits: those are the status codes of HTTP.
_VARIES = re.compile(
    r"\b(?=[\w-]*\d)[\w-]{8,}"
    r"|\b\d+[.,]\d[\d.,]*"
    r"|\b\d{4,}\b"
    r"|\b\d+(?=\s?(?:m?s|sec|seconds?|minutes?|tokens?|characters?|bytes?)\b)"
)
# As `scorers.execution.score_of` writes it.
_LACKED = re.compile(r"failed: ModuleNotFoundError: No module named '?([\w.]+)")


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason of errors: that of the first item, which is the ``example``."""

    count: int
    reason: str
    example: str


def gather(errors: Iterable[tuple[str, str, str]]) -> list[Failure]:
    """The errors by their reason, the most frequent first.

    ``errors``: reason, id of the item, and how the item is named as an example. Reasons are equal
    but for the id, other ids, and amounts in them.
    """
    counts = Counter[str]()
    firsts: dict[str, tuple[str, str]] = {}
    for reason, item, example in errors:
        shown = " ".join(reason.split()) or "no reason given"
        kind = _VARIES.sub("#", shown.replace(item, "#") if item else shown)
        counts[kind] += 1
        firsts.setdefault(kind, (shown[:REASON], example))
    return [Failure(number, *firsts[kind]) for kind, number in counts.most_common()]


def failures_of(records: Iterable[Record]) -> list[Failure]:
    """The errors among records by their reason; an item counts with each of its answers."""
    return gather(
        (record.error or "", record.item, record.item)
        for record in records
        if record.outcome is Outcome.ERROR
    )


def lacked_modules(records: Iterable[Record]) -> dict[str, int]:
    """Module → answers whose program ended for want of it, the most frequent first.

    By the package that is imported, ``sklearn`` for ``sklearn.svm``. Not those of Python itself,
    of which every sandbox has all that there are.
    """
    found = Counter[str]()
    for record in records:
        match = _LACKED.match(record.answer or "")
        package = "" if match is None else match[1].partition(".")[0]
        if package and package not in sys.stdlib_module_names and record.outcome is Outcome.WRONG:
            found[package] += 1
    return dict(found.most_common())


def lacked_words(modules: Mapping[str, int]) -> str:
    """Which modules the sandbox lacked, and what helps; ``modules`` as in ``lacked_modules``."""
    told = ", ".join(f"{name} ({number:,})" for name, number in [*modules.items()][:_MODULES])
    rest = f", and {len(modules) - _MODULES:,} more" if len(modules) > _MODULES else ""
    total = sum(modules.values())
    return (
        f"{total:,} program{'' if total == 1 else 's'} ended because the sandbox lacks a module:"
        f" {told}{rest}; `llmeval sandbox build --base IMAGE` makes one of an image that has them"
    )
