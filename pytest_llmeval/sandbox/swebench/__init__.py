"""Trials of patches for SWE-bench: a candidate's patch and the instance's tests in its image."""

from __future__ import annotations

from pytest_llmeval.sandbox.swebench.container import TrialLimits
from pytest_llmeval.sandbox.swebench.images import ImageProvider
from pytest_llmeval.sandbox.swebench.images import MissingImages
from pytest_llmeval.sandbox.swebench.runner import Trials
from pytest_llmeval.sandbox.swebench.runner import open_trials
from pytest_llmeval.sandbox.swebench.runner import trials_identity
from pytest_llmeval.sandbox.swebench.trial import Trial
from pytest_llmeval.sandbox.swebench.trial import TrialResult
from pytest_llmeval.sandbox.swebench.trial import TrialStatus

__all__ = [
    "ImageProvider",
    "MissingImages",
    "Trial",
    "TrialLimits",
    "TrialResult",
    "TrialStatus",
    "Trials",
    "open_trials",
    "trials_identity",
]
