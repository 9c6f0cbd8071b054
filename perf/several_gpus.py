"""One model on one GPU, and with its layers on several: equal answers, and what it costs.

    python perf/several_gpus.py [--model hf:NAME] [--devices 2] [--items 100]

Runs ``benchmarks/test_starter.py`` twice (log-likelihoods), and ``benchmarks/test_gsm8k.py`` twice
(texts), each in a fresh process in bfloat16. Printed: seconds of inference
without loading, their ratio, and how many chosen options and texts differ. Log-probabilities differ
by rounding only; a differing text is one near-tie between tokens and what follows from it. Needs
as many GPUs as ``--devices``, and the data of GSM8K under LLMEVAL_DATA or ``../shared/data``.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from peer import ROOT
from peer import data
from peer import environment
from peer import loading_seconds

from pytest_llmeval.core import Record
from pytest_llmeval.runs import load_run


def main() -> int:
    """Compare the placements; the exit status is 1 if a chosen option differs."""
    parser = argparse.ArgumentParser(description="one GPU against several")
    parser.add_argument("--model", default="hf:HuggingFaceTB/SmolLM2-135M-Instruct")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--items", type=int, default=100)
    options = parser.parse_args()
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count < options.devices:
        raise SystemExit(f"{options.devices} GPUs are needed; this machine has {count}")
    differing = 0
    for benchmark in ("starter", "gsm8k"):
        single, single_seconds = answers(benchmark, options, 1)
        several, seconds = answers(benchmark, options, options.devices)
        differing += compare(benchmark, single, several)
        print(
            f"{benchmark}: 1 device {single_seconds:.2f} s, {options.devices} devices"
            f" {seconds:.2f} s, ratio {seconds / single_seconds:.2f}"
        )
    return 1 if differing else 0


def answers(
    benchmark: str, options: argparse.Namespace, devices: int
) -> tuple[dict[str, Record], float]:
    """Return the records of a run by item, and the seconds of inference without loading."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        joint = "&" if "?" in options.model else "?"
        command = [
            *(sys.executable, "-m", "pytest", f"benchmarks/test_{benchmark}.py", "-q"),
            *("--llm-model", f"{options.model}{joint}dtype=bfloat16&devices={devices}"),
            *("--llm-data", str(data("gsm8k")), "--llm-limit", str(options.items)),
            *("--llm-runs", folder, "--llm-allow-undecided"),
            *("--log-file", str(log), "--log-file-level", "INFO"),
        ]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
        )
        paths = list(Path(folder).glob("*/run.json"))
        if not paths:
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
        run = load_run(paths[0].parent)
        records = {f"{record.scorer} {record.item}": record for record in run.records}
        seconds = math.fsum(record.seconds or 0.0 for record in run.records)
        return records, seconds - loading_seconds(log.read_text())


def compare(benchmark: str, single: dict[str, Record], several: dict[str, Record]) -> int:
    """Print the differences; return the number of choices that differ."""
    if single.keys() != several.keys():
        raise SystemExit(f"{benchmark}: different items were answered")
    pairs = [(single[key], several[key]) for key in single]
    choices = [pair for pair in pairs if pair[0].logprobs]
    texts = [pair for pair in pairs if pair[0].text is not None]
    largest = max(
        (
            abs(a - b)
            for one_device, more in choices
            for a, b in zip(one_device.logprobs, more.logprobs, strict=True)
        ),
        default=0.0,
    )
    differing = sum(a.answer != b.answer for a, b in choices)
    print(
        f"{benchmark}: {differing} of {len(choices)} chosen options differ, largest difference of a"
        f" log-probability {largest:.2g}; {sum(a.text != b.text for a, b in texts)} of"
        f" {len(texts)} texts differ"
    )
    return differing


if __name__ == "__main__":
    sys.exit(main())
