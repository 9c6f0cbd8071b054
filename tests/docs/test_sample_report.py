"""The sample report of the site is made by this version from the recorded answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import REPOSITORY

SCRIPT = REPOSITORY / "docs" / "sample_report.py"


def test_the_recorded_answers_have_their_published_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("jinja2", reason="the HTML report needs jinja2 (extra report)")
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    report = tmp_path / "report.html"
    subprocess.run([sys.executable, str(SCRIPT), str(report)], check=True, timeout=300)
    text = report.read_text(encoding="utf-8")
    assert "starter[letter]" in text
    assert "0.2364" in text  # as the README's demo model scores: 87 and 250 of 368
    assert "0.6793" in text
    assert str(tmp_path) not in text
    assert not summary.exists()
