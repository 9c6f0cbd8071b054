"""Content-free inputs: prompts without a question, which show the preference for labels.

Zhao et al. 2021 (arXiv:2102.09690), sec. 5: "N/A", "[MASK]" and the empty text replace the
question, and here every option too; shots and labels are those of the item. Such a prompt is equal
for all items of a subject with the same number of options, so it is sent once, as a further arm of
one of these items, its *carrier*.
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
"""The content-free arms; their names, and so their fingerprints, contain the inputs."""


def without_content(item: Item, text: str) -> Item:
    """Return the item with ``text`` as its question and as every option; no option is right.

    The id is empty, so that the item itself is not excluded from the few-shot pool.
    """
    return replace(item, id="", question=text, options=(text,) * len(item.options), gold=-1)


def item_in_arm(item: Item, arm: Arm) -> Item | None:
    """Return the item as presented in an arm; None if it is not in the arm."""
    if arm.instead is not None:
        return without_content(item, arm.instead)
    return arrange(item, arm.item)


def arms_of_item(item: Item, arms: Iterable[Arm], carries: bool) -> Iterator[tuple[Arm, Item]]:
    """Yield the arms of an item, each with the item as presented there.

    ``carries``: whether the item is a carrier of content-free prompts.
    """
    for arm in arms:
        presented = item_in_arm(item, arm) if carries or arm.instead is None else None
        if presented is not None:
            yield arm, presented


def carrier_ids(items: Iterable[Item]) -> frozenset[str]:
    """Return the ids of the carriers: the first item of every subject and number of options."""
    first: dict[tuple[str, int], str] = {}
    for item in items:
        first.setdefault((item.subject, len(item.options)), item.id)
    return frozenset(first.values())


def check_shared_prompt(test: str, protocol: Protocol, dataset: Dataset) -> None:
    """Raise ConfigError unless items of a subject can share one content-free prompt.

    They cannot if shots are selected per item, or if the prompt has more of an item than its
    question and options. ``test``: the beginning of the message.
    """
    if protocol.shots and protocol.draw != "first":
        raise ConfigError(
            f"{test}: --llm-debias contextual sends one prompt per subject, but protocol"
            f" {protocol.name!r} selects different shots for every item"
        )
    texts: dict[tuple[str, int], str] = {}
    for item in dataset.items:
        free = without_content(item, INPUTS[0])
        try:
            text = protocol.render(free, ()).text
        except Exception:  # becomes the error of the items of that prompt when they are evaluated
            continue
        if texts.setdefault((item.subject, len(item.options)), text) != text:
            raise ConfigError(
                f"{test}: --llm-debias contextual sends one prompt per subject, but protocol"
                f" {protocol.name!r} shows more of item {item.id!r} than question and options"
            )
