"""Explanations of failed comparisons with long replies, in time linear in their length.

pytest explains a failed comparison by a diff of both values, which takes minutes for 150,000
characters, also if it is never printed, as for a wrong answer.
"""

from __future__ import annotations

import os
from collections.abc import Container
from typing import Any

import pytest

from pytest_llmeval.plugin.item_answer import Answer
from pytest_llmeval.plugin.pytest_internals import Function
from pytest_llmeval.plugin.pytest_internals import intercept

_LONGEST = 4_000
"""Total length in characters up to which pytest explains the comparison, in under a second."""
_BEFORE, _AFTER = 80, 240
"""Characters before and after the first difference that an explanation has."""


def shorten_comparisons(config: pytest.Config, tests: Container[str]) -> None:
    """Make pytest explain comparisons of long values in these tests (node ids) by an excerpt."""

    def around(explain: Function) -> Function:
        def explained(config: pytest.Config, op: str, left: object, right: object) -> Any:
            # The hook has no argument for the test; pytest stores the running one here.
            running = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
            lines = shortened_comparison(op, left, right) if running in tests else None
            return explain(config, op, left, right) if lines is None else lines

        return explained

    intercept(
        config, "pytest_assertrepr_compare", config.pluginmanager.get_plugin("assertion"), around
    )


def shortened_comparison(op: str, left: object, right: object) -> list[str] | None:
    """Return the explanation of a failed comparison of long values; None for short values."""
    first, second = _text(left), _text(right)
    if len(first) + len(second) <= _LONGEST:
        return None
    if op in ("in", "not in"):
        at = max(second.find(first), 0)
        return [f"{_window(first, 0)} {op} {_window(second, at)}", "", _lengths(first, second)]
    pairs = enumerate(zip(first, second, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))
    return [
        f"{_window(first, at)} {op} {_window(second, at)}",
        "",
        f"{_lengths(first, second)}; the first difference is at character {at:,}",
    ]


def _text(value: object) -> str:
    """Return the text that is compared: a string itself, the ``repr`` of any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, Answer):  # its repr is short, and pytest compares its fields
        value = value.samples
    try:
        return repr(value)
    except Exception:  # a faulty __repr__, which pytest's explanation names
        return ""


def _window(text: str, at: int) -> str:
    """Return the quoted part of a text around a position."""
    begin, end = max(0, at - _BEFORE), at + _AFTER
    before, after = "…" if begin else "", "…" if end < len(text) else ""
    return f"{before}{text[begin:end]!r}{after}"


def _lengths(first: str, second: str) -> str:
    return f"{len(first):,} and {len(second):,} characters"
