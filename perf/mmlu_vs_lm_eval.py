"""MMLU anatomy, first 100 items, 5 shots: this plugin against lm-eval, in one run.

    python perf/mmlu_vs_lm_eval.py [--device cuda] [--items 100] [--weights FOLDER]

Both tools run as a user would run them, each in a fresh process that was not warmed, on the same
safetensors weights (by default made from the demo model) and the same rows: float32 on a CPU,
bfloat16 on a GPU. lm-eval: its own task file, its transformers backend, batch size 1 (its
default). Ours: ``pytest benchmarks/test_mmlu.py``. Needs lm-eval in the same environment
(``tox -e perf``), and the data under LLMEVAL_DATA or ``../shared/data``.

Printed: *inference*, the seconds inside the model's answering, tokenisation included and loading
excluded (lm-eval: inside ``HFLM.loglikelihood``; ours: ``seconds`` of all records, minus what
the log says loading took); *command*, wall time of the whole process; their ratios; and how much
of this machine's matrix-product peak our inference reached.

Floating-point operations are counted for the work we do, not for the work we save. With T tokens
computed (prefix once, then every item's own), R rows that reach the output head, W weights in
the linear layers of one of L layers, M of them in its MLP, H heads of size D, hidden size E,
vocabulary V, and token i seeing K(i) tokens:

    2·W·L·T − 2·M·(T − R)  +  4·H·D·L·Σ K(i)  +  2·E·V·R

(the last layer's MLP is computed for R rows only). The peak is the best of a few square float32
products (bfloat16 on a GPU), measured in the same run before, between and after the tools.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from peer import ROOT
from peer import add_options
from peer import data
from peer import dtype
from peer import environment
from peer import loading_seconds
from peer import parsed
from peer import part_weights
from peer import run_lm_eval

SUBJECT = "anatomy"
LETTERS = "ABCD"


def main() -> int:
    """Run both tools, or one part of the work where this program calls itself."""
    options = arguments()
    if options.part:
        PARTS[options.part](options)
        return 0
    with tempfile.TemporaryDirectory() as name:
        return compare(options, Path(name))


def arguments() -> argparse.Namespace:
    """Return the command line; ``--part`` and ``--out`` are for the program's own calls."""
    parser = argparse.ArgumentParser(description="MMLU anatomy against lm-eval")
    add_options(parser)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--part", choices=sorted(PARTS), help=argparse.SUPPRESS)
    return parsed(parser)


def compare(options: argparse.Namespace, work: Path) -> int:
    """Run the parts one after the other, each in its own process, and print the figures."""
    if options.weights is None:
        options.weights = work / "demo"
        call_self("weights", options, options.weights)
    peaks = [peak(options, work)]
    theirs = timed(work, "lm-eval", self_command("lm-eval", options, work / "lm-eval.json"))
    their_result = json.loads((work / "lm-eval.json").read_text())
    peaks.append(peak(options, work))
    ours = timed(work, "ours", our_command(options, work))
    our_result = read_run(work)
    peaks.append(peak(options, work))
    call_self("work", options, work / "work.json")
    flops = json.loads((work / "work.json").read_text())["flops"]

    label = f"{options.items} items of {SUBJECT}, 5 shots, {dtype(options)} on {options.device}"
    print(f"\n{label}\n{'':12}{'inference s':>12}{'command s':>12}")
    print(f"{'lm-eval':12}{their_result['seconds']:12.2f}{theirs:12.2f}")
    print(f"{'ours':12}{our_result['seconds']:12.2f}{ours:12.2f}")
    print(
        f"{'ratio':12}{their_result['seconds'] / our_result['seconds']:12.2f}{theirs / ours:12.2f}"
    )
    best = max(peaks)
    speed = flops / our_result["seconds"]
    print(
        f"ours: {flops / 1e9:.0f} GFLOP, {speed / 1e9:.1f} GFLOP/s in inference,"
        f" {speed / best:.0%} of the matrix-product peak"
        f" ({', '.join(f'{value / 1e9:.0f}' for value in peaks)} GFLOP/s)"
    )
    return differences(their_result["logprobs"], our_result["logprobs"])


def differences(theirs: dict[str, list[float]], ours: dict[str, list[float]]) -> int:
    """Print every item on which the tools disagree; the program's exit status."""
    if theirs.keys() != ours.keys():
        print(f"different items: {sorted(theirs.keys() ^ ours.keys())}")
        return 1
    largest = max(
        abs(a - b) for item in ours for a, b in zip(theirs[item], ours[item], strict=True)
    )
    other = [item for item in ours if chosen(theirs[item]) != chosen(ours[item])]
    for item in other:
        print(f"{item}: lm-eval {chosen(theirs[item])} {theirs[item]}, ours {ours[item]}")
    print(
        f"chosen options: {len(other)} of {len(ours)} differ;"
        f" largest |difference of a log-probability| {largest:.2g}"
    )
    return 1 if other else 0


def chosen(logprobs: list[float]) -> str:
    """Return the letter of the highest value, the first of several."""
    return LETTERS[max(range(len(logprobs)), key=lambda option: logprobs[option])]


# --- processes


def self_command(part: str, options: argparse.Namespace, out: Path) -> list[str]:
    """Return the command that asks this program for one part of the work."""
    return [
        *(sys.executable, str(Path(__file__).resolve()), "--part", part, "--out", str(out)),
        *("--device", options.device, "--items", str(options.items)),
        *(("--weights", str(options.weights)) if options.weights else ()),
    ]


