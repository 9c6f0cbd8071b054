"""Where tests find files that are not theirs."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

GOLDEN_FILES = REPOSITORY / "tests" / "golden"

DATA = Path(os.environ.get("LLMEVAL_DATA") or REPOSITORY.parent / "shared" / "data")
"""Public benchmark files and recorded outputs; tests that need them are skipped without."""

REFERENCE = DATA.parent / "reference"
"""Numbers that other programs computed; tests that need them are skipped without."""
