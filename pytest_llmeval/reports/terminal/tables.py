"""Tables for the terminal: without a frame, a line below the header, numbers to the right."""

from __future__ import annotations

from rich import box
from rich.table import Table


def open_table(*, collapse: bool = False) -> Table:
    """A table with room between its columns; less of it with ``collapse``."""
    return Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=collapse,
    )


def dense_table() -> Table:
    """A table for many columns and long names."""
    # The box puts one space between columns; with more, MMLU's longest subject would not fit.
    return Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)


def add_numbers(table: Table, *names: str) -> None:
    """Add columns of numbers, which stay on one line."""
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
