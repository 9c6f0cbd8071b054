"""The demo model as a folder that servers take, and servers started on a free port."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


def demo_folder(path: Path) -> Path:
    """The demo model, saved in float32. Skips the test where it is not installed."""
    from pytest_llmeval.models import demo
    from pytest_llmeval.models.hf.loading import load
    from pytest_llmeval.models.hf.spec import parse_spec

    weights = demo.weights()
    if weights is None:
        pytest.skip(f"no demo model; {demo.INSTALL}")
    loaded = load(parse_spec(f"{weights}?device=cpu&dtype=float32"))
    loaded.model.hf_quantizer = None
    if hasattr(loaded.model.config, "quantization_config"):
        del loaded.model.config.quantization_config
    loaded.model.save_pretrained(path)
    loaded.tokenizer.save_pretrained(path)
    return path


@contextmanager
def running(command: Sequence[str], log: Path, **environment: str) -> Iterator[str]:
    """The address of a server that is started with ``--host`` and ``--port``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with log.open("w") as output:
        # Several requests at a time, each with as many threads as there are cores, only wait.
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment},
        )
    try:
        until = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()
