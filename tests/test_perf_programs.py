"""The programs in ``perf/`` start, and so does the server that some of them need."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

PERF = Path(__file__).parents[1] / "perf"
PROGRAMS = sorted(file.name for file in PERF.glob("*.py") if file.name != "peer.py")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_explains_itself(name: str) -> None:
    shown = subprocess.run(
        [sys.executable, str(PERF / name), "--help"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("usage:")


def test_the_stand_in_server_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PERF))
    from peer import stand_in_server

    with stand_in_server({"latency": 0.0}) as url:
        reply = urllib.request.urlopen(url.removesuffix("/v1") + "/stats")
        assert isinstance(json.load(reply), dict)
