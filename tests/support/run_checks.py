"""Checks of a run folder that hold for every run."""

from __future__ import annotations

from pytest_llmeval.runs import load_run


def check_consistent(project) -> None:
    """Compare ``metrics.json`` with the metrics computed from the records."""
    expected = project.document("metrics.json")
    del expected["format"]
    assert load_run(project.run_folder).metrics() == expected
