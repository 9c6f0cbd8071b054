"""Results, comparisons and verdicts for the tests of gates."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates import NO_BASELINE
from pytest_llmeval.gates import Comparisons
from pytest_llmeval.gates import NotCompared
from pytest_llmeval.gates import Overlaps
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.gates.clean import NOT_SEARCHED
from pytest_llmeval.metrics import Comparison
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import FirstOutcomes
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import aggregate
from pytest_llmeval.metrics import compare_items

LETTERS = {"c": Outcome.CORRECT, "w": Outcome.WRONG, "u": Outcome.UNPARSED, "e": Outcome.ERROR}


def result(
    subjects: dict[str, Counts] | Counts,
    *,
    model: str = "m",
    benchmark: str = "x",
    scorer: str = "letter",
    chance: float | None = 0.25,
    **more: Any,
) -> Result:
    if isinstance(subjects, Counts):
        subjects = {"s": subjects}
    return Result(model, benchmark, scorer, "lmeval", chance, subjects, **more)


def right(correct: int, total: int, **more: Any) -> Result:
    return result(Counts(total, correct, total - correct), **more)


def verdicts(
    text: str,
    *results: Result,
    models: tuple[str, ...] = ("m",),
    collected: tuple[str, ...] = ("x",),
    comparisons: Comparisons | NotCompared = NO_BASELINE,
    outcomes: FirstOutcomes | None = None,
    unknown_models: Collection[str] = (),
    overlaps: Overlaps = NOT_SEARCHED,
) -> dict[str, Verdict]:
    """The verdicts by id."""
    thresholds = parse_thresholds(f"version = 1\n{text}")
    listed = judge(
        thresholds, results, models, collected, comparisons, outcomes, unknown_models, overlaps
    )
    by_id = {verdict.id: verdict for verdict in listed}
    assert len(by_id) == len(listed), "ids are unique"
    for verdict in listed:
        assert len(verdict_line(verdict).splitlines()) == 1
    return by_id


def verdict_of(text: str, *results: Result) -> Verdict:
    """The only verdict of the benchmark x with these gates."""
    text = text if text.startswith("[") else f"[benchmarks.x]\n{text}"
    (verdict,) = verdicts(text, *results).values()
    return verdict


Answers = Mapping[str, list[str]]
"""Subject → its items, each as the outcomes of its samples, such as ``ccw``; "" was not run."""


def items(answers: Answers) -> dict[str, ItemOutcomes]:
    return {
        f"{subject}-{number:05}": ItemOutcomes(
            subject, tuple(LETTERS[letter] for letter in outcomes)
        )
        for subject, run in answers.items()
        for number, outcomes in enumerate(run)
        if outcomes
    }


def measured(answers: Answers, *, samples: int = 1, **more: Any) -> Result:
    """The result of a run; sizes are those of the lists."""
    return aggregate(
        items(answers).values(),
        model="m",
        benchmark="x",
        scorer="letter",
        protocol="lmeval",
        chance=0.25,
        sizes={subject: len(run) for subject, run in answers.items()},
        samples=samples,
        **more,
    )


def compared(baseline: Answers, candidate: Answers) -> Comparison:
    return compare_items(
        items(baseline),
        items(candidate),
        benchmark="x",
        scorer="letter",
        baseline_model="m",
        candidate_model="m",
        sizes={subject: len(run) for subject, run in candidate.items()},
    )


ACCURACY = "[benchmarks.x]\naccuracy = "


@st.composite
def some_counts(draw: st.DrawFn) -> Counts:
    correct, wrong, unparsed = (draw(st.integers(0, 9)) for _ in range(3))
    error = draw(st.sampled_from([0, 0, 0, 1, 5]))
    missing = draw(st.sampled_from([0, 0, 3]))
    total = correct + wrong + unparsed + error + missing
    return Counts(total, correct, wrong, unparsed, error)


some_subjects = st.dictionaries(st.sampled_from("abc"), some_counts(), max_size=3)
