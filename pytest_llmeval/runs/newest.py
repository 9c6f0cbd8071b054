"""The run that a command means where none is named."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from pytest_llmeval.core import ConfigError

RUNS = Path("runs")
"""Where the runs are, unless ``--llm-runs`` says otherwise."""

LATEST = "latest"
"""What the newest run is called."""


def run_folder(text: str, root: Path = RUNS) -> Path:
    """The folder of a run: the path that is given, or of ``latest`` the newest run in ``root``.

    A folder of that name is meant itself. Raises ConfigError where there is no run.
    """
    path = Path(text)
    return newest_run(root) if text == LATEST and not path.exists() else path


def newest_run(root: Path) -> Path:
    """The folder of the run that was started last. Raises ConfigError where there is none."""
    started = {file.parent: _started(file) for file in sorted(root.glob("*/run.json"))}
    known = {folder: time for folder, time in started.items() if time is not None}
    if not known:
        raise ConfigError(f"no run in {root}/: name the folder of one")
    # Of two in one second the one that was made later has the greater name.
    return max(known, key=lambda folder: (known[folder], folder.name))


def _started(file: Path) -> float | None:
    """When a run was started, in seconds; None where its document does not say."""
    try:
        return datetime.fromisoformat(json.loads(file.read_bytes())["started"]).timestamp()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
