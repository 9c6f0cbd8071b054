"""Nothing that others wrote is a command in the log of a job of GitHub Actions."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.cli import main
from pytest_llmeval.reports.ci import annotate
from pytest_llmeval.reports.formatting import escape_workflow_commands
from pytest_llmeval.reports.markdown import run_markdown
from support.judged_runs import REGRESSION
from support.judged_runs import THRESHOLDS
from support.judged_runs import judged
from support.judged_runs import stored
from support.workflow_log import commands

COMMANDS = (
    "::error::new",
    " \t::set-env name=PATH::new",
    "\u00a0::warning file=a::behind a blank of another kind",
    "text\n::stop-commands::token",
    "text\r::add-mask::carriage return",
    "::::error::",
    "text ##[error]old",
    "##[set-env name=a]b",
    "###[warning]x",
)


@pytest.fixture
def github(monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


def test_the_rules_are_those_of_the_runner():
    assert [bool(commands(text)) for text in COMMANDS] == [True] * 5 + [False] + [True] * 3
    for text in ("a ::error::b", "::unknown::x", "::error:x", "##[error", "# #[error]", "plain"):
        assert not commands(text)


PIECES = st.lists(
    st.sampled_from(
        ["::", ":", "error", " ", "\t", "\n", "\r", "##[", "#", "[", "]", "\u2003", "x"]
    ),
    max_size=12,
).map("".join)


@given(PIECES | st.sampled_from(COMMANDS) | st.text(max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_is_a_workflow_command(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_ACTIONS", "true")
        shown = escape_workflow_commands(text)
        patch.delenv("GITHUB_ACTIONS")
        assert escape_workflow_commands(text) == text
    assert not commands(shown)
    assert shown.replace("\\u003a", ":").replace("\\u005b", "[") == text.replace(
        "\\u003a", ":"
    ).replace("\\u005b", "[")


@pytest.mark.parametrize("text", COMMANDS)
def test_json_stays_what_it_is(github, text):
    assert json.loads(escape_workflow_commands(json.dumps({"key": text}, indent=1))) == {
        "key": text
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_annotations_and_the_summary_hold_no_others(github, tmp_path, name):
    before, after = {name: "c" * 100}, {name: "c" * 40 + "w" * 60}
    run = judged(tmp_path, after, before, THRESHOLDS + REGRESSION)
    lines = annotate(run)
    assert commands("\n".join(lines)) == lines
    assert all(
        line.startswith(("::error title=llmeval", "::warning title=llmeval")) for line in lines
    )
    assert not commands(run_markdown(run))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    "words", ["show RUN", "show RUN --protocol", "compare RUN NEW", "compare RUN NEW --format json"]
)
def test_commands_print_none(github, tmp_path, capsys, name, words):
    paths = {
        word: str(stored(tmp_path / word, {name: "cw", "art": "cc"}, models=[name]))
        for word in ("RUN", "NEW")
    }
    assert main([paths.get(word, word) for word in words.split()]) == 0
    out, err = capsys.readouterr()
    assert out
    assert not commands(out + err)
