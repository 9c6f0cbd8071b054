"""Early verdicts: what a full run decides follows from a sum, and is predicted with a known error."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.metric_verdicts import judge_metric
from pytest_llmeval.gates.sequential.metric_rules import metric_rule
from pytest_llmeval.gates.sequential.rules import CountRule
from pytest_llmeval.gates.sequential.rules import MeanRule
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from support.gate_results import measured
from support.gate_results import right
from support.paths import REFERENCE

LETTERS = {"c": Outcome.CORRECT, "w": Outcome.WRONG, "u": Outcome.UNPARSED, "e": Outcome.ERROR}


def bound(text: str, metric: str = "accuracy") -> Bound:
    file = parse_thresholds(f'version = 1\n[benchmarks.x]\n"{metric}" = {text}')
    return file.benchmarks["x"].bounds()[metric]


def count_rule(text: str, size: int, metric: str = "accuracy") -> CountRule:
    rule = metric_rule(metric, bound(text, metric), right(0, size))
    assert isinstance(rule, CountRule)
    return rule


def answers(outcomes: str, subject: str = "s") -> list[tuple[str, ItemOutcomes]]:
    """One answer per item, in their order."""
    return [
        (f"{subject}-{number}", ItemOutcomes(subject, (LETTERS[letter],)))
        for number, letter in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("limit", "size", "least"),
    [
        (0.28, 25, 7),
        (0.6, 14042, 8426),
        (0.28, 14042, 3932),
        (1.0, 10, 10),
        (1 / 3, 9, 3),
        (0.65, 1534, 998),
    ],
)
def test_the_edge_is_the_fewest_right_answers_that_pass(limit, size, least):
    assert count_rule(repr(limit), size).statuses == [(0, "fail"), (least, "pass")]


def test_a_bound_that_every_run_meets():
    rule = count_rule("0.0", 10)
    assert rule.statuses == [(0, "pass")]
    decision = rule.decide([], 0.01)
    assert decision is not None
    assert decision.status == "pass"


@pytest.mark.parametrize(
    ("limit", "level", "size", "passes", "fails"),
    [(0.6, 0.95, 200, 134, 106), (0.55, 0.95, 368, 222, 183), (0.6, 0.99, 1000, 640, 560)],
)
def test_with_confidence_the_full_runs_interval_is_predicted(limit, level, size, passes, fails):
    rule = count_rule(f"{{ min = {limit}, confidence = {level} }}", size)
    assert rule.statuses == [(0, "fail"), (fails + 1, "undecided"), (passes, "pass")]


def test_all_edges_of_the_oracles():
    file = REFERENCE / "sequential_oracles.json"
    if not file.exists():
        pytest.skip(f"{file} is not present: set LLMEVAL_DATA to the folder next to it")
    oracles: dict[str, Any] = json.loads(file.read_text())
    for case in oracles["needed"]:
        starts = [start for start, status in count_rule(repr(case["bound"]), case["N"]).statuses]
        assert starts[-1] == case["k"], case
    for case in oracles["full_run_cuts"]:
        text = f"{{ min = {case['bound']}, confidence = {case['confidence']} }}"
        statuses = {status: start for start, status in count_rule(text, case["N"]).statuses}
        assert statuses["pass"] == case["k_pass"], case
        assert statuses["undecided"] == case["k_fail"] + 1, case


BOUNDS = st.builds(
    lambda low, high, level, side: {
        "min": f"{{ min = {low} }}",
        "max": f"{{ max = {high} }}",
        "both": f"{{ min = {min(low, high)}, max = {max(low, high)} }}",
        "confidence": f"{{ min = {min(low, high)}, max = {max(low, high)}, confidence = {level} }}",
        "chance": f"{{ chance = true, confidence = {level} }}",
    }[side],
    st.sampled_from([0.0, 0.2, 0.25, 0.5, 0.6, 1.0]),
    st.floats(0, 1).map(lambda value: round(value, 3)),
    st.sampled_from([0.5, 0.9, 0.95]),
    st.sampled_from(["min", "max", "both", "confidence", "chance"]),
)


@settings(max_examples=60)
@given(
    BOUNDS,
    st.integers(1, 40),
    st.sampled_from(["accuracy", "normalized_gain", "unparsed_rate", "error_rate"]),
)
def test_every_number_has_the_verdict_of_its_full_run(text, size, metric):
    """The ranges are compared with the judging of every possible full run."""
    if "chance" in text and metric != "accuracy":
        return
    gate = bound(text, metric)
    rule = metric_rule(metric, gate, right(0, size))
    assert isinstance(rule, CountRule)
    for number in range(size + 1):
        counts = {
            "unparsed_rate": Counts(size, correct=size - number, unparsed=number),
            "error_rate": Counts(size, correct=size - number, error=number),
        }.get(metric, Counts(size, correct=number, wrong=size - number))
        full = judge_metric(
            Scope("x", "m", "x"), metric, gate, Result("m", "x", "s", "p", 0.25, {"s": counts})
        )
        predicted = [status for start, status in rule.statuses if start <= number][-1]
        assert predicted == full.status, number


@pytest.mark.parametrize(
    "text",
    [
        "0.5",
        "{ max = 0.4 }",
        "{ min = 0.3, max = 0.7 }",
        "{ min = 0.5, confidence = 0.5 }",
        "{ chance = true, confidence = 0.5 }",
    ],
)
@pytest.mark.parametrize("size", [3, 8])
def test_a_false_verdict_is_rarer_than_alpha_for_all_populations_and_orders(text, size):
    rule = count_rule(text, size)
    for correct, alpha in product(range(size + 1), (0.5, 0.3, 0.1)):
        full = [status for start, status in rule.statuses if start <= correct][-1]
        states, false = {0: Fraction(1)}, Fraction(0)
        for n in range(size + 1):
            after: dict[int, Fraction] = {}
            for s, chance in states.items():
                decision = rule.decide(answers("c" * s + "w" * (n - s)), alpha)
                if decision is not None and decision.status != full:
                    false += chance
                elif n < size:
                    share = Fraction(correct - s, size - n)
                    after[s + 1] = after.get(s + 1, Fraction(0)) + chance * share
                    after[s] = after.get(s, Fraction(0)) + chance * (1 - share)
            states = {s: chance for s, chance in after.items() if chance}
        assert false <= alpha, (correct, alpha)


def test_errors_count_against_every_verdict():
    rule = count_rule("0.6", 100)
    passed = rule.decide(answers("c" * 37 + "w" * 3), 0.01)
    assert passed is not None
    assert passed.status == "pass"
    assert passed.log_evidence == pytest.approx(15.485287, abs=1e-6)
    assert rule.decide(answers("c" * 25 + "w" * 3 + "e" * 12), 0.01) is None
    failed = rule.decide(answers("c" * 4 + "w" * 36), 0.01)
    assert failed is not None
    assert failed.status == "fail"
    assert rule.decide(answers("c" * 4 + "w" * 11 + "e" * 25), 0.01) is None


def test_rates_are_not_predicted_with_errors():
    """The denominator of a full run is then unknown."""
    rule = count_rule("{ max = 0.1 }", 200, "unparsed_rate")
    assert rule.decide(answers("u" * 60), 0.01) is not None
    assert rule.decide(answers("u" * 60 + "e"), 0.01) is None


def test_the_interval_of_a_pass_is_inside_the_bound():
    rule = count_rule("0.6", 1000)
    for right_answers in range(90, 201):
        part = answers("c" * right_answers + "w" * (200 - right_answers))
        decision, estimate = rule.decide(part, 0.01), rule.estimate(part, 0.01)
        assert estimate.low <= estimate.value <= estimate.high
        assert (decision is not None and decision.status == "pass") == (estimate.low >= 0.6)
        assert (decision is not None and decision.status == "fail") == (estimate.high < 0.6)
    assert estimate.text == "200 of 200 correct"


def test_the_interval_of_a_gain():
    estimate = count_rule("{ min = 0.1 }", 100, "normalized_gain").estimate(
        answers("c" * 100), 0.01
    )
    assert (estimate.value, estimate.low, estimate.high) == (1.0, 1.0, 1.0)


def samples(rows: Sequence[str]) -> list[tuple[str, ItemOutcomes]]:
    return [
        (f"s-{number}", ItemOutcomes("s", tuple(LETTERS[letter] for letter in row)))
        for number, row in enumerate(rows)
    ]


@pytest.mark.parametrize("metric", ["accuracy", "pass@2", "pass^2", "normalized_gain"])
def test_several_samples(metric):
    """All orders of a few items; the verdict after all items is left to the full run."""
    rows = ["cc", "cw", "ww", "cc", "cw"]
    result = measured({"s": rows}, samples=2)
    full = judge_metric(Scope("x", "m", "x"), metric, bound("0.5", metric), result)
    rule = metric_rule(metric, bound("0.5", metric), result)
    assert isinstance(rule, MeanRule)
    for alpha in (0.5, 0.2):
        false = total = 0
        for order in permutations(rows):
            decisions = (rule.decide(samples(order[:n]), alpha) for n in range(1, 5))
            first = next((d for d in decisions if d is not None), None)
            false += first is not None and first.status != full.status
            total += 1
        assert false <= alpha * total


def test_scores_decide_what_is_certain():
    rule = metric_rule("accuracy", bound("0.5"), measured({"s": ["cc"] * 10}, samples=2))
    assert not isinstance(rule, str)
    passed = rule.decide(samples(["cc"] * 6), 1e-9)
    assert passed is not None
    assert (passed.status, passed.log_evidence) == ("pass", math.inf)
    failed = rule.decide(samples(["ww"] * 6), 1e-9)
    assert failed is not None
    assert failed.status == "fail"
    assert rule.decide(samples(["ee"] * 6), 0.5) is None
    estimate = rule.estimate(samples(["cc"] * 4 + ["ww"] * 2), 0.01)
    assert estimate.value == pytest.approx(2 / 3)
    assert estimate.low < estimate.value < estimate.high


@pytest.mark.parametrize(
    ("metric", "text", "reason"),
    [
        ("consistency", "0.5", "permutation audit"),
        ("macro_accuracy", "{ min = 0.5, confidence = 0.9 }", "does not follow from a sum"),
    ],
)
def test_gates_that_need_all_items(metric, text, reason):
    rule = metric_rule(metric, bound(text, metric), right(5, 10))
    assert isinstance(rule, str)
    assert reason in rule


def test_a_confidence_gate_of_several_samples_needs_all_items():
    result = measured({"s": ["cc"] * 10}, samples=2)
    assert isinstance(
        metric_rule("accuracy", bound("{ min = 0.5, confidence = 0.9 }"), result), str
    )
    assert isinstance(metric_rule("unparsed_rate", bound("0.1", "unparsed_rate"), result), str)
