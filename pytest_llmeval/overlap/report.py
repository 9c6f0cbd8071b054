"""Overlap of benchmarks with a corpus: numbers of every item, and the document ``overlap.json``.

Definitions, for an item of w words (question and options) and its windows of eight words that occur
in the corpus as part of a match:

- ``longest``: words of the longest run that is in one document. At least w/2 is an *overlap*. In
  ConTAM (Singh et al. 2024, arXiv:2411.03923), this explains scores better than unions of matches.
- ``windows_seen`` over all windows, an overlap from 70 % in PaLM (Chowdhery et al. 2022,
  arXiv:2204.02311), and ``words_covered``, the words in such a window, over all words, as in Llama 3
  (Grattafiori et al. 2024, arXiv:2407.21783).
- 13 words in a row: an overlap in GPT-3 (Brown et al. 2020, arXiv:2005.14165).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic import ValidationError

from pytest_llmeval.core import RunError

FORMAT = 1
DOCUMENT = "overlap.json"

PALM = 0.70
GPT3 = 13
MOST_UNJUDGED = 0.05
"""A larger share of items that cannot be judged is warned of."""


@dataclass(frozen=True, slots=True)
class IndexedItem:
    """An item that is searched for."""

    id: str
    subject: str
    words: int
    windows: int
    #: False if it has fewer words than a window, or no window of its own.
    judged: bool


@dataclass(frozen=True, slots=True)
class FileMatch:
    """Match of an item in one file."""

    #: Ranges of windows that were seen: first, past the last.
    seen: Sequence[Sequence[int]]
    #: Words of the longest run.
    words: int
    place: int
    passage: str


@dataclass(frozen=True, slots=True)
class ItemOverlap:
    """Match of an item in the corpus."""

    subject: str
    words: int
    windows: int
    windows_seen: int
    words_covered: int
    longest: int
    #: File and line (or row) of the longest run.
    document: str
    passage: str

    @property
    def overlapping(self) -> bool:
        """Whether the longest run has at least half of the words: the rule that is gated."""
        return 2 * self.longest >= self.words

    @property
    def windows_share(self) -> float:
        """Share of the windows that were seen."""
        return self.windows_seen / self.windows

    @property
    def words_share(self) -> float:
        """Share of the words in a window that was seen."""
        return self.words_covered / self.words


@dataclass(frozen=True, slots=True)
class BenchmarkOverlap:
    """Overlap of one benchmark."""

    benchmark: str
    data_hash: str
    items: int
    #: Item id → match, of the items with a match of any length.
    matches: Mapping[str, ItemOverlap]
    #: Item id → subject, of the items that could not be judged.
    unjudged: Mapping[str, str]

    @property
    def judged(self) -> int:
        """Number of items that were judged."""
        return self.items - len(self.unjudged)

    @property
    def overlapping(self) -> dict[str, ItemOverlap]:
        """The items that overlap with the corpus."""
        return {id: match for id, match in self.matches.items() if match.overlapping}


@dataclass(frozen=True, slots=True)
class OverlapReport:
    """Result of a pass over a corpus."""

    field: str
    files: int
    documents: int
    words: int
    benchmarks: Sequence[BenchmarkOverlap]
    #: Files that could not be read to their end, with the reason.
    unread: Sequence[str]
    warnings: Sequence[str] = ()

    def find(self, name: str, data_hash: str) -> BenchmarkOverlap | None:
        """Return the overlap of the benchmark with this data, or else with this name; None without."""
        same_data = (part for part in self.benchmarks if part.data_hash == data_hash)
        same_name = (part for part in self.benchmarks if part.benchmark == name)
        return next(same_data, None) or next(same_name, None)


def merged(
    name: str,
    data_hash: str,
    items: Sequence[IndexedItem],
    window: int,
    matches: Iterable[tuple[str, Mapping[str, FileMatch]]],
) -> BenchmarkOverlap:
    """Return the overlap of a benchmark from the matches of all files, in the order of the files.

    ``matches``: (file, item id → match). ``window``: number of words of a window.
    """
    best: dict[str, tuple[FileMatch, str]] = {}
    seen: dict[str, set[int]] = {}
    for file, by_item in matches:
        for id, match in by_item.items():
            seen.setdefault(id, set()).update(*(range(*ends) for ends in match.seen))
            if id not in best or match.words > best[id][0].words:
                best[id] = match, file
    overlaps = {}
    for item in items:
        if item.id in best:
            match, file = best[item.id]
            covered = {place + k for place in seen[item.id] for k in range(window)}
            overlaps[item.id] = ItemOverlap(
                item.subject,
                item.words,
                item.windows,
                len(seen[item.id]),
                len(covered),
                match.words,
                f"{file}:{match.place}",
                match.passage,
            )
    unjudged = {item.id: item.subject for item in items if not item.judged}
    return BenchmarkOverlap(name, data_hash, len(items), overlaps, unjudged)


def write_report(folder: Path, report: OverlapReport) -> None:
    """Write ``overlap.json`` atomically. Raises RunError if it cannot be written."""
    write_json(folder / DOCUMENT, {"format": FORMAT, **asdict(report)})


def write_json(file: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file atomically. Raises RunError if it cannot be written."""
    temporary = file.with_name(f".{file.name}.tmp")
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        # "replace": half of a surrogate pair in a passage must not cost the report.
        temporary.write_bytes(text.encode("utf-8", "replace"))
        os.replace(temporary, file)
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}") from error


def read_report(folder: Path) -> OverlapReport:
    """Read the result of ``llmeval overlap`` from its folder.

    Raises RunError, in one line, if it is missing, not finished or damaged.
    """
    file = folder / DOCUMENT
    try:
        value = json.loads(file.read_bytes())
        if not isinstance(value, dict) or value.pop("format", None) != FORMAT:
            raise RunError(f"{file}: not a document of format {FORMAT}, which this version reads")
        return TypeAdapter(OverlapReport).validate_python(value)
    except (FileNotFoundError, NotADirectoryError):
        if (folder / "files.jsonl").exists():
            raise RunError(
                f"{folder}: llmeval overlap is not finished: the same command continues it"
            ) from None
        raise RunError(f"{folder} is not a folder of llmeval overlap: no {DOCUMENT}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RunError(f"{file}: damaged: {place}: {first['msg']}") from None
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{file}: damaged ({error})") from None
