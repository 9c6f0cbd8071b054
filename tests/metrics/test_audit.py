"""Audits of planted behaviours give the closed forms, and name the behaviour."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.bias.arms import arms
from pytest_llmeval.bias.arms import same_options
from pytest_llmeval.core import Item
from pytest_llmeval.metrics import ArmAnswer
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import FamilyResult
from pytest_llmeval.metrics import arm_answer
from pytest_llmeval.metrics import audit_table
from pytest_llmeval.metrics import diagnose
from support.planted import Double
from support.planted import always_first
from support.planted import always_last
from support.planted import at_random
from support.planted import copies_last_shot
from support.planted import flips_on_third
from support.planted import items
from support.planted import knows
from support.planted import leaning
from support.planted import silent
from support.planted import table

ASKED = items(200)
SHOTS = items(6, prefix="shot")  # the last one's answer is B


def run(double: Double, kind: str = "attack", tested: tuple[Item, ...] = ASKED) -> Audit:
    options = len(tested[0].options)
    return audit_table(table(tested, SHOTS, arms(kind, options), double))


def family(audit: Audit, name: str) -> FamilyResult:
    return next(family for family in audit.families if family.name == name)


def accuracies(audit: Audit) -> dict[str, float]:
    return {arm.name: arm.accuracy for arm in audit.arms}


# Arms of the attack, K = 4, golds uniform: the accuracies in order original, A, B, C, D.
ATTACKS: list[tuple[Double, dict[str, list[float]], dict[str, float]]] = [
    # Always A: the gold in one arm, of the others three hold A's own option (gold elsewhere)
    # or three different ones (gold at A, 1/4 of items): SCORE = 3/4 × 3/6.
    (
        always_first,
        {"test": [1, 0, 0, 0], "shots": [0.25] * 4, "both": [1, 0, 0, 0]},
        {"test": 0.375, "shots": 1.0, "both": 0.375},
    ),
    (
        always_last,
        {"test": [0, 0, 0, 1], "shots": [0.25] * 4, "both": [0, 0, 0, 1]},
        {"test": 0.375, "shots": 1.0, "both": 0.375},
    ),
    # The shots' last answer is B; moved, every position in turn: four contents, no pair.
    (
        copies_last_shot,
        {"test": [0, 1, 0, 0], "shots": [0.25] * 4, "both": [1] * 4},
        {"test": 0.375, "shots": 0.0, "both": 1.0},
    ),
    (
        knows,
        {"test": [1] * 4, "shots": [1] * 4, "both": [1] * 4},
        {"test": 1.0, "shots": 1.0, "both": 1.0},
    ),
    # Wrong only with the gold at C: 3 of 6 pairs agree.
    (
        flips_on_third,
        {"test": [1, 1, 0, 1], "shots": [0.75] * 4, "both": [1, 1, 0, 1]},
        {"test": 0.5, "shots": 1.0, "both": 0.5},
    ),
    (
        silent,
        {"test": [0] * 4, "shots": [0] * 4, "both": [0] * 4},
        {"test": 0.0, "shots": 0.0, "both": 0.0},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("double", "rates", "scores"), ATTACKS)
def test_attack_closed_forms(
    double: Double, rates: dict[str, list[float]], scores: dict[str, float]
) -> None:
    audit = run(double)
    original = {"knows": 1.0, "flips_on_third": 0.75, "silent": 0.0}.get(double.__name__, 0.25)
    assert accuracies(audit)["original"] == original
    for name, expected in rates.items():
        measures = family(audit, name)
        assert [accuracies(audit)[f"{name}@{label}"] for label in "ABCD"] == expected
        assert measures.consistency == pytest.approx(scores[name])
        five = [original, *expected]
        mean = sum(five) / 5
        assert measures.mean == pytest.approx(mean)
        assert measures.moved_mean == pytest.approx(sum(expected) / 4)
        assert measures.gap == pytest.approx(sum(expected) / 4 - original)
        assert measures.variance == pytest.approx(sum((x - mean) ** 2 for x in five) / 5)
        assert measures.range == max(five) - min(five)
        # RStd of golds at every position once: the spread of the four arms.
        mean = sum(expected) / 4
        if name != "shots":
            spread = math.sqrt(sum((x - mean) ** 2 for x in expected) / 4)
            assert measures.recall_std == pytest.approx(spread)
        assert measures.items == 200


@pytest.mark.parametrize(
    ("double", "worst", "voted"),
    [
        # The original is right for a quarter; nothing is right in all five.
        (always_first, 0.0, 0.25),
        (copies_last_shot, 0.0, 0.25),
        (knows, 1.0, 1.0),
        # Three of five or four of five arms are right.
        (flips_on_third, 0.0, 1.0),
        (silent, 0.0, 0.0),
    ],
)
def test_worst_case_and_majority_over_moved_items(
    double: Double, worst: float, voted: float
) -> None:
    measures = family(run(double), "test")
    assert (measures.worst_case, measures.majority) == (worst, pytest.approx(voted))
    low, high = measures.worst_case_interval
    assert low <= worst <= high
    assert high > low  # 200 items of a kind are no certainty


@pytest.mark.parametrize(
    ("double", "rate", "consistency", "recall_std"),
    [
        # Rotations show every content at A once: four contents, no pair.
        (always_first, 0.25, 0.0, math.sqrt(3) / 4),
        (always_last, 0.25, 0.0, math.sqrt(3) / 4),
        (knows, 1.0, 1.0, 0.0),
        (flips_on_third, 0.75, 0.5, math.sqrt(3) / 4),
    ],
)
def test_cyclic_closed_forms(
    double: Double, rate: float, consistency: float, recall_std: float
) -> None:
    audit = run(double, "cyclic")
    measures = family(audit, "cyclic")
    assert set(accuracies(audit).values()) == {rate}
    assert (measures.mean, measures.variance, measures.range, measures.gap) == (rate, 0, 0, 0)
    assert measures.consistency == consistency
    assert measures.recall_std == pytest.approx(recall_std)
    assert audit.recall_std == pytest.approx(recall_std)  # golds of the original go round


def test_full_permutations_of_three() -> None:
    measures = family(run(always_first, "full", items(60, 3)), "full")
    # Each content at A in two of six: 3 of 15 pairs.
    assert len(measures.arms) == 5
    assert measures.consistency == pytest.approx(3 / 15)
    assert measures.mean == pytest.approx(1 / 3)


@pytest.mark.parametrize("kind", ["attack", "cyclic", "full", "6"])
@pytest.mark.parametrize(
    ("double", "sentence"),
    [
        (always_first, "always answers position A: 100.0 %"),
        (always_last, "always answers the last option, position D: 100.0 %"),
        (
            flips_on_third,
            "flips on position C: finds 0.0 % of the answers at that position, 100.0 %",
        ),
        (knows, None),
        (silent, None),
        (at_random(1), None),
        (leaning(2, [4, 2, 2, 2]), "prefers position A"),
        (leaning(3, [2, 2, 2, 5]), "prefers the last option, position D"),
    ],
)
def test_diagnosis_names_what_was_planted(double: Double, sentence: str | None, kind: str) -> None:
    tested = items(400)
    diagnosis = diagnose(run(double, kind, tested))
    assert diagnosis is None if sentence is None else (diagnosis or "").startswith(sentence)


def test_copying_differs_from_a_preference() -> None:
    audit = run(copies_last_shot)
    assert (diagnose(audit) or "").startswith(
        "copies the position of the shots' answers: 100.0 % of its answers are at that position; 25.0 %"
    )
    # Where the shots do not move, copying them is answering their position.
    still = table(ASKED, SHOTS, arms("attack", 4, shots=False), copies_last_shot)
    assert (diagnose(audit_table(still)) or "").startswith("always answers position B")
    assert audit.copying is not None
    assert (audit.copying.share, audit.copying.expected) == (1.0, 0.25)
    for double in (always_first, knows):
        other = run(double).copying
        assert other is not None
        assert (other.share, other.p_value) == (0.25, 1.0)


def test_content_without_positions_is_no_preference() -> None:
    """A model that picks the same wrong content, which is at B in most arms of the attack."""

    def stubborn(item: Item, _shots: object) -> int:
        wrong = next(
            o for o in sorted(item.options) if o[-1] == ("b" if int(item.id[5:]) % 4 != 1 else "c")
        )
        return item.options.index(wrong)

    for kind in ("attack", "cyclic", "full", "8"):
        audit = run(stubborn, kind)
        assert diagnose(audit) is None
        assert audit.main is not None
        assert audit.main.consistency == 1.0


def test_random_answers_are_rarely_called_biased() -> None:
    biased = sum(diagnose(run(at_random(seed), tested=items(60))) is not None for seed in range(40))
    assert biased <= 3  # 1 % of them; more than 3 in one of 1,000 such tests


def test_positions_that_are_not_known_leave_the_accuracies() -> None:
    plain = {
        f"i{n}": {
            "original": (0, True),
            "test@A": (0, True),
            "test@B": (1, n % 4 == 0),
        }
        for n in range(100)
    }
    audit = audit_table(plain)
    assert audit.recall_std is None
    assert family(audit, "test").positions == ()
    assert (diagnose(audit) or "").startswith(
        "depends on the order of the options: accuracies of 25.0 % to 100.0 %"
    )


def test_items_that_are_not_in_every_arm_are_not_compared() -> None:
    tested = (*items(8, 4), *items(4, 3, prefix="short"))
    audit = audit_table(table(tested, SHOTS, arms("attack", 4), knows))
    sizes = {arm.name: arm.items for arm in audit.arms}
    assert (sizes["original"], sizes["test@C"], sizes["test@D"], sizes["both@D"]) == (12, 12, 8, 8)
    assert {f.name: f.items for f in audit.families} == {"test": 8, "shots": 12, "both": 8}
    assert audit.items == 12


def test_arms_without_any_answer_have_no_family() -> None:
    audit = audit_table({"a": {"original": (0, True)}, "b": {"cyclic@1": (0, True)}})
    assert audit.families == ()
    assert audit.main is None
    assert diagnose(audit) is None
    with pytest.raises(ValueError, match="original order"):
        audit_table({"a": {"cyclic@1": (0, True)}})
    with pytest.raises(ValueError, match="original order"):
        audit_table({})


def test_an_audit_is_json_and_back() -> None:
    for kind in ("attack", "cyclic"):
        document = run(flips_on_third, kind).as_json()
        assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_an_answer_is_mapped_back_to_its_content() -> None:
    swapped = (2, 1, 0, 3)
    assert arm_answer(swapped, 2, 2, True) == ArmAnswer(2, True, 0, 0, swapped)
    assert arm_answer(swapped, 2, 0, False) == ArmAnswer(0, False, 2, 0, swapped)
    assert arm_answer(swapped, 2, None, False) == ArmAnswer(None, False, None, 0, swapped)
    twins = Item("t", "s", "?", 0, ("x", "y", "y"))
    same = same_options(twins)
    assert [arm_answer((1, 2, 0), 0, n, False, same).chosen for n in (1, 2, 0)] == [1, 1, 0]
    assert arm_answer((1, 2, 0), 0, 2, False, same).position == 1
    assert same_options(Item("t", "s", "?", 0, ("x", "y", "z"))) == ()


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(*[st.tuples(st.none() | st.integers(0, 2), st.booleans())] * 4),
        min_size=1,
        max_size=12,
    )
)
def test_family_numbers_against_brute_force(
    rows: list[tuple[tuple[int | None, bool], ...]],
) -> None:
    names = ("original", "drawn@1", "drawn@2", "drawn@3")
    measures = family(
        audit_table({str(n): dict(zip(names, row, strict=True)) for n, row in enumerate(rows)}),
        "drawn",
    )
    rates = [sum(row[a][1] for row in rows) / len(rows) for a in range(4)]
    assert measures.mean == pytest.approx(sum(rates) / 4)
    assert measures.range == pytest.approx(max(rates) - min(rates))
    assert measures.worst_case == sum(all(c for _, c in row) for row in rows) / len(rows)
    assert measures.gap == pytest.approx(sum(rates) / 4 - rates[0])
    for low, value, high in (
        (measures.mean_interval[0], measures.mean, measures.mean_interval[1]),
        (measures.gap_interval[0], measures.gap, measures.gap_interval[1]),
        (
            measures.consistency_interval[0],
            measures.consistency or 0.0,
            measures.consistency_interval[1],
        ),
    ):
        assert low - 1e-12 <= value <= high + 1e-12


BUILDERS: list[Callable[[], Double]] = [lambda: at_random(5), lambda: leaning(6, [3, 1, 1, 1])]


@pytest.mark.parametrize("build", BUILDERS)
def test_same_table_same_audit(build: Callable[[], Double]) -> None:
    answers = table(ASKED, SHOTS, arms("attack", 4), build())
    turned = dict(reversed(answers.items()))
    assert audit_table(answers) == audit_table(turned)


def test_many_items_are_judged_by_the_normal_limit() -> None:
    """The same table over and over: p values go on where the exact test stopped."""
    answers = table(ASKED, SHOTS, arms("cyclic", 4), leaning(9, [5, 4, 4, 4]))
    for copies, exact in ((1, True), (12, False)):
        many = {f"{n}-{name}": row for n in range(copies) for name, row in answers.items()}
        positions = family(audit_table(many), "cyclic").positions
        excesses: dict[int, int] = {}
        for row in many.values():
            picks = sum(answer.position == 0 for answer in row.values())
            excesses[4 * picks - 4] = excesses.get(4 * picks - 4, 0) + 1
        whole = sum(abs(d) * m for d, m in excesses.items())
        assert (whole <= 5000) == exact
        z = sum(d * m for d, m in excesses.items()) / math.sqrt(
            sum(d * d * m for d, m in excesses.items())
        )
        normal = math.erfc(abs(z) / math.sqrt(2))
        # Holm multiplies the smallest of four by four at most.
        assert normal <= positions[0].p_value * (1.1 if exact else 1.0)
        assert positions[0].p_value <= 4 * normal * (1.4 if exact else 1.0 + 1e-12)


def test_the_order_in_which_answers_came_does_not_settle_a_tie() -> None:
    arms = ("original", "drawn@1", "drawn@2")
    # Three options, chosen once each: the original order decides, at any place.
    row = {"drawn@2": (2, True), "drawn@1": (1, False), "original": (0, False)}
    (family,) = audit_table({"i": row}, arms=arms).families
    assert family.majority == 0.0
    assert family.arms == ("drawn@1", "drawn@2")


def test_the_recall_at_a_rare_position_is_left_out() -> None:
    """Of 41 items one has five options, and its answer at the fifth is missed."""
    table = {
        f"i{n}": {"original": ArmAnswer(n % 4, True, n % 4, n % 4, (0, 1, 2, 3))} for n in range(40)
    }
    table["odd"] = {"original": ArmAnswer(0, False, 0, 4, (0, 1, 2, 3, 4))}
    assert audit_table(table).recall_std == 0.0


@pytest.mark.parametrize("kind", ["cyclic", "full", "attack"])
def test_a_range_over_positions_is_seen_in_every_kind_of_audit(kind: str) -> None:
    main = run(always_first, kind).main
    assert main is not None
    assert main.position_range == 1.0
    assert run(knows, kind).main.position_range == 0.0  # type: ignore[union-attr]
