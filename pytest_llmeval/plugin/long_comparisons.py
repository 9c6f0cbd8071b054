"""Failed comparisons with long replies, explained in a time that grows with their length.

pytest's explanation is a diff of all of both values, which takes minutes for 150,000 characters,
also where it is never shown: a wrong answer is no failure.
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
"""Characters of both values together up to which they are left to pytest: less than a second."""
_BEFORE, _AFTER = 80, 240  # characters shown around the first difference


def bound_comparisons(config: pytest.Config, tests: Container[str]) -> None:
    """Have pytest explain comparisons of long values in these tests (node ids) by a part of them."""

    def around(explain: Function) -> Function:
        def explained(config: pytest.Config, op: str, left: object, right: object) -> Any:
            # The hook is not given the test; pytest keeps the running one here.
            running = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
            shown = in_part(op, left, right) if running in tests else None
            return explain(config, op, left, right) if shown is None else shown

        return explained

    intercept(
        config, "pytest_assertrepr_compare", config.pluginmanager.get_plugin("assertion"), around
    )


def in_part(op: str, left: object, right: object) -> list[str] | None:
    """The lines that explain a failed comparison of long values; None where they are not long."""
    one, other = _text(left), _text(right)
    if len(one) + len(other) <= _LONGEST:
        return None
    if op in ("in", "not in"):
        at = max(other.find(one), 0)
        return [f"{_window(one, 0)} {op} {_window(other, at)}", "", _lengths(one, other)]
    pairs = enumerate(zip(one, other, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
    return [
        f"{_window(one, at)} {op} {_window(other, at)}",
        "",
        f"{_lengths(one, other)}; the first difference is at character {at:,}",
    ]


def _text(value: object) -> str:
    """A value as it is compared here: text as it is, all else as it is written in Python."""
    if isinstance(value, str):
        return value
    if isinstance(value, Answer):  # its own form is short, and pytest compares its fields
        value = value.samples
    try:
        return repr(value)
    except Exception:  # a faulty __repr__, which pytest's explanation names
        return ""


def _window(text: str, at: int) -> str:
    """A text around a character, in quotation marks."""
    begin, end = max(0, at - _BEFORE), at + _AFTER
    before, after = "…" if begin else "", "…" if end < len(text) else ""
    return f"{before}{text[begin:end]!r}{after}"


def _lengths(one: str, other: str) -> str:
    return f"{len(one):,} and {len(other):,} characters"
