"""From a reply to the trial of its patch, and from the result of the trial to a score.

Nothing runs here. The fields that an item must have are those of ``FIELDS``: texts of its row in
the format that SWE-bench has since August 2026, the two lists of tests as JSON.

``resolved`` runs the tests under guard: runner configuration that the patch touches is restored,
unless the gold patch touches the same file, and nothing that the patch prints counts as a result
outside of the tests' own output. ``resolved_official`` runs the row's own script and reads its log
by the rules of the leaderboard.
"""

from __future__ import annotations

import json
import re

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.sandbox.swebench.trial import Trial
from pytest_llmeval.sandbox.swebench.trial import TrialResult
from pytest_llmeval.scorers.response_text import scoring_fault
from pytest_llmeval.scorers.response_text import without_reasoning
from pytest_llmeval.scorers.swebench.doubts import doubt_detail
from pytest_llmeval.scorers.swebench.grading import Expected
from pytest_llmeval.scorers.swebench.grading import Grade
from pytest_llmeval.scorers.swebench.grading import grade
from pytest_llmeval.scorers.swebench.grading import grade_official

FIELDS = (
    *("image", "base_commit", "test_patch", "eval_script", "log_parser"),
    *("fail_to_pass", "pass_to_pass", "solution"),
)
"""What a trial and its grade are made of; ``solution`` is the gold patch."""

_LOG_TAIL = 6_000
_NAMED = 3
_LISTED = 50

_ELEMENT = re.compile(r"<(diff|patch)>")
_FENCE = re.compile(r"^(`{3,}|~{3,})[ \t]*(\w*)[^\n]*$", re.MULTILINE)
_HEADER = re.compile(r"^(?:diff --git |--- \S[^\n]*\n\+\+\+ \S)", re.MULTILINE)


def resolved(item: Item, response: Response) -> Trial | Score:
    """Return the guarded trial of the patch in a reply; unparsed where the reply has none.

    A run that ended without the last line of its test runner is wrong, whatever it printed.
    """
    return _trial_of(item, response, guarded=True)


def resolved_official(item: Item, response: Response) -> Trial | Score:
    """Return the trial of the patch in a reply by the row's own script, with the official rules."""
    return _trial_of(item, response, guarded=False)


def reference_trial(item: Item, *, guarded: bool) -> Trial:
    """Return the trial of the item's gold patch, which must resolve it. ConfigError without one."""
    solution = item.fields.get("solution")
    if not solution:
        raise ConfigError(f"item {item.id!r} has no gold patch to run")
    return _trial(item, f"{item.id}/gold", solution, guarded=guarded)


def extract_patch(text: str) -> str | None:
    """Return the patch in a reply; None where there is none.

    A text that begins as a diff is the patch as it is. Otherwise it is the inside of the first
    ``<patch>`` or ``<diff>``, else of the first block fenced as ``diff`` or ``patch``, else of
    another block with the header of a diff, else all from the first such header on. Reasoning is
    left out. Linear in the text.
    """
    if not text.strip():
        return None
    if _HEADER.match(text.lstrip()):
        return text
    visible = without_reasoning(text)
    if visible is None:
        return None
    element = _ELEMENT.search(visible)
    if element is not None:
        inside = visible[element.end() :].partition(f"</{element[1]}>")[0]
        return _whole_lines(_unfenced(inside))
    header = _HEADER.search(visible)
    blocks = _blocks(visible)
    for language, block in blocks:
        if language in ("diff", "patch"):
            return _whole_lines(block)
    for _, block in blocks:
        if _HEADER.search(block):
            return _whole_lines(block)
    return None if header is None else visible[header.start() :]


