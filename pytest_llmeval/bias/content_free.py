"""Content-free inputs: a prompt without a question, to see which label is preferred without one.

Zhao et al. 2021 (arXiv:2102.09690), sec. 5: "N/A", "[MASK]" and the empty text stand where the
question stands, here also where every option stands; shots and labels are those of the item. Such a
prompt is the same for all items of a subject with as many options, so one of them stands for all:
its *carrier*, with whose own prompt it is asked, as one more arm.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import replace

from pytest_llmeval.bias.arms import Arm
from pytest_llmeval.bias.arms import arrange
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core.plan import CONTENT_FREE

INPUTS = ("N/A", "[MASK]", "")


ARMS = tuple(Arm(f"{CONTENT_FREE}@{text}", instead=text) for text in INPUTS)
"""The arms that ask without content. Their names, and so their fingerprints, hold the inputs."""


def without_content(item: Item, text: str) -> Item:
    """The item with ``text`` in place of its question and of its options, none of which is right.

    It has no id: what the pool has left out for the item itself, it shows.
    """
    return replace(item, id="", question=text, options=(text,) * len(item.options), gold=-1)


def shown(item: Item, arm: Arm) -> Item | None:
    """The item as the arm shows it; None where it is not in the arm."""
    if arm.instead is not None:
        return without_content(item, arm.instead)
    return arrange(item, arm.item)


def arms_of(item: Item, arms: Iterable[Arm], carries: bool) -> Iterator[tuple[Arm, Item]]:
    """The arms that the item is in, each with the item as it is shown there.

    ``carries``: whether the item is one with which content-free prompts are asked.
    """
    for arm in arms:
        found = shown(item, arm) if carries or arm.instead is None else None
        if found is not None:
            yield arm, found


def carriers(items: Iterable[Item]) -> frozenset[str]:
    """Ids of the items with which the content-free prompts are asked.

    The first of every subject and number of options.
    """
    first: dict[tuple[str, int], str] = {}
    for item in items:
        first.setdefault((item.subject, len(item.options)), item.id)
    return frozenset(first.values())


def check_shared(test: str, protocol: Protocol, dataset: Dataset) -> None:
    """Raise ConfigError unless one content-free prompt stands for all items that are to share it.

    It does not where every item has shots of its own, or shows more than question and options.
    """
    if protocol.shots and protocol.draw != "first":
        raise ConfigError(
            f"{test}: --llm-debias contextual asks once a subject, but protocol"
            f" {protocol.name!r} draws other shots for every item"
        )
    known: dict[tuple[str, int], str] = {}
    for item in dataset.items:
        free = without_content(item, INPUTS[0])
        try:
            shown = protocol.render(free, ()).text
        except Exception:  # the error of those that are asked with it
            continue
        if known.setdefault((item.subject, len(item.options)), shown) != shown:
            raise ConfigError(
                f"{test}: --llm-debias contextual asks once a subject, but protocol"
                f" {protocol.name!r} shows more of item {item.id!r} than question and options"
            )
