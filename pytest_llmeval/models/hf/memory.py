"""How much is computed at a time, what is free, and what becomes of work that failed."""

from __future__ import annotations

import contextlib
import gc
import os
import re
from pathlib import Path
from typing import Any

import torch

# TokenUsage computed at a time. On a CPU more does not raise the speed of matrix products and falls
# out of the caches; a GPU wants to be filled.
_BATCH_TOKENS = {"cpu": 1024}
_BATCH_TOKENS_ELSEWHERE = 16_384

# Copied keys and values of so many tokens take about the memory that computing one token does.
KEYS_PER_TOKEN = 16


def default_budget(device: torch.device) -> int:
    """The number of tokens to compute at a time on a device."""
    return _BATCH_TOKENS.get(device.type, _BATCH_TOKENS_ELSEWHERE)


def worker() -> tuple[int, int]:
    """Number of this process among the xdist workers, and how many there are; else (0, 1)."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    number = name.removeprefix("gw")
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    return int(number) if number.isdecimal() else 0, int(count) if count.isdecimal() else 1


def available(device: torch.device) -> int | None:
    """Bytes free on a device, for each of the workers on it; None where nobody can tell."""
    _, workers = worker()
    if device.type == "cuda":
        free_bytes = int(torch.cuda.mem_get_info(device)[0])
        return free_bytes // -(-workers // torch.cuda.device_count())
    if device.type == "cpu":
        with contextlib.suppress(OSError):
            found = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
            return int(found[1]) * 1024 // workers if found else None
    return None


def free(device: torch.device) -> None:
    """Give back what nothing refers to any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on whatever device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        words in text for words in ("out of memory", "can't allocate memory", "not enough memory")
    )


def reason_of(error: Any) -> str:
    """An error in one line."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"
