"""Tables for the terminal: no frame, a line below the header, numbers aligned right."""

from __future__ import annotations

from rich import box
from rich.table import Table


def open_table(*, collapse: bool = False) -> Table:
    """Return a table with wide columns; ``collapse`` narrows the space between them."""
    return Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=collapse,
    )


def compact_table() -> Table:
    """Return a table for many columns and long names."""
    # The box separates columns by one space; with more, MMLU's longest subject would not fit.
    return Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)


def add_number_columns(table: Table, *names: str) -> None:
    """Add columns of numbers, which are never wrapped."""
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
