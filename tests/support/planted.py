"""Test doubles with a known bias, and the table that an audit of one would give."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from random import Random

from pytest_llmeval.bias.arms import Arm
from pytest_llmeval.bias.arms import arrange
from pytest_llmeval.bias.arms import option_order
from pytest_llmeval.core import Item
from pytest_llmeval.metrics import ArmAnswer
from pytest_llmeval.metrics import arm_answer

Double = Callable[[Item, Sequence[Item]], int | None]


def items(number: int, options: int = 4, prefix: str = "item") -> tuple[Item, ...]:
    """Items whose golds go round the positions."""
    return tuple(
        Item(
            f"{prefix}-{n}",
            "s",
            f"{prefix} {n}?",
            n % options,
            tuple(f"{n}{c}" for c in "abcdefghij"[:options]),
        )
        for n in range(number)
    )


def always_first(_item: Item, _shots: Sequence[Item]) -> int:
    return 0


def always_last(item: Item, _shots: Sequence[Item]) -> int:
    return len(item.options) - 1


def copies_last_shot(_item: Item, shots: Sequence[Item]) -> int:
    assert isinstance(shots[-1].gold, int)
    return shots[-1].gold


def knows(item: Item, _shots: Sequence[Item]) -> int:
    assert isinstance(item.gold, int)
    return item.gold


def flips_on_third(item: Item, _shots: Sequence[Item]) -> int:
    return 3 if item.gold == 2 else knows(item, ())


def silent(_item: Item, _shots: Sequence[Item]) -> None:
    return None


def at_random(seed: int) -> Double:
    generator = Random(seed)
    return lambda item, _shots: generator.randrange(len(item.options))


def leaning(seed: int, weights: Sequence[float]) -> Double:
    generator = Random(seed)
    return lambda item, _shots: generator.choices(range(len(item.options)), weights)[0]


def table(
    items: Sequence[Item], shots: Sequence[Item], arms: Sequence[Arm], double: Double
) -> dict[str, dict[str, ArmAnswer]]:
    answers: dict[str, dict[str, ArmAnswer]] = {item.id: {} for item in items}
    for arm in arms:
        pool = [moved for shot in shots if (moved := arrange(shot, arm.shots)) is not None]
        for item in items:
            shown, places = arrange(item, arm.item), option_order(item, arm.item)
            if shown is None or places is None:
                continue
            position = double(shown, pool)
            chosen = None if position is None else places[position]
            correct = position == shown.gold
            answers[item.id][arm.name] = arm_answer(places, item.gold, chosen, correct)
    return answers
