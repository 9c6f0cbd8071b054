"""Cost of the plugin in proportion to pytest itself: replayed items against bare tests.

Both suites have the same number of tests and run as fresh processes, one after the other, with no
other plugin than pytest-xdist. The ratio is that of the processor time of all their processes, which
other work on the machine changes less than the time by the clock. Memory is the largest peak of a
process, read from the kernel.

    python perf/overhead.py [--items 14042] [--workers 0 2] [--linear 100000] [--limit 1.8]

With ``--limit`` the exit code is 1 where the ratio of two runs in a row is above it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

SUBJECTS = 57

BARE = """
import pytest

@pytest.mark.parametrize("row", range({items}))
def test_bare(row):
    pass
"""

REPLAYED = """
import pytest
from pytest_llmeval import Benchmark, Protocol
from pytest_llmeval.prompts.multiple_choice import LMEVAL_MMLU
from pytest_llmeval.sources import jsonl

PROTOCOL = Protocol("lmeval", LMEVAL_MMLU, scorer="choice", shots=5, ask="text")
BENCH = Benchmark("bench", jsonl("items.jsonl", shots="shots.jsonl"), (PROTOCOL,))

@pytest.mark.llmeval(BENCH)
def test_replayed(answer):
    assert answer.correct
"""


class Cost(NamedTuple):
    """Processor time and time by the clock in seconds, largest resident set of a process in MB."""

    seconds: float
    clock: float
    peak_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=14_042)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 2])
    parser.add_argument("--linear", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=math.inf, metavar="RATIO")
    options = parser.parse_args()
    alone: dict[int, Cost] = {}
    failed = False
    for workers in options.workers:
        bare, ours = compare(options.items, workers)
        above = print_line(options.items, workers, bare, ours) > options.limit
        if above:  # once may be the machine
            bare, ours = compare(options.items, workers)
            above = print_line(options.items, workers, bare, ours) > options.limit
        failed |= above
        if workers == 0:
            alone[options.items] = ours
    if options.linear:
        bare, ours = compare(options.linear, 0)
        print_line(options.linear, 0, bare, ours)
        if options.items in alone:
            before = alone[options.items]
            growth = (ours.seconds / options.linear) / (before.seconds / options.items)
            print(f"seconds per item, {options.linear:,} against {options.items:,}: {growth:.2f} x")
    if failed:
        sys.exit(f"the ratio of two runs is above {options.limit}")


def print_line(items: int, workers: int, bare: Cost, ours: Cost) -> float:
    """Print the costs of both suites and return their ratio."""
    ratio = ours.seconds / bare.seconds
    print(
        f"{items:,} items, -n {workers}: bare {bare.seconds:.1f} s {bare.peak_mb:.0f} MB,"
        f" plugin {ours.seconds:.1f} s {ours.peak_mb:.0f} MB,"
        f" ratio {ratio:.2f}, by the clock {ours.clock / bare.clock:.2f}",
        flush=True,
    )
    return ratio


def compare(items: int, workers: int) -> tuple[Cost, Cost]:
    """Costs of the bare and of the replayed suite, run one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_bare.py").write_text(BARE.format(items=items))
        (folder / "test_replayed.py").write_text(REPLAYED)
        write_items(folder, items)
        plain = ["test_bare.py"]
        replay = ["-p", "pytest_llmeval.plugin", "test_replayed.py"]
        replay.append("--llm-model=replay:answers.jsonl")
        return run(folder, plain, workers), run(folder, replay, workers)


def write_items(folder: Path, items: int) -> None:
    """Items of the size of MMLU's, and a recorded answer for each, two thirds of them right."""
    options = [f"option {letter} of about forty characters" for letter in "ABCD"]
    with (
        (folder / "items.jsonl").open("w") as questions,
        (folder / "answers.jsonl").open("w") as answers,
    ):
        for number in range(items):
            subject = f"subject_{number % SUBJECTS:02d}"
            row = {
                "id": f"{subject}-{number // SUBJECTS:04d}",
                "subject": subject,
                "question": f"Question {number}: " + "what is it that one would ask here? " * 8,
                "options": options,
                "answer": "ABCD"[number % 4],
            }
            questions.write(json.dumps(row) + "\n")
            text = row["answer"] if number % 3 else "A"
            answers.write(json.dumps({"item": row["id"], "text": text}) + "\n")
    with (folder / "shots.jsonl").open("w") as shots:
        for subject in range(SUBJECTS):
            for shot in range(5):
                row = {
                    "subject": f"subject_{subject:02d}",
                    "question": f"Example {shot} of {subject}: " + "an example question " * 12,
                    "options": options,
                    "answer": "ABCD"[shot % 4],
                }
                shots.write(json.dumps(row) + "\n")


def run(folder: Path, arguments: list[str], workers: int) -> Cost:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "xdist", "-n", str(workers), *arguments]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    # Otherwise every run compiles the package, which installing it has done already.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, start = processor_seconds(), time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    watch = PeakMemory(process.pid)
    output, _ = process.communicate()
    clock = time.perf_counter() - start
    if process.returncode != 0:
        sys.exit(output)
    return Cost(processor_seconds() - before, clock, watch.stop())


def processor_seconds() -> float:
    """Processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class PeakMemory:
    """Watches the peak resident set of a process and of its children (Linux)."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            for pid in [self._pid, *children(self._pid)]:
                self._peak = max(self._peak, high_water_mark(pid))

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self._peak


def children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        return [
            int(child)
            for task in tasks
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        ]
    except OSError:
        return []


def high_water_mark(pid: int) -> float:
    """Peak resident set of a process in MB."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


if __name__ == "__main__":
    main()
