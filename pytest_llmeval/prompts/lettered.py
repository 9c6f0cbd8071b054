"""What the lettered multiple-choice formats share: options as ``A. …`` lines, letters as answers."""

from __future__ import annotations

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item


def option_lines(item: Item) -> str:
    """The options, one a line (``A. first``), each with the line break before it.

    Options are copied as they are: a published format that strips them does not exist here.
    """
    return "".join(
        f"\n{label}. {option}" for label, option in zip(LABELS, item.options, strict=False)
    )


def labels(item: Item) -> tuple[str, ...]:
    """The letters of the item's options: the texts whose likelihood is compared."""
    return tuple(LABELS[: len(item.options)])