def score_of(item: Item, trial: Trial, result: TrialResult) -> Score:
    """Return the score of a patch whose trial has ended.

    Whatever the candidate did is wrong, with the reason; the machinery's failure is an error. The
    answer is one line; the log of the score has the tests that fail and the end of their output. The
    detail of a resolved instance has the reasons to read its patch, if there are any.
    """
    if result.status == "error":
        return Score(Outcome.ERROR, error=result.detail or "the trial failed")
    if result.status != "finished":
        reason = {"patch_failed": "the patch does not apply", "timeout": "timeout"}[result.status]
        detail = f": {result.detail}" if result.detail else ""
        return Score(Outcome.WRONG, answer=reason + detail, log=_log((), result.log))
    expected = expected_tests(item)
    if trial.guarded:
        graded = grade(expected, result.log, result.exit_code)
    else:
        graded = grade_official(expected, result.log)
    if not graded.resolved:
        why = _why_not(graded, result.detail)
        return Score(Outcome.WRONG, answer=why, log=_log(graded.failing, result.log))
    if trial.guarded and not graded.ended:
        answer = "all tests pass, and the runner did not end: its last line is missing"
        return Score(Outcome.WRONG, answer=answer, log=_log((), result.log))
    doubt = doubt_detail(trial.patch, trial.gold_patch)
    return Score(Outcome.CORRECT, answer="resolved", detail=doubt)


def expected_tests(item: Item) -> Expected:
    """Return the tests that decide on an item."""
    fields = item.fields
    return Expected(
        tuple(json.loads(fields["fail_to_pass"])),
        tuple(json.loads(fields["pass_to_pass"])),
        fields["log_parser"],
    )


def _trial_of(item: Item, response: Response, *, guarded: bool) -> Trial | Score:
    fault = scoring_fault(item, response)
    missing = [name for name in FIELDS if name not in item.fields]
    if fault is None and missing:
        fault = f"the item has no {missing[0]}: it is no instance of SWE-bench"
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    patch = extract_patch(response.text or "")
    if patch is None or not patch.strip():
        return Score(Outcome.UNPARSED)
    return _trial(item, f"{item.id}/{response.sample or 0}", patch, guarded=guarded)


def _trial(item: Item, name: str, patch: str, *, guarded: bool) -> Trial:
    fields = item.fields
    return Trial(
        id=name,
        instance_id=item.id,
        image=fields["image"],
        base_commit=fields["base_commit"],
        patch=patch,
        test_patch=fields["test_patch"],
        gold_patch=fields["solution"],
        eval_script=fields["eval_script"],
        guarded=guarded,
    )


def _blocks(text: str) -> list[tuple[str, str]]:
    """Language and inside of the fenced blocks; one that is never closed reaches to the end."""
    blocks: list[tuple[str, str]] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            blocks.append((opened[2].lower(), text[opened.end() + 1 : fence.start()]))
            opened = None
    if opened is not None:
        blocks.append((opened[2].lower(), text[opened.end() + 1 :]))
    return blocks


def _unfenced(inside: str) -> str:
    """Return the inside of an element without a fence around it."""
    blocks = _blocks(inside) if _FENCE.match(inside.lstrip()) else []
    return blocks[0][1] if blocks else inside


def _whole_lines(inside: str) -> str:
    """Lines without the break behind an opening mark, and with one at the end."""
    patch = inside.removeprefix("\r").removeprefix("\n")
    return patch if not patch.strip() or patch.endswith("\n") else f"{patch}\n"


def _why_not(graded: Grade, detail: str) -> str:
    if graded.status == "not_found":
        return f"no results: {graded.reason}" + (f" ({detail})" if detail else "")
    parts = []
    for name, (passing, total) in (
        ("FAIL_TO_PASS", graded.fail_to_pass),
        ("PASS_TO_PASS", graded.pass_to_pass),
    ):
        if passing < total:
            parts.append(f"{total - passing} of {total} {name}")
    first = [" ".join(test.split())[:120] for test in graded.failing[:_NAMED]]
    more = f" and {len(graded.failing) - _NAMED} more" if len(graded.failing) > _NAMED else ""
    verb = "fail" if len(graded.failing) > 1 else "fails"
    return f"{', '.join(parts)} {verb}: {', '.join(first)}{more}"


def _log(failing: tuple[str, ...], log: str) -> str:
    """Return the tests that fail, and the end of what was printed; both of limited length."""
    parts = []
    if failing:
        listed = [test[:300] for test in failing[:_LISTED]]
        if len(failing) > _LISTED:
            listed.append(f"and {len(failing) - _LISTED} more")
        parts.append("\n".join(("failing tests:", *listed)))
    if log:
        cut = f"[{len(log) - _LOG_TAIL:,} characters before]\n" if len(log) > _LOG_TAIL else ""
        parts.append(f"end of the output:\n{cut}{log[-_LOG_TAIL:]}")
    return "\n\n".join(parts)
