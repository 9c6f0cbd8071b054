"""Error probabilities and expected numbers of items of sequential gates.

For gates on counts both are exact, by the distribution of (answered items, right answers); for macro
accuracy and regressions the error probabilities are simulated, at the edge between passing and
failing. Expected numbers of items are compared with those of an independent program, and with
Wald's approximation of the least possible one for a known margin.

    python perf/sequential.py [--runs 20000] [--seeds 200]

The exit code is 1 if an error probability is above alpha, or a number of items more than 10 % (and
more than 1 point) above the expected one.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator

import numpy as np

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.gates.sequential.decisions import Course
from pytest_llmeval.gates.sequential.decisions import OrderedItem
from pytest_llmeval.gates.sequential.decisions import replay
from pytest_llmeval.gates.sequential.family import model_family
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics.sequential.means import log_evidence_of_total
from pytest_llmeval.metrics.sequential.means import weighted_scores
from pytest_llmeval.metrics.sequential.operating import count_boundary
from pytest_llmeval.metrics.sequential.operating import operating
from pytest_llmeval.metrics.sequential.operating import wave_ends
from pytest_llmeval.metrics.sequential.paired import DropEdge
from pytest_llmeval.metrics.sequential.paired import Pairs

MMLU = 14_042
BOUND = 0.6

SHARES = {
    # (items, alpha, wave) → percent of the items at margins of 1, 2, 5 and 10 points.
    (200, 0.05, 1): (91, 86, 66, 40),
    (200, 0.05, 64): (99, 97, 90, 63),
    (200, 0.01, 1): (96, 93, 77, 50),
    (200, 0.01, 64): (100, 98, 93, 70),
    (1_000, 0.05, 64): (94, 81, 45, 20),
    (1_000, 0.01, 64): (97, 88, 54, 25),
    (1_000, 0.01, 512): (100, 99, 80, 51),
    (MMLU, 0.05, 512): (58, 29, 8.0, 3.8),
    (MMLU, 0.01, 64): (63, 32, 7.9, 2.3),
    (MMLU, 0.01, 512): (67, 36, 10.1, 4.0),
}
MARGINS = (0.01, 0.02, 0.05, 0.10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=200)
    options = parser.parse_args()
    failures = [
        *shares(),
        *accuracy_errors(),
        *subject_errors(),
        *macro_errors(options.runs),
        *regression_errors(options.runs),
    ]
    planted(options.seeds)
    if failures:
        sys.exit("\n".join(failures))


def edge(items: int) -> int:
    return math.ceil(BOUND * items - 1e-9)


def wald(items: int, margin: float, alpha: float) -> float:
    """Share of the items that a test needs that is told the margin (Wald 1945, finite population)."""
    truth = BOUND + margin
    divergence = truth * math.log(truth / BOUND)
    divergence += (1 - truth) * math.log((1 - truth) / (1 - BOUND))
    needed = math.log(1 / alpha) / divergence
    return needed / (1 + needed / items) / items


def shares() -> Iterator[str]:
    print("percent of the items until the verdict, exact (expected; least for a known margin)")
    for (items, alpha, wave), expected in SHARES.items():
        boundary = count_boundary(items, edge(items), alpha, wave_ends(items, wave))
        texts = []
        for margin, percent in zip(MARGINS, expected, strict=True):
            share = operating(boundary, round((BOUND + margin) * items)).items / items * 100
            least = wald(items, margin, alpha) * 100
            texts.append(f"{margin * 100:2.0f} pt {share:5.1f} ({percent}; {least:.1f})")
            if share > percent * 1.1 and share > percent + 1:
                yield f"{items:,} items, {margin}: {share:.1f} % instead of {percent} %"
            if (items, alpha, wave, margin) == (MMLU, 0.01, 512, 0.05) and share > 11:
                yield f"14,042 items at 5 points need {share:.1f} %, more than 11 %"
        print(f"  {items:6,} items, alpha {alpha}, wave {wave:3}: {'  '.join(texts)}", flush=True)


def accuracy_errors() -> Iterator[str]:
    print("P(wrong verdict) of an accuracy gate at the edge, exact: false pass, false fail")
    for items, wave in ((200, 1), (1_000, 1), (1_000, 64), (MMLU, 1), (MMLU, 64), (MMLU, 512)):
        for alpha in (0.05, 0.01):
            least = edge(items)
            boundary = count_boundary(items, least, alpha, wave_ends(items, wave))
            # The last look is exact: what is left there is no error.
            false_pass = operating(boundary, least - 1).passed
            false_fail = operating(boundary, least).failed
            print(
                f"  {items:6,} items, alpha {alpha}, wave {wave:3}: {false_pass:.4f},"
                f" {false_fail:.4f}",
                flush=True,
            )
            if max(false_pass, false_fail) > alpha:
                yield f"accuracy, {items:,} items: P(wrong) above {alpha}"


def subject_errors() -> Iterator[str]:
    print("P(any wrong verdict) of 57 subject gates, all one answer short, after every item, exact")
    sizes = subject_sizes()
    for alpha in (0.05, 0.01):
        none = 1.0
        for size in sizes:
            least = edge(size)
            boundary = count_boundary(size, least, alpha / len(sizes), wave_ends(size, 1))
            none *= 1 - operating(boundary, least - 1).passed
        print(f"  alpha {alpha}: {1 - none:.4f}")
        if 1 - none > alpha:
            yield f"57 subjects: P(wrong) above {alpha}"


def subject_sizes(total: int = MMLU) -> list[int]:
    """Sizes like those of MMLU's subjects: most have 100 to 300 items, one has 1,534."""
    sizes = [1_534, 895, 783, 612, 545, 544, 500, 395, 390, 378, 346, 324, 311, 310, 306, 282]
    sizes += [270, 265, 245, 238, 238, 237, 235, 234, 223, 216, 204, 203, 201, 198, 193, 173, 171]
    sizes += [166, 165, 163, 152, 151, 145, 144, 136, 135, 131, 126, 114, 112, 112, 111, 110, 108]
    sizes += [103, 102, 100, 100, 100, 100, 100]
    return sizes if total == MMLU else [max(2, round(size * total / MMLU)) for size in sizes]


