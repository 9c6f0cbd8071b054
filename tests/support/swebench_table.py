"""The verdicts on the miniature's patches, all or some, against the recorded and the right ones."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterator
from pathlib import Path

from pytest_llmeval.sandbox.swebench import Trial
from pytest_llmeval.sandbox.swebench import TrialResult
from pytest_llmeval.sandbox.swebench import Trials
from pytest_llmeval.scorers.swebench.doubts import doubts
from pytest_llmeval.scorers.swebench.grading import grade
from pytest_llmeval.scorers.swebench.grading import grade_official
from support import swebench_hostile as hostile
from support.swebench_data import expected_of
from support.swebench_miniature import Reset
from support.swebench_miniature import expected
from support.swebench_miniature import patch_of
from support.swebench_miniature import predictions
from support.swebench_miniature import row
from support.swebench_miniature import trial

LIMITS = {"workers": 3, "memory_mb": 512, "disk_mb": 300, "processes": 256}

KINDS = frozenset(
    (
        *("gold", "crlf", "fenced", "partly", "breaks_p2p", "syntax_error", "half_applies"),
        *("gold_and_deletes_tests", "gold_and_own_new_test", "gold_and_marker_in_text"),
        *("breaks_p2p_and_xfails_it", "conftest_fakes_whole_log", "conftest_kills_the_shell"),
        *("poisons_new_test", "product_equal_to_all", "product_forges", "writes_git_hook"),
        "hangs_ignoring_term",
    )
)
"""A case of each kind, of the 45: right, wrong, forged, hostile to tests, and without an end."""

_HANGING = 4.0
"""Seconds of tests that never end; the others have more than they need."""
_WITHOUT_A_PATCH = frozenset(("empty", "none"))


def check_official_verdicts(
    trials: Trials, image: str, reset: Reset, cases: Collection[str]
) -> None:
    """The official verdicts on `cases` are those of swebench."""
    results = _results(trials, image, cases, guarded=False, reset=reset)
    verdicts = {case: verdict for case, verdict in expected(reset).items() if case in cases}
    assert set(results) == set(verdicts) - _WITHOUT_A_PATCH
    assert [each for each in results.values() if each.status == "error"] == []
    wrong = {
        case: result.status
        for case, result in results.items()
        if is_resolved(result, guarded=False) != (verdicts[case]["bucket"] == "resolved")
    }
    assert wrong == {}
    # The official harness has these as errors, which count as not resolved.
    assert {case for case, verdict in verdicts.items() if verdict["bucket"] == "error"} == {
        case for case, result in results.items() if result.status != "finished"
    }


def check_guarded_verdicts(trials: Trials, image: str, cases: Collection[str]) -> None:
    """The guarded verdicts on `cases` are right, but for one that is doubtful."""
    results = _results(trials, image, cases, guarded=True, reset="official")
    should_be = {case: verdict["should_be"] for case, verdict in expected("official").items()}
    wrong = [
        case
        for case, result in results.items()
        if is_resolved(result, guarded=True) != (should_be[case] == "resolved")
    ]
    # An object that is equal to everything, made in the process of the tests: see docs/sandbox.md.
    assert wrong == ["product_equal_to_all"]
    assert doubts(predictions()["product_equal_to_all"] or "", row()["patch"])
    statuses = {case: result.status for case, result in results.items()}
    assert {case for case, status in statuses.items() if status == "timeout"} == {
        "hangs",
        "hangs_ignoring_term",
    } & set(cases)
    assert {case for case, status in statuses.items() if status == "patch_failed"} == {
        *("blank", "no_diff", "not_applying", "half_applies", "writes_git_hook")
    } & set(cases)
    assert "error" not in statuses.values()
    # Its log has all results, and lacks the runner's last line.
    forged = results["product_forges"]
    assert grade(expected_of(row()), forged.log, forged.exit_code).resolved


def is_resolved(result: TrialResult, *, guarded: bool) -> bool:
    if result.status != "finished":
        return False
    if not guarded:
        return grade_official(expected_of(row()), result.log).resolved
    graded = grade(expected_of(row()), result.log, result.exit_code)
    return graded.resolved and graded.ended


def hostile_trials(
    cases: dict[str, hostile.Case], repository: Path, image: str, *, guarded: bool = True
) -> Iterator[Trial]:
    """Trials of hostile patches for `repository`, which is that of `image`."""
    for name, case in cases.items():
        patch = case.change if isinstance(case.change, str) else patch_of(repository, case.change)
        script = row("fixed")["eval_script"]
        script = script.replace(hostile.PYTEST, case.runner)
        script = script.replace("git status\n", f"git status\n{case.setup}\n", 1)
        yield trial(
            name,
            patch,
            image,
            guarded=guarded,
            reset="fixed",
            timeout=case.timeout,
            eval_script=script,
        )


def _results(
    trials: Trials, image: str, cases: Collection[str], *, guarded: bool, reset: Reset
) -> dict[str, TrialResult]:
    def patches() -> Iterator[Trial]:
        for case, patch in predictions().items():
            if patch and case in cases:
                limit = _HANGING if case.startswith("hangs") else 60.0
                yield trial(case, patch, image, guarded=guarded, reset=reset, timeout=limit)

    return {result.id: result for result in trials.run(patches())}
