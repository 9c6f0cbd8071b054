"""Regression gates: significant drops beyond tolerance fail, others at most warn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.gates import FIRST_RUN
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import group_subject_verdicts
from pytest_llmeval.gates import overall_verdict
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from support.gate_results import Answers
from support.gate_results import compared
from support.gate_results import measured
from support.gate_results import result
from support.gate_results import right
from support.gate_results import verdicts

KEY = ("m", "x", "letter")
DROP = "[benchmarks.x.regression]\nmax_drop = 0.01\n"
SUBJECTS = "[benchmarks.x.regression]\nmax_subject_drop = 0.05\n"
BOTH = "[benchmarks.x]\nregression = { max_drop = 0.01, max_subject_drop = 0.05 }\n"


def subject(both: int = 0, wrong: int = 0, right: int = 0, neither: int = 0) -> tuple[str, str]:
    """The items of a subject in baseline and candidate, by what became of them."""
    before = "c" * both + "c" * wrong + "w" * right + "w" * neither
    return before, "c" * both + "w" * wrong + "c" * right + "w" * neither


def against(
    text: str, more: str = "", /, candidate: Result | None = None, **subjects: tuple[str, str]
) -> dict[str, Verdict]:
    before: Answers = {name: list(pair[0]) for name, pair in subjects.items()}
    after: Answers = {name: list(pair[1]) for name, pair in subjects.items()}
    before, after = ({s: [x.strip() for x in run] for s, run in a.items()} for a in (before, after))
    run = candidate or measured(after)
    return verdicts(text + more, run, comparisons={KEY: compared(before, after)})


def drop(*args: str, **subjects: tuple[str, str]) -> Verdict:
    (verdict,) = against(*args, **subjects).values()
    return verdict


def test_without_a_baseline_a_regression_table_is_undecided() -> None:
    by_gate = verdicts(BOTH + "accuracy = 0", right(5, 10))
    assert {id: v.status for id, v in by_gate.items()} == {
        "x::accuracy": "pass",
        "x::regression": "undecided",
    }
    assert "--llm-baseline none for the first run" in by_gate["x::regression"].reason
    assert overall_verdict(by_gate.values()) == "fail"
    assert verdicts(DROP)["x::regression"].status == "undecided"
    scorer = "[benchmarks.x.scorers.letter.regression]\nmax_drop = 0.1"
    assert list(verdicts(scorer, right(5, 10))) == ["x::scorers.letter::regression"]


def test_the_first_run_leaves_regression_gates_out() -> None:
    by_gate = verdicts(BOTH + "accuracy = 0", right(5, 10), comparisons=FIRST_RUN)
    assert by_gate["x::regression"].status == "not run"
    assert overall_verdict(by_gate.values()) == "pass"
    alone = verdicts(DROP, right(5, 10), comparisons=FIRST_RUN)
    assert overall_verdict(alone.values()) == "fail"  # nothing was decided


def test_a_significant_drop_beyond_tolerance_fails() -> None:
    verdict = drop(DROP, s=subject(both=60, wrong=20, right=5, neither=15))
    assert (verdict.id, verdict.status, verdict.warning) == (
        "x::regression::max_drop",
        "fail",
        None,
    )
    assert verdict.measured == pytest.approx(0.15)
    assert verdict.interval is not None
    assert 0 < verdict.interval[0] < 0.15 < verdict.interval[1]
    assert (verdict.n, verdict.max, verdict.bound) == (100, 0.01, "<= 0.01, alpha 0.05")
    assert verdict.reason == (
        "0.8000 -> 0.6500 over 100 items, 20 newly wrong, 5 newly right, p = 0.00408"
    )
    assert verdict.detectable is not None
    assert verdict_line(verdict).startswith("FAIL x::regression::max_drop: 0.1500 (bound <= 0.01, ")
    assert verdict_line(verdict).endswith(f"detectable drop {verdict.detectable:.4f}")


def test_an_insignificant_drop_beyond_tolerance_only_warns() -> None:
    verdict = drop(DROP, s=subject(both=60, wrong=8, right=4, neither=28))
    assert (verdict.status, verdict.measured) == ("pass", pytest.approx(0.04))
    assert verdict.warning == "more than 0.01 but not significant at alpha 0.05"
    assert verdict_line(verdict).startswith("WARN x::regression::max_drop: 0.0400 ")
    assert verdict.warning in verdict_line(verdict)
    assert overall_verdict([verdict]) == "pass"


@pytest.mark.parametrize(
    "changes",
    [
        subject(both=9_000, wrong=110, right=50, neither=840),  # significant, but 0.006
        subject(both=60, wrong=0, right=20, neither=20),
        subject(both=100),
        subject(both=99, wrong=1),  # exactly 0.01
    ],
)
def test_a_drop_within_tolerance_and_an_improvement_pass(changes: tuple[str, str]) -> None:
    verdict = drop(DROP, s=changes)
    assert (verdict.status, verdict.warning) == ("pass", None)
    assert verdict_line(verdict).startswith("PASS ")


def test_alpha_is_the_files() -> None:
    changes = subject(both=60, wrong=20, right=5, neither=15)  # p = 0.004
    assert drop(DROP, "alpha = 0.005", s=changes).status == "fail"
    assert drop(DROP, "alpha = 0.004", s=changes).warning is not None
    six = subject(both=30, wrong=6)  # p = 2 / 2^6
    assert drop(DROP, "alpha = 0.03125", s=six).status == "fail"
    assert drop(DROP, "alpha = 0.03124", s=six).warning is not None


MIXED = {
    "better": subject(both=100, wrong=0, right=60, neither=40),
    "worse": subject(both=60, wrong=30, right=2, neither=8),
    "same": subject(both=50, wrong=5, right=5, neither=40),
}


def test_a_subject_fails_even_where_the_average_rose() -> None:
    by_gate = against(BOTH, **MIXED)
    assert {id: v.status for id, v in by_gate.items()} == {
        "x::regression::max_drop": "pass",
        "x::regression::every_subject::better::max_subject_drop": "pass",
        "x::regression::every_subject::same::max_subject_drop": "pass",
        "x::regression::every_subject::worse::max_subject_drop": "fail",
    }
    worse = by_gate["x::regression::every_subject::worse::max_subject_drop"]
    assert (worse.subject, worse.measured, worse.n) == ("worse", pytest.approx(0.28), 100)
    assert "(Holm " in worse.reason


def test_subjects_are_held_to_holm_adjusted_p() -> None:
    """6 newly wrong: p = 0.031 alone, 0.125 as the smallest of four."""
    changes = subject(both=30, wrong=6)
    assert drop(SUBJECTS, a=changes).status == "fail"
    others = {name: subject(both=30) for name in "bcd"}
    by_gate = against(SUBJECTS, a=changes, **others)
    verdict = by_gate["x::regression::every_subject::a::max_subject_drop"]
    assert (verdict.status, verdict.warning is None) == ("pass", False)
    assert "p = 0.0312 (Holm 0.125)" in verdict.reason


def test_subjects_are_folded_but_warnings_are_not_hidden() -> None:
    same = {f"s{i}": subject(both=30, wrong=i % 2) for i in range(20)}
    warned = subject(both=30, wrong=3)
    by_gate = against(SUBJECTS, warned=warned, **same)
    shown = group_subject_verdicts(by_gate.values(), {"pass", "undecided"})
    assert [(v.id, v.warning is not None) for v in shown] == [
        ("x::regression::every_subject::max_subject_drop", False),
        ("x::regression::every_subject::warned::max_subject_drop", True),
    ]
    assert shown[0].measured == pytest.approx(1 / 31)
    assert shown[0].reason == "worst of 20 subjects: s1"


@pytest.mark.parametrize("comparisons", [{}, {KEY: "other protocol"}])
def test_no_comparison_is_undecided(comparisons: dict[tuple[str, str, str], str]) -> None:
    by_gate = verdicts(BOTH, right(5, 10), comparisons=comparisons)
    reason = comparisons.get(KEY, "the baseline has no such result")
    assert {(id, v.status, v.reason) for id, v in by_gate.items()} == {
        ("x::regression::max_drop", "undecided", reason),
        ("x::regression::every_subject::max_subject_drop", "undecided", reason),
    }
    many = verdicts(BOTH, result(Counts(10, 5, error=1)), comparisons=comparisons)
    assert {(v.status, v.reason) for v in many.values()} == {
        ("fail", "incomplete: 1 error (max_errors 0)")
    }


def test_no_result_or_several_are_undecided() -> None:
    by_gate = verdicts(BOTH, comparisons={})
    assert {v.reason for v in by_gate.values()} == {"no item was run"}
    several = verdicts(BOTH, right(1, 2), right(1, 2, scorer="cloze"), comparisons={})
    assert {v.status for v in several.values()} == {"undecided"}
    assert "2 scorers" in several["x::regression::max_drop"].reason
    scorer = "[benchmarks.x.scorers.cloze.regression]\nmax_drop = 0.1"
    assert [v.reason for v in verdicts(scorer, right(1, 2), comparisons={}).values()] == [
        "scorer 'cloze' did not run"
    ]


def test_missing_items_leave_a_regression_gate_undecided() -> None:
    for pair in [("ccc ", "cccc"), ("cccc", "ccc "), ("ccc ", "ccc "), ("ccc ", "ccw ")]:
        verdict = drop(DROP, s=pair)
        assert (verdict.status, verdict.reason) == (
            "undecided",
            "only 3 of 4 items are in both runs",
        )
        assert (verdict.n, verdict.detectable) == (3, None)
    for pair in [("    ", "cccc"), ("cccc", "    ")]:
        assert drop(DROP, s=pair).reason == "none of 4 items is in both runs"


def test_a_subject_is_decided_by_its_own_items() -> None:
    by_gate = against(BOTH, a=("ccc ", "cccc"), b=subject(both=10, wrong=10), c=subject(both=4))
    assert {id.split("::")[-2]: v.status for id, v in by_gate.items()} == {
        "regression": "undecided",
        "a": "undecided",
        "b": "fail",
        "c": "pass",
    }


def test_a_baseline_with_errors_is_no_ground() -> None:
    """Such a run cannot be distinguished from one that had those items right."""
    by_gate = against(BOTH, a=("cc" + "e" * 3, "ccwww"), b=subject(both=10))
    assert {(v.status, v.reason) for v in by_gate.values()} == {
        ("undecided", "the baseline is incomplete: 3 errors (max_errors 0)")
    }
    allowed = "[benchmarks.x]\nmax_errors = 6\nregression = { max_drop = 0.1 }"
    by_gate = against(allowed, a=("cc" + "e" * 6, "ccwwwwww"), b=subject(both=10))
    verdict = by_gate["x::regression::max_drop"]
    assert (verdict.status, verdict.n, verdict.measured) == ("fail", 18, pytest.approx(1 / 3))
    assert verdict.reason.endswith(", 6 items with errors counted against the candidate")
    by_gate = against(allowed, a=("cc" + "e" * 3, "ccccc"), b=subject(both=10))
    assert by_gate["x::regression::max_drop"].status == "pass"


def test_a_baselines_errors_are_counted_in_answers() -> None:
    """As the candidate's are, and ``max_errors`` is: three errors of one item are three."""
    before, after = {"s": ["eee", "ccw", "ccc"]}, {"s": ["ccc", "ccw", "ccc"]}
    gates = "[benchmarks.x]\nmax_errors = {}\nregression = {{ max_drop = 0.1 }}".format

    def verdict(limit: int) -> Verdict:
        comparison = {KEY: compared(before, after)}
        by_gate = verdicts(gates(limit), measured(after, samples=3), comparisons=comparison)
        return by_gate["x::regression::max_drop"]

    assert verdict(2).reason == "the baseline is incomplete: 3 errors (max_errors 2)"
    assert verdict(3).status == "pass"


