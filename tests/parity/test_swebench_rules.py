"""Parsers and grades beside those of swebench, on made-up logs; the recorded ones are in ``scorers``."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.scorers.swebench.grading import Expected
from pytest_llmeval.scorers.swebench.grading import grade_official
from pytest_llmeval.scorers.swebench.log_parsers import PARSERS

# It reads a `.env` of the folders above, unless it is told not to.
os.environ["PYTHON_DOTENV_DISABLED"] = "1"
parsers = pytest.importorskip("swebench.harness.log_parsers").PARSER_REGISTRY
grading = pytest.importorskip("swebench.harness.grading")

# What the parsers look for, and what tells their rules apart.
_PIECES = (
    *("FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL", "FAIL:", "ERROR:", "ok", "test_a", "x"),
    *(" ... ", " ... ok", " ... OK", " ...  OK", " ... skipped", " ... FAIL", " ... ERROR", "..."),
    *(
        "\n",
        "\n",
        "\n",
        " ",
        " ",
        " - ",
        "[",
        "]",
        "/",
        "//",
        "*",
        "[1]",
        "[100%]",
        "a.py::t",
        ".py:",
    ),
    *("____ ", " ____", "_", " E", " F", "\t", "\x1b[1m", "[32m", "MouseButton.LEFT", "é", "\x85"),
    *(
        "Testing against Django installed in ",
        " silenced).\nok",
        "Internal Server Error: /",
        "/\nok",
    ),
    *(
        "System check identified no issues (0 silenced)",
        "\nok",
        "--version is equivalent to version",
    ),
    "Applying sites.0002_alter_domain_unique...test_no_migrations",
)
_LOGS = st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)


def test_names_of_parsers_are_those_of_swebench():
    assert PARSERS.keys() <= parsers.keys()


@pytest.mark.parametrize(
    "name", ["pytest", "pylint", "astropy", "matplotlib", "seaborn", "sympy", "django"]
)
@settings(max_examples=2000, deadline=None)
@given(log=_LOGS)
def test_parsers(name, log):
    try:
        expected = parsers[f"parse_log_{name}"](log, None)
    except IndexError:
        return  # "FAIL:" without a name, which it cannot read
    assert list(PARSERS[f"parse_log_{name}"](log).items()) == list(expected.items())


_MARKERS = (
    ">>>>> Start Test Output",
    ">>>>> End Test Output",
    ">>>>> Test Exit Code: 0",
    ">>>>> Test Exit Code: 1",
    ">>>>> Tests Timed Out",
    ">>>>> Patch Apply Failed",
)
_WORDS = st.sampled_from(["PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL", "FAILED."])
_TESTS = st.sampled_from(["a", "a[", "a[x", "a[x]", "a[x y]", "b"])
_LINES = st.lists(
    st.one_of(
        st.sampled_from(_MARKERS[:2]),
        st.sampled_from(_MARKERS),
        st.builds(lambda word, test: f"{word} {test}", _WORDS, _TESTS),
    ),
    max_size=14,
)


@settings(max_examples=3000, deadline=None)
@given(
    lines=_LINES,
    framed=st.booleans(),
    to_solve=st.lists(_TESTS, min_size=1, max_size=3),
    to_keep=st.lists(_TESTS, max_size=3),
)
def test_grades(tmp_path_factory, lines, framed, to_solve, to_keep):
    if framed:
        lines = [_MARKERS[0], *lines, _MARKERS[1]]
    log = "\n".join(lines)
    file = tmp_path_factory.getbasetemp() / "log.txt"
    file.write_text(log, encoding="utf-8")
    spec = SimpleNamespace(
        instance_id="x",
        log_parser="parse_log_astropy",
        eval_type="pass_and_fail",
        FAIL_TO_PASS=to_solve,
        PASS_TO_PASS=to_keep,
    )
    report = grading.get_eval_report(spec, {"instance_id": "x", "model_patch": "x"}, file, True)[
        "x"
    ]
    grade = grade_official(Expected(tuple(to_solve), tuple(to_keep), spec.log_parser), log)
    assert grade.resolved is report["resolved"]
    if "tests_status" not in report:
        assert grade.status == "not_found"
    else:
        kinds = report["tests_status"]
        failing = [*kinds["FAIL_TO_PASS"]["failure"], *kinds["PASS_TO_PASS"]["failure"]]
        assert list(grade.failing) == failing
