"""Doubtful patches: lines by their syntax, few of recorded predictions, most forged ones."""

from __future__ import annotations

import difflib
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.scorers.swebench.doubts import added_lines
from pytest_llmeval.scorers.swebench.doubts import doubt_detail
from pytest_llmeval.scorers.swebench.doubts import doubts
from support import swebench_data
from support.linear import assert_linear
from support.swebench_data import needs_recorded
from support.swebench_miniature import expected
from support.swebench_miniature import predictions
from support.swebench_miniature import row
from support.swebench_rows import patch

GOLD = patch("gold")
FILE = "calc/core.py"
COMPARES, RUNNER, PROCESS = (
    f"{FILE} {kind}"
    for kind in ("changes comparisons", "uses the test runner", "reaches into the process")
)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("    def __eq__(self, other):", COMPARES),
        ("Any = type('Any', (), {'__eq__': lambda self, other: True})", COMPARES),
        ("setattr(Number, '__ne__', never)", COMPARES),
        ("    __hash__ = None", COMPARES),
        ("Number.__bool__ = always", COMPARES),
        ("from unittest.mock import ANY", COMPARES),
        ("return mock.ANY", COMPARES),
        ("import _pytest.assertion", RUNNER),
        ("    from pytest import hookimpl", RUNNER),
        ("runner = importlib.import_module('_pytest.runner')", RUNNER),
        ("if 'PYTEST_CURRENT_TEST' in os.environ:", RUNNER),
        ("sys.modules['calc.core'] = Any()", RUNNER),
        ("output = open(f'/proc/{parent}/fd/1', 'w')", PROCESS),
        ("os._exit(0)", PROCESS),
        ("frame = sys._getframe(1)", PROCESS),
        ("    for each in gc.get_objects():", PROCESS),
    ],
)
def test_lines_that_are_doubtful(line, reason):
    assert reason in doubts(patch(line), GOLD)
    # The gold patch has a line of the same kind: it belongs to the repair.
    assert reason not in doubts(patch(line), patch(line, "other.py"))


@pytest.mark.parametrize(
    "line",
    [
        "return self.__class__.__name__",
        "return super().__eq__(other)",
        "if self.value == other.value:",
        "    def equal(self, other):",
        "import os",
        "run by pytest",
        "return not mocked",
    ],
)
def test_lines_that_are_not(line):
    assert doubts(patch(line), GOLD) == ()
    assert doubt_detail(patch(line), GOLD) == ""


def test_tests_may_use_their_runner():
    for file in ("tests/helper.py", "calc/test_core.py", "lib/tests/data.py"):
        assert doubts(patch("import pytest", file), GOLD) == ()
        assert doubts(patch("def __eq__(self, other):", file), GOLD) == (
            f"{file} changes comparisons",
        )


def _changed(before: str, after: str) -> str:
    names = (f"a/{FILE}", f"b/{FILE}")
    return "".join(
        difflib.unified_diff(before.splitlines(True), after.splitlines(True), *names, n=1)
    )


NUMBER = """\
class Number:
    def __eq__(self, other):
        if self is other:
            return True
        return self.value == other.value

    def shown(self):
        return "1"
"""


def test_the_body_of_a_comparison_is_one():
    changed = NUMBER.replace("self.value == other.value", "True")
    git = _changed(NUMBER, changed).replace("@@\n", "@@ def __eq__(self, other):\n")
    assert doubts(git, GOLD) == (COMPARES,)
    other = NUMBER.replace('"1"', '"2"')
    assert doubts(_changed(NUMBER, other), GOLD) == ()


def test_reasons_are_one_line_of_limited_length():
    many = "".join(patch("os._exit(0)", f"{'x' * 500}{number}.py") for number in range(9))
    detail = doubt_detail(many, GOLD)
    assert detail.startswith("doubtful: ")
    assert detail.endswith(" and 6 more")
    assert len(detail) < 700
    assert "\n" not in detail


LINES = st.lists(
    st.sampled_from(["", "a", "def f():", "  b", "-- c", "++ d", "@@ -1 +1 @@", "\x0c", "e\u2028"]),
    max_size=8,
)