def test_allowed_errors_are_taken_as_wrong() -> None:
    more = "[benchmarks.x]\nmax_errors = {}\n".format
    pairs = {"a": ("c" * 10, "e" + "c" * 9), "b": ("c" * 20, "w" * 20), "c": ("cc", "cc")}
    by_gate = against(more(1) + "regression = { max_drop = 0.5, max_subject_drop = 0.5 }", **pairs)
    assert by_gate["x::regression::max_drop"].status == "fail"
    assert ", 1 item with errors counted against" in by_gate["x::regression::max_drop"].reason
    statuses = {v.subject: v.status for v in by_gate.values() if v.subject}
    assert statuses == {"a": "pass", "b": "fail", "c": "pass"}


def test_more_errors_than_allowed_fail() -> None:
    """As everywhere: only the subjects with errors."""
    by_gate = against(BOTH, a=("c" * 10, "e" + "c" * 9), c=("cc", "cc"))
    assert {v.subject: v.status for v in by_gate.values()} == {
        None: "fail",
        "a": "fail",
        "c": "pass",
    }
    assert by_gate["x::regression::max_drop"].reason == "incomplete: 1 error (max_errors 0)"
    a = by_gate["x::regression::every_subject::a::max_subject_drop"]
    assert a.reason == "incomplete: 1 error here, 1 in all (max_errors 0)"


