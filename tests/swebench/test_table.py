"""All 45 patches of the miniature under both scorers and resets (`tox -e swebench`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_llmeval.sandbox.swebench import Trials
from pytest_llmeval.sandbox.swebench import open_trials
from support import swebench_hostile as hostile
from support.swebench_miniature import Reset
from support.swebench_miniature import clone
from support.swebench_miniature import miniature_image
from support.swebench_miniature import predictions
from support.swebench_table import LIMITS
from support.swebench_table import check_guarded_verdicts
from support.swebench_table import check_official_verdicts
from support.swebench_table import hostile_trials
from support.swebench_table import is_resolved


@pytest.fixture(scope="module")
def image() -> str:
    return miniature_image()


@pytest.fixture(scope="module")
def trials(image: str) -> Iterator[Trials]:
    with open_trials(**LIMITS) as trials:
        yield trials


@pytest.mark.parametrize("reset", ["official", "fixed"])
def test_official_verdicts_are_those_of_swebench(trials: Trials, image: str, reset: Reset) -> None:
    assert len(predictions()) == 45
    check_official_verdicts(trials, image, reset, set(predictions()))


def test_guarded_verdicts_are_right(trials: Trials, image: str) -> None:
    check_guarded_verdicts(trials, image, set(predictions()))


def test_without_the_guard_most_hostile_patches_are_resolved(
    trials: Trials, tmp_path: Path
) -> None:
    """The attacks work: by the official rules each of these is a resolved instance."""
    image = miniature_image(runners=True)
    repository = clone(tmp_path / "repository", runners=True)
    effective = {
        case: wanted
        for case, wanted in hostile.HOSTILE.items()
        if wanted.statuses == {"finished"} and case not in hostile.NOT_OFFICIAL
    }
    results = trials.run(hostile_trials(effective, repository, image, guarded=False))
    assert {each.id: each for each in results if not is_resolved(each, guarded=False)} == {}
