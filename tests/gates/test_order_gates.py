"""Verdicts on order tests: what decides, what does not, and Holm's adjustment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.gates.evidence import Evidence
from pytest_llmeval.gates.evidence import MeasuredOrders
from pytest_llmeval.gates.evidence import Reference
from support.gate_results import right

GATE = "[benchmarks.x.contamination]\n"


def measured(rank: float, groups: int = 40, *, orders: int = 8, **more) -> MeasuredOrders:
    """Every published order is above `rank` of the others, give or take one."""
    document = {
        "format": "f",
        "orders": orders,
        "seed": 0,
        "data": "d",
        "fingerprint": "abc",
        "groups": groups,
        "not_random": "",
        "natural": "",
        **more.pop("document", {}),
    }
    values = {
        f"item-{n}": [rank * (orders - 1) + (n % 2) - 1.0 + 0.25, *map(float, range(orders - 1))]
        for n in range(groups)
    }
    return MeasuredOrders(document, values, **{"model_fingerprint": "weights", **more})


def equal(groups: int = 40, orders: int = 8, **more) -> MeasuredOrders:
    """A reference for which all orders are equally likely."""
    flat = measured(0.5, groups, orders=orders, **{"model_fingerprint": "base", **more})
    return replace(flat, groups={name: [0.0] * orders for name in flat.groups})


def judged(text: str, orders, references=None) -> dict[str, Verdict]:
    thresholds = parse_thresholds(f"version = 1\n{GATE}{text}")
    evidence = Evidence(orders, references=references or {})
    listed = judge(thresholds, [right(3, 4)], ["m"], ["x"], evidence=evidence)
    for verdict in listed:
        assert len(verdict_line(verdict).splitlines()) == 1
    return {verdict.metric or "": verdict for verdict in listed}


def verdict_on(text: str, orders, references=None) -> Verdict:
    return judged(text, {("m", "x", "option_order"): orders}, references)["option_order"]


def test_a_preference_fails_and_none_passes_with_its_limits():
    seen = verdict_on("option_order = 0.01", measured(0.9))
    assert (seen.status, seen.max, seen.n) == ("fail", 0.5, 40)
    assert seen.measured == pytest.approx(0.9, abs=0.1)
    assert "published order above" in seen.reason
    unseen = verdict_on("option_order = 0.01", measured(0.5))
    assert unseen.status == "pass"
    assert unseen.p_value is not None
    assert unseen.p_value > 0.01
    assert (
        "no sign of it, which is no proof; sees a mean rank from 0.664; blind to" in unseen.reason
    )


def test_a_reference_takes_away_what_it_prefers_too():
    own = measured(0.9)
    gate = 'option_order.against = "base"'
    reference = Reference({("m", "x", "option_order"): equal()})
    failed = verdict_on(gate, own, {"base": reference})
    assert (failed.status, failed.bound) == ("fail", "<= 0.55, alpha 0.01")
    assert "others against base, 40 items x 8 orders" in failed.reason
    same = replace(own, model_fingerprint="base")
    passed = verdict_on(gate, own, {"base": Reference({("m", "x", "option_order"): same})})
    assert (passed.status, passed.measured) == ("pass", 0.5)


def test_a_tolerance_makes_a_gate_weaker():
    own = measured(0.66, 200)
    assert verdict_on("option_order = 0.01", own).status == "fail"
    assert verdict_on("option_order = { max_excess = 0.2 }", own).status == "pass"


def test_several_tests_are_adjusted_together():
    p_value = verdict_on("option_order = 0.01", measured(0.66, 60)).p_value
    assert p_value is not None
    alpha = 1.5 * p_value
    assert verdict_on(f"option_order = {alpha}", measured(0.66, 60)).status == "fail"
    both = judged(
        f"option_order = {alpha}\nitem_order = {alpha}",
        {
            ("m", "x", "option_order"): measured(0.66, 60),
            ("m", "x", "item_order"): measured(0.5, 20, orders=6),
        },
    )
    assert both["option_order"].status == "pass"
    assert both["option_order"].p_value == pytest.approx(2 * p_value)
    assert f"(Holm {2 * p_value:.2g})" in both["option_order"].reason


@pytest.mark.parametrize(
    ("orders", "status", "reason"),
    [
        (None, "undecided", "not measured: run it with --llm-contamination option-order"),
        (measured(0.9, errors=2, error="time-out"), "fail", "incomplete: 2 errors: time-out"),
        (measured(0.9, document={"groups": 50}), "undecided", "only 40 of 50 were measured"),
        (measured(0.9, all_tied=30), "undecided", "not a measurement: all orders have the same"),
        (
            measured(0.9, document={"not_random": "numbers ascend, z = 36.5"}),
            "undecided",
            "the published orders are not random (numbers ascend, z = 36.5); name a run",
        ),
        (measured(0.9, 12), "undecided", "12 items without an order by content; at least 20"),
        (MeasuredOrders({"refused": "no options"}), "undecided", "not possible: no options"),
    ],
)
def test_nothing_is_decided_without_a_measurement(orders, status, reason):
    tests = {} if orders is None else {("m", "x", "option_order"): orders}
    verdict = judged("option_order = 0.01", tests)["option_order"]
    assert (verdict.status, verdict.measured, verdict.p_value) == (status, None, None)
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("cannot be opened", "reference base: cannot be opened"),
        (Reference(), "reference base: has no such test: run it with --llm-contamination"),
        (
            Reference({("m", "x", "option_order"): measured(0.5)}),
            "reference base: has the same weights",
        ),
        (
            Reference(
                {("m", "x", "option_order"): equal(document={"seed": 3, "fingerprint": "other"})}
            ),
            "reference base: not comparable: seed 0 here, 3 there",
        ),
        (
            Reference({("m", "x", "option_order"): equal(all_tied=40)}),
            "reference base: not a measurement: all orders have the same log-likelihood",
        ),
        (
            Reference({("m", "x", "option_order"): equal(30)}),
            "reference base: 10 of 40 items are not in it",
        ),
        (
            Reference({(name, "x", "option_order"): equal() for name in ("a", "b")}),
            "reference base: has 2 models, none of which is called m",
        ),
    ],
)
def test_a_reference_that_cannot_be_used(reference, reason):
    verdict = verdict_on('option_order.against = "base"', measured(0.9), {"base": reference})
    assert verdict.status == "undecided"
    assert verdict.reason.startswith(reason)


def test_items_with_a_natural_order_count_only_without_a_reference():
    names = [f"item-{n}" for n in range(10)]
    own = measured(0.9, document={"natural": " ".join(names)})
    assert verdict_on("option_order = 0.01", own).n == 40
    reference = Reference({("other", "x", "option_order"): equal()})
    assert verdict_on('option_order.against = "base"', own, {"base": reference}).n == 30


def test_every_model_has_its_own_verdict_in_one_family():
    thresholds = parse_thresholds(f"version = 1\n{GATE}option_order = 0.01")
    orders = {("a", "x", "option_order"): measured(0.9), ("b", "x", "option_order"): measured(0.5)}
    results = [right(3, 4, model="a"), right(3, 4, model="b")]
    listed = judge(thresholds, results, ["a", "b"], ["x"], evidence=Evidence(orders))
    assert [(v.id, v.status, v.line) for v in listed] == [
        ("a::x::contamination::option_order", "fail", 3),
        ("b::x::contamination::option_order", "pass", 3),
    ]
    assert all("Holm" in verdict.reason for verdict in listed)


def test_a_verdict_is_stored_with_its_p_value():
    verdict = verdict_on("option_order = 0.01", measured(0.9))
    assert Verdict.from_json(verdict.as_json()) == verdict
    assert "p_value" not in verdict_on("option_order = 0.01", measured(0.9, errors=1)).as_json()
