"""Thresholds tighter than the noise are warned about when the file is read."""

from __future__ import annotations

import pytest

from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import noise_warnings
from pytest_llmeval.gates import parse_thresholds
from support.gate_results import right
from support.gate_results import verdict_of

SIZES = {"anatomy": 10, "law": 100, "maths": 390}


def warnings(text: str, samples: int = 1, sizes: dict[str, int] = SIZES) -> list[str]:
    benchmark = CollectedBenchmark("x", sizes, ("letter",), 0.25, samples)
    lines = noise_warnings(parse_thresholds(f"version = 1\n{text}"), {"x": benchmark})
    assert all(len(line.splitlines()) == 1 for line in lines)
    return lines


X = "[benchmarks.x]\n"
FILE = "thresholds.toml: benchmarks.x."


@pytest.mark.parametrize(
    "text",
    [
        "accuracy = 0.28",
        "accuracy = 1",
        "accuracy = { min = 0.9, confidence = 0.95 }",
        "accuracy = { min = 0.2, max = 0.4 }",
        "accuracy = { min = 0.99, max = 1 }",
        "accuracy = { min = 0, max = 0.01 }",
        "accuracy.chance = true",
        "macro_accuracy = { min = 0.8, confidence = 0.95 }",
        "unparsed_rate = 0",
        "unparsed_rate = 0.002",
        "truncated_rate = { max = 0.02, confidence = 0.95 }",
        "max_errors = 0",
        "regression.max_drop = 0.012",
        "subjects.maths.accuracy = { min = 0.9, confidence = 0.95 }",
        "every_subject.accuracy = 0.2",
        "scorers.cloze.accuracy = { min = 0.999, confidence = 0.95 }",  # did not run
    ],
)
def test_no_warning_for_detectable_thresholds(text: str) -> None:
    assert warnings(X + text) == []


def test_only_collected_subjects_are_warned_about() -> None:
    assert warnings("[benchmarks.y]\nregression.max_drop = 0") == []


def test_a_drop_that_cannot_be_significant() -> None:
    """6 newly wrong of 500 items have p = 0.031, 5 have 0.0625."""
    (line,) = warnings(X + "regression.max_drop = 0.0119")
    assert line == (
        f"{FILE}regression.max_drop: max_drop = 0.0119 is below 0.012, the smallest significant"
        " drop of 500 items at alpha 0.05 (6 newly wrong, none newly right): a drop between the"
        " two only warns"
    )
    assert warnings(X + "regression = { max_drop = 0.0119, alpha = 0.0625 }") == []
    assert warnings(X + "regression.max_drop = 0.006", samples=2) == []


def test_a_drop_that_can_never_fail() -> None:
    (line,) = warnings(X + "regression.max_drop = 0.5", sizes={"s": 5})
    assert line.startswith(f"{FILE}regression.max_drop: can never fail: of 5 items at least 6 ")
    assert warnings(X + "regression.max_drop = 1", sizes={"s": 6}) == []


def test_drops_of_subjects_are_one_line() -> None:
    """Three subjects at alpha 0.05: 7 items (p = 0.0156 each, 0.047 by Holm)."""
    (line,) = warnings(X + "regression.max_subject_drop = 0.02")
    assert line.startswith(f"{FILE}regression.max_subject_drop: 2 of 3 subjects, e.g. anatomy: ")
    assert "below 0.7, the smallest significant drop of 10 items" in line
    assert "over 3 subjects" in line
    many = {f"s{i}": 8 for i in range(57)}
    (line,) = warnings(X + "regression.max_subject_drop = 0.5", sizes=many)
    assert ": 57 of 57 subjects, e.g. s0: can fail only together with other subjects" in line
    assert warnings(X + "regression.max_subject_drop = 0.7") == []


