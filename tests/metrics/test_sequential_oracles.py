"""Evidence on the full run, against numbers of an independent program.

The numbers that everything else depends on are in this file; all of them are in the oracles, which
are read where they are present.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from pytest_llmeval.metrics.sequential.counts import count_interval
from pytest_llmeval.metrics.sequential.counts import log_evidence_at_least
from pytest_llmeval.metrics.sequential.counts import log_evidence_below
from pytest_llmeval.metrics.sequential.counts import log_evidence_rate_above
from pytest_llmeval.metrics.sequential.counts import log_evidence_rate_below
from pytest_llmeval.metrics.sequential.counts import mixture_weights
from pytest_llmeval.metrics.sequential.means import Scores
from pytest_llmeval.metrics.sequential.means import log_evidence_of_total
from pytest_llmeval.metrics.sequential.means import plain_scores
from pytest_llmeval.metrics.sequential.means import weighted_scores
from pytest_llmeval.metrics.sequential.operating import count_boundary
from pytest_llmeval.metrics.sequential.operating import operating
from pytest_llmeval.metrics.sequential.operating import wave_ends
from pytest_llmeval.metrics.sequential.paired import DropEdge
from pytest_llmeval.metrics.sequential.paired import Pairs
from pytest_llmeval.metrics.sequential.paired import mixture_steps
from support.paths import REFERENCE

FILE = REFERENCE / "sequential_oracles.json"
INF = math.inf


def close(expected: float | str) -> Any:
    """The number, to 6 digits after the point; "inf" and "-inf" exactly."""
    return pytest.approx(float(expected), abs=6e-7, rel=0)


@pytest.fixture(scope="module")
def oracles() -> dict[str, Any]:
    if not FILE.exists():
        pytest.skip(f"{FILE} is not present: set LLMEVAL_DATA to the folder next to it")
    return dict(json.loads(FILE.read_text()))


@pytest.mark.parametrize(
    ("population", "least", "answered", "correct", "above", "below"),
    [
        (10, 6, 3, 3, 1.698242, -1.748164),
        (10, 6, 6, 6, INF, -INF),
        (10, 6, 5, 0, -INF, INF),
        (100, 60, 40, 34, 8.423213, -3.130087),
        (1000, 600, 150, 70, -2.432618, 4.802107),
        (14042, 8426, 512, 348, 5.384817, -2.289644),
        (14042, 8426, 1024, 670, 5.051462, -2.558995),
        (14042, 8426, 14042, 8425, -INF, INF),
        (14042, 8426, 14042, 8426, INF, -INF),
    ],
)
def test_counts(population, least, answered, correct, above, below):
    assert log_evidence_at_least(population, least, answered, correct) == close(above)
    assert log_evidence_below(population, least, answered, correct) == close(below)


def test_the_confidence_sequence():
    assert count_interval(14042, 512, 348, 0.05) == (8585, 10444)
    assert count_interval(100, 0, 0, 0.05) == (0, 100)
    assert count_interval(100, 100, 61, 0.05) == (61, 61)


@pytest.mark.parametrize(
    ("right", "wrong", "limit", "pairs", "passing", "failing", "verdict"),
    [
        (60, 40, 0.05, (30, 3, 20, 3), 1.18019, -INF, None),
        (60, 40, 0.05, (45, 20, 30, 1), -INF, 13.007288, False),
        (9127, 4915, 0.01, (1300, 60, 700, 75), 3.198887, -2.267975, True),
        (9127, 4915, 0.01, (1300, 150, 700, 60), -2.747562, 12.151767, False),
    ],
)
def test_pairs(right, wrong, limit, pairs, passing, failing, verdict):
    edge = DropEdge(right, wrong, limit, 0.05)
    assert edge.log_evidence(Pairs(*pairs), 0.05 / 100) == (close(passing), close(failing))
    assert edge.decide(Pairs(*pairs), 0.05) is verdict


def test_all_counts(oracles):
    for case in oracles["log_e_above"]:
        counts = case["N"], case["k"], case["n"], case["s"]
        assert log_evidence_at_least(*counts) == close(case["above"]), case
        assert log_evidence_below(*counts) == close(case["below"]), case


def test_the_weights(oracles):
    (weights,) = oracles["log_weights"].values()
    assert mixture_weights(5, math.isqrt(10)) == pytest.approx(weights, abs=6e-7, rel=0)


def test_every_step_of_a_path(oracles):
    case = oracles["path_counts"]
    steps = case["log_e_above_below_after_each"]
    for n, expected in enumerate(steps, 1):
        counts = case["N"], case["k"], n, sum(case["x"][:n])
        assert log_evidence_at_least(*counts) == close(expected[0])
        assert log_evidence_below(*counts) == close(expected[1])
    for alpha in ("0.05", "0.01"):
        limit = -math.log(float(alpha))
        first = next(n for n, (above, _) in enumerate(steps, 1) if above >= limit)
        assert first == case[f"passes_at_alpha_{alpha}_after"]


def test_all_intervals(oracles):
    for case in oracles["count_interval"]:
        expected = (case["low"], case["high"])
        assert count_interval(case["N"], case["n"], case["s"], case["alpha"]) == expected


def _paths(case: dict[str, Any], scores: Scores) -> None:
    """Compare the evidence after every item with the entries ``side S, total T`` of an oracle."""
    entries = {name: values for name, values in case.items() if name.startswith("side ")}
    assert len(entries) == 2
    for name, values in entries.items():
        side, total = (float(part.split()[1]) for part in name.split(", "))
        evidence = log_evidence_of_total(scores, total, 1 if side > 0 else -1)
        assert evidence.tolist() == [close(value) for value in values]


def test_means(oracles):
    case = oracles["betting_mean"]
    _paths(case, plain_scores(case["y"], case["N"]))


def test_macro_accuracy(oracles):
    case = oracles["betting_macro"]
    weights = [
        case["N"] / (len(case["sizes"]) * size) for size in case["sizes"] for _ in range(size)
    ]
    assert weights == pytest.approx(case["weights c_i = N/(S N_s)"], abs=6e-7)
    weight_counts = Counter(weights)
    _paths(case, weighted_scores(case["x"], [weights[i] for i in case["items"]], weight_counts))


def test_a_baseline_as_the_covariate(oracles):
    """The slope is P(right | baseline right) - P(right | baseline wrong), from 20 added items."""
    case = oracles["betting_baseline"]
    baseline = np.array(case["baseline"], float)
    right, x = baseline[case["items"]], np.array(case["x"], float)
    slopes = []
    for n in range(len(x)):
        both, other = x[:n][right[:n] == 1], x[:n][right[:n] == 0]
        first = (both.sum() + 9) / (len(both) + 10)
        slopes.append(first - (other.sum() + 1) / (len(other) + 10))
    kinds = [(value, 1.0, items) for value, items in Counter(baseline.tolist()).items()]
    _paths(case, Scores(x, np.ones(len(x)), right, np.array(slopes), kinds))


def test_all_pairs(oracles):
    names = {"pass": True, "fail": False, None: None}
    for case in oracles["regression"]:
        edge = DropEdge(case["right"], case["wrong"], case["limit"], case["level"])
        pairs = Pairs(case["n1"], case["newly_wrong"], case["n0"], case["newly_right"])
        passing, failing = edge.log_evidence(pairs, case["alpha"] / 100)
        assert passing == close(case["for_passing"]), case
        assert failing == close(case["for_failing"]), case
        assert edge.decide(pairs, case["alpha"]) is names[case["verdict"]], case


def test_the_edge_of_a_regression_gate(oracles):
    name = next(name for name in oracles if name.startswith("fails_from"))
    assert DropEdge(60, 40, 0.05, 0.05).fails_from[:31].tolist() == oracles[name]
    assert mixture_steps(100).tolist() == oracles["regression_steps"]


def test_independent_answers(oracles):
    for case in oracles["model"]:
        counts = case["p0"], case["n"], case["s"]
        assert log_evidence_rate_above(*counts) == close(case["above"]), case
        assert log_evidence_rate_below(*counts) == close(case["below"]), case


def test_errors_count_against_every_verdict(oracles):
    case = oracles["errors"]
    counts = case["N"], case["k"], case["n"]
    assert log_evidence_at_least(*counts, case["s"]) == close(case["for_passing (errors as wrong)"])
    assert log_evidence_below(*counts, case["s"] + case["errors"]) == close(
        case["for_failing (errors as right)"]
    )


def test_waves(oracles):
    assert wave_ends(3000, 512) == oracles["waves"]["N=3000, first 512"]


def test_exact_operating_characteristics(oracles):
    for case in oracles["operating (exact)"]:
        every = case["looks"] == "every item"
        looks = wave_ends(case["N"], 1) if every else case["looks"]
        exact = operating(count_boundary(case["N"], case["k"], case["alpha"], looks), case["K"])
        assert exact.passed == close(case["P(pass)"])
        assert exact.failed == close(case["P(fail)"])
        assert exact.items == close(case["E[items]"])
        assert exact.bias == close(case["bias of s/n"])


def test_a_boundary(oracles):
    case = oracles["boundary N=100 k=60 alpha=.05"]
    boundary = count_boundary(100, 60, 0.05, case["looks"])
    assert boundary.passes == case["pass from s"]
    assert boundary.fails == case["fail up to s"]
