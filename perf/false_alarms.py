"""How often regression gates fail without cause, and how often they find a planted drop.

Two runs of one model over the 14,042 items of MMLU: every item has its own chance of being
answered correctly, drawn once per seed. The second run answers a share of the items anew, from
the same chances, and keeps the rest. Nothing changed, so every failing gate is a false alarm.
Then 15 points are taken from one subject and half a point is added everywhere else. Both are
judged as the plugin judges them, with the tolerances of the README and with none.

    python perf/false_alarms.py [--seeds 200]
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from pytest_llmeval.catalog.mmlu import TEST_ROWS
from pytest_llmeval.core import Outcome
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import aggregate
from pytest_llmeval.metrics import compare_items
from pytest_llmeval.metrics import exact_interval

WORSE = "college_mathematics"
NAMES = ("mmlu", "letter")
SUBJECTS = np.repeat(list(TEST_ROWS), list(TEST_ROWS.values()))
IDS = [f"{subject}-{row:04d}" for subject, rows in TEST_ROWS.items() for row in range(rows)]

# Share of the items that the second run answers anew.
ANEW = (0.1, 0.4, 1.0)

TOLERANCES = {
    "max_drop 0.01, max_subject_drop 0.05": (0.01, 0.05),
    "no tolerance at all": (0.0, 0.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    seeds = parser.parse_args().seeds
    files = {
        name: parse_thresholds(
            f"version = 1\n[benchmarks.mmlu.regression]\nmax_drop = {whole}\n"
            f"max_subject_drop = {subject}\n"
        )
        for name, (whole, subject) in TOLERANCES.items()
    }
    for share in ANEW:
        alarms, detected, others = Counter(), Counter(), Counter()
        discordant = 0
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            # Most items are nearly certain one way or the other; some are a toss-up.
            chance = rng.beta(0.7, 0.5, size=len(IDS))
            before = rng.random(len(IDS)) < chance
            anew = rng.random(len(IDS)) < share
            same = np.where(anew, rng.random(len(IDS)) < chance, before)
            discordant += int((before != same).sum())
            after = plant(rng, same)
            for name, file in files.items():
                alarms[name] += bool(failing(file, before, same))
                failed = failing(file, before, after)
                detected[name] += WORSE in failed
                others[name] += bool(set(failed) - {WORSE})
        discordance = discordant / seeds / len(IDS)
        print(f"{seeds} seeds, {len(IDS):,} items, {discordance:.1%} of them discordant")
        for name in files:
            print(
                f"  {name}: false alarms {rate(alarms[name], seeds)};"
                f" 15 points less in {WORSE}: found {rate(detected[name], seeds)},"
                f" another gate failed {rate(others[name], seeds)}"
            )


def plant(rng: np.random.Generator, right: np.ndarray) -> np.ndarray:
    """Return the answers with 15 points less in one subject and half a point more elsewhere."""
    after = right.copy()
    for subject, rows in TEST_ROWS.items():
        here = subject == SUBJECTS
        turned = here & (right == (subject == WORSE))
        count = round((0.15 if subject == WORSE else 0.005) * rows)
        chosen = rng.choice(np.flatnonzero(turned), size=count, replace=False)
        after[chosen] = ~after[chosen]
    return after


def rate(count: int, seeds: int) -> str:
    low, high = exact_interval(count, seeds)
    return f"{count / seeds:.1%} [{low:.1%}, {high:.1%}]"


def failing(file, before: np.ndarray, after: np.ndarray) -> list[str | None]:
    """Return the subjects (None: the whole) whose regression gate fails."""
    sizes = dict(TEST_ROWS)
    baseline, other = outcomes(before), outcomes(after)
    comparison = compare_items(
        baseline,
        other,
        benchmark=NAMES[0],
        scorer=NAMES[1],
        baseline_model="m",
        candidate_model="m",
        sizes=sizes,
    )
    result = aggregate(
        other.values(),
        model="m",
        benchmark=NAMES[0],
        scorer=NAMES[1],
        protocol="lmeval",
        chance=0.25,
        sizes=sizes,
    )
    verdicts = judge(file, [result], ["m"], ["mmlu"], {("m", *NAMES): comparison})
    return [verdict.subject for verdict in verdicts if verdict.status == "fail"]


def outcomes(right: np.ndarray) -> dict[str, ItemOutcomes]:
    correct, wrong = (Outcome.CORRECT,), (Outcome.WRONG,)
    return {
        item: ItemOutcomes(subject, correct if good else wrong)
        for item, subject, good in zip(IDS, SUBJECTS, right.tolist(), strict=True)
    }


if __name__ == "__main__":
    main()
