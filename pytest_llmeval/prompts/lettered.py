"""What formats share: options as ``A. …`` lines or as they are, letters as answers, or nothing."""

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


def whole_options(item: Item) -> tuple[str, ...]:
    """The item's options: their own texts are what is compared."""
    return item.options


def no_choices(_item: Item) -> tuple[str, ...]:
    """Nothing to compare: what the formats for generated answers give as choices."""
    return ()


def no_description(_subject: str) -> str:
    """No text before the first question."""
    return ""
