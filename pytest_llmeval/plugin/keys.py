"""Names and keys under which the parts of the plugin find one another."""

from __future__ import annotations

import pytest

ANSWERING = "llmeval-answering"
"""Name of the plugin that answers tests: in the main process, or in every xdist worker."""

JUDGING = "llmeval-judging"
"""Name of the plugin that judges the run: in the main process, or in the xdist controller."""

UNMARKED = "`item`, `model` and `answer` need @pytest.mark.llmeval(BENCHMARK)"

COLLECTED = pytest.StashKey[bool]()
"""Set once the collection is complete: pytest ends one that is interrupted as if it were."""
