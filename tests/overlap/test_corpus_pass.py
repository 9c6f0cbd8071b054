"""The pass over a corpus: several processes, interruption, damaged files, other searches."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_llmeval.core import Item
from pytest_llmeval.core import RunError
from pytest_llmeval.overlap.corpus_pass import CorpusPass
from pytest_llmeval.overlap.corpus_pass import SoughtBenchmark
from pytest_llmeval.overlap.report import read_report
from support.overlap_brute_force import overlaps

RANDOM = random.Random(5)
WORDS = [f"w{number}" for number in range(3000)]
ITEMS = tuple(
    Item(f"faq-{k:04d}", "faq", " ".join(RANDOM.choices(WORDS, k=20)), 0, ("yes then", "no"))
    for k in range(30)
)
BENCHMARK = SoughtBenchmark("faq", "0123456789abcdef", ITEMS)


def texts(seed: int, planted: range) -> list[str]:
    """Documents of random words; some of them have an item, or its beginning."""
    generator = random.Random(seed)
    documents = [" ".join(generator.choices(WORDS, k=50)) for _ in range(20)]
    for k in planted:
        question = ITEMS[k].question.split()[: generator.choice([20, 12, 9])]
        documents[k] += f". {' '.join(question)} and more"
    return documents


CORPUS = {
    "a.jsonl": texts(1, range(10)),
    "b.jsonl": texts(2, range(5, 15)),
    "c.jsonl": texts(3, range(1)),
}


@pytest.fixture
def corpus(tmp_path: Path) -> list[Path]:
    for name, documents in CORPUS.items():
        lines = [json.dumps({"text": text}) + "\n" for text in documents]
        (tmp_path / name).write_text("".join(lines))
    return [tmp_path / name for name in CORPUS]


def searched(files: list[Path], folder: Path, workers: int = 1, field: str = "text") -> list[str]:
    """Names of the files that were searched now, sorted."""
    results = CorpusPass([BENCHMARK], files, field).run(folder, workers)
    return sorted(Path(result.file).name for result in results)


def content(folder: Path) -> dict:
    return json.loads((folder / "overlap.json").read_text())


def test_all_files_together_equal_brute_force(tmp_path, corpus):
    assert searched(corpus, tmp_path / "out") == ["a.jsonl", "b.jsonl", "c.jsonl"]
    report = read_report(tmp_path / "out")
    expected = overlaps(
        [f"{item.question}\nyes then\nno" for item in ITEMS],
        [text for documents in CORPUS.values() for text in documents],
    )
    (part,) = report.benchmarks
    assert {id: (m.windows_seen, m.longest) for id, m in part.matches.items()} == {
        ITEMS[k].id: (len(overlap.seen), overlap.longest) for k, overlap in expected.items()
    }
    assert part.overlapping.keys() < part.matches.keys()
    assert (report.files, report.documents, part.items, part.judged) == (3, 60, 30, 30)
    match = part.matches["faq-0000"]
    file, _, line = match.document.rpartition(":")
    row = json.loads(Path(file).read_text().splitlines()[int(line) - 1])
    assert match.passage in row["text"]


def test_two_processes_equal_one(tmp_path, corpus):
    searched(corpus, tmp_path / "one")
    assert searched(corpus, tmp_path / "two", workers=2) == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_only_new_and_changed_files_are_searched_again(tmp_path, corpus):
    folder = tmp_path / "out"
    searched(corpus[:2], folder)
    assert searched(corpus, folder) == ["c.jsonl"]
    assert searched(corpus, folder) == []
    corpus[0].write_text(corpus[0].read_text() + '{"text": "new"}\n')
    assert searched(corpus, folder) == ["a.jsonl"]
    searched(corpus, tmp_path / "other")
    assert content(folder) == content(tmp_path / "other")
    # Files that are no longer named do not count.
    searched(corpus[2:], folder)
    assert content(folder)["files"] == 1


def test_a_torn_line_of_the_log_is_searched_again(tmp_path, corpus):
    folder = tmp_path / "out"
    searched(corpus, folder)
    before = content(folder)
    log = folder / "files.jsonl"
    log.write_bytes(log.read_bytes()[:-10])
    assert len(searched(corpus, folder)) == 1
    assert content(folder) == before


def test_a_damaged_file_is_reported_and_read_again(tmp_path, corpus):
    folder = tmp_path / "out"
    whole = corpus[0].read_bytes()
    corpus[0].write_bytes(whole[:-10])
    assert len(searched(corpus, folder)) == 3
    (reason,) = read_report(folder).unread
    assert "a.jsonl, line 20: not valid JSON" in reason
    # No half of a file counts.
    assert not any(
        "a.jsonl" in m.document for m in read_report(folder).benchmarks[0].matches.values()
    )
    corpus[0].write_bytes(whole)
    assert searched(corpus, folder) == ["a.jsonl"]
    assert read_report(folder).unread == []


def test_another_search_needs_another_folder(tmp_path, corpus):
    folder = tmp_path / "out"
    searched(corpus, folder)
    with pytest.raises(RunError, match=r"result of another search \(it differs in field\)"):
        searched(corpus, folder, field="content")
    other = SoughtBenchmark("faq", "f" * 16, ITEMS)
    with pytest.raises(RunError, match="it differs in benchmarks"):
        list(CorpusPass([other], corpus, "text").run(folder, 1))


def test_two_processes_cannot_have_one_folder(tmp_path, corpus):
    folder = tmp_path / "out"
    first = CorpusPass([BENCHMARK], corpus, "text").run(folder, 1)
    next(first)
    with pytest.raises(RunError, match="in use by another process"):
        searched(corpus, folder)
    list(first)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda folder: shutil.rmtree(folder), "is not a folder of llmeval overlap"),
        (lambda folder: (folder / "overlap.json").unlink(), "is not finished: the same command"),
        (lambda folder: (folder / "overlap.json").write_text("{"), "damaged"),
        (lambda folder: (folder / "overlap.json").write_text("[]"), "not a document of format 1"),
        (
            lambda folder: (folder / "overlap.json").write_text('{"format": 1}'),
            "damaged: field: Field required",
        ),
    ],
)
def test_a_damaged_report_is_one_line(tmp_path, corpus, damage, line):
    searched(corpus[:1], tmp_path / "out")
    damage(tmp_path / "out")
    with pytest.raises(RunError, match=line):
        read_report(tmp_path / "out")


PROGRAM = """
import sys
from pathlib import Path
from test_corpus_pass import BENCHMARK
from pytest_llmeval.overlap.corpus_pass import CorpusPass

