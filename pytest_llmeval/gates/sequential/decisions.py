"""Decisions at the ends of waves of items in a random order."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import NamedTuple

from pytest_llmeval.gates.sequential.family import EarlyGate
from pytest_llmeval.gates.sequential.rules import Decision
from pytest_llmeval.metrics import ItemOutcomes


class OrderedItem(NamedTuple):
    """An item in the random order of its benchmark."""

    id: str
    subject: str


@dataclass(frozen=True)
class Course:
    """The items of one model and test in their random order, and the gates that depend on them."""

    waves: Sequence[Sequence[OrderedItem]]
    gates: Sequence[EarlyGate]
    #: Subjects of which all items are needed in any case; None for all subjects.
    complete: Collection[str | None] = ()


@dataclass
class Position:
    """A gate after a number of waves of which all of its items were answered."""

    gate: EarlyGate
    answered: list[tuple[str, ItemOutcomes]] = field(default_factory=list)
    decision: Decision | None = None
    #: Number of the wave after which it was decided, from 1.
    wave: int = 0
    #: True after an item without an answer: the items are no longer a random part of all.
    is_blocked: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the gate needs further items."""
        return self.decision is None and len(self.answered) < self.gate.rule.population


@dataclass(frozen=True)
class CourseProgress:
    """All gates of a course at the end of its answered waves."""

    positions: Sequence[Position]
    complete: Collection[str | None]

    def needs(self, subject: str) -> bool:
        """Return whether a gate that is not decided has the items of a subject.

        Without gates that can be decided early, all items are needed.
        """
        if not self.positions or not {None, subject}.isdisjoint(self.complete):
            return True
        return any(
            position.is_open and position.gate.subject in (None, subject)
            for position in self.positions
        )

    def is_open(self, subject: str | None) -> bool:
        """Return whether further items of a subject are needed; None: of any subject."""
        if subject is not None:
            return self.needs(subject)
        return (
            not self.positions
            or bool(self.complete)
            or any(position.is_open for position in self.positions)
        )


def replay(course: Course, outcomes: Mapping[str, Mapping[str, ItemOutcomes]]) -> CourseProgress:
    """Return the decisions of a course from all answers, as they were at the end of each wave.

    ``outcomes``: scorer → item id → outcomes. A gate is decided at the end of a wave, from the items
    of all waves so far: within a wave, answers arrive in an order that may depend on whether they are
    right. An item without an answer leaves its gates undecided, since the part that was answered is
    not random. O(waves · evidence).
    """
    positions = [Position(gate) for gate in course.gates]
    errors: dict[str, int] = {}
    for number, wave in enumerate(course.waves, 1):
        is_open = [position for position in positions if position.is_open]
        if not is_open:
            break
        for scorer in {position.gate.scope.scorer or "" for position in is_open}:
            answers = outcomes.get(scorer, {})
            new = (answers[item.id] for item in wave if item.id in answers)
            errors[scorer] = errors.get(scorer, 0) + sum(
                len(item.outcomes) - item.answered for item in new
            )
        for position in is_open:
            if not position.is_blocked:
                _advance(position, number, wave, outcomes, errors)
    return CourseProgress(positions, course.complete)


def _advance(
    position: Position,
    number: int,
    wave: Iterable[OrderedItem],
    outcomes: Mapping[str, Mapping[str, ItemOutcomes]],
    errors: Mapping[str, int],
) -> None:
    """Add the items of a wave to a gate, and decide it."""
    gate = position.gate
    answers = outcomes.get(gate.scope.scorer or "", {})
    own = [item for item in wave if gate.subject in (None, item.subject)]
    if any(item.id not in answers for item in own):
        position.is_blocked = True
        return
    position.answered += [(item.id, answers[item.id]) for item in own]
    if position.is_open:
        position.decision = gate.decide(position.answered, errors.get(gate.scope.scorer or "", 0))
        position.wave = number
