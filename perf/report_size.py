"""The HTML report of a run as large as MMLU: seconds, memory and size of the file.

A log-likelihood run of 14,042 items in MMLU's 57 subjects, with made-up questions of MMLU's length,
prompts of five shots and a baseline, written by `llmeval report` in a process of its own. Exits
with 1 above a limit: 20 s, 500 MB of memory, 15 MB of file.

    python perf/report_size.py [--items 14042]
"""

from __future__ import annotations

import argparse
import hashlib
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_llmeval.catalog.mmlu import PROTOCOLS
from pytest_llmeval.catalog.mmlu import TEST_ROWS
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.evaluation.planner import variants
from pytest_llmeval.evaluation.suite import Evaluation
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.prompts import write_prompts
from pytest_llmeval.storage.records import RecordWriter

LIMITS = {"seconds": 20.0, "MB of memory": 500.0, "MB of file": 15.0}

_MEAN_WORDS = 45
_OPTION_WORDS = 7


def made_up(items: int, rng: random.Random) -> Dataset:
    """Questions of words that do not repeat more than those of a language do."""
    words = [hashlib.sha256(str(n).encode()).hexdigest()[: 2 + n % 9] for n in range(8000)]

    def text(count: float) -> str:
        return " ".join(rng.choices(words, k=1 + int(rng.expovariate(1 / count))))

    def item(name: str, subject: str) -> Item:
        options = tuple(text(_OPTION_WORDS) for _ in range(4))
        return Item(name, subject, text(_MEAN_WORDS), rng.randrange(4), options)

    scale = items / sum(TEST_ROWS.values())
    return Dataset(
        tuple(
            item(f"{subject}-{row:04d}", subject)
            for subject, rows in TEST_ROWS.items()
            for row in range(max(1, round(rows * scale)))
        ),
        {s: tuple(item(f"{s}-dev-{n}", s) for n in range(5)) for s in TEST_ROWS},
    )


def store(folder: Path, dataset: Dataset, rng: random.Random) -> None:
    """Return a run of a model that knows half."""
    protocol = PROTOCOLS[0].bound_to(dataset)
    benchmark = Benchmark("mmlu", lambda _: dataset, PROTOCOLS)
    evaluation = Evaluation("test", benchmark, protocol, dataset, "made-up", dataset.items)
    result = PlannedResult(
        "mmlu", "1", "made-up", 0.25, dataset.subject_sizes(), None, variants(protocol), {}
    )
    fingerprint = result.variants[0].fingerprint
    folder.mkdir()
    manifest = {"models": ["made-up"], "own_model": False, "results": [result.as_json()]}
    RunFolder(folder).write("run.json", manifest)
    write_prompts(folder, [(evaluation, [fingerprint], dataset.items)])
    writer = RecordWriter(folder / "records.jsonl")
    writer.append(*(record(item, protocol, dataset, fingerprint, rng) for item in dataset.items))
    writer.close()


def record(item: Item, protocol, dataset: Dataset, fingerprint: str, rng: random.Random) -> Record:
    right = rng.random() < 0.5
    chosen = item.gold if right else (item.gold + rng.randrange(1, 4)) % 4
    weights = [rng.random() for _ in range(4)]
    weights[chosen] = max(weights) + rng.random()
    return Record(
        model="made-up",
        benchmark="mmlu",
        scorer="letter",
        item=item.id,
        subject=item.subject,
        outcome=Outcome.CORRECT if right else Outcome.WRONG,
        answer="ABCD"[chosen],
        gold=item.gold_label,
        logprobs=tuple(math.log(weight / sum(weights)) for weight in weights),
        prompt_sha256=protocol.render(item, dataset.pool[item.subject]).sha256,
        seconds=rng.random(),
        protocol=fingerprint,
        data="made-up",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=sum(TEST_ROWS.values()))
    items = parser.parse_args().items
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        dataset = made_up(items, random.Random(1))
        for number, run in enumerate(("baseline", "candidate")):
            store(root / run, dataset, random.Random(number))
        call = "import sys; from pytest_llmeval.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", call, "report", str(root / "candidate")]
        began = time.perf_counter()
        subprocess.run([*command, "--baseline", str(root / "baseline")], check=True)
        measured = {
            "seconds": time.perf_counter() - began,
            # Linux tells kibibytes: the most that any child of this process had.
            "MB of memory": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6,
            "MB of file": (root / "candidate" / "report.html").stat().st_size / 1e6,
        }
    print(f"{len(dataset.items):,} items")
    for what, value in measured.items():
        print(f"{value:8.1f} {what} (limit {LIMITS[what]:g}, ratio {value / LIMITS[what]:.2f})")
    return int(any(value > LIMITS[what] for what, value in measured.items()))


if __name__ == "__main__":
    sys.exit(main())