@pytest.mark.parametrize(
    ("gate", "key", "items"),
    [
        ("accuracy = { min = 0.995, confidence = 0.95 }", "accuracy", 765),
        ("normalized_gain = { min = 0.99, confidence = 0.99 }", "normalized_gain", 879),
        ("subjects.law.accuracy = { min = 0.99, confidence = 0.95 }", "subjects.law.accuracy", 381),
        ("unparsed_rate = { max = 0.005, confidence = 0.95 }", "unparsed_rate", 765),
        ('"pass@1" = { min = 0.995, confidence = 0.95 }', '"pass@1"', 765),
    ],
)
def test_a_bound_out_of_reach(gate: str, key: str, items: int) -> None:
    (line,) = warnings(X + gate)
    assert line.startswith(f"{FILE}{key}: ")
    assert "cannot be met" in line
    assert line.endswith(f"needs at least {items} items")
    # So many items, all right, pass; one item fewer does not.
    if key == "accuracy":
        assert verdict_of(gate, right(items, items)).status == "pass"
        assert verdict_of(gate, right(items - 1, items - 1)).status == "undecided"


def test_a_bound_of_one_is_met_by_no_number_of_items() -> None:
    (line,) = warnings(X + "accuracy = { min = 1, confidence = 0.95 }")
    assert line.endswith(
        "even with 500 of 500 the 95 % interval begins at 0.9924, and no number of items is enough"
    )


def test_every_subject_is_one_line() -> None:
    (line,) = warnings(X + "every_subject.accuracy = { min = 0.9, confidence = 0.95 }")
    assert line.startswith(
        f"{FILE}every_subject.accuracy: 1 of 3 subjects, e.g. anatomy: min = 0.9"
    )


def test_macro_accuracy_knows_its_small_subjects() -> None:
    (line,) = warnings(X + "macro_accuracy = { min = 0.97, confidence = 0.95 }")
    assert line.startswith(f"{FILE}macro_accuracy: min = 0.97 cannot be met")
    assert warnings(X + "accuracy = { min = 0.97, confidence = 0.95 }") == []


@pytest.mark.parametrize("metric", ["accuracy", "normalized_gain", "macro_accuracy"])
def test_a_band_narrower_than_its_interval(metric: str) -> None:
    (line,) = warnings(X + f"{metric} = {{ min = 0.5, max = 0.52 }}")
    assert line.startswith(f"{FILE}{metric}: the band from 0.5 to 0.52 is narrower than the 95 %")
    assert warnings(X + f"{metric} = {{ min = 0.2, max = 0.8 }}") == []


def test_the_width_is_in_the_unit_of_the_metric() -> None:
    (line,) = warnings(X + "accuracy = { min = 0.5, max = 0.52 }")
    assert "0.087 wide with 500 items" in line
    (line,) = warnings(X + "normalized_gain = { min = 0.5, max = 0.52 }")
    assert "0.11 wide with 500 items" in line  # 0.084 of accuracy at 0.6325, over 0.75


def test_a_rate_below_one_item() -> None:
    (line,) = warnings(X + "truncated_rate = 0.0019")
    assert line == (
        f"{FILE}truncated_rate: max = 0.0019 is the same as 0: one of 500 answers is 0.002"
    )
    assert warnings(X + "truncated_rate = 0.0019", samples=2) == []
    (line,) = warnings(X + "every_subject.error_rate = 0.05")
    assert line.startswith(f"{FILE}every_subject.error_rate: 1 of 3 subjects, e.g. anatomy: ")


def test_a_table_of_a_model_warns_only_about_its_own_gates() -> None:
    text = X + "regression.max_drop = 0.001\naccuracy = 0.2\n"
    assert len(warnings(text + "[models.m.benchmarks.x]\naccuracy = 0.3")) == 1
    base, own = warnings(text + "[models.m.benchmarks.x]\nregression.alpha = 0.001")
    assert base.startswith(f"{FILE}regression.max_drop: ")
    assert own.startswith("thresholds.toml: models.m.benchmarks.x.regression.max_drop: ")
    assert "at alpha 0.001" in own


def test_scorers_have_their_place() -> None:
    (line,) = warnings("[benchmarks.x.scorers.letter]\nunparsed_rate = 0.001")
    assert line.startswith(f"{FILE}scorers.letter.unparsed_rate: ")


def test_a_benchmark_without_items_has_no_noise() -> None:
    assert warnings(X + "regression.max_drop = 0", sizes={"s": 0}) == []
