"""Trials of patches in the image of a SWE-bench instance, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate's patch with all that is needed to run an instance's tests on it."""

    id: str
    """Unique among the trials in flight; comes back with the result."""
    instance_id: str
    image: str
    """Reference of the instance's image."""
    base_commit: str
    patch: str
    """The candidate's patch, untrusted."""
    test_patch: str
    gold_patch: str
    """The instance's own solution: a file that it touches is not restored by the guard."""
    eval_script: str
    """The row's own script."""
    guarded: bool
    """True: runner configuration and tests are restored (scorer ``resolved``).

    False: the row's script is run as it is (scorer ``resolved_official``).
    """
    timeout: float = 1800.0
    """Seconds of the tests."""


TrialStatus = Literal["finished", "patch_failed", "timeout", "error"]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How a trial ended."""

    id: str
    status: TrialStatus
    """``patch_failed``: the candidate's patch does not apply.

    ``error``: the machinery failed, which is no result of the patch.
    """
    log: str = ""
    """Output of the tests: between the nonces where guarded, else the official log with markers."""
    exit_code: int | None = None
    detail: str = ""
    """One line."""
    seconds: float | None = None
    image_digest: str | None = None
    node: str = ""
    """Host name of the node that ran it; empty: this machine."""
