"""All gates of a model together, wave by wave: shares of alpha, needed items, false verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import permutations
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.gates.sequential.decisions import Course
from pytest_llmeval.gates.sequential.decisions import CourseProgress
from pytest_llmeval.gates.sequential.decisions import OrderedItem
from pytest_llmeval.gates.sequential.decisions import replay
from pytest_llmeval.gates.sequential.family import BaselineItems
from pytest_llmeval.gates.sequential.family import Family
from pytest_llmeval.gates.sequential.family import model_family
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import ItemOutcomes
from support.gate_results import LETTERS
from support.gate_results import compared
from support.gate_results import measured
from support.gate_results import result

SIZES = {"law": 3, "art": 2}

FILE = """
[benchmarks.x]
accuracy = 0.5
max_errors = 2
unparsed_rate = 0.2
[benchmarks.x.every_subject]
accuracy = 0.4
[benchmarks.x.subjects.law]
accuracy = { min = 0.6, confidence = 0.9 }
[benchmarks.x.regression]
max_drop = 0.1
max_subject_drop = 0.3
"""


def family(
    text: str,
    sizes: Mapping[str, int] = SIZES,
    alpha: float = 0.1,
    baseline: BaselineItems | None = None,
) -> Family:
    thresholds = parse_thresholds(f"version = 1\n{text}")
    planned = result({subject: Counts(size) for subject, size in sizes.items()})
    by_result = None if baseline is None else {("x", "letter"): baseline}
    return model_family("", "m", thresholds.for_model("m"), [planned], by_result, alpha)


def complete_baseline(sizes: Mapping[str, int] = SIZES) -> BaselineItems:
    return {f"{s}-{n:05}": (s, n != 1) for s, size in sizes.items() for n in range(size)}


def test_every_line_has_its_share_of_alpha():
    gates = family(FILE, baseline=complete_baseline()).early
    shares = {gate.id: round(gate.alpha / 0.1 * 6, 9) for gate in gates}
    assert shares == {
        "x::accuracy": 1,
        "x::unparsed_rate": 1,
        "x::every_subject::art::accuracy": 0.5,
        "x::every_subject::law::accuracy": 0.5,
        "x::subjects.law::accuracy": 1,
        "x::regression::max_drop": 1,
        "x::regression::every_subject::art::max_subject_drop": 0.5,
        "x::regression::every_subject::law::max_subject_drop": 0.5,
    }
    assert math.fsum(gate.alpha for gate in gates) == pytest.approx(0.1)


def test_bonferroni_of_subjects():
    """log E must reach log(G / alpha) for each of G subjects."""
    sizes = {f"s{number}": 5 for number in range(57)}
    gates = family("[benchmarks.x.every_subject]\naccuracy = 0.4", sizes, alpha=0.01).early
    assert {round(-math.log(gate.alpha), 6) for gate in gates} == {8.648221}


def test_the_ids_are_those_of_the_verdicts():
    answers = {"law": ["c", "w", "c"], "art": ["c", "c"]}
    comparison = compared(answers, answers)
    verdicts = judge(
        parse_thresholds(f"version = 1\n{FILE}"),
        [measured(answers)],
        ["m"],
        ["x"],
        {("m", "x", "letter"): comparison},
    )
    expected = {verdict.id for verdict in verdicts} - {"x::max_errors"}
    assert {gate.id for gate in family(FILE, baseline=complete_baseline()).early} == expected


def test_without_a_baseline_regression_gates_need_no_items():
    assert not any("drop" in gate.metric for gate in family(FILE).early)


def test_gates_that_need_all_items_have_no_share():
    gates = family("[benchmarks.x]\naccuracy = 0.5\nconsistency = 0.9\n[benchmarks.x.hybrids]\n"
                   '"0.5*a+0.5*b" = 0.5')  # fmt: skip
    assert [(gate.id, gate.alpha) for gate in gates.early] == [("x::accuracy", 0.1)]
    assert {gate.metric for gate in gates.complete} == {"consistency", "0.5*a+0.5*b"}


def ids(order: str) -> list[OrderedItem]:
    """Items by the first letters of their subjects, numbered from 0 in each."""
    names = {subject[0]: subject for subject in SIZES}
    counts = dict.fromkeys(order, 0)
    items = []
    for letter in order:
        items.append(OrderedItem(f"{names[letter]}-{counts[letter]:05}", names[letter]))
        counts[letter] += 1
    return items


def outcomes(items: list[OrderedItem], answers: str) -> dict[str, dict[str, ItemOutcomes]]:
    """The answers to the first items; a blank is none."""
    return {
        "letter": {
            item.id: ItemOutcomes(item.subject, (LETTERS[letter],))
            for item, letter in zip(items, answers, strict=False)
            if letter != " "
        }
    }


def progress(
    gates: Family, items: list[OrderedItem], answers: str, wave: int = 1
) -> CourseProgress:
    cut = [items[start : start + wave] for start in range(0, len(items), wave)]
    return replay(Course(cut, gates.early), outcomes(items, answers))


def statuses(state: CourseProgress) -> dict[str, str]:
    return {p.gate.id: p.decision.status for p in state.positions if p.decision is not None}


SUBJECTS = "[benchmarks.x.every_subject]\naccuracy = 0.5"


def test_a_subject_whose_gates_are_decided_needs_no_items():
    state = progress(family(SUBJECTS), ids("lalla"), "cccc")
    # Two of the three items of law are enough for certainty, one of the two of art.
    assert statuses(state) == {
        "x::every_subject::law::accuracy": "pass",
        "x::every_subject::art::accuracy": "pass",
    }
    assert [p.wave for p in state.positions] == [2, 3]
    state = progress(family(SUBJECTS), ids("lalla"), "cc")
    assert (state.needs("law"), state.needs("art")) == (True, False)


def test_a_gate_of_the_whole_benchmark_needs_every_subject():
    gates = family(f"[benchmarks.x]\naccuracy = 0.9\n{SUBJECTS}")
    state = progress(gates, ids("lalla"), "ccc")
    assert state.needs("law")
    assert state.needs("art")
    assert not progress(gates, ids("lalla"), "cccw").needs("art")


def test_a_gate_is_decided_at_the_end_of_a_wave_only():
    state = progress(family("[benchmarks.x]\naccuracy = 0.5"), ids("lalla"), "ccccc", wave=2)
    assert [p.wave for p in state.positions] == [2]
    assert len(state.positions[0].answered) == 4


def test_an_item_without_an_answer_leaves_its_gates_undecided():
    """The items that were answered inside an interrupted wave are not a random part."""
    gates = family(f"[benchmarks.x]\naccuracy = 0.8\n{SUBJECTS}")
    state = progress(gates, ids("alall"), "c ccc")
    assert statuses(state) == {"x::every_subject::art::accuracy": "pass"}
    assert state.needs("law")
    (whole, *_) = state.positions
    assert whole.is_blocked
    assert len(whole.answered) == 1


def test_too_many_errors_fail_at_once():
    gates = family("[benchmarks.x]\naccuracy = 0.5\nmax_errors = 1")
    assert statuses(progress(gates, ids("alall"), "e")) == {}
    assert statuses(progress(gates, ids("alall"), "ee")) == {"x::accuracy": "fail"}


def test_errors_of_a_subject_are_limited_by_its_own_table():
    gates = family(
        "[benchmarks.x]\nmax_errors = 0\n[benchmarks.x.subjects.law]\naccuracy = 0.1\nmax_errors = 1"
    )
    assert statuses(progress(gates, ids("lall"), "ec")) == {}
    assert statuses(progress(gates, ids("llll"), "ee")) == {"x::subjects.law::accuracy": "fail"}


def test_after_all_items_the_full_run_decides():
    state = progress(family("[benchmarks.x]\naccuracy = 0.9"), ids("lalla"), "ccccc")
    # One wrong answer would fail, so that only the last item decides.
    assert statuses(state) == {"x::accuracy": "pass"} or not state.positions[0].is_open
    assert not state.needs("law")


def test_gates_that_need_all_items():
    gates = family("[benchmarks.x]\naccuracy = 0.5")
    waves = [[item] for item in ids("lalla")]
    state = replay(Course(waves, gates.early, {"law"}), outcomes(ids("lalla"), "cccc"))
    assert statuses(state) == {"x::accuracy": "pass"}
    assert (state.needs("law"), state.needs("art")) == (True, False)
    assert replay(Course(waves, []), {}).needs("art")


@pytest.mark.parametrize(
    ("text", "wave"),
    [
        (f"[benchmarks.x]\naccuracy = 0.5\n{SUBJECTS}", 1),
        (f"[benchmarks.x]\naccuracy = 0.5\n{SUBJECTS}", 2),
        ("[benchmarks.x]\nmacro_accuracy = 0.6\nnormalized_gain = 0.1", 1),
        ("[benchmarks.x.regression]\nmax_drop = 0.1\nmax_subject_drop = 0.3\nalpha = 0.9", 3),
    ],
)
def test_a_false_verdict_of_any_gate_is_rarer_than_alpha_for_all_orders(text, wave):
    """Families of two and three gates: every population of five items, in every order."""
    alpha = 0.6
    gates = family(text, alpha=alpha, baseline=complete_baseline())
    items = ids("lllaa")
    for answers in list(product("cw", repeat=5))[:: 2 if "regression" in text else 1]:
        by_item = dict(zip(items, answers, strict=True))
        answered = {s: [a for i, a in by_item.items() if i.subject == s] for s in ("law", "art")}
        before = {
            s: ["c" if complete_baseline()[i.id][1] else "w" for i in items if i.subject == s]
            for s in ("law", "art")
        }
        comparisons = {("m", "x", "letter"): compared(before, answered)}
        thresholds = parse_thresholds(f"version = 1\n{text}")
        full = judge(thresholds, [measured(answered)], ["m"], ["x"], comparisons)
        expected = {verdict.id: verdict.status for verdict in full}
        false = 0
        for order in permutations(items):
            state = progress(gates, list(order), "".join(by_item[i] for i in order), wave)
            false += any(expected[id] != status for id, status in statuses(state).items())
        assert false / math.factorial(5) <= alpha, answers


@given(st.lists(st.sampled_from("cwue"), min_size=5, max_size=5), st.integers(1, 5))
def test_decisions_stay(answers, wave):
    """A later wave changes no decision: a resumed run repeats those of its first session."""
    gates = family(FILE)
    text = "".join(answers)
    earlier: dict[str, str] = {}
    for n in range(0, 6, wave):
        state = statuses(progress(gates, ids("lalla"), text[:n], wave))
        assert earlier.items() <= state.items()
        earlier = state


def test_bounds_that_are_chosen_later_have_half_of_alpha_on_either_side():
    gates = family(FILE, baseline=complete_baseline())
    later = gates.for_any_bound()
    assert {gate.metric for gate in later.early} == {"accuracy", "unparsed_rate"}
    assert sum(gate.alpha for gate in later.early) == pytest.approx(0.1 / 6 * 4 / 2)
    assert {gate.metric for gate in later.complete} == {"max_drop", "max_subject_drop"}
