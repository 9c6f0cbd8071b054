"""GSM8K with eight fixed shots, 50 items, up to 256 tokens: this plugin against lm-eval, in one run.

    python perf/generation_vs_lm_eval.py [--items 50] [--batch-sizes 1 4 8 16] [--device cuda]

Both tools answer the same items by lm-eval's task ``gsm8k_cot`` (greedy), each in a fresh process
that was not warmed, on the same safetensors weights (by default made from the demo model): float32
on a CPU, bfloat16 on a GPU. lm-eval: its own task file and its transformers backend, once for
every batch size; the fastest counts. Ours: the model that ``--llm-model hf:FOLDER`` opens, with
its defaults. Needs lm-eval in the same environment (``tox -e perf``), and the data under
LLMEVAL_DATA or ``../shared/data``.

Printed: seconds inside the model's answering, tokenisation included and loading excluded (lm-eval:
inside ``HFLM.generate_until``; ours: ``seconds`` of all responses, minus what the log says loading
took), and how many texts differ from lm-eval's at batch size 1. Both tools add up sums in other
orders than they do for one text alone, so a few texts part where two tokens are nearly as likely;
``tests/parity/test_generation.py`` lists such places with their margins.

Exit status 1 where the ratio is below 2 or more than one text in five differs.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
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

TASK, PROTOCOL = "gsm8k_cot", "lmeval_cot"
LEAST_RATIO = 2.0
MOST_DIFFERENT = 0.2


def main() -> int:
    """Run both tools, or one part of the work where this program calls itself."""
    options = arguments()
    if options.part:
        PARTS[options.part](options)
        return 0
    with tempfile.TemporaryDirectory() as name:
        return compare(options, Path(name))


def arguments() -> argparse.Namespace:
    """Parse the command line; ``--part``, ``--out``, ``--batch`` are for the program's own calls."""
    parser = argparse.ArgumentParser(description="gsm8k_cot against lm-eval")
    add_options(parser)
    parser.add_argument("--items", type=int, default=50)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--part", choices=sorted(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, default=1, help=argparse.SUPPRESS)
    return parsed(parser)


def compare(options: argparse.Namespace, work: Path) -> int:
    """Run the parts one after the other, each in its own process, and print the figures."""
    if options.weights is None:
        options.weights = work / "demo"
        call_self("weights", options, options.weights)
    print(f"{options.items} items of {TASK}, {dtype(options)} on {options.device}", flush=True)
    print(f"{'':24}{'inference s':>12}{'tokens/s':>10}{'other texts':>13}")
    # Ours before and after: a machine that others use, too, is not equally fast all the time.
    ours = [run("ours", options, work)]
    theirs = [run("lm-eval", options, work, size) for size in options.batch_sizes]
    ours.append(run("ours", options, work))
    reference = theirs[0]["texts"]
    for size, result in zip(options.batch_sizes, theirs, strict=True):
        show(f"lm-eval, batch size {size}", result, reference)
    for result in ours:
        show("ours", result, reference)
    slowest = max(result["seconds"] for result in ours)
    fastest = min(result["seconds"] for result in theirs)
    print(f"ratio of lm-eval's best to our slower run: {fastest / slowest:.2f}")
    different = max(others(result["texts"], reference) for result in ours)
    return int(fastest / slowest < LEAST_RATIO or different > MOST_DIFFERENT * options.items)


def show(name: str, result: dict[str, Any], reference: dict[str, str]) -> None:
    """One line of the table."""
    speed = result["tokens"] / result["seconds"]
    print(f"{name:24}{result['seconds']:12.2f}{speed:10.1f}{others(result['texts'], reference):13}")


def others(texts: dict[str, str], reference: dict[str, str]) -> int:
    """How many texts are not the same."""
    assert texts.keys() == reference.keys()
    return sum(texts[item] != reference[item] for item in reference)


# --- processes


def run(part: str, options: argparse.Namespace, work: Path, batch: int = 1) -> dict[str, Any]:
    """Return what a part measured: seconds, tokens, and the texts by item."""
    out = work / f"{part}.json"
    call_self(part, options, out, batch)
    result: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return result


def call_self(part: str, options: argparse.Namespace, out: Path, batch: int = 1) -> None:
    """Run one part in a process of its own; its output is shown only where it fails."""
    command = [
        *(sys.executable, str(Path(__file__).resolve()), "--part", part, "--out", str(out)),
        *("--device", options.device, "--items", str(options.items), "--batch", str(batch)),
        *(("--weights", str(options.weights)) if options.weights else ()),
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{part} failed:\n{done.stdout[-6000:]}{done.stderr[-6000:]}")


# --- parts, each in a process of its own


def part_lm_eval(options: argparse.Namespace) -> None:
    """lm-eval by its defaults but for the batch size."""
    seconds, samples = run_lm_eval(
        options, TASK, "gsm8k", "generate_until", batch_size=options.batch
    )
    # Each of the task's filters has a row of its own for every item.
    write(options, seconds, {str(sample["doc_id"]): sample["resps"][0][0] for sample in samples})


def part_ours(options: argparse.Namespace) -> None:
    """Return the catalog's items by the protocol that asks as lm-eval does."""
    from pytest_llmeval.catalog import gsm8k
    from pytest_llmeval.models import load_model

    messages: list[str] = []
    listener = logging.Handler()
    listener.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("pytest_llmeval").addHandler(listener)
    logging.getLogger("pytest_llmeval").setLevel(logging.INFO)
    benchmark = gsm8k()
    dataset = benchmark.source(data("gsm8k"))
    (protocol,) = (protocol for protocol in benchmark.protocols if protocol.name == PROTOCOL)
    protocol = protocol.bound_to(dataset)
    requests = [
        protocol.request(item, dataset.pool.get(item.subject, ()))
        for item in dataset.items[: options.items]
    ]
    number = {request.id: str(place) for place, request in enumerate(requests)}
    model = load_model(f"hf:{options.weights}?device={options.device}&dtype={dtype(options)}")
    responses = list(model.answer(requests))
    errors = [response.error for response in responses if response.error]
    if errors:
        raise SystemExit(f"{len(errors)} items failed, first: {errors[0]}")
    loading = loading_seconds("\n".join(messages))
    seconds = sum(response.seconds or 0.0 for response in responses) - loading
    write(options, seconds, {number[response.id]: response.text or "" for response in responses})


def write(options: argparse.Namespace, seconds: float, texts: dict[str, str]) -> None:
    """Leave what was measured. Tokens are those of the texts, counted alike for both tools."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.weights)
    encoded = tokenizer(list(texts.values()), add_special_tokens=False).input_ids
    tokens = sum(map(len, encoded))
    result = {"seconds": seconds, "tokens": tokens, "texts": texts}
    options.out.write_text(json.dumps(result), encoding="utf-8")


PARTS = {"weights": part_weights, "lm-eval": part_lm_eval, "ours": part_ours}

if __name__ == "__main__":
    raise SystemExit(main())
