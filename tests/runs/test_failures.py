"""Errors are equal but for what differs from item to item."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.runs.reply_problems import error_groups
from pytest_llmeval.runs.reply_problems import group_errors
from pytest_llmeval.runs.reply_problems import missing_modules
from pytest_llmeval.runs.reply_problems import missing_modules_note
from pytest_llmeval.runs.reply_problems import reply_notes
from support.stored_runs import planned
from support.stored_runs import records_of

ITEMS = {f"art-{n:04d}": "w" for n in range(8)}


def kinds(*reasons: str) -> list[tuple[int, str]]:
    groups = group_errors((reason, f"art-{n:04d}", str(n)) for n, reason in enumerate(reasons))
    return [(group.count, group.example) for group in groups]


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("no answer to art-0000", "no answer to art-0001"),
        ("502, request 3fa85f64-5717-4562", "502, request 99c01d2e-0000-1234"),
        ("no answer within 30.1 s", "no answer within 29.8 s"),
        ("the prompt has 5,120 tokens", "the prompt has 13,907 tokens"),
        ("prompt of 990 tokens, window 512", "prompt of 700 tokens, window 512"),
        ("<Engine at 0x7f3c5a0b10>", "<Engine at 0x7f3c5a0c90>"),
        ("two\nlines", "two lines"),
    ],
)
def test_one_reason(first, other):
    assert kinds(first, other) == [(2, "0")]


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("the endpoint answered 401", "the endpoint answered 503"),
        ("ValueError: x", "ValueError: y"),
        ("ended by signal 9", "ended by signal 11"),
    ],
)
def test_different_reasons(first, other):
    assert kinds(first, other, other) == [(2, "1"), (1, "0")]


def test_a_reason_is_one_line_of_limited_length():
    (group,) = group_errors([("a\n" + "b" * 1000, "", "x")])
    assert group.reason == "a " + "b" * 298


def programs(*answers: str):
    result = planned(dict.fromkeys(list(ITEMS)[: len(answers)], "w"))
    records = records_of(result, "demo", dict.fromkeys(list(ITEMS)[: len(answers)], "w"))
    return [
        replace(record, outcome=Outcome.WRONG, answer=answer)
        for record, answer in zip(records, answers, strict=True)
    ]


NO = "failed: ModuleNotFoundError: No module named "


def test_modules_that_the_sandbox_lacks():
    records = programs(
        f"{NO}'pandas'",
        f"{NO}'sklearn.svm'",
        f"{NO}'pandas.core'; 'pandas' is not a package",
        f"{NO}'os.nothing'; 'os' is not a package",
        "failed: NameError: name 'pandas' is not defined",
        "B",
    )
    assert missing_modules(records) == {"pandas": 2, "sklearn": 1}
    (note,) = reply_notes(records)
    assert note == (
        "mmlu[letter]: 3 programs ended because the sandbox lacks a module: pandas (2), sklearn (1);"
        " `llmeval sandbox build --base IMAGE` builds one from an image that has them"
    )


def test_many_modules_are_cut():
    assert "and 3 more" in missing_modules_note({f"m{n}": 1 for n in range(8)})


def test_only_errors_are_failures():
    records = programs("B", "B")
    broken = replace(records[0], outcome=Outcome.ERROR, error="on fire")
    assert [
        (group.count, group.reason, group.example) for group in error_groups([*records, broken])
    ] == [(1, "on fire", "art-0000")]
