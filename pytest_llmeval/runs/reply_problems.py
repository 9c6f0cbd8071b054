"""Replies that are wrong for a reason of the server's or the sandbox's: one line for each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator

from pytest_llmeval.core import FILTERED
from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.runs.failures import lacked_modules
from pytest_llmeval.runs.failures import lacked_words

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
