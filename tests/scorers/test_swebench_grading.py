"""Grades of recorded logs of SWE-bench, and the rules one by one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import ConfigError
from pytest_llmeval.scorers.swebench.grading import Expected
from pytest_llmeval.scorers.swebench.grading import grade
from pytest_llmeval.scorers.swebench.grading import grade_official
from pytest_llmeval.scorers.swebench.log_parsers import PARSERS
from pytest_llmeval.scorers.swebench.log_parsers import ended
from support import swebench_data
from support.linear import assert_linear
from support.swebench_data import expected_of
from support.swebench_data import grade_of_1x
from support.swebench_data import needs_recorded

# Recorded logs -------------------------------------------------------------------------


@needs_recorded
def test_the_logs_of_vexp_get_their_recorded_verdicts_and_every_single_test_too():
    rows = {row["instance_id"]: row for row in swebench_data.lines("verified_vexp/rows.jsonl")}
    reports = {
        row["instance_id"]: row for row in swebench_data.lines("verified_vexp/reports.jsonl.xz")
    }
    resolved, compared, different = set(), 0, []
    for line in swebench_data.lines("verified_vexp/logs.jsonl.xz"):
        name = line["instance_id"]
        given_grade = grade_official(expected_of(rows[name]), line["test_output"])
        assert given_grade.resolved is reports[name]["resolved"], name
        if given_grade.resolved:
            resolved.add(name)
        recorded = reports[name].get("tests_status")
        if not recorded or given_grade.status == "not_found":
            continue
        failing = set(given_grade.failing)
        for kind in ("FAIL_TO_PASS", "PASS_TO_PASS"):
            for verdict in ("success", "failure"):
                for test in recorded[kind][verdict]:
                    compared += 1
                    if (test in failing) != (verdict == "failure"):
                        different.append((name, test))
    assert len(resolved) == 73
    assert resolved == set(swebench_data.document("verified_vexp/summary.json")["resolved_ids"])
    assert (compared, different) == (10_186, [])


@needs_recorded
@pytest.mark.parametrize(
    ("folder", "report", "statuses"),
    [
        (
            "lite_sweagent_official",
            "lite_sweagent_official",
            {"full": 54, "partial": 12, "no or nothing": 217},
        ),
        (
            "lite_sweagent_rerun",
            "lite_sweagent_official",
            {"full": 54, "partial": 11, "no or nothing": 218},
        ),
        ("lite_acr2", "lite_acr2", {"full": 57, "partial": 6, "no or nothing": 174}),
    ],
)
def test_logs_of_the_harness_1x_get_their_recorded_verdicts(folder, report, statuses):
    rows = {row["instance_id"]: row for row in swebench_data.lines("lite_rows.jsonl.xz")}
    grades = {
        line["instance_id"]: grade_of_1x(rows[line["instance_id"]], line["log"])
        for line in swebench_data.lines(f"{folder}/logs.jsonl.xz")
    }
    count = Counter(graded.status for graded in grades.values())
    count["no or nothing"] = count.pop("no") + count.pop("not_found")
    assert count == statuses
    resolved = {name for name, graded in grades.items() if graded.resolved}
    assert resolved == set(swebench_data.document(f"{report}/report.json")["resolved"])
    # The last line of the runner is in all of them, whichever runner it is.
    assert all(grades[name].ended for name in resolved)


@needs_recorded
def test_the_logs_of_the_miniature_get_the_verdicts_of_the_official_harness():
    rows = {
        script: swebench_data.document(f"mini/row_{script}.jsonl")
        for script in ("official", "fixed")
    }
    recorded = {
        (line["script"], line["case"]): line for line in swebench_data.lines("mini/expected.jsonl")
    }
    resolved = 0
    for line in swebench_data.lines("mini/logs.jsonl"):
        key = line["script"], line["case"]
        graded = grade_official(expected_of(rows[line["script"]]), line["test_output"])
        assert graded.resolved is (recorded[key]["bucket"] == "resolved"), key
        resolved += graded.resolved
        if "f2p" in recorded[key]:
            shown = [
                f"{passed}/{total}" for passed, total in (graded.fail_to_pass, graded.pass_to_pass)
            ]
            assert shown == [recorded[key]["f2p"], recorded[key]["p2p"]], key
    assert resolved == 43


@needs_recorded
def test_every_resolved_log_of_vexp_has_the_last_line_of_its_runner():
    rows = {row["instance_id"]: row for row in swebench_data.lines("verified_vexp/rows.jsonl")}
    broken_off = [
        line["instance_id"]
        for line in swebench_data.lines("verified_vexp/logs.jsonl.xz")
        if grade_official(expected_of(rows[line["instance_id"]]), line["test_output"]).resolved
        and not ended(rows[line["instance_id"]]["log_parser"], line["test_output"])
    ]
    assert broken_off == []


# Rules ---------------------------------------------------------------------------------

_TESTS = Expected(("t.py::new",), ("t.py::old",), "parse_log_pytest")


def _log(*lines: str) -> str:
    return "\n".join((*lines, "== 2 passed in 0.12s =="))


@pytest.mark.parametrize(
    ("new", "old", "status"),
    [
        ("PASSED", "PASSED", "full"),
        ("XFAIL", "XFAIL", "full"),
        ("PASSED", "SKIPPED", "full"),
        ("SKIPPED", "PASSED", "no"),
        ("FAILED", "PASSED", "no"),
        ("ERROR", "PASSED", "no"),
        (None, "PASSED", "no"),
        ("PASSED", "FAILED", "no"),
        ("PASSED", None, "no"),
    ],
)
def test_all_of_both_lists_have_to_pass(new, old, status):
    lines = [f"{word} {test}" for word, test in ((new, "t.py::new"), (old, "t.py::old")) if word]
    assert grade(_TESTS, _log(*lines), None).status == status


def test_some_of_fail_to_pass_is_partial_only_where_nothing_else_broke():
    tests = Expected(("a", "b"), ("c",), "parse_log_pytest")
    some = grade(tests, _log("PASSED a", "FAILED b - x", "PASSED c"), 1)
    assert (some.status, some.failing) == ("partial", ("b",))
    assert (some.fail_to_pass, some.pass_to_pass) == ((1, 2), (1, 1))
    assert grade(tests, _log("PASSED a", "FAILED b - x", "FAILED c"), 1).status == "no"


def test_an_exit_code_that_no_failing_test_explains_is_no_result():
    passed = _log("PASSED t.py::new", "PASSED t.py::old")
    assert grade(_TESTS, passed, 1).status == "not_found"
    assert "exited with 3" in grade(_TESTS, passed, 3).reason
    assert grade(_TESTS, _log("PASSED t.py::new", "PASSED t.py::old", "FAILED x"), 1).resolved


def test_a_log_without_results_says_nothing():
    graded = grade(_TESTS, "ImportError while loading conftest", 4)
    assert (graded.status, graded.reason) == ("not_found", "the log has no results")


def test_the_last_line_of_the_runner_is_looked_for():
    results = "PASSED t.py::new\nPASSED t.py::old"
    assert not grade(_TESTS, results, 0).ended
    assert grade(_TESTS, results + "\n2 passed in 0.12s", 0).ended


@pytest.mark.parametrize(
    ("parser", "line"),
    [
        ("parse_log_pytest", "============ 3 failed, 12 passed, 1 warning in 3.21s ============"),
        ("parse_log_pytest", "12 passed, 2 skipped in 75.32s (0:01:15)"),
        ("parse_log_astropy", "===== 9 passed in 2.03 seconds ====="),
        ("parse_log_scikit", "\x1b[32m\x1b[1m5 passed\x1b[0m\x1b[32m in 1.50s\x1b[0m"),
        ("parse_log_seaborn", "= \x1b[32m5 passed\x1b[0m, \x1b[33m1 warning\x1b[0m in 1.50s ="),
        ("parse_log_django", "Ran 1 test in 0.001s"),
        ("parse_log_django", "Ran 512 tests in 12.345s"),
        ("parse_log_sympy", "=== tests finished: 31 passed, in 1.02 seconds ==="),
    ],
)
def test_last_lines_of_runners(parser, line):
    assert ended(parser, f"before\n{line}\nafter")
    assert not ended(parser, "before\nafter")


def test_names_cut_at_a_blank_stand_for_all_that_begin_so():
    tests = Expected(("t.py::a[x",), ("t.py::b[y",), "parse_log_astropy")
    passed = ("PASSED t.py::a[x 1]", "PASSED t.py::a[x 2]")
    assert grade(tests, _log(*passed, "SKIPPED t.py::b[y z]"), 0).status == "full"
    mixed = ("PASSED t.py::a[x 1]", "FAILED t.py::a[x 2]", "PASSED t.py::b[y]")
    assert grade(tests, _log(*mixed), 1).failing == ("t.py::a[x",)
    # The first in the log decides where all of them do not pass, but not all failed.
    assert grade(tests, _log(*passed, "SKIPPED t.py::b[y 1]", "FAILED t.py::b[y 2]"), 1).resolved
    assert not grade(
        tests, _log(*passed, "FAILED t.py::b[y 1]", "SKIPPED t.py::b[y 2]"), 1
    ).resolved


def test_a_whole_name_is_never_looked_up_by_its_beginning():
    tests = Expected(("t.py::a[x]",), (), "parse_log_astropy")
    assert grade(tests, _log("PASSED t.py::a[x] more"), 0).failing == ("t.py::a[x]",)


def test_a_word_that_begins_as_a_status_counts_for_nothing_where_the_grade_is_guarded():
    lines = ("PASSED t.py::new", "FAILED. t.py::old", "FAILED other")
    assert grade(_TESTS, _log(*lines), 1).failing == ("t.py::old",)
    # The official rules leave such a test out of the count.
    marked = "\n".join((">>>>> Start Test Output", *lines, ">>>>> End Test Output"))
    assert grade_official(_TESTS, marked).status == "full"


_PASSES = "PASSED t.py::new\nPASSED t.py::old\n"


@pytest.mark.parametrize(
    ("log", "status"),
    [
        ("<<START>>\n{passes}<<END>>\n", "full"),
        ("{passes}<<START>>\n<<END>>\n", "full"),  # results outside of the markers
        ("{passes}<<START>>\nFAILED t.py::old\n<<END>>\n", "no"),
        ("{passes}<<START>>\n", "not_found"),
        ("{passes}", "not_found"),
        ("<<START>>\n{passes}<<END>>\n>>>>> Tests Timed Out", "not_found"),
        ("<<START>>\n{passes}<<END>>\n>>>>> Test Exit Code: 1", "not_found"),
        ("<<START>>\n{passes}<<END>>\n>>>>> Test Exit Code: 0\n>>>>> Test Exit Code: 1", "full"),
        ("<<START>>\r\nPASSED t.py::new\r\nPASSED t.py::old\r\n<<END>>", "full"),
    ],
)
def test_markers_of_the_official_script(log, status):
    log = log.replace("<<START>>", ">>>>> Start Test Output")
    log = log.replace("<<END>>", ">>>>> End Test Output").replace("{passes}", _PASSES)
    assert grade_official(_TESTS, log).status == status


def test_an_unknown_parser_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="'parse_log_pytst'; did you mean 'parse_log_pytest'"):
        grade(Expected((), (), "parse_log_pytst"), "", 0)


_NAMES = st.sampled_from(["a", "a[", "a[x", "a[x]", "b[", "b[y", "b[y z]", "a[x y"])
_WORDS = st.sampled_from(["PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL"])


@given(
    st.dictionaries(_NAMES, _WORDS), st.lists(_NAMES, unique=True), st.lists(_NAMES, unique=True)
)
def test_against_a_plain_reading_of_the_rules(statuses, to_solve, to_keep):
    log = "\n".join(f"{word} {name}" for name, word in statuses.items())

    def status(test):
        if test in statuses:
            return statuses[test]
        if test.count("[") <= test.count("]"):
            return None
        matching = [word for name, word in statuses.items() if name.startswith(test)]
        passing = [word in ("PASSED", "XFAIL") for word in matching]
        return matching[0] if matching and all(passing) == any(passing) else None

    solved = [status(test) in ("PASSED", "XFAIL") for test in to_solve]
    kept = [status(test) in ("PASSED", "XFAIL", "SKIPPED") for test in to_keep]
    graded = grade(Expected(tuple(to_solve), tuple(to_keep), "parse_log_astropy"), log, None)
    if not statuses:
        assert graded.status == "not_found"
        return
    assert graded.resolved is (all(solved) and all(kept))
    assert (graded.status == "partial") is (all(kept) and any(solved) and not all(solved))
    assert list(graded.failing) == [
        test
        for test, passes in zip([*to_solve, *to_keep], [*solved, *kept], strict=True)
        if not passes
    ]


# Time ----------------------------------------------------------------------------------

# A log's beginning and what follows it over and over.
_HOSTILE = {
    "one long line": ("", "_"),
    "underscores and blanks": ("", "_ "),
    "titles without an end": ("", "____ a.py:"),
    "open brackets": ("", "["),
    "parameters": ("PASSED ", "a[/"),
    "colours": ("\x1b[", "1"),
    "status words": ("", "FAILED"),
    "dashes": ("FAILED a", " - "),
    "dots": ("", " ... "),
    "messages of several lines": ("", "x ... Testing against Django installed in y\n"),
    "messages of one line": ("", " ... Internal Server Error: /"),
    "ends without a message": ("", " silenced).\nok\n"),
    "numbers": ("", "1 a"),
    "equal signs": ("", "="),
    "counts": ("=" * 60_000, "9"),
    "passed without an end": ("", "1 passed, "),
}


@pytest.mark.parametrize("kind", _HOSTILE)
@pytest.mark.parametrize(
    "name", ["pytest", "pylint", "astropy", "matplotlib", "seaborn", "sympy", "django"]
)
def test_grading_takes_linear_time(name, kind):
    beginning, piece = _HOSTILE[kind]
    expected = Expected(("a[",), ("b",), f"parse_log_{name}")
    assert_linear(lambda text: grade(expected, beginning + text, 0), piece)


def test_names_of_all_repositories():
    assert len(PARSERS) == 20
    assert len(set(PARSERS.values())) == 7