def test_the_same_random_draw_is_decided() -> None:
    """Or any run that has all items of the candidate's draw."""
    after = {"s": ["w"] * 20 + ["c"] * 30 + [""] * 50}
    drawn = measured(after, drawn={"s": 50})
    for rest in ("", "c"):
        before = {"s": ["c"] * 50 + [rest] * 50}
        by_gate = verdicts(BOTH, drawn, comparisons={KEY: compared(before, after)})
        assert {v.status for v in by_gate.values()} == {"fail"}
        for verdict in by_gate.values():
            assert verdict.reason.startswith("sampled 50 of 100 items: 1.0000 -> 0.6000 over 50")
    other = {"s": [""] + ["c"] * 50 + [""] * 49}
    by_gate = verdicts(BOTH, drawn, comparisons={KEY: compared(other, after)})
    assert {v.reason for v in by_gate.values()} == {"only 49 of 100 items are in both runs"}


def test_models_and_scorers_have_their_own_comparison() -> None:
    text = "[benchmarks.x.scorers.cloze.regression]\nmax_drop = 0.1\n"
    text += "[models.n.benchmarks.x.scorers.cloze.regression]\nalpha = 0.4\n"
    before, after = {"s": list("cccccccc")}, {"s": list("wwwccccc")}  # p = 0.25
    runs = [right(5, 8, model=m, scorer="cloze") for m in "mn"]
    comparison = compared(before, after)
    by_gate = verdicts(
        text,
        *runs,
        models=("m", "n"),
        comparisons={(m, "x", "cloze"): comparison for m in "mn"},
    )
    assert {id: (v.status, v.warning is None) for id, v in by_gate.items()} == {
        "m::x::scorers.cloze::regression::max_drop": ("pass", False),
        "n::x::scorers.cloze::regression::max_drop": ("fail", True),
    }


