"""Patches: read from replies, made into trials, and scored by how those end."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.sandbox.swebench import Trial
from pytest_llmeval.sandbox.swebench import TrialResult
from pytest_llmeval.scorers import counts_all_items
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers.swebench.resolved import extract_patch
from pytest_llmeval.scorers.swebench.resolved import reference_trial
from pytest_llmeval.scorers.swebench.resolved import score_of
from support import swebench_data
from support.linear import assert_linear
from support.swebench_data import needs_recorded
from support.swebench_rows import log
from support.swebench_rows import patch

PATCH = patch("new")
ITEM = Item(
    "mini__calc-1",
    "mini/calc",
    "add(1, 2) is 0",
    "resolved",
    fields={
        "image": "image",
        "base_commit": "0" * 40,
        "test_patch": patch("test", "t.py"),
        "eval_script": "pytest t.py",
        "log_parser": "parse_log_pytest",
        "solution": patch("gold"),
        "fail_to_pass": '["t.py::new", "t.py::also"]',
        "pass_to_pass": '["t.py::old"]',
    },
)


def trial(scorer: str = "resolved", text: str | None = PATCH, **about) -> Trial | Score:
    jobs = get_scorer(scorer).jobs
    assert jobs is not None
    return jobs.job(ITEM, Response(ITEM.id, text=text, **about))


# Patches -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        PATCH,
        f"<patch>\n{PATCH}</patch>",
        f"Here it is.\n<diff>\n{PATCH}</diff>\nThat is all.",
        f"<patch>\n```diff\n{PATCH}```\n</patch>",
        f"```diff\n{PATCH}```",
        f"The fix:\n\n```patch\n{PATCH}```\n",
        f"```python\nprint(1)\n```\n\n```diff\n{PATCH}```",
        f"```\n{PATCH}```",
        f"~~~~diff\n{PATCH}~~~~",
        f"```diff\n{PATCH}",
        f"This should do:\n{PATCH}",
        f"<think>Perhaps <patch>none</patch>.</think>\n<patch>\n{PATCH}</patch>",
        f"<patch>\n{PATCH}",
    ],
)
def test_the_patch_in_a_reply(reply):
    assert extract_patch(reply) == PATCH


@pytest.mark.parametrize("reply", ["", " \n", "I cannot resolve this.", "<think>\n" + PATCH])
def test_a_reply_without_a_patch(reply):
    assert extract_patch(reply) is None
    assert trial(text=reply) == Score(Outcome.UNPARSED)


@pytest.mark.parametrize("reply", ["<patch></patch>", "<patch>\n\n</patch>", "```diff\n```"])
def test_an_empty_patch_is_none(reply):
    assert trial(text=reply) == Score(Outcome.UNPARSED)


def test_a_text_that_begins_as_a_diff_is_the_patch_as_it_is():
    for text in (
        PATCH.replace("\n", "\r\n"),
        PATCH.rstrip("\n"),
        f"\n{PATCH}",
        PATCH.replace("old", "</patch> ``` <diff>"),
        f"{PATCH}\ntrailing words",
    ):
        assert extract_patch(text) == text


@needs_recorded
@pytest.mark.parametrize(
    "name",
    [
        "verified_vexp/predictions.jsonl",
        *(
            f"{folder}/predictions.jsonl.xz"
            for folder in ("lite_sweagent_official", "lite_acr1", "lite_acr2", "lite_acr3")
        ),
    ],
)
def test_real_predictions_are_left_as_they_are(name):
    texts = [line["model_patch"] or "" for line in swebench_data.lines(name)]
    assert [text for text in texts if text.strip() and extract_patch(text) != text] == []
    assert all(extract_patch(text) is None for text in texts if not text.strip())


@given(
    st.lists(st.sampled_from(["```", "diff\n", "<patch>", "</patch>", "--- a\n+++ b\n", "x", "\n"]))
)
def test_every_reply_has_a_patch_or_none(parts):
    extracted = extract_patch("".join(parts))
    assert extracted is None or isinstance(extracted, str)


@pytest.mark.parametrize(
    "piece", ["```\n", "<patch>", "--- a\n", "diff --git", "\n", "<think>", "~~~~"]
)
def test_extracting_a_patch_takes_linear_time(piece):
    assert_linear(lambda text: extract_patch("x\n" + text), piece)


# Trials --------------------------------------------------------------------------------


def test_a_trial_has_all_that_the_instance_has():
    made = trial(sample=2)
    assert isinstance(made, Trial)
    assert (made.patch, made.guarded, made.image, made.id) == (PATCH, True, "image", f"{ITEM.id}/2")
    assert (made.gold_patch, made.test_patch) == (patch("gold"), patch("test", "t.py"))
    official = trial("resolved_official")
    assert isinstance(official, Trial)
    assert not official.guarded


def test_the_reference_is_the_gold_patch():
    made = reference_trial(ITEM, guarded=True)
    assert made.patch == made.gold_patch == patch("gold")
    with pytest.raises(ConfigError, match="'x' has no gold patch"):
        reference_trial(Item("x", "x", "q", "g"), guarded=True)


@pytest.mark.parametrize("scorer", ["resolved", "resolved_official"])
def test_errors_are_errors(scorer):
    jobs = get_scorer(scorer).jobs
    assert jobs is not None
    assert jobs.job(ITEM, Response(ITEM.id, error="lost")).error == "lost"
    other = Item("x", "x", "q", "g")
    score = jobs.job(other, Response("x", text=PATCH))
    assert (score.outcome, score.error) == (
        Outcome.ERROR,
        "the item has no image: it is no instance of SWE-bench",
    )
    assert "needs a sandbox" in get_scorer(scorer)(ITEM, Response(ITEM.id, text=PATCH)).error


def test_their_official_rate_is_over_all_items():
    names = ["resolved", "resolved_official", "execution", "choice", "no such scorer"]
    assert list(map(counts_all_items, names)) == [True, True, False, False, False]


# Scores --------------------------------------------------------------------------------


def score(scorer: str = "resolved", **result) -> Score:
    made = trial(scorer)
    assert isinstance(made, Trial)
    return score_of(ITEM, made, TrialResult(made.id, **result))


@pytest.mark.parametrize(
    ("result", "outcome", "answer"),
    [
        ({"status": "finished", "log": log(), "exit_code": 0}, "correct", "resolved"),
        (
            {"status": "finished", "log": log(new="FAILED"), "exit_code": 1},
            "wrong",
            "1 of 2 FAIL_TO_PASS fails: t.py::new",
        ),
        (
            {"status": "finished", "log": log(old="ERROR"), "exit_code": 1},
            "wrong",
            "1 of 1 PASS_TO_PASS fails: t.py::old",
        ),
        (
            {"status": "finished", "log": "Traceback", "exit_code": 4},
            "wrong",
            "no results: the log has no results",
        ),
        (
            {"status": "finished", "log": "", "exit_code": 1, "detail": "wrote more than 5 MB"},
            "wrong",
            "no results: the log has no results (wrote more than 5 MB)",
        ),
        (
            {"status": "patch_failed", "detail": "core.py: no such file"},
            "wrong",
            "the patch does not apply: core.py: no such file",
        ),
        ({"status": "timeout", "detail": "longer than 9 s"}, "wrong", "timeout: longer than 9 s"),
        (
            {"status": "finished", "log": log(ends=False), "exit_code": 0},
            "wrong",
            "all tests pass, and the runner did not end: its last line is missing",
        ),
    ],
)
def test_how_a_trial_ended_is_the_score(result, outcome, answer):
    graded = score(**result)
    assert (graded.outcome, graded.answer, graded.error) == (outcome, answer, None)


@pytest.mark.parametrize("detail", ["no image", ""])
def test_a_failure_of_the_machinery_is_an_error(detail):
    result = score(status="error", detail=detail, log=log(new="FAILED"))
    assert result == Score(Outcome.ERROR, error=detail or "the trial failed")


def test_the_official_scorer_reads_the_markers_and_asks_for_no_last_line():
    assert score("resolved_official", status="finished", log=log(ends=False)).outcome == "correct"
    without = log().replace(">>>>> End Test Output", "")
    result = score("resolved_official", status="finished", log=without)
    assert result.answer == "no results: the log lacks the markers of the test output"


def test_the_guarded_scorer_reads_all_of_its_log():
    """It has no markers: there a patch that prints one hides nothing."""
    text = f">>>>> Tests Timed Out\n{log()}"
    assert score(status="finished", log=text, exit_code=0).outcome == "correct"
    assert score("resolved_official", status="finished", log=text).outcome == "wrong"


def test_answer_and_log_are_bounded():
    names = [f"t.py::test_{number}[{'x' * 500}]" for number in range(500)]
    item = Item("x", "x", "q", "g", fields={**ITEM.fields, "fail_to_pass": json.dumps(names)})
    made = trial()
    assert isinstance(made, Trial)
    text = "\n".join(f"FAILED {name}" for name in names) + "z" * 1_000_000
    bounded = score_of(item, made, TrialResult("x", "finished", text, 1))
    assert bounded.answer is not None
    assert bounded.answer.endswith(" and 498 more")
    assert len(bounded.answer) < 600
    assert len(bounded.log) < 25_000
    assert "characters before]" in bounded.log
