"""From the values in a log to outcomes: the rules that all formats share.

An outcome comes from a verdict of the log and from nothing else. 0, 1, False and True are verdicts.
A scorer that has any other value for an item (a fraction, a number, a text) does not fit rule 6 of
ARCHITECTURE.md, and is left out as a whole. An answer without a value is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Score
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.items import SUBJECT_LENGTH
from pytest_llmeval.interop.log import LoggedAnswer
from pytest_llmeval.interop.names import SetHash
from pytest_llmeval.interop.names import bare_name

_REASON = 300  # characters of an error


@dataclass(frozen=True, slots=True)
class Value:
    """The value that a scorer gave to an answer, as the log has it."""

    value: Any
    #: The extracted answer; None if the log has none.
    answer: str | None = None
    #: The log states that no answer could be extracted.
    unparsed: bool = False


@dataclass(slots=True)
class _Entry:
    answer: LoggedAnswer
    values: Mapping[str, Value]
    error: str | None


@dataclass
class Collector:
    """The answers of one benchmark while its log is read."""

    #: Name of the log in messages.
    log: str
    #: Hash of content and right answer of the items.
    data: SetHash = field(default_factory=SetHash)
    _entries: list[_Entry] = field(default_factory=list)
    _seen: set[tuple[str, int]] = field(default_factory=set)
    _subjects: dict[str, str] = field(default_factory=dict)
    _options: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        answer: LoggedAnswer,
        values: Mapping[str, Value],
        content: Any,
        *,
        error: str | None = None,
        options: int = 0,
    ) -> None:
        """Add an answer, whose ``scores`` are still empty.

        ``values``: by scorer. ``content``: of the item, with its right answer, as JSON values.
        ``error``: why there is no answer, if the log states it. ``options``: number of options of the
        item; 0 for a generated answer. Raises ConfigError for an answer that is there twice, and for
        answers to one item that differ in its content.
        """
        key = (answer.item, answer.sample)
        if key in self._seen:
            number = f", answer {answer.sample + 1}" if answer.sample else ""
            raise ConfigError(f"{self.log}: item {answer.item}{number} occurs twice")
        if not answer.subject or len(answer.subject) > SUBJECT_LENGTH:
            raise ConfigError(
                f"{self.log}: item {answer.item}: its subject {answer.subject[:40]!r} is not a name"
                f" of 1 to {SUBJECT_LENGTH} characters"
            )
        self.data.add(answer.item, [answer.subject, content])
        if not self.data.same(answer.item, [answer.subject, content]):
            raise ConfigError(f"{self.log}: item {answer.item} has two different contents")
        self._seen.add(key)
        self._subjects[answer.item] = answer.subject
        self._options[answer.item] = options
        self._entries.append(_Entry(answer, values, error))

    @property
    def is_empty(self) -> bool:
        """Whether there is no answer yet."""
        return not self._entries

    @property
    def subjects(self) -> set[str]:
        """Subjects of the items."""
        return set(self._subjects.values())

    @property
    def samples(self) -> int:
        """Number of answers per item.

        Raises ConfigError if items have different numbers of answers.
        """
        counts: dict[str, int] = {}
        for item, _ in self._seen:
            counts[item] = counts.get(item, 0) + 1
        if len(set(counts.values())) > 1:
            few, many = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
            raise ConfigError(
                f"{self.log}: item {few} has {counts[few]} answers and {many} has {counts[many]}:"
                " every item needs the same number"
            )
        return next(iter(counts.values()), 1)

    @property
    def chance(self) -> float | None:
        """The accuracy of random answers: the mean of 1/K over items with K options, or None."""
        numbers = self._options.values()
        if not numbers or min(numbers) < 2:
            return None
        return sum(1 / number for number in numbers) / len(numbers)

    def scored(
        self, scorers: Iterable[str], chosen: Iterable[str], prefix: str, hint: str = ""
    ) -> tuple[list[str], list[LoggedAnswer], list[str]]:
        """Return the usable scorers, the answers with their scores, and notes on what is left out.

        ``scorers``: those that the log names, in order. ``chosen``: those that the user wants, with
        or without ``prefix``; empty for all. ``hint``: added if none is usable. Raises ConfigError
        for an unknown scorer, for a chosen one that has other values than 0 and 1, and if none is
        left.
        """
        names = list(dict.fromkeys(scorers))
        wanted = [_chosen(self.log, name, names, prefix) for name in dict.fromkeys(chosen)]
        unusable = {name: reason for name in names if (reason := self._problem(name)) is not None}
        for name in wanted:
            if name in unusable:
                raise ConfigError(f"{self.log}: scorer {name} {unusable[name]}")
        usable = [name for name in wanted or names if name not in unusable]
        if not usable:
            reasons = "; ".join(f"{name} {reason}" for name, reason in unusable.items())
            raise ConfigError(
                f"{self.log} has no scorer with verdicts of 0 and 1"
                f"{f': {reasons}' if reasons else ''}{hint}"
            )
        notes = [f"scorer {name} is left out: it {reason}" for name, reason in unusable.items()]
        return usable, [_scored(entry, usable) for entry in self._entries], notes

    def _problem(self, scorer: str) -> str | None:
        """Return why a scorer cannot be imported; None if it can."""
        for entry in self._entries:
            value = entry.values.get(scorer)
            if value is not None and not _is_missing(value.value) and not _is_verdict(value.value):
                shown = f"{value.value!r:.60}"
                return (
                    f"has values other than 0 and 1, such as {shown} for item {entry.answer.item}"
                )
        if any(entry.error is None for entry in self._entries) and not any(
            scorer in entry.values for entry in self._entries
        ):
            return "has no value for any item"
        return None


def _chosen(log: str, name: str, names: list[str], prefix: str) -> str:
    """Return the full name of a scorer that the user named."""
    for full in (name, f"{prefix}_{name}", f"{prefix}_{bare_name(name)}"):
        if full in names:
            return full
    short_names = [scorer.removeprefix(f"{prefix}_") for scorer in names]
    raise ConfigError(f"{log} has no scorer {name!r}{suggestion(name, short_names)}")


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_verdict(value: Any) -> bool:
    return isinstance(value, bool | int | float) and value in (0, 1)


def _scored(entry: _Entry, scorers: Iterable[str]) -> LoggedAnswer:
    scores = {scorer: _score(entry.values.get(scorer), entry.error) for scorer in scorers}
    return replace(entry.answer, scores=scores)


def _score(value: Value | None, error: str | None) -> Score:
    if error is not None:
        return Score(
            Outcome.ERROR, error=error[:_REASON] or "the log has an error without a reason"
        )
    if value is None or _is_missing(value.value):
        return Score(Outcome.ERROR, error="the log has no verdict on this answer")
    if value.value:
        return Score(Outcome.CORRECT, value.answer)
    if value.unparsed:
        return Score(Outcome.UNPARSED)
    return Score(Outcome.WRONG, value.answer)
