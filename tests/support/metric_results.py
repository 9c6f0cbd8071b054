"""Counts and results for tests of metrics."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import Tally
from pytest_llmeval.metrics import aggregate

CORRECT, WRONG, UNPARSED, ERROR = Outcome.CORRECT, Outcome.WRONG, Outcome.UNPARSED, Outcome.ERROR


small = st.integers(0, 50)


@st.composite
def single(draw: st.DrawFn) -> Counts:
    """Counts with one answer per item."""
    parts = [draw(small) for _ in range(4)]
    truncated = draw(st.integers(0, sum(parts[:3])))
    return Counts(sum(parts) + draw(small), *parts, truncated=truncated)


@st.composite
def several(draw: st.DrawFn) -> Counts:
    """Counts whose items have several answers, or fewer where some were errors."""
    spread: Counter[tuple[int, int]] = Counter()
    for n in draw(st.lists(st.integers(1, 5), max_size=5)):
        spread[n, draw(st.integers(0, n))] += draw(st.integers(1, 9))
    answered = sum(n * m for (n, _), m in spread.items())
    correct = sum(c * m for (_, c), m in spread.items())
    unparsed = draw(st.integers(0, answered - correct))
    error = draw(small)
    return Counts(
        answered + error + draw(small),
        correct,
        answered - correct - unparsed,
        unparsed,
        error,
        truncated=draw(st.integers(0, answered)),
        spread=spread,
    )


counts = st.one_of(single(), several())


def result(subjects: dict[str, Counts], chance: float | None = 0.25, **more: Any) -> Result:
    return Result("m", "b", "letter", "lmeval", chance, subjects, **more)


def item(*outcomes: Outcome, subject: str = "s", **more: Any) -> ItemOutcomes:
    return ItemOutcomes(subject, outcomes, **more)


def total(items: list[ItemOutcomes], sizes: dict[str, int], **more: Any) -> Result:
    return aggregate(
        items,
        model="m",
        benchmark="b",
        scorer="letter",
        protocol="lmeval",
        chance=0.25,
        sizes=sizes,
        **more,
    )


def single_answers(correct: int, total: int) -> dict[tuple[int, int], int]:
    return {(1, 1): correct, (1, 0): total - correct}


def mean(tally: Tally) -> float:
    _, answers, correct = totals(tally)
    return correct / answers


def totals(tally: Tally) -> tuple[int, int, int]:
    """Items, answers, right answers."""
    return (
        sum(tally.values()),
        sum(n * m for (n, _), m in tally.items()),
        sum(c * m for (_, c), m in tally.items()),
    )