def test_several_samples() -> None:
    before, after = {"s": ["cc"] * 30}, {"s": ["cw"] * 10 + ["cc"] * 20}
    run = measured(after, samples=2)
    by_gate = verdicts(DROP, run, comparisons={KEY: compared(before, after)})
    verdict = by_gate["x::regression::max_drop"]
    assert (verdict.status, verdict.n, verdict.measured) == ("fail", 30, pytest.approx(1 / 6))
    assert "10 newly wrong" in verdict.reason


pairs = st.lists(st.sampled_from(["cc", "cw", "wc", "ww", "ec", "ce", " c", "c "]), max_size=40)


@given(st.dictionaries(st.sampled_from("abc"), pairs, min_size=1), st.floats(0, 0.3))
def test_failures_and_warnings(drawn: dict[str, list[str]], tolerance: float) -> None:
    before, after = ({s: [p[i].strip() for p in run] for s, run in drawn.items()} for i in (0, 1))
    comparison = compared(before, after)
    gates = f"max_drop = {tolerance:.6f}, max_subject_drop = {tolerance:.6f}, alpha = 0.2"
    text = f"[benchmarks.x]\nmax_errors = 200\nregression = {{ {gates} }}"
    by_gate = verdicts(text, measured(after), comparisons={KEY: comparison})
    errors_only = all(" " not in pair for run in drawn.values() for pair in run)
    for verdict in by_gate.values():
        if verdict.metric == "max_errors":
            continue
        sure = comparison.conservative or comparison
        difference = sure.overall
        own = [pair for run in drawn.values() for pair in run]
        if verdict.subject is not None:
            difference = sure.subjects[verdict.subject]
            own = drawn[verdict.subject]
        beyond = difference.drop is not None and difference.drop > round(tolerance, 6) + 1e-9
        if verdict.status == "undecided":
            assert not errors_only or difference.items == 0
        elif verdict.status == "fail":
            assert beyond
            assert difference.adjusted <= 0.2
            assert verdict.warning is None
        else:
            assert (verdict.warning is not None) == beyond
            assert not (beyond and difference.adjusted <= 0.2)
        if verdict.status in ("pass", "fail"):
            assert not any(pair in (" c", "c ") for pair in own)