def macro_errors(runs: int) -> Iterator[str]:
    alpha, generator = 0.05, np.random.default_rng(0)
    sizes = np.array(subject_sizes(700))
    items = int(sizes.sum())
    weights = np.repeat(items / (len(sizes) * sizes), sizes)
    counts: dict[float, int] = {}
    for weight, size in zip(items / (len(sizes) * sizes), sizes, strict=True):
        counts[float(weight)] = counts.get(float(weight), 0) + int(size)
    right = (generator.random(items) < 0.6).astype(float)
    total = float((right * weights).sum())  # the edge: neither larger nor smaller
    wrong = [0, 0]
    for _ in range(runs):
        order = generator.permutation(items)[: items // 2]
        scores = weighted_scores(right[order].tolist(), weights[order].tolist(), counts)
        for place, side in enumerate((1, -1)):
            evidence = log_evidence_of_total(scores, total, 1 if side > 0 else -1)
            wrong[place] += bool(evidence.max() >= -math.log(alpha))
    yield from simulated("macro accuracy, 57 subjects", wrong, runs, alpha)


def regression_errors(runs: int) -> Iterator[str]:
    alpha, generator = 0.05, np.random.default_rng(0)
    right, wrong_items, changed = 260, 140, 50
    size = right + wrong_items
    gate = DropEdge(right, wrong_items, 0.01, 0.05)
    first = int(gate.fails_from[changed])
    decided: dict[tuple[int, ...], bool | None] = {}
    wrong = [0, 0]
    for place, worse in enumerate((first, first - 1)):  # a full run fails, and passes
        kinds = np.zeros((size, 4), int)
        kinds[:right, 0] = 1
        kinds[:worse, 1] = 1
        kinds[right:, 2] = 1
        kinds[right : right + changed - worse, 3] = 1
        for _ in range(runs // 2):
            sums = kinds[generator.permutation(size)].cumsum(axis=0)
            for n in range(64, size, 64):
                state = tuple(map(int, sums[n - 1]))
                if state not in decided:
                    decided[state] = gate.decide(Pairs(*state), alpha)
                if decided[state] is not None:
                    wrong[place] += decided[state] is (place == 0)
                    break
    yield from simulated("regression, 400 items", wrong, runs // 2, alpha)


def simulated(name: str, wrong: list[int], runs: int, alpha: float) -> Iterator[str]:
    rates = [count / runs for count in wrong]
    errors = [1.96 * math.sqrt(max(rate, 1 / runs) / runs) for rate in rates]
    text = ", ".join(f"{r:.4f} ± {e:.4f}" for r, e in zip(rates, errors, strict=True))
    print(f"P(wrong verdict) at the edge, {name}, alpha {alpha}, {runs:,} runs: {text}", flush=True)
    if max(rates) > alpha:
        yield f"{name}: P(wrong) above {alpha}"


PLANTED = """
version = 1
[benchmarks.x.regression]
max_drop = 0.01
max_subject_drop = 0.05
"""


def planted(seeds: int) -> None:
    """One of ten subjects loses 20 points: how often it is detected over the orders of the items.

    The answers are those of one run; only the order differs.
    """
    generator, sizes = np.random.default_rng(0), [300] * 9 + [200]
    names = [f"s{number}" for number in range(len(sizes))]
    subjects = [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]
    ids = [f"{subject}-{number}" for number, subject in enumerate(subjects)]
    counts = {name: Counts(size) for name, size in zip(names, sizes, strict=True)}
    before = generator.random(len(ids)) < 0.65
    lost = np.array([subject == "s9" for subject in subjects])
    after = before ^ (generator.random(len(ids)) < 0.05)
    after &= ~(lost & before & (generator.random(len(ids)) < 0.2 / 0.65))
    baseline = {i: (s, bool(b)) for i, s, b in zip(ids, subjects, before, strict=True)}
    gates, result = (
        parse_thresholds(PLANTED).for_model("m"),
        Result("m", "x", "s", "p", None, counts),
    )
    family = model_family("", "m", gates, [result], {("x", "s"): baseline}, 0.01)
    outcomes = {
        i: ItemOutcomes(s, (Outcome.CORRECT if a else Outcome.WRONG,))
        for i, s, a in zip(ids, subjects, after, strict=True)
    }
    detected = alarms = 0
    requested, start = [], time.perf_counter()
    for _ in range(seeds):
        order = [OrderedItem(ids[n], subjects[n]) for n in generator.permutation(len(ids))]
        waves = [order[n : n + 256] for n in range(0, len(order), 256)]
        positions = replay(Course(waves, family.early), {"s": outcomes}).positions
        failed = {
            position.gate.subject
            for position in positions
            if position.decision is not None and position.decision.status == "fail"
        }
        detected += "s9" in failed
        alarms += bool(failed - {"s9", None})
        last = {position.gate.subject: position.wave for position in positions}
        needed = {subject: max(last[subject], last[None]) for subject in names}
        requested.append(
            sum(number < needed[i.subject] for number, wave in enumerate(waves) for i in wave)
        )
    print(
        f"planted regression of 20 points in one of ten subjects, {seeds:,} orders of {len(ids):,}"
        f" items: detected early in {detected / seeds:.1%}, false alarms in {alarms / seeds:.1%}, on"
        f" average {np.mean(requested) / len(ids):.0%} of the items"
        f" ({time.perf_counter() - start:.0f} s)"
    )


if __name__ == "__main__":
    main()
