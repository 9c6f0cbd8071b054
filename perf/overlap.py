"""Overlap with a corpus: throughput, planted items, and memory over a long stream.

The items are those of MMLU if its data is there, otherwise synthetic ones. The corpus consists of
words with the frequencies of natural text (Zipf), in documents of 400 words; some have a planted
item: as it is, in capitals with punctuation, or with labelled options. Processor time is measured, so
that other processes change little. Next to the search, a dictionary of strings does the same.

    python perf/overlap.py [--megabytes 50] [--gigabytes 5] [--quick]
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from peer import ROOT

from pytest_llmeval.catalog import mmlu
from pytest_llmeval.core import Item
from pytest_llmeval.overlap.index import ItemIndex
from pytest_llmeval.overlap.index import build_index
from pytest_llmeval.overlap.search import Search
from pytest_llmeval.overlap.search import item_text
from pytest_llmeval.sources.corpus import documents
from pytest_llmeval.sources.nonsense import words

WORDS = 400
"""Words of a document."""

WINDOW = 8
FORMATS: dict[str, Callable[[Item], str]] = {
    "as it is": lambda item: "\n".join((item.question, *item.options)),
    "capitals": lambda item: " — ".join((item.question, *item.options)).upper(),
    "labelled": lambda item: "\n".join(
        (item.question, *(f"{'ABCDEFGHIJ'[k]}. {text}" for k, text in enumerate(item.options)))
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=50, help="corpus that is timed (50)")
    parser.add_argument("--gigabytes", type=float, default=0.5, help="stream for the memory (0.5)")
    parser.add_argument("--planted", type=int, default=300, help="planted items (300)")
    parser.add_argument("--quick", action="store_true", help="a smaller corpus, in seconds")
    options = parser.parse_args()
    if options.quick:
        options.megabytes, options.gigabytes = 4, 0.02
    items = load_items()
    texts = [item_text(item.question, item.options) for item in items]
    started = time.process_time()
    index = build_index([texts])
    windows = int(np.maximum(index.lengths() - WINDOW + 1, 0).sum())
    print(
        f"index: {len(items):,} items, {windows:,} windows, {index_bytes(index) / 1e6:.0f} MB,"
        f" {time.process_time() - started:.1f} s; not judged: {int((~index.judged()).sum())}"
    )
    corpus, planted = make_corpus(items, options.megabytes, options.planted)
    with tempfile.TemporaryDirectory() as folder:
        measure_throughput(Path(folder), corpus, index, texts)
        measure_planted(corpus, index, planted)
        measure_memory(Path(folder), index, options.gigabytes)


def load_items() -> list[Item]:
    """Return the items of MMLU, or as many synthetic ones if its data is missing."""
    folder = ROOT.parent / "shared" / "data"
    if (folder / "mmlu").is_dir():
        return list(mmlu().source(folder).items)
    print("no data of MMLU: synthetic items")
    generator = random.Random(1)
    sampled = [generator.choices(words(), k=60) for _ in range(14_042)]
    return [
        Item(f"item-{n}", "s", " ".join(w[:40]), 0, tuple(" ".join(w[k::5]) for k in range(40, 44)))
        for n, w in enumerate(sampled)
    ]


def index_bytes(index: ItemIndex) -> int:
    arrays = (index.words, index.starts, index.own, index.keys, index.offsets, index.occurrences)
    return sum(array.nbytes for array in (*arrays, index.owner)) + (1 << 24)


def make_corpus(
    items: list[Item], megabytes: float, count: int
) -> tuple[list[str], dict[int, str]]:
    """Return the documents, and the number of each planted item with its format."""
    generator = np.random.default_rng(2)
    vocabulary = np.array(words())
    weights = 1 / np.arange(1, len(vocabulary) + 1)
    weights /= weights.sum()
    made: list[str] = []
    size = 0.0
    while size < megabytes * 1e6:
        for row in generator.choice(vocabulary, size=(200, WORDS), p=weights):
            made.append(" ".join(row[:200]) + ".\n" + " ".join(row[200:]))
            size += len(made[-1])
    chosen = generator.choice(len(items), size=min(count, len(made)), replace=False)
    places = generator.choice(len(made), size=len(chosen), replace=False)
    planted = {}
    for turn, (item, place) in enumerate(zip(chosen.tolist(), places.tolist(), strict=True)):
        name = list(FORMATS)[turn % len(FORMATS)]
        planted[item] = name
        made[place] = f"{made[place]}\n{FORMATS[name](items[item])}\n{made[place][:300]}"
    return made, planted


def measure_throughput(folder: Path, corpus: list[str], index: ItemIndex, texts: list[str]) -> None:
    """Print megabytes of text per second of processor time, for each format and the dictionary."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in corpus).encode()
    (folder / "a.jsonl").write_bytes(lines)
    with gzip.open(folder / "a.jsonl.gz", "wb", compresslevel=6) as file:
        file.write(lines)
    (folder / "a.txt").write_text("\n".join(corpus), encoding="utf-8")
    size = sum(map(len, corpus)) / 1e6
    Search(index).finish()
    searched(index, corpus[:50])  # builds the tables
    seconds = timed(lambda: searched(index, corpus))
    print(f"search of strings: {size / seconds:.0f} MB/s a core")
    for name in ("a.txt", "a.jsonl", "a.jsonl.gz"):
        seconds = timed(lambda name=name: search_file(index, folder / name))
        print(f"search of {name}: {size / seconds:.0f} MB/s a core")
    part = corpus[: max(1, len(corpus) // 10)]
    table = dictionary(texts)
    seconds = timed(lambda: look_up(table, part))
    print(f"dictionary of strings: {sum(map(len, part)) / 1e6 / seconds:.1f} MB/s a core")


def measure_planted(corpus: list[str], index: ItemIndex, planted: dict[int, str]) -> None:
    """Print how many planted items are found by each rule, and how many others."""
    search = searched(index, corpus)
    sizes = index.lengths().tolist()
    judged = index.judged()
    hits_of: dict[str, set[int]] = {"half in a row": set(), "70 % of windows": set(), "13": set()}
    for item, seen, match in search.matches():
        if 2 * match.words >= sizes[item]:
            hits_of["half in a row"].add(item)
        if sum(end - start for start, end in seen) >= 0.7 * (sizes[item] - WINDOW + 1):
            hits_of["70 % of windows"].add(item)
        if match.words >= 13:
            hits_of["13"].add(item)
    sought = {item for item in planted if judged[item]}
    others = int(judged.sum()) - len(sought)
    for rule, hits in hits_of.items():
        wrong = hits - planted.keys()
        print(
            f"planted, {rule}: found {len(hits & sought)} of {len(sought)}"
            f" ({len(hits & sought) / len(sought):.1%}); others {len(wrong)} of {others:,}"
        )
    for name in FORMATS:
        own = {item for item in sought if planted[item] == name}
        print(f"  {name}: {len(hits_of['half in a row'] & own)} of {len(own)}")


def measure_memory(folder: Path, index: ItemIndex, gigabytes: float) -> None:
    """Print the peak memory of this process while a long stream of JSON lines is searched."""
    file = folder / "a.jsonl"
    rounds = max(4, round(gigabytes * 1e9 / file.stat().st_size))
    search = Search(index)
    print(f"stream: {rounds * file.stat().st_size / 1e9:.2f} GB of JSON lines")
    for turn in range(1, rounds + 1):
        for document in documents(file):
            search.add(document.place, document.parts)
        if turn in {1, rounds // 4, rounds // 2, rounds}:
            share = turn / rounds
            print(f"  after {share:.0%}: peak memory {peak():.0f} MB", flush=True)
    search.finish()


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def searched(index: ItemIndex, corpus: Iterable[str]) -> Search:
    search = Search(index)
    for number, text in enumerate(corpus, start=1):
        search.add(number, (text,))
    search.finish()
    return search


def search_file(index: ItemIndex, file: Path) -> Search:
    search = Search(index)
    for document in documents(file):
        search.add(document.place, document.parts, by_line=document.by_line)
    search.finish()
    return search


WORD = re.compile(r"[^\W_]+")


def dictionary(texts: list[str]) -> dict[str, list[int]]:
    table: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(texts):
        parts = WORD.findall(text.lower())
        for k in range(len(parts) - WINDOW + 1):
            table[" ".join(parts[k : k + WINDOW])].append(number)
    return dict(table)


def look_up(table: dict[str, list[int]], corpus: Iterable[str]) -> int:
    hits = 0
    for text in corpus:
        parts = WORD.findall(text.lower())
        hits += sum(
            " ".join(parts[k : k + WINDOW]) in table for k in range(len(parts) - WINDOW + 1)
        )
    return hits


if __name__ == "__main__":
    main()
