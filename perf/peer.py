"""What the programs share: where the rows are, and lm-eval on the same weights, rows and clock."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where and on which weights both tools run."""
    parser.add_argument("--device", default=None, help="cpu or cuda (default: cuda if there)")
    parser.add_argument("--weights", type=Path, default=None, help="folder with safetensors")
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the command line, with the device that there is."""
    options = parser.parse_args()
    if options.device is None:
        import torch

        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    return options


def dtype(options: argparse.Namespace) -> str:
    """Return what is compared: full precision where products are slow anyway, half on a GPU."""
    return "float32" if options.device == "cpu" else "bfloat16"


def data(benchmark: str) -> Path:
    """Return the folder that holds a benchmark's rows."""
    folder = Path(os.environ.get("LLMEVAL_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / benchmark).is_dir():
        raise SystemExit(f"no {benchmark} data in {folder}: set LLMEVAL_DATA")
    return folder


def environment() -> dict[str, str]:
    """Offline, and without progress bars."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TQDM_DISABLE": "1"}
    return {**os.environ, **offline}


def part_weights(options: argparse.Namespace) -> None:
    """Return the demo model as a folder of safetensors that both tools read."""
    from pytest_llmeval.models import demo
    from pytest_llmeval.models.hf.loading import load
    from pytest_llmeval.models.hf.spec import parse_spec

    path = demo.weights()
    if path is None:
        raise SystemExit(f"no demo model; {demo.INSTALL}")
    loaded = load(parse_spec(f"{path}?device=cpu&dtype=float32"))
    loaded.model.save_pretrained(options.out)
    loaded.tokenizer.save_pretrained(options.out)


def run_lm_eval(
    options: argparse.Namespace, task: str, benchmark: str, method: str, **arguments: Any
) -> tuple[float, list[dict[str, Any]]]:
    """lm-eval's own task on the same rows: seconds inside a method of its model, and its samples."""
    sys.path.insert(0, str(TESTS))
    import lm_eval
    from lm_eval.models.huggingface import HFLM

    from support import lm_eval_rows

    lm_eval_rows.feed(data(benchmark))
    seconds = 0.0
    original = getattr(HFLM, method)

    def measured(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal seconds
        started = time.perf_counter()
        result = original(self, *args, **kwargs)
        seconds += time.perf_counter() - started
        return result

    setattr(HFLM, method, measured)
    results = lm_eval.simple_evaluate(
        model="hf",
        model_args=f"pretrained={options.weights},dtype={dtype(options)}",
        device=options.device,
        tasks=[task],
        limit=options.items,
        **arguments,
    )
    samples: list[dict[str, Any]] = results["samples"][task]
    return seconds, samples


def loading_seconds(log: str) -> float:
    """Return what loading took by our log: it is no part of answering."""
    return sum(map(float, re.findall(r"ready after ([0-9.]+) s", log)))


@contextmanager
def stand_in_server(script: Mapping[str, Any]) -> Iterator[str]:
    """Yield the address of a stand-in endpoint in a process of its own.

    ``script``: the fields of ``Script`` in ``tests/support/endpoint_server.py``.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "support.endpoint_server", json.dumps(script)],
        cwd=TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()
