"""``llmeval overlap``: which items of benchmarks are in a corpus."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_llmeval import catalog
from pytest_llmeval.cli.arguments import whole_number
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.overlap.corpus_pass import CorpusPass
from pytest_llmeval.overlap.corpus_pass import FileResult
from pytest_llmeval.overlap.corpus_pass import SoughtBenchmark
from pytest_llmeval.overlap.report import DOCUMENT
from pytest_llmeval.overlap.report import read_report
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.overlap import overlap_lines
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.sources.corpus import check_libraries
from pytest_llmeval.sources.corpus import corpus_files
from pytest_llmeval.sources.exclusion import exclude_items
from pytest_llmeval.sources.jsonl_benchmark import jsonl

_FILES_SHOWN = 100
"""Results of files that are printed; of more files, only those with matches or errors."""


def add_commands(commands: Any) -> None:
    """Add ``overlap`` to the subparsers of ``llmeval``."""
    overlap = commands.add_parser(
        "overlap", help="search a corpus for the items of benchmarks; continues where it stopped"
    )
    overlap.add_argument(
        "benchmarks",
        metavar="BENCHMARK",
        nargs="+",
        help="name in the catalog, jsonl file of a benchmark, or test module",
    )
    overlap.add_argument(
        "--corpus",
        nargs="+",
        required=True,
        metavar="FILE",
        help="jsonl, text or parquet files, also .gz and .zst; folders and patterns",
    )
    overlap.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    overlap.add_argument(
        "--field", default="text", metavar="NAME", help="field or column of the text (text)"
    )
    overlap.add_argument(
        "--workers",
        type=whole_number,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="processes, each for one file at a time (default: one per processor)",
    )
    overlap.add_argument(
        "--data", type=Path, metavar="DIR", help="data folder of benchmarks, as --llm-data"
    )
    overlap.set_defaults(command=_overlap)


def _overlap(options: argparse.Namespace) -> int:
    if options.workers < 1:
        raise ConfigError("--workers 0: at least one process was expected")
    files = corpus_files(options.corpus)
    check_libraries(files)
    benchmarks = {
        sought.name: sought for name in options.benchmarks for sought in _sought(name, options.data)
    }
    search = CorpusPass(list(benchmarks.values()), files, options.field)
    many = len(files) > _FILES_SHOWN
    for result in search.run(options.out, options.workers):
        if not many or result.error or result.matches:
            print_line(_file_line(result))
            sys.stdout.flush()
    report = read_report(options.out)
    for line in overlap_lines(report):
        print_line(line)
    print_line(f"wrote {options.out / DOCUMENT}")
    return 1 if report.unread else 0


def _file_line(result: FileResult) -> str:
    if result.error is not None:
        return f"ERROR {result.error}"
    items = sum(map(len, result.matches.values()))
    documents = count(result.documents, "document")
    return f"{result.file}: {documents}, {result.words:,} words, matches of {count(items, 'item')}"


def _sought(name: str, data: Path | None) -> Iterator[SoughtBenchmark]:
    """Yield the benchmarks that an argument names, with their items."""
    for benchmark in _benchmarks(name):
        dataset = benchmark.source(data)
        check_dataset(benchmark.name, dataset)
        rest, _ = exclude_items(benchmark.name, dataset, benchmark.exclusion)
        yield SoughtBenchmark(benchmark.name, rest.content_hash(), rest.items)


def _benchmarks(name: str) -> Iterable[Benchmark]:
    path = Path(name)
    if name in catalog.NAMES:
        return [getattr(catalog, name)()]
    if name.endswith((".jsonl", ".jsonl.gz")):
        stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
        # The protocol is required and not used.
        return [Benchmark(stem, jsonl(path), catalog.starter().protocols)]
    if path.suffix == ".py":
        return _marked(path)
    raise ConfigError(
        f"unknown benchmark {name!r}{suggestion(name, catalog.NAMES)} (or a .jsonl file, or the .py"
        " file of its test)"
    )


def _marked(path: Path) -> list[Benchmark]:
    """Return the benchmarks of a module's tests. Raises ConfigError if it has none."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such test module")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the module is the user's
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"{path}: cannot be imported ({reason[:200]})") from error
    finally:
        sys.path.pop(0)
    benchmarks = [
        mark.args[0]
        for value in vars(module).values()
        for mark in getattr(value, "pytestmark", ())
        if mark.name == "llmeval" and mark.args and isinstance(mark.args[0], Benchmark)
    ]
    if not benchmarks:
        raise ConfigError(f"{path}: no test with @pytest.mark.llmeval(…)")
    return benchmarks
