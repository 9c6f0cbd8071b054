"""5,000 items against a server that fails in every way, killed in the middle and continued.

    python perf/endpoint_faults.py [--items 5000]

The stand-in server answers 10 % of the requests with 429 (half of them with Retry-After), 5 % with
500, resets 2 % of the connections, never answers 1 % and answers 1 % with what is no JSON. The run
is killed (SIGKILL) after half of its answers and begun again with the same response cache.

Printed: whether every item ended as it does without faults, how often requests were repeated, what
the kill cost, and the items per second with and without faults. The exit status is 1 where an answer
was lost, doubled or changed, or where the kill cost 300 answers or more.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
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


def main() -> int:
    """Compare the runs, or be one of them where this program calls itself."""
    parser = argparse.ArgumentParser(description="a run with faults and a kill")
    parser.add_argument("--items", type=int, default=5000)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.url:
        answer(options)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return compare(options.items, Path(folder))


def compare(items: int, folder: Path) -> int:
    """Run without faults, with faults up to the kill, and on; print what came of it."""
    with server({"latency": 0.05}) as url:
        started = time.perf_counter()
        right, _ = finish(items, url, folder / "clean.sqlite")
        clean = time.perf_counter() - started
    with server({"latency": 0.05, "faults": FAULTS, "retry_after": "1"}) as url:
        started = time.perf_counter()
        before = kill_after(items // 2, items, url, folder / "cache.sqlite")
        sent_before = stats(url)["requests"]
        found, usage = finish(items, url, folder / "cache.sqlite")
        faulty = time.perf_counter() - started
        figures = stats(url)

    changed = [name for name in right if found.get(name) != right[name]]
    changed += [name for name, text in before.items() if right[name] != text]
    repeated = figures["answered"] - items
    faults = figures["faults"]
    share = sum(faults.values()) / figures["requests"]
    print(f"{items} items, {IN_FLIGHT} in flight, 50 ms")
    print(f"without faults  {items / clean:8.0f} items/s")
    print(f"with faults     {items / faulty:8.0f} items/s, two starts and the kill included")
    print(
        f"faults: {sum(faults.values())} of {figures['requests']} requests ({share:.1%}):"
        f" {', '.join(f'{count} {name}' for name, count in sorted(faults.items()))}"
    )
    print(
        f"after the kill: {usage['retries']} retries in {usage['requests']} requests,"
        f" {usage['from_cache']} answers from the cache ({sent_before} requests before it)"
    )
    print(
        f"lost or changed: {len(changed)}; errors: {usage['failed']}; doubled by the kill: {repeated}"
    )
    return 1 if changed or usage["failed"] or repeated >= MOST_REPEATED else 0


def command(items: int, url: str, cache: Path) -> list[str]:
    """The command that asks this program for one run."""
    me = [sys.executable, str(Path(__file__).resolve())]
    return [*me, "--items", str(items), "--url", url, "--cache", str(cache)]


def finish(items: int, url: str, cache: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """A whole run: its texts by item, and its usage."""
    done = subprocess.run(command(items, url, cache), check=True, stdout=subprocess.PIPE, text=True)
    *rows, usage = map(json.loads, done.stdout.splitlines())
    if len(rows) != items:
        raise SystemExit(f"{len(rows)} answers to {items} items")
    return dict(rows), usage


def kill_after(count: int, items: int, url: str, cache: Path) -> dict[str, str]:
    """The texts of a run that is killed after so many."""
    process = subprocess.Popen(command(items, url, cache), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    rows = [json.loads(process.stdout.readline()) for _ in range(count)]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return dict(rows)


def answer(options: argparse.Namespace) -> None:
    """One run: a line for every answer, and the usage."""
    from dataclasses import asdict

    from pytest_llmeval.core import Decoding
    from pytest_llmeval.core import Prompt
    from pytest_llmeval.core import Request
    from pytest_llmeval.models.openai import open_model
    from pytest_llmeval.runs.cache import ResponseCache

    model = open_model(
        "stand-in",
        base_url=options.url,
        max_concurrency=IN_FLIGHT,
        timeout=2,
        cache=ResponseCache(options.cache),
    )
    decoding = Decoding(max_tokens=16)
    requests = [
        Request(f"item-{number}", Prompt("", (), f"Question {number}?"), decoding=decoding)
        for number in range(options.items)
    ]
    for response in model.answer(requests):
        print(json.dumps([response.id, response.text]), flush=True)
    print(json.dumps(asdict(model.usage)), flush=True)
    model.close()


@contextmanager
def server(script: dict[str, Any]) -> Iterator[str]:
    """The address of a stand-in server in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "endpoint_server.py"), json.dumps(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


def stats(url: str) -> dict[str, Any]:
    """What the server has counted."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as reply:
        figures: dict[str, Any] = json.loads(reply.read())
    return figures


if __name__ == "__main__":
    raise SystemExit(main())
