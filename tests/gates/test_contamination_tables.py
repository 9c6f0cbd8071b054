"""The tables ``contamination`` and ``twin`` of thresholds.toml, and one line for every mistake."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import parse_thresholds


def table(text: str, name: str = "x"):
    return parse_thresholds(f"version = 1\n{text}").for_model("m")[name]


def test_a_number_is_alpha():
    gates = table("[benchmarks.x.contamination]\noption_order = 0.02").contamination
    assert gates is not None
    ((name, gate),) = gates.orders()
    assert (name, gate.alpha, gate.tolerance, gate.against) == ("option_order", 0.02, 0.0, None)
    assert gate.text == "<= 0.5, alpha 0.02"


def test_a_reference_has_a_tolerance():
    gates = table('[benchmarks.x.contamination]\noption_order.against = "base"').contamination
    assert gates is not None
    assert gates.option_order is not None
    assert gates.option_order.text == "<= 0.55, alpha 0.01"


def test_a_model_replaces_the_whole_gate():
    gates = table(
        '[benchmarks.x.contamination]\noption_order = { max_excess = 0.1, against = "base" }\n'
        "item_order = 0.01\n[models.m.benchmarks.x.contamination]\noption_order = 0.05"
    ).contamination
    assert gates is not None
    assert [(name, gate.alpha, gate.against) for name, gate in gates.orders()] == [
        ("option_order", 0.05, None),
        ("item_order", 0.01, None),
    ]


def test_a_twin():
    twin = table('[benchmarks.x.twin]\nof = "y"\nmax_gap = 0.03').twin
    assert twin is not None
    assert (twin.of, twin.text) == ("y", "<= 0.03, alpha 0.05")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "contamination.option_ordr = 0.01",
            "option_ordr: unknown key 'option_ordr'; did you mean",
        ),
        ("contamination.option_order = 1", "expected alpha, such as 0.01"),
        ("contamination.option_order = 0.7", "alpha = 0.7 is not between 0 and 0.5"),
        ("contamination.item_order.max_excess = 0.6", "max_excess = 0.6 is outside [0, 0.5)"),
        ('contamination.item_order.agianst = "b"', "did you mean 'against'?"),
        ("contamination = {}", "contamination: empty table: it gates nothing"),
        ("twin = {}", "twin: needs of = NAME, the rewritten benchmark"),
        ("twin.max_gap = 3", "twin.of: missing, and the table needs it"),
        ("scorers.letter.contamination.option_order = 0.01", "belongs to the benchmark's table"),
    ],
)
def test_a_mistake(text: str, message: str):
    with pytest.raises(ConfigError) as error:
        parse_thresholds(f"version = 1\n[benchmarks.x]\n{text}")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