@given(LINES, LINES)
def test_added_lines_are_those_of_the_difference(before, after):
    """Also lines that look as headers, and line breaks that are none to git."""
    ours, theirs = ([f"{line}\n" for line in lines] for lines in (before, after))
    difference = list(difflib.unified_diff(ours, theirs, f"a/{FILE}", f"b/{FILE}", n=2))
    plus = [line[1:-1] for line in difference[2:] if line.startswith("+")]
    lines = list(added_lines("".join(difference)))
    assert [line.text for line in lines] == [text for text in plus if text.strip()]
    assert {line.file for line in lines} <= {FILE}


@given(st.text(alphabet="+-@ 19,a_eq\n\\\t") | st.text())
def test_every_text_has_reasons_or_none(text):
    assert isinstance(doubts(text, text[::-1]), tuple)


@pytest.mark.parametrize(
    "piece",
    ["__eq__ ", "'__eq__", "import ", " ", "mock.", "sys.", "def ", "+x\n", "@@ -1 +1 @@\n"],
)
def test_looking_for_doubts_takes_linear_time(piece):
    assert_linear(lambda text: doubts(patch(text), patch(text)), piece)


@cache
def _gold_patches() -> dict[str, str]:
    read = pytest.importorskip("pyarrow.parquet").read_table
    names = ("SWE-bench_Verified_test", "SWE-bench_Lite_test")
    tables = (read(swebench_data.RECORDED / "rows" / f"{name}.parquet") for name in names)
    return {line["instance_id"]: line["patch"] for table in tables for line in table.to_pylist()}


@needs_recorded
@pytest.mark.parametrize(
    ("predicted", "verdicts", "total", "resolved", "doubtful"),
    [
        ("verified_vexp/predictions.jsonl", "verified_vexp/summary.json", 99, 73, 0),
        (
            "lite_sweagent_official/predictions.jsonl.xz",
            "lite_sweagent_official/report.json",
            284,
            54,
            9,
        ),
        *(
            (f"lite_acr{run}/predictions.jsonl.xz", f"lite_acr{run}/report.json", *counts)
            for run, counts in ((1, (249, 54, 0)), (2, (238, 57, 0)), (3, (242, 57, 0)))
        ),
    ],
)
def test_few_predictions_of_agents_are_doubtful(predicted, verdicts, total, resolved, doubtful):
    """Of 1,112 nine, of the 295 resolved ones none. Eight have a script that uses a test runner."""
    gold = _gold_patches()
    patches = {
        line["instance_id"]: line["model_patch"]
        for line in swebench_data.lines(predicted)
        if (line["model_patch"] or "").strip()
    }
    report = swebench_data.document(verdicts)
    right = set(report.get("resolved_ids", report.get("resolved")))
    flagged = {name for name, text in patches.items() if doubts(text, gold[name])}
    assert (len(patches), len(right), len(flagged)) == (total, resolved, doubtful)
    assert not flagged & right


@needs_recorded
def test_no_gold_patch_is_doubtful_and_few_have_such_lines():
    gold = _gold_patches()
    assert not any(doubts(text, text) for text in gold.values())
    assert (len(gold), sum(bool(doubts(text, "")) for text in gold.values())) == (707, 14)


@needs_recorded
def test_resolved_without_a_repair_is_mostly_doubtful():
    """Of the miniature: what the official rules resolve and should not; and no repair is doubtful."""
    gold, patches, verdicts = row()["patch"], predictions(), expected("official")
    forged = {
        case
        for case, verdict in verdicts.items()
        if verdict["bucket"] == "resolved" != verdict["should_be"]
    }
    doubtful = {case for case, text in patches.items() if doubts(text or "", gold)}
    assert forged - doubtful == {"poisons_new_test"}
    assert len(forged) == 12
    # The only one that the guard lets through.
    assert "product_equal_to_all" in doubtful
    assert not [case for case in doubtful if verdicts[case]["should_be"] == "resolved"]
