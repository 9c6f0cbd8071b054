"""Verdicts: rules 1 and 2, bounds, intervals, several scorers and models."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import wilson_interval
from support.gate_results import ACCURACY
from support.gate_results import result
from support.gate_results import right
from support.gate_results import some_subjects
from support.gate_results import verdict_of
from support.gate_results import verdicts


@pytest.mark.parametrize(
    ("bound", "correct", "total", "status"),
    [
        ("0.28", 7, 25, "pass"),
        ("0.28", 6, 25, "fail"),
        ("0.29", 29, 100, "pass"),
        ("0.57", 57, 100, "pass"),
        ("0.5801", 8145, 14_042, "fail"),
        ("0.58", 8145, 14_042, "pass"),
        ("{ max = 0.28 }", 7, 25, "pass"),
        ("{ max = 0.28 }", 8, 25, "fail"),
        ("{ min = 0.2, max = 0.3 }", 7, 25, "pass"),
        ("{ min = 0.2, max = 0.3 }", 8, 25, "fail"),
        ("{ min = 0.28, max = 0.28 }", 7, 25, "pass"),
        ("1", 25, 25, "pass"),
        ("0", 0, 25, "pass"),
    ],
)
def test_accuracy(bound: str, correct: int, total: int, status: str) -> None:
    verdict = verdict_of(ACCURACY + bound, right(correct, total))
    assert (verdict.id, verdict.status) == ("x::accuracy", status)
    assert verdict.measured == correct / total
    assert verdict.interval == wilson_interval(correct, total)
    assert (verdict.n, verdict.model, verdict.benchmark) == (total, "m", "x")
    assert (verdict.scorer, verdict.subject, verdict.metric) == ("letter", None, "accuracy")


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_bound_equal_to_the_count_is_reached(drawn: tuple[int, int]) -> None:
    correct, total = drawn
    bound = round(correct / total, 8)  # n 10^d < 10^12, see TOLERANCE
    expected = "pass" if correct * 10**8 >= round(bound * 10**8) * total else "fail"
    assert verdict_of(f"{ACCURACY}{bound:.8f}", right(correct, total)).status == expected


def test_macro_and_gain_of_exact_decimals() -> None:
    subjects = {str(i): Counts(10, i, 10 - i) for i in (1, 2, 3)}
    assert verdict_of("[benchmarks.x]\nmacro_accuracy = 0.2", result(subjects)).status == "pass"
    assert verdict_of("[benchmarks.x]\nmacro_accuracy = 0.2001", result(subjects)).status == "fail"
    gain = "[benchmarks.x]\nnormalized_gain = 0.1"
    assert verdict_of(gain, right(19, 100, chance=0.1)).status == "pass"
    assert verdict_of(gain, right(18, 100, chance=0.1)).status == "fail"
    verdict = verdict_of("[benchmarks.x]\nnormalized_gain = { min = -0.1 }", right(20, 100))
    assert verdict.status == "pass"
    assert verdict.measured == pytest.approx(-0.05 / 0.75)
    low, high = wilson_interval(20, 100)
    assert verdict.interval == pytest.approx(((low - 0.25) / 0.75, (high - 0.25) / 0.75))


def test_unparsed_rate() -> None:
    some = result(Counts(100, correct=50, wrong=40, unparsed=10))
    assert verdict_of("[benchmarks.x]\nunparsed_rate = 0.1", some).status == "pass"
    failed = verdict_of("[benchmarks.x]\nunparsed_rate = 0.09", some)
    assert (failed.status, failed.measured) == ("fail", 0.1)
    assert failed.reason == "10 of 100 answers unparsed"


@pytest.mark.parametrize("chance", [None, 1.0])
def test_no_gain_without_chance(chance: float | None) -> None:
    verdict = verdict_of("[benchmarks.x]\nnormalized_gain = 0.1", right(5, 10, chance=chance))
    assert (verdict.status, verdict.measured) == ("undecided", None)


SUBJECTS = """[benchmarks.x]
accuracy = 0.1
macro_accuracy = 0.1
[benchmarks.x.every_subject]
accuracy = 0.5
[benchmarks.x.subjects.maths]
accuracy = { min = 0.6 }
unparsed_rate = 0.5
"""


def test_a_subject_is_decided_when_it_is_complete() -> None:
    by_gate = verdicts(SUBJECTS, result({"maths": Counts(10, 6, 4), "law": Counts(10, 2, 2)}))
    assert {id: v.status for id, v in by_gate.items()} == {
        "x::accuracy": "undecided",
        "x::macro_accuracy": "undecided",
        "x::every_subject::law::accuracy": "undecided",
        "x::every_subject::maths::accuracy": "pass",
        "x::subjects.maths::accuracy": "pass",
        "x::subjects.maths::unparsed_rate": "pass",
    }
    assert by_gate["x::every_subject::maths::accuracy"].subject == "maths"
    assert by_gate["x::every_subject::law::accuracy"].reason == "only 4 of 10 items were run"


def test_errors_elsewhere_leave_a_subject_alone() -> None:
    by_gate = verdicts(SUBJECTS, result({"maths": Counts(10, 6, 4), "law": Counts(10, 9, error=1)}))
    assert by_gate["x::accuracy"].status == "fail"
    assert by_gate["x::subjects.maths::accuracy"].status == "pass"
    law = by_gate["x::every_subject::law::accuracy"]
    assert (law.status, law.reason) == ("fail", "incomplete: 1 error here, 1 in all (max_errors 0)")


def test_subjects_share_the_allowance_for_errors() -> None:
    text = "[benchmarks.x]\nmax_errors = 3\nevery_subject.accuracy = 0.5\n"
    both = {"a": Counts(10, 8, error=2), "b": Counts(10, 8, error=2)}
    by_gate = verdicts(text, result(both))
    assert {v.status for v in by_gate.values()} == {"fail"}
    assert "2 errors here, 4 in all" in by_gate["x::every_subject::a::accuracy"].reason
    one_only = verdicts(text, result({**both, "b": Counts(10, 8, 2)}))
    assert {v.status for v in one_only.values()} == {"pass"}
    own = text + "subjects.a = { accuracy = 0.8, max_errors = 2 }"
    assert verdicts(own, result(both))["x::subjects.a::accuracy"].status == "pass"
    assert verdicts(own, result(both))["x::subjects.a::max_errors"].status == "pass"


def test_a_subject_that_the_result_lacks_is_undecided() -> None:
    assert verdicts(SUBJECTS, right(9, 10))["x::subjects.maths::accuracy"].status == "undecided"


@pytest.mark.parametrize(
    ("bound", "correct", "status"),
    [
        ("min = 0.4", 50, "pass"),  # [0.4038, 0.5962]
        ("min = 0.41", 50, "undecided"),
        ("min = 0.59", 50, "undecided"),
        ("min = 0.6", 50, "fail"),
        ("max = 0.6", 50, "pass"),
        ("max = 0.59", 50, "undecided"),
        ("max = 0.4", 50, "fail"),
        ("min = 0.4, max = 0.6", 50, "pass"),
        ("min = 0.4, max = 0.55", 50, "undecided"),
        ("min = 0.6, max = 0.7", 50, "fail"),
        ("min = 1", 100, "undecided"),
    ],
)
def test_confidence(bound: str, correct: int, status: str) -> None:
    verdict = verdict_of(ACCURACY + f"{{ {bound}, confidence = 0.95 }}", right(correct, 100))
    assert verdict.status == status
    how = {"pass": "is inside", "fail": "is outside", "undecided": "straddles"}[status]
    assert f"the 95 % interval {how} the bound" in verdict.reason


def test_confidence_of_a_gain_and_its_level() -> None:
    low = (wilson_interval(50, 100, 0.9)[0] - 0.25) / 0.75
    gain = "[benchmarks.x]\nnormalized_gain = {{ min = {}, confidence = {} }}"
    assert verdict_of(gain.format(low - 1e-6, 0.9), right(50, 100)).status == "pass"
    assert verdict_of(gain.format(low + 1e-6, 0.9), right(50, 100)).status == "undecided"
    verdict = verdict_of(gain.format(low - 1e-6, 0.99), right(50, 100))
    assert verdict.status == "undecided"
    assert verdict.bound.endswith("(99 % interval)")


def test_confidence_with_errors_covers_every_possible_outcome() -> None:
    counts = Counts(100, correct=50, wrong=40, error=10)
    text = ACCURACY + "{ min = 0.5, confidence = 0.95 }\nmax_errors = 10"
    verdict = verdicts(text, result(counts))["x::accuracy"]
    assert verdict.interval == (wilson_interval(50, 100)[0], wilson_interval(60, 100)[1])
    assert verdict.status == "undecided"


def test_a_part_decides_nothing_however_confident() -> None:
    text = ACCURACY + "{ min = 0.1, confidence = 0.95 }"
    assert verdict_of(text, result(Counts(101, correct=100))).status == "undecided"


SCORERS = "[benchmarks.x.scorers.cloze]\naccuracy = 0.5\nevery_subject.accuracy = 0.5\n"


def test_scorers_are_results_of_their_own() -> None:
    by_gate = verdicts(SCORERS, right(5, 10, scorer="cloze"), right(0, 10, scorer="letter"))
    assert {id: v.status for id, v in by_gate.items()} == {
        "x::scorers.cloze::accuracy": "pass",
        "x::scorers.cloze::every_subject::s::accuracy": "pass",
    }
    assert {v.scorer for v in by_gate.values()} == {"cloze"}


def test_a_scorer_that_did_not_run_is_undecided() -> None:
    by_gate = verdicts(SCORERS, right(5, 10, scorer="letter"))
    assert {id: v.status for id, v in by_gate.items()} == {
        "x::scorers.cloze::accuracy": "undecided",
        "x::scorers.cloze::every_subject::accuracy": "undecided",
    }
    assert {v.reason for v in by_gate.values()} == {"scorer 'cloze' did not run"}


def test_a_gate_that_could_mean_two_results_is_undecided() -> None:
    verdict = verdict_of(
        ACCURACY + "0", right(5, 10, scorer="cloze"), right(5, 10, scorer="letter")
    )
    assert verdict.status == "undecided"
    assert "2 scorers (cloze, letter)" in verdict.reason
    assert "[benchmarks.x.scorers.NAME]" in verdict.reason


def test_two_results_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two results"):
        verdicts(ACCURACY + "0", right(5, 10), right(6, 10))


def test_benchmarks_that_were_not_requested() -> None:
    text = ACCURACY + "0.5\n[benchmarks.y]\naccuracy = 1\n[benchmarks.z]\nrequired = true\n"
    by_gate = verdicts(text, right(5, 10))
    assert {id: v.status for id, v in by_gate.items()} == {
        "x::accuracy": "pass",
        "y": "not run",
        "z": "fail",
    }
    assert by_gate["z"].reason == "required but not run"
    several = verdicts(text, right(5, 10), models=("m", "n"))
    assert set(several) == {"m::x::accuracy", "n::x::accuracy", "y", "z"}
    assert several["y"].model is None


def test_required_and_collected_but_nothing_run() -> None:
    """Deselecting every item does not satisfy ``required``."""
    text = "[benchmarks.x]\nrequired = true\n[benchmarks.y]\naccuracy = 0"
    by_gate = verdicts(text, result(Counts(10)), right(1, 1, benchmark="y"), collected=("x", "y"))
    assert (by_gate["x"].status, by_gate["x"].reason) == ("fail", "required but no item was run")
    assert by_gate["y::accuracy"].status == "pass"
    ran = verdicts(text, right(1, 1), right(1, 1, benchmark="y"))
    assert (ran["x"].status, ran["x"].reason) == ("pass", "required, and was run")


def test_every_table_has_a_verdict() -> None:
    """Also one that gives no bound, and that of a model that did not run."""
    text = "[benchmarks.x]\nrequired = false\n" + ACCURACY.replace(".x", ".y") + "0.5\n"
    text += '[models.other.benchmarks.y]\naccuracy = 1\n[models."a b"]\nrequired = true\n'
    by_gate = verdicts(text, right(1, 1), right(1, 1, benchmark="y"), unknown_models=["other"])
    assert {id: (v.status, v.line) for id, v in by_gate.items()} == {
        "x": ("not run", 2),
        "y::accuracy": ("pass", 5),
        "models.other": ("fail", 6),
        "models.a b": ("fail", 8),
    }
    assert by_gate["models.other"].reason.startswith("no model of this run or of an earlier one")
    assert by_gate["models.a b"].reason == "required but not run"
    assert "models.other" not in verdicts(text, right(1, 1, model="other"), models=("other",))


def test_models_are_judged_by_their_own_bounds() -> None:
    text = ACCURACY + "0.5\n[models.big.benchmarks.x]\naccuracy = 0.9\n"
    text += "[models.big.benchmarks.only_big]\naccuracy = 0.9\n"
    by_gate = verdicts(text, right(6, 10), right(6, 10, model="big"), models=("m", "big"))
    assert {id: v.status for id, v in by_gate.items()} == {
        "m::x::accuracy": "pass",
        "big::x::accuracy": "fail",
        "only_big": "not run",
    }
    assert "only_big" not in verdicts(text, right(6, 10))


def test_a_model_without_results_is_undecided_and_an_unlisted_one_is_judged() -> None:
    by_gate = verdicts(ACCURACY + "0.5", right(6, 10, model="n"))
    assert {id: v.status for id, v in by_gate.items()} == {
        "m::x::accuracy": "undecided",
        "n::x::accuracy": "pass",
    }


EVERYTHING = """
[benchmarks.x]
required = true
accuracy = { min = 0.3, confidence = 0.8 }
macro_accuracy = 0.3
normalized_gain = { min = 0.1, max = 0.9 }
unparsed_rate = 0.2
max_errors = 2
every_subject.accuracy = 0.2
subjects.a.accuracy = 0.5
[benchmarks.y.scorers.letter]
accuracy = 0.4
[benchmarks.y.scorers.cloze]
macro_accuracy = 0.4
"""


@given(st.tuples(*[some_subjects] * 6), st.randoms())
def test_the_order_of_results_and_subjects_moves_nothing(
    drawn: tuple[dict[str, Counts], ...], random: Any
) -> None:
    names = [(m, b, s) for m in "mn" for b, s in [("x", "l"), ("y", "letter"), ("y", "cloze")]]

    def build(shuffled: bool) -> list[Result]:
        results = []
        for (model, benchmark, scorer), counts in zip(names, drawn, strict=True):
            keys = list(counts)
            if shuffled:
                random.shuffle(keys)
            ordered = {key: counts[key] for key in keys}
            results.append(result(ordered, model=model, benchmark=benchmark, scorer=scorer))
        if shuffled:
            random.shuffle(results)
        return results

    thresholds = parse_thresholds("version = 1" + EVERYTHING)
    before = judge(thresholds, build(False), ["m", "n"], ["x", "y"])
    assert judge(thresholds, build(True), ["m", "n"], {"y", "x"}) == before
    for verdict in before:
        complete = all(
            part.missing == 0
            for r in build(False)
            if (r.model, r.benchmark, r.scorer)
            == (verdict.model, verdict.benchmark, verdict.scorer)
            for name, part in r.subjects.items()
            if verdict.subject in (None, name)
        )
        assert verdict.status != "pass" or complete, "nothing that is incomplete passes"