if __name__ == "__main__":
    folder, workers, *files = sys.argv[1:]
    for result in CorpusPass([BENCHMARK], [Path(file) for file in files], "text").run(
        Path(folder), int(workers)
    ):
        print(result.file, flush=True)
"""


def children(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in path.read_text().split()]


def is_running(process: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def wait_for(condition) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_pass_continues(tmp_path, corpus, workers):
    folder, pipe = tmp_path / "out", tmp_path / "pipe.jsonl"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    os.mkfifo(pipe)  # a file that never ends, and is read last
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), *filter(None, sys.path)])
    log = folder / "files.jsonl"
    with subprocess.Popen(
        [sys.executable, program, folder, str(workers), *corpus, pipe],
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        try:
            wait_for(lambda: log.exists() and log.read_bytes().count(b"\n") == 3)
            # Held open for writing, so that the reader waits in the middle of the file.
            with pipe.open("wb") as half:
                half.write(json.dumps({"text": ITEMS[29].question}).encode() + b"\n")
                half.flush()
                workers_left = children(process.pid)
                process.kill()
                process.wait()
                wait_for(lambda: not any(map(is_running, workers_left)))
        finally:
            process.kill()
    assert not (folder / "overlap.json").exists()
    pipe.unlink()
    pipe.write_text(json.dumps({"text": ITEMS[29].question}) + "\n")
    assert searched([*corpus, pipe], folder, workers) == ["pipe.jsonl"]
    searched([*corpus, pipe], tmp_path / "undisturbed")
    assert content(folder) == content(tmp_path / "undisturbed")
