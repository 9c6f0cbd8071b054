"""Sequential sessions against full ones: verdict, items, tokens and seconds, in turn.

    python perf/sequential_sessions.py [--items 14042]

Items of MMLU's size and number of subjects, three quarters of them answered correctly (a quarter by
the endpoint), under a gate on accuracy 5 points below that. Answers are replayed with ``-n 0`` and ``-n 2``, and come from a
stand-in endpoint with 50 ms latency and 64 requests in flight.

The exit code is 1 if a sequential session gives another verdict than the full one, or needs more
than 11 % of 14,042 items or more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from typing import NamedTuple

from overhead import REPLAYED
from overhead import write_items
from peer import environment
from peer import stand_in_server

IN_FLIGHT, LATENCY = 64, 0.05
MARGIN = 0.05
MMLU = 14_042
MOST = 0.11
"""Largest share of so many items at this margin; of fewer, a larger share is needed."""


class Session(NamedTuple):
    """What a session cost, and what it found."""

    verdict: str
    answers: int
    prompt_tokens: int
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=MMLU)
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_replayed.py").write_text(REPLAYED)
        write_items(folder, options.items)
        for title, arguments in {
            "replay, -n 0": ["--llm-model=replay:answers.jsonl", "-n0"],
            "replay, -n 2": ["--llm-model=replay:answers.jsonl", "-n2"],
        }.items():
            failed |= compare(title, folder, options.items, arguments)
        with stand_in_server({"latency": LATENCY}) as url:
            arguments = ["--llm-model=openai:stand-in", f"--llm-base-url={url}", "-n0"]
            arguments.append(f"--llm-max-concurrency={IN_FLIGHT}")
            failed |= compare("endpoint", folder, options.items, arguments)
    return failed


def compare(title: str, folder: Path, items: int, arguments: list[str]) -> bool:
    """Print a full and a sequential session; return True if the sequential one fell short."""
    thresholds = folder / "thresholds.toml"
    thresholds.write_text("version = 1\n[benchmarks.bench]\naccuracy = 0.0\n")
    accuracy = metrics(run(folder, [*arguments, "--llm-runs=probe"])[0])["accuracy"]
    bound = round(accuracy - MARGIN, 4)
    thresholds.write_text(f"version = 1\n[benchmarks.bench]\naccuracy = {bound}\n")
    full = session(folder, [*arguments, "--llm-runs=full"])
    early = session(folder, [*arguments, "--llm-runs=sequential", "--llm-sequential"])
    share = early.answers / items
    print(
        f"{title}: accuracy {accuracy:.4f}, bound {bound}: {full.verdict} and {early.verdict},"
        f" {full.answers:,} and {early.answers:,} answers ({share:.1%}),"
        f" {full.prompt_tokens:,} and {early.prompt_tokens:,} prompt tokens,"
        f" {full.seconds:.1f} and {early.seconds:.1f} s",
        flush=True,
    )
    return full.verdict != early.verdict or (items >= MMLU and share > MOST)


def session(folder: Path, arguments: list[str]) -> Session:
    """Run a session and read its result."""
    path, seconds = run(folder, arguments)
    gates = json.loads((path / "gates.json").read_text())["gates"]
    verdict = next(gate["status"] for gate in gates if gate["metric"] == "accuracy")
    records = list(map(json.loads, (path / "records.jsonl").open()))
    answers = {record["item"]: record for record in records if record["outcome"] != "error"}
    tokens = sum(record.get("prompt_tokens") or 0 for record in answers.values())
    return Session(verdict, len(answers), tokens, seconds)


def run(folder: Path, arguments: list[str]) -> tuple[Path, float]:
    """Run pytest; return the run folder, and seconds of the whole command."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_replayed.py"]
    start = time.perf_counter()
    process = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env={**environment(), "OPENAI_API_KEY": "none"},
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    runs = next(a.partition("=")[2] for a in arguments if a.startswith("--llm-runs="))
    if process.returncode not in (0, 1):
        raise SystemExit(process.stdout + process.stderr)
    return max((folder / runs).glob("*/"), key=lambda path: path.name), seconds


def metrics(path: Path) -> dict[str, Any]:
    """Return the first result of a run."""
    result: dict[str, Any] = json.loads((path / "metrics.json").read_text())["results"][0]
    return result


if __name__ == "__main__":
    raise SystemExit(main())
