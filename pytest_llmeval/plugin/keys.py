"""Plugin names and stash keys that several modules use."""

from __future__ import annotations

import pytest

WORKER_PLUGIN = "llmeval-worker"
"""Name of `WorkerPlugin`: in the main process, or in every xdist worker."""

CONTROLLER_PLUGIN = "llmeval-controller"
"""Name of `ControllerPlugin`: in the main process, or in the xdist controller."""

UNMARKED = "`item`, `model` and `answer` need @pytest.mark.llmeval(BENCHMARK)"

COLLECTION_COMPLETE = pytest.StashKey[bool]()
"""Set after a complete collection: pytest calls the same hooks after an interrupted one."""
