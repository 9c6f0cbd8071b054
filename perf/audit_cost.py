"""What a cyclic audit of MMLU letters costs over the single run: four orders of every question.

    python perf/audit_cost.py [--rounds 3] [--subjects abstract_algebra,anatomy,astronomy]

The demo model, five shots, in one process: the requests of the items as they are, then those of the
audit with all four rotations, in turn; the best of the rounds counts. A subject's shots are read
once, and what a question's four orders share once for all of them. Needs the data under LLMEVAL_DATA
or ``../shared/data``.

Status 1: the audit costs more than 3 times the single run, or an answer differs from that of its
order asked alone by more than float rounding can explain.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial

from peer import data

from pytest_llmeval.bias.arms import ORIGINAL
from pytest_llmeval.bias.arms import arms
from pytest_llmeval.bias.arms import arrange
from pytest_llmeval.catalog import mmlu
from pytest_llmeval.core import Request
from pytest_llmeval.models import load_model

BOUND = 3.0
TOLERANCE = 1e-3


def main() -> int:
    """Time both, and compare the answers in the original order."""
    parser = argparse.ArgumentParser(description="cost of a permutation audit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--subjects", default="abstract_algebra,anatomy,astronomy")
    options = parser.parse_args()
    single, audited = requests_of(options.subjects.split(","))
    model = load_model("demo")
    list(model.answer(single[0][:2]))  # loads the weights
    times: dict[str, list[float]] = {"single": [], "audit": []}
    logprobs: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {}
    for _ in range(options.rounds):
        for name, subjects in (("single", single), ("audit", audited)):
            started = time.perf_counter()
            logprobs[name] = {
                (response.id, response.arm or ""): response.logprobs
                for requests in subjects
                for response in model.answer(requests)
            }
            times[name].append(time.perf_counter() - started)
    difference = max(
        abs(a - b)
        for key, values in logprobs["single"].items()
        for a, b in zip(values, logprobs["audit"][key], strict=True)
    )
    ratio = min(times["audit"]) / min(times["single"])
    print(f"{sum(map(len, single))} items, {sum(map(len, audited))} questions in the audit")
    print(f"single run  {min(times['single']):8.2f} s")
    print(f"audit       {min(times['audit']):8.2f} s")
    print(f"the audit costs {ratio:.2f} times the single run (bound {BOUND:g})")
    print(f"largest difference of a log-probability: {difference:.1e}")
    return 1 if ratio > BOUND or difference > TOLERANCE else 0


def requests_of(subjects: list[str]) -> tuple[list[list[Request]], list[list[Request]]]:
    """By subject: the items as they are, and each in its four orders."""
    benchmark = mmlu()
    dataset = benchmark.source(data("mmlu"))
    protocol = benchmark.protocols[0].bound_to(dataset)
    orders = arms("cyclic", 4)
    single, audited = [], []
    for subject in subjects:
        items = [item for item in dataset.items if item.subject == subject]
        pool = dataset.pool[subject]
        single.append([protocol.request(item, pool) for item in items])
        audited.append(
            [
                replace(
                    protocol.request(
                        arrange(item, arm.item) or item,
                        pool,
                        arrange=partial(arrange, move=arm.shots),
                    ),
                    arm="" if arm.name == ORIGINAL else arm.name,
                )
                for item in items
                for arm in orders
            ]
        )
    return single, audited


if __name__ == "__main__":
    raise SystemExit(main())
