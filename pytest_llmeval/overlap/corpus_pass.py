"""One pass over the files of a corpus, in several processes, that can be interrupted at any time.

A folder holds what is needed to continue: ``search.json`` with what is searched for, and
``files.jsonl`` with a line for every file that has been searched. A file that was interrupted is
searched again; a line that was torn is ignored.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from multiprocessing import connection
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pytest_llmeval.core import DataError
from pytest_llmeval.core import Item
from pytest_llmeval.core import RunError
from pytest_llmeval.overlap.index import MOST_ITEMS
from pytest_llmeval.overlap.index import WINDOW
from pytest_llmeval.overlap.index import ItemIndex
from pytest_llmeval.overlap.index import build_index
from pytest_llmeval.overlap.report import DOCUMENT
from pytest_llmeval.overlap.report import FORMAT
from pytest_llmeval.overlap.report import BenchmarkOverlap
from pytest_llmeval.overlap.report import FileMatch
from pytest_llmeval.overlap.report import IndexedItem
from pytest_llmeval.overlap.report import OverlapReport
from pytest_llmeval.overlap.report import merged
from pytest_llmeval.overlap.report import write_json
from pytest_llmeval.overlap.report import write_report
from pytest_llmeval.overlap.search import Search
from pytest_llmeval.overlap.search import item_text
from pytest_llmeval.sources.corpus import documents
from pytest_llmeval.sources.corpus import looks_encoded
from pytest_llmeval.storage.line_writer import LineWriter
from pytest_llmeval.storage.line_writer import try_lock
from pytest_llmeval.storage.line_writer import whole_lines

_SEARCH = "search.json"
_FILES = "files.jsonl"


@dataclass(frozen=True)
class SoughtBenchmark:
    """A benchmark whose items are searched for."""

    name: str
    data_hash: str
    items: Sequence[Item]


@dataclass(frozen=True)
class FileResult:
    """Result of one file; its size and time of change show whether it is still the same."""

    file: str
    size: int
    changed: int
    documents: int = 0
    words: int = 0
    #: Why the file could not be read to its end; then it has no matches.
    error: str | None = None
    warning: str | None = None
    #: Benchmark → item id → match.
    matches: Mapping[str, Mapping[str, FileMatch]] = field(default_factory=dict)


class CorpusPass:
    """The pass of some benchmarks over the files of a corpus, and its folder."""

    def __init__(
        self, benchmarks: Sequence[SoughtBenchmark], files: Sequence[Path], text_field: str
    ) -> None:
        self._benchmarks = benchmarks
        self._files = files
        self._field = text_field
        self._index = build_index(
            [
                [item_text(item.question, item.options) for item in benchmark.items]
                for benchmark in benchmarks
            ]
        )
        #: (benchmark, item id) of every item of the index.
        self._names = [(sought.name, item.id) for sought in benchmarks for item in sought.items]

    def run(self, folder: Path, workers: int) -> Iterator[FileResult]:
        """Search the files that the folder has no result of; yield results as they are stored.

        At the end the report is written. Raises RunError if the folder is in use, belongs to
        another search, or cannot be written, and if a worker was killed.
        """
        with _claimed(folder):
            self._check_same(folder)
            (folder / DOCUMENT).unlink(missing_ok=True)
            done = {result.file: result for result in _stored(folder / _FILES)}
            states = {str(file): _state(file) for file in self._files}
            rest = [file for file in self._files if not _is_done(done.get(str(file)), states)]
            rest.sort(key=lambda file: -states[str(file)][0])
            log = LineWriter(folder / _FILES)
            try:
                for result in self._results(rest, states, workers):
                    line = json.dumps(asdict(result), ensure_ascii=False) + "\n"
                    log.write(line.encode("utf-8", "replace"))
                    done[result.file] = result
                    yield result
            finally:
                log.close()
            write_report(folder, self._report([done[str(file)] for file in self._files]))

    def _results(
        self, files: Sequence[Path], states: Mapping[str, tuple[int, int]], workers: int
    ) -> Iterator[FileResult]:
        if min(workers, len(files)) <= 1:
            for file in files:
                yield self._named(file, states, _search_file(self._index, file, self._field))
            return
        # Spawned: a forked process would inherit the locks of threads of other libraries.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            min(workers, len(files)), context, _start_worker, (self._index, self._field)
        ) as pool:
            jobs = {pool.submit(_search_in_worker, file): file for file in files}
            try:
                for job in as_completed(jobs):
                    yield self._named(jobs[job], states, job.result())
            except BrokenProcessPool:
                raise RunError(
                    "a worker process was killed, for example for lack of memory: the same command"
                    " continues, with fewer --workers if needed"
                ) from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _named(
        self, file: Path, states: Mapping[str, tuple[int, int]], searched: _SearchedFile
    ) -> FileResult:
        matches: dict[str, dict[str, FileMatch]] = {}
        for item, match in searched.matches:
            benchmark, id = self._names[item]
            matches.setdefault(benchmark, {})[id] = match
        return FileResult(
            str(file),
            *states[str(file)],
            searched.documents,
            searched.words,
            searched.error,
            searched.warning,
            matches,
        )

    def _check_same(self, folder: Path) -> None:
        """Store what is searched for; raise RunError if the folder has another search."""
        search = {
            "format": FORMAT,
            "window": WINDOW,
            "most_items": MOST_ITEMS,
            "field": self._field,
            "benchmarks": {sought.name: sought.data_hash for sought in self._benchmarks},
        }
        file = folder / _SEARCH
        if not file.exists():
            write_json(file, search)
            return
        try:
            stored = json.loads(file.read_bytes())
            differences = [name for name in search if stored.get(name) != search[name]]
        except (OSError, ValueError, AttributeError) as error:
            raise RunError(f"{file}: cannot be read ({error})") from None
        if differences:
            raise RunError(
                f"--out {folder} has the result of another search (it differs in"
                f" {', '.join(differences)}): name another folder"
            )

    def _report(self, results: Sequence[FileResult]) -> OverlapReport:
        lengths, judged = self._index.lengths().tolist(), self._index.judged().tolist()
        numbers = iter(range(len(self._names)))
        parts: list[BenchmarkOverlap] = []
        for sought in self._benchmarks:
            items = [
                IndexedItem(
                    item.id,
                    item.subject,
                    lengths[number],
                    max(0, lengths[number] - WINDOW + 1),
                    judged[number],
                )
                for item, number in zip(sought.items, numbers, strict=False)
            ]
            by_file = ((result.file, result.matches.get(sought.name, {})) for result in results)
            parts.append(merged(sought.name, sought.data_hash, items, WINDOW, by_file))
        return OverlapReport(
            self._field,
            len(results),
            sum(result.documents for result in results),
            sum(result.words for result in results),
            parts,
            [result.error for result in results if result.error],
            [result.warning for result in results if result.warning],
        )


@dataclass(frozen=True)
class _SearchedFile:
    documents: int
    words: int
    error: str | None
    warning: str | None
    matches: list[tuple[int, FileMatch]]


def _search_file(index: ItemIndex, file: Path, text_field: str) -> _SearchedFile:
    """Search one file; an error of the file is part of the result."""
    search = Search(index)
    warning = None
    try:
        for document in documents(file, text_field):
            parts = iter(document.parts)
            first = next(parts, "")
            if not search.documents and looks_encoded(first):
                warning = (
                    f"{file}: the text begins with JSON, whose escapes hide matches: name a file of"
                    " JSON lines .jsonl, and its field with --field"
                )
            search.add(document.place, _chain(first, parts), by_line=document.by_line)
        search.finish()
    except DataError as error:
        return _SearchedFile(search.documents, search.words, str(error), warning, [])
    matches = [
        (item, FileMatch(seen, match.words, match.place, match.passage))
        for item, seen, match in search.matches()
    ]
    return _SearchedFile(search.documents, search.words, None, warning, matches)


def _chain(first: str, others: Iterator[str]) -> Iterator[str]:
    yield first
    yield from others


# State of a worker process.
_worker: list[Any] = []


def _start_worker(index: ItemIndex, text_field: str) -> None:
    _worker[:] = [index, text_field]
    parent = multiprocessing.parent_process()
    assert parent is not None
    # A parent that is killed does not end its workers.
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    signal.raise_signal(signal.SIGKILL)


def _search_in_worker(file: Path) -> _SearchedFile:
    index, text_field = _worker
    return _search_file(index, file, text_field)


def _state(file: Path) -> tuple[int, int]:
    """Return the size and the time of the last change of a file."""
    try:
        status = file.stat()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror or error})") from None
    return status.st_size, status.st_mtime_ns


def _is_done(result: FileResult | None, states: Mapping[str, tuple[int, int]]) -> bool:
    """Return true for a complete result of the file in its present state."""
    return (
        result is not None
        and result.error is None
        and states[result.file] == (result.size, result.changed)
    )


def _stored(log: Path) -> Iterator[FileResult]:
    adapter = TypeAdapter(FileResult)
    for number, line in whole_lines(log):
        try:
            yield adapter.validate_python(json.loads(line))
        except (ValueError, RecursionError):
            raise RunError(f"{log}, line {number}: damaged: remove the line") from None


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Create the folder, and lock it against other processes. Raises RunError if it is in use."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise RunError(f"--out {folder}: {error.strerror or error}") from None
    try:
        if not try_lock(handle):
            raise RunError(f"--out {folder} is in use by another process")
        yield
    finally:
        os.close(handle)
