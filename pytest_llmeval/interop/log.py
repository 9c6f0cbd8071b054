"""The content of a log of another harness, as all readers return it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Score


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Facts that a log lacks, from the user."""

    #: Name of the benchmark, in place of the log's.
    name: str | None = None
    #: Field of the items' metadata that is the subject.
    subject: str | None = None
    #: Scorers to import; empty: all that have verdicts.
    scorers: tuple[str, ...] = ()
    #: Name of the model; where a log has several, the one to import.
    model: str | None = None
    #: The items of the log are the whole benchmark, although a limit selected them.
    selection_is_benchmark: bool = False


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One answer to one item, with its score under every imported scorer."""

    item: str
    subject: str
    #: Index of the answer, from 0.
    sample: int
    #: Scorer → score; each has the outcome that the log states.
    scores: Mapping[str, Score]
    #: The right answer, as text.
    gold: str
    text: str | None = None
    reasoning: str | None = None
    logprobs: tuple[float, ...] = ()
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_sha256: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LoggedBenchmark:
    """The answers to one benchmark under one protocol."""

    name: str
    version: str
    #: Everything that can change a score besides the model and the scorer, as JSON values.
    protocol: Mapping[str, Any]
    #: Scorer → its options, as JSON values; the first holds the responses.
    scorers: Mapping[str, Mapping[str, Any]]
    answers: Sequence[LoggedAnswer]
    data_hash: str
    #: Subject → number of items in the whole benchmark.
    sizes: Mapping[str, int]
    #: Accuracy of random answers, a proportion; None without options.
    chance: float | None
    #: Answers per item.
    samples: int = 1

    @property
    def items(self) -> int:
        """Number of items in the log."""
        return len({answer.item for answer in self.answers})


@dataclass(frozen=True)
class Log:
    """A log of another harness, read and checked."""

    #: Name of the harness.
    harness: str
    #: Its version; empty if the log has none.
    version: str
    model: str
    #: Identity of the model's weights; None if the log has none.
    model_fingerprint: str | None
    #: ISO 8601 with the zone; None if the log has none.
    started: str | None
    benchmarks: tuple[LoggedBenchmark, ...]
    #: Files that were read, in the order of their hash.
    files: tuple[Path, ...]
    #: What was left out and what is not compared, a line each.
    notes: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        """Harness and version: ``lm-eval 0.4.13``."""
        return f"{self.harness} {self.version}".strip()


def whole_sizes(
    log: str,
    answers: Iterable[LoggedAnswer],
    whole: Mapping[str, int] | int | None,
    limited: str | None,
    options: ImportOptions,
) -> dict[str, int]:
    """Return the number of items of the whole benchmark by subject.

    ``whole``: that number by subject or in total, as the log has it; None if it has none.
    ``limited``: the setting that selected a part of the items, as text; None if none did. A part is
    never treated as a random sample. Raises ConfigError where only the user can decide what the
    whole is.
    """
    items = {answer.item: answer.subject for answer in answers}
    logged = dict(Counter(items.values()))
    if options.selection_is_benchmark:
        return logged
    again = "--selection-is-benchmark takes the items of the log as the benchmark"
    if whole is None:
        if limited is not None:
            raise ConfigError(
                f"{log}: {limited} selected the items, and the log has no size of the whole: {again}"
            )
        return logged
    if isinstance(whole, int):
        if whole <= len(items):
            return logged
        if len(logged) == 1:
            return dict.fromkeys(logged, whole)
        raise ConfigError(
            f"{log} has {len(items):,} of {whole:,} items, so the sizes of its subjects are unknown:"
            f" leave --subject out, or {again}"
        )
    return {**logged, **{name: max(size, logged.get(name, 0)) for name, size in whole.items()}}
