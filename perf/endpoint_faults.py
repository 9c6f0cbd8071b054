"""5,000 items against a server that fails in every way, killed in the middle and resumed.

    python perf/endpoint_faults.py [--items 5000] [--workers 0]

The stand-in server (``tests/support/endpoint_server.py``) answers 10 % of the requests with 429 (half of
them with Retry-After), 5 % with 500, resets 2 % of the connections, never answers 1 % and answers
1 % with what is no JSON. Three whole pytest runs of the same benchmark: without faults; with
faults, killed (SIGKILL) when half of the answers are on disk; and that one again with
``--llm-resume``.

Printed: whether every item ended as it does without faults, how many requests were repeated because
of the kill, and items per second. The exit status is 1 where an item was lost, doubled, changed or
an error, or where the kill cost 300 requests or more.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from peer import stand_in_server

FAULTS = {
    "429": 0.05,
    "429 after": 0.05,
    "500": 0.05,
    "reset": 0.02,
    "hang": 0.01,
    "garbage": 0.005,
    "torn": 0.005,
}
IN_FLIGHT = 64
MOST_REPEATED = 300
BENCHMARK = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Decoding, Item, Protocol, Template

def load(data_dir):
    return Dataset(tuple(
        Item(f"item-{{n:05d}}", f"subject-{{n % 10}}", f"Question {{n}}?", n % 4,
             ("one", "two", "three", "four"))
        for n in range({items})
    ))

TEMPLATE = Template("plain", lambda subject: "", lambda item: item.question, lambda item: ())
PROTOCOL = Protocol("plain", TEMPLATE, scorer="choice", ask="text", chat=True,
                    decoding=Decoding(max_tokens=16))

@pytest.mark.llmeval(Benchmark("faults", load, (PROTOCOL,)))
def test_faults(answer):
    assert answer.correct
"""

Ended = dict[str, tuple[str, str]]
"""Item id → its outcome and its text."""


def main() -> int:
    """Make the three runs and compare what came of them."""
    parser = argparse.ArgumentParser(description="a run with faults, a kill and a resumption")
    parser.add_argument("--items", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "test_faults.py").write_text(BENCHMARK.format(items=options.items))
        (project / "pytest.ini").write_text("[pytest]\n")
        return compare(project, options.items, options.workers)


def compare(project: Path, items: int, workers: int) -> int:
    """Run without faults, with faults up to the kill, and on; print what came of it."""
    with stand_in_server({"latency": 0.05}) as url:
        started = time.perf_counter()
        finish(command(url, "clean", workers), project)
        clean = time.perf_counter() - started
    with stand_in_server({"latency": 0.05, "faults": FAULTS, "retry_after": "1"}) as url:
        started = time.perf_counter()
        faulty_run = command(url, "faulty", workers)
        answered_before = kill_at(items // 2, faulty_run, project)
        at_kill = stats(url)
        output = finish([*faulty_run, "--llm-resume"], project)
        faulty = time.perf_counter() - started
        figures = stats(url)

    right, faulted = ended(project / "clean"), ended(project / "faulty")
    changed = [item for item in right if faulted.get(item) != right[item]]
    errors = sum(outcome == "error" for outcome, _ in faulted.values())
    repeated = figures["answered"] - items
    faults = figures["faults"]
    share = sum(faults.values()) / figures["requests"]
    retries = next(line for line in output.splitlines() if "retries)" in line)
    print(f"{items} items, {IN_FLIGHT} in flight, 50 ms, {workers} workers")
    print(f"without faults  {items / clean:8.0f} items/s, the whole command")
    print(f"with faults     {items / faulty:8.0f} items/s, two commands and the kill included")
    print(
        f"faults: {sum(faults.values())} of {figures['requests']} requests ({share:.1%}):"
        f" {', '.join(f'{count} {name}' for name, count in sorted(faults.items()))}"
    )
    print(f"killed with {answered_before} answers on disk, after {at_kill['requests']} requests")
    print(f"resumed: {retries}")
    print(
        f"items that ended otherwise: {len(changed)} of {len(right)}; errors: {errors};"
        f" answered twice because of the kill: {repeated}"
    )
    outcomes = Counter(outcome for outcome, _ in faulted.values())
    print(f"outcomes: {dict(sorted(outcomes.items()))}")
    lost = len(faulted) != items or len(right) != items
    return 1 if changed or errors or lost or repeated >= MOST_REPEATED else 0


def command(url: str, runs: str, workers: int) -> list[str]:
    """Return the command of one run."""
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(workers)),
        *("--llm-model", "openai:stand-in", "--llm-base-url", url, "--llm-runs", runs),
        *("--llm-max-concurrency", str(IN_FLIGHT), "--llm-timeout", "2"),
    ]


def finish(arguments: list[str], project: Path) -> str:
    """Run to the end; what it printed."""
    done = subprocess.run(arguments, cwd=project, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-4000:], done.stderr[-4000:])
        raise SystemExit(f"a run ended with status {done.returncode}")
    return done.stdout


def kill_at(count: int, arguments: list[str], project: Path) -> int:
    """Kill the run, and its workers, when so many records are on disk; how many there were."""
    process = subprocess.Popen(
        arguments,
        cwd=project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    lines = 0
    while lines < count and process.poll() is None:
        time.sleep(0.02)
        for records in (project / "faulty").glob("*/records.jsonl"):
            lines = records.read_bytes().count(b"\n")
    if process.poll() is not None:
        raise SystemExit("the run ended before it could be killed")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return lines


def ended(runs: Path) -> Ended:
    """How every item ended, by the last record about it. There is one run in the folder."""
    (records,) = runs.glob("*/records.jsonl")
    outcomes: Ended = {}
    for line in records.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # torn by the kill
            continue
        outcomes[record["item"]] = (record["outcome"], record.get("text", ""))
    return outcomes


def stats(url: str) -> dict[str, Any]:
    """Return what the server has counted."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as reply:
        figures: dict[str, Any] = json.loads(reply.read())
    return figures


if __name__ == "__main__":
    raise SystemExit(main())
