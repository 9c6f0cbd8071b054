"""Errors of items by their reason, and replies that are wrong for a reason of the server's or the sandbox's."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_llmeval.core import FILTERED
from pytest_llmeval.core import REFUSED
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
# As `scorers.execution.execution_score` writes it.
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


_PARSER = (
    "the server's reasoning parser took the answer for reasoning: set the parser of this model (vLLM and"
    " SGLang: --reasoning-parser), or turn reasoning off on the server"
)
_LIMIT = "reasoning used up the token limit: raise it with --llm-max-tokens"


def reply_notes(records: Iterable[Record]) -> Iterator[str]:
    """One line for every result and kind: thoughts without an answer, filtered, refused replies.

    And programs that the sandbox lacks a module for. Records that count nowhere, of other scorers, which share a response, and of content-free prompts
    are left out.
    """
    counted = Counter[tuple[str, str, str]]()
    kinds: dict[str, Counter[tuple[str, str, str]]] = {
        kind: Counter() for kind in ("thought", "cut off", FILTERED, REFUSED)
    }
    programs: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        other = record.left_out or record.response_of or record.content_free
        if other or record.outcome is Outcome.ERROR:
            continue
        about = (record.model, record.benchmark, record.scorer)
        counted[about] += 1
        if record.answer is not None:
            programs.setdefault(about, []).append(record)
        for kind in _kinds(record):
            kinds[kind][about] += 1
    several = len({model for model, _, _ in counted}) > 1
    for about, total in counted.items():
        model, benchmark, scorer = about
        name = f"{model} {benchmark}[{scorer}]" if several else f"{benchmark}[{scorer}]"
        thoughts, cut_off = kinds["thought"][about], kinds["cut off"][about]
        if thoughts:
            reasons = [_LIMIT] if cut_off else []
            reasons += [_PARSER] if thoughts > cut_off else []
            of_them = f" ({cut_off:,} of them cut off at the token limit)" if cut_off else ""
            yield (
                f"{name}: {_share(thoughts, total)} reasoning and no answer{of_them}:"
                f" {'; otherwise '.join(reasons)}"
            )
        if filtered := kinds[FILTERED][about]:
            yield f"{name}: {filtered:,} of {total:,} replies were withheld by a content filter"
        if refused := kinds[REFUSED][about]:
            yield f"{name}: the model refused to answer in {refused:,} of {total:,} replies"
        if modules := lacked_modules(programs.get(about, ())):
            yield f"{name}: {lacked_words(modules)}"


def _kinds(record: Record) -> Iterator[str]:
    if record.finish_reason in (FILTERED, REFUSED):
        yield str(record.finish_reason)
    elif (record.reasoning or "").strip() and record.text is not None and not record.text.strip():
        yield "thought"
        if record.truncated:
            yield "cut off"


def _share(part: int, total: int) -> str:
    return f"all {total:,} replies have" if part == total else f"{part:,} of {total:,} replies have"