def call_self(part: str, options: argparse.Namespace, out: Path) -> None:
    """Run one part that is not timed."""
    subprocess.run(self_command(part, options, out), check=True, env=environment())


def our_command(options: argparse.Namespace, work: Path) -> list[str]:
    """Return what a user would type, and where to leave the run and the log."""
    model = f"hf:{options.weights}?device={options.device}&dtype={dtype(options)}"
    # Ids are numbered with four digits: "anatomy-00" is the first hundred.
    which = [f"{SUBJECT}-00"]
    if options.items != 100:
        which = [f"{SUBJECT}-{number:04d}" for number in range(options.items)]
    return [
        *(sys.executable, "-m", "pytest", "benchmarks/test_mmlu.py", "-q"),
        *("-k", " or ".join(which)),
        *("--llm-model", model, "--llm-data", str(data("mmlu")), "--llm-shots", "5"),
        *("--llm-runs", str(work / "runs"), "--llm-allow-undecided"),
        *("--log-file", str(work / "ours.log"), "--log-file-level", "INFO"),
    ]


def timed(work: Path, name: str, command: list[str]) -> float:
    """Wall seconds of a whole process; its output is shown only where it fails."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        print(done.stdout[-6000:], done.stderr[-6000:], sep="\n")
        raise SystemExit(f"{name} failed with status {done.returncode}")
    return seconds


def read_run(work: Path) -> dict[str, Any]:
    """Inference seconds and log-probabilities from the records of our run."""
    (records,) = (work / "runs").glob("*/records.jsonl")
    rows = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    errors = [row for row in rows if row.get("error")]
    if errors:
        raise SystemExit(f"{len(errors)} items failed, first: {errors[0]['error']}")
    loading = loading_seconds((work / "ours.log").read_text())
    return {
        "seconds": math.fsum(row["seconds"] for row in rows) - loading,
        "logprobs": {row["item"]: row["logprobs"] for row in rows},
    }


def peak(options: argparse.Namespace, work: Path) -> float:
    """Return the best speed of a square matrix product just now, in operations a second."""
    call_self("peak", options, work / "peak.json")
    return float(json.loads((work / "peak.json").read_text())["flops_per_second"])


# --- parts, each in a process of its own


def part_lm_eval(options: argparse.Namespace) -> None:
    """lm-eval by its defaults."""
    seconds, samples = run_lm_eval(
        options, f"mmlu_{SUBJECT}", "mmlu", "loglikelihood", num_fewshot=5
    )
    logprobs = {
        f"{SUBJECT}-{sample['doc_id']:04d}": [float(pair[0]) for pair in sample["filtered_resps"]]
        for sample in samples
    }
    options.out.write_text(json.dumps({"seconds": seconds, "logprobs": logprobs}))


def part_peak(options: argparse.Namespace) -> None:
    """Best of a few products of two square matrices."""
    import torch

    on_gpu = options.device != "cpu"
    side, repeats = (8192, 20) if on_gpu else (3072, 5)
    kind = getattr(torch, dtype(options))
    a = torch.randn(side, side, device=options.device, dtype=kind)
    b = torch.randn(side, side, device=options.device, dtype=kind)
    best = math.inf
    for _ in range(repeats):
        synchronize(options)
        started = time.perf_counter()
        a @ b
        synchronize(options)
        best = min(best, time.perf_counter() - started)
    options.out.write_text(json.dumps({"flops_per_second": 2 * side**3 / best}))


def synchronize(options: argparse.Namespace) -> None:
    """Wait for the GPU, so that a clock measures what it computed."""
    if options.device != "cpu":
        import torch

        torch.cuda.synchronize()


def part_work(options: argparse.Namespace) -> None:
    """Return the floating-point operations of our run, by the formula above."""
    from transformers import AutoConfig
    from transformers import AutoTokenizer

    from pytest_llmeval.catalog import mmlu
    from pytest_llmeval.models.hf.batching import group_by_prefix
    from pytest_llmeval.models.hf.encoding import Encoder

    benchmark = mmlu()
    dataset = benchmark.source(data("mmlu"))
    protocol = replace(benchmark.protocols[0], shots=5)
    items = [item for item in dataset.items if item.subject == SUBJECT][: options.items]
    requests = [protocol.request(item, dataset.pool[SUBJECT]) for item in items]
    encoder = Encoder(AutoTokenizer.from_pretrained(options.weights), None)
    questions, _ = encoder.encode_questions(requests)

    config = AutoConfig.from_pretrained(options.weights)
    layers, hidden = config.num_hidden_layers, config.hidden_size
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or hidden // heads
    mlp = 3 * hidden * config.intermediate_size
    attention = 2 * hidden * size * (heads + config.num_key_value_heads)
    tokens = rows = seen = 0
    for part in group_by_prefix(questions):
        tokens += part.shared
        seen += part.shared * (part.shared + 1) // 2
        for question in part.questions:
            length = len(question.tree.trunk)
            tokens += length - part.shared
            rows += 1
            seen += (length * (length + 1) - part.shared * (part.shared + 1)) // 2
    flops = (
        2 * (mlp + attention) * layers * tokens
        - 2 * mlp * (tokens - rows)
        + 4 * heads * size * layers * seen
        + 2 * hidden * config.vocab_size * rows
    )
    options.out.write_text(json.dumps({"flops": flops, "tokens": tokens}))


PARTS = {
    "weights": part_weights,
    "lm-eval": part_lm_eval,
    "peak": part_peak,
    "work": part_work,
}

if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        raise SystemExit(main())
