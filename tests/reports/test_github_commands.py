"""Annotations: escaped as GitHub's runner reads them, and no more than it shows."""

from __future__ import annotations

import re
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.reports.ci import annotate
from pytest_llmeval.reports.ci import command
from pytest_llmeval.reports.ci import job_link
from pytest_llmeval.reports.formatting import visible
from support.judged_runs import REGRESSION
from support.judged_runs import THRESHOLDS
from support.judged_runs import judged


@given(st.text(max_size=150), st.text(max_size=900))
def test_any_text_is_one_command(title, message):
    line = command("error", title, message)
    assert not re.search(r"[\r\n\x00]", line)
    match = re.fullmatch(r"::error title=([^:,]*)::(.*)", line)
    # The runner undoes %25 last, as unquote does for these.
    assert unquote(match[1]) == visible(title)
    assert unquote(match[2]) == visible(message)


def test_properties_are_escaped_further_than_messages():
    line = command("error", "a:b,c%", "a:b,c%\nd")
    assert line == "::error title=a%3Ab%2Cc%25::a:b,c%25%0Ad"


def test_a_long_message_is_cut():
    assert len(command("error", "t" * 10_000, "m" * 1_000_000)) < 1500


def test_failed_gates_are_errors_and_worse_subjects_warnings(tmp_path):
    before = {"art": "c" * 100, "law": "c" * 100}
    after = {"art": "c" * 40 + "w" * 60, "law": "c" * 100}
    run = judged(tmp_path, after, before, THRESHOLDS + REGRESSION)
    lines = annotate(run)
    errors = [line for line in lines if line.startswith("::error ")]
    warnings = [line for line in lines if line.startswith("::warning ")]
    assert len(errors) == len(run.failed) == 3
    assert all("FAIL mmlu::" in line for line in errors)
    assert len(warnings) == 1
    assert "art" in warnings[0]
    assert len(lines) == 4


def test_the_last_of_many_annotations_counts_the_others(tmp_path):
    after = {f"subject_{n:02d}": "c" * 4 + "w" * 6 for n in range(57)}
    lines = annotate(judged(tmp_path, after))
    assert len(lines) == 10
    assert "and 49 more" in lines[-1]


def test_the_address_of_the_job():
    github = {"SERVER_URL": "https://github.com", "REPOSITORY": "me/it", "RUN_ID": "7"}
    environment = {f"GITHUB_{name}": value for name, value in github.items()}
    assert job_link(environment) == "https://github.com/me/it/actions/runs/7"
    assert job_link({}) is None
