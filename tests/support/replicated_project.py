"""Sessions of pytest in a project's folder, each in a process of its own, and what they wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from support.interrupting import QUICK


def run(project: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", *QUICK, *arguments]
    return subprocess.run(command, cwd=project.path, capture_output=True, text=True, timeout=100)


def newest(project: Any) -> Path:
    return sorted((project.path / "runs").glob("*/"))[-1]


def metrics(project: Any) -> str:
    return (newest(project) / "metrics.json").read_text()
