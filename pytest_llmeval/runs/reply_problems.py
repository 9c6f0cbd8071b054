"""Errors of items by their reason, and replies that are wrong because of server or sandbox."""

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
from pytest_llmeval.scorers.swebench.doubts import PREFIX

REASON = 300
"""Maximum length of a reason in characters."""

_MODULES = 5  # modules listed by name
_PATCHES = 5  # patches listed by name

# Text that differs between errors of one kind: request ids, memory addresses, dates, token counts
# and durations. Numbers of three digits are kept: they are HTTP status codes.
_VARIABLE_PARTS = re.compile(
    r"\b(?=[\w-]*\d)[\w-]{8,}"
    r"|\b\d+[.,]\d[\d.,]*"
    r"|\b\d{4,}\b"
    r"|\b\d+(?=\s?(?:m?s|sec|seconds?|minutes?|tokens?|characters?|bytes?)\b)"
)
# As `scorers.execution.execution_score` writes it.
_MISSING_MODULE = re.compile(r"failed: ModuleNotFoundError: No module named '?([\w.]+)")


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """A group of errors with the same reason."""

    count: int
    #: Reason of the first item.
    reason: str
    #: Name of the first item.
    example: str


def group_errors(errors: Iterable[tuple[str, str, str]]) -> list[ErrorGroup]:
    """Group errors by their reason, the most frequent first.

    ``errors``: (reason, id of the item, name of the item as an example). Reasons are grouped if they
    differ only in ids and amounts.
    """
    counts = Counter[str]()
    firsts: dict[str, tuple[str, str]] = {}
    for reason, item, example in errors:
        line = " ".join(reason.split()) or "no reason given"
        kind = _VARIABLE_PARTS.sub("#", line.replace(item, "#") if item else line)
        counts[kind] += 1
        firsts.setdefault(kind, (line[:REASON], example))
    return [ErrorGroup(number, *firsts[kind]) for kind, number in counts.most_common()]


def error_groups(records: Iterable[Record]) -> list[ErrorGroup]:
    """Group the errors among records by their reason; every answer of an item counts."""
    return group_errors(
        (record.error or "", record.item, record.item)
        for record in records
        if record.outcome is Outcome.ERROR
    )


def missing_modules(records: Iterable[Record]) -> dict[str, int]:
    """Count the answers whose program failed because a module is missing, by top-level package.

    The most frequent come first; ``sklearn.svm`` counts as ``sklearn``. Modules of the standard
    library are left out: every sandbox has all that exist.
    """
    counts = Counter[str]()
    for record in records:
        match = _MISSING_MODULE.match(record.answer or "")
        package = "" if match is None else match[1].partition(".")[0]
        if package and package not in sys.stdlib_module_names and record.outcome is Outcome.WRONG:
            counts[package] += 1
    return dict(counts.most_common())


def missing_modules_note(modules: Mapping[str, int]) -> str:
    """Describe the missing modules of the sandbox and the remedy, on one line.

    ``modules``: as returned by ``missing_modules``.
    """
    names = ", ".join(f"{name} ({number:,})" for name, number in [*modules.items()][:_MODULES])
    rest = f", and {len(modules) - _MODULES:,} more" if len(modules) > _MODULES else ""
    total = sum(modules.values())
    return (
        f"{total:,} program{'' if total == 1 else 's'} ended because the sandbox lacks a module:"
        f" {names}{rest}; `llmeval sandbox build --base IMAGE` builds one from an image that has them"
    )


def doubtful_patches(records: Iterable[Record]) -> dict[str, str]:
    """Return item → reasons to read a patch that resolved it, in the order of the records."""
    return {
        record.item: record.detail.removeprefix(PREFIX)
        for record in records
        if record.outcome is Outcome.CORRECT and record.detail.startswith(PREFIX)
    }


def doubtful_patches_note(patches: Mapping[str, str]) -> str:
    """Return the number of doubtful patches, and the first; ``patches`` as of ``doubtful_patches``."""
    shown = "; ".join(f"{item}: {reason}" for item, reason in [*patches.items()][:_PATCHES])
    rest = f"; and {len(patches) - _PATCHES:,} more" if len(patches) > _PATCHES else ""
    subject = "1 resolved instance has a doubtful patch"
    if len(patches) > 1:
        subject = f"{len(patches):,} resolved instances have doubtful patches"
    return f"{subject}, to be read before the result is used: {shown}{rest}"


_PARSER = (
    "the server's reasoning parser took the answer for reasoning: set the parser of this model (vLLM and"
    " SGLang: --reasoning-parser), or turn reasoning off on the server"
)
_LIMIT = "reasoning used up the token limit: raise it with --llm-max-tokens"


def reply_notes(records: Iterable[Record]) -> Iterator[str]:
    """Yield notes on lost or refused replies, missing modules and doubtful patches.

    There is one line per result and kind. Records that are left out of results, records of other
    scorers of the same response, and content-free prompts are ignored.
    """
    counted = Counter[tuple[str, str, str]]()
    kinds: dict[str, Counter[tuple[str, str, str]]] = {
        kind: Counter() for kind in ("thought", "cut off", FILTERED, REFUSED)
    }
    programs: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        is_answer = not (record.response_of or record.content_free or record.order_test)
        is_ignored = record.left_out or not is_answer
        if is_ignored or record.outcome is Outcome.ERROR:
            continue
        key = (record.model, record.benchmark, record.scorer)
        counted[key] += 1
        if record.answer is not None:
            programs.setdefault(key, []).append(record)
        for kind in _kinds(record):
            kinds[kind][key] += 1
    several = len({model for model, _, _ in counted}) > 1
    for key, total in counted.items():
        model, benchmark, scorer = key
        name = f"{model} {benchmark}[{scorer}]" if several else f"{benchmark}[{scorer}]"
        thoughts, cut_off = kinds["thought"][key], kinds["cut off"][key]
        if thoughts:
            reasons = [_LIMIT] if cut_off else []
            reasons += [_PARSER] if thoughts > cut_off else []
            of_them = f" ({cut_off:,} of them cut off at the token limit)" if cut_off else ""
            yield (
                f"{name}: {_share(thoughts, total)} reasoning and no answer{of_them}:"
                f" {'; otherwise '.join(reasons)}"
            )
        if filtered := kinds[FILTERED][key]:
            yield f"{name}: {filtered:,} of {total:,} replies were withheld by a content filter"
        if refused := kinds[REFUSED][key]:
            yield f"{name}: the model refused to answer in {refused:,} of {total:,} replies"
        if modules := missing_modules(programs.get(key, ())):
            yield f"{name}: {missing_modules_note(modules)}"
        if patches := doubtful_patches(programs.get(key, ())):
            yield f"{name}: {doubtful_patches_note(patches)}"


def _kinds(record: Record) -> Iterator[str]:
    if record.finish_reason in (FILTERED, REFUSED):
        yield str(record.finish_reason)
    elif (record.reasoning or "").strip() and record.text is not None and not record.text.strip():
        yield "thought"
        if record.truncated:
            yield "cut off"


def _share(part: int, total: int) -> str:
    return f"all {total:,} replies have" if part == total else f"{part:,} of {total:,} replies have"
