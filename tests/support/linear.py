"""Assertion that a function's time grows no faster than its input, from two sizes."""

from __future__ import annotations

import time
from collections.abc import Callable

_ATTEMPTS = 3  # on a busy machine


def assert_linear(function: Callable[[str], object], piece: str, size: int = 60_000) -> None:
    """Compare processor time on ``piece`` repeated to ``size`` and to eight times that.

    Quadratic time would be 64 times as much, linear is 8.
    """
    for _ in range(_ATTEMPTS):
        small, large = (_seconds(function, piece, length) for length in (size, 8 * size))
        if large < 20 * small + 0.2:
            return
    raise AssertionError(f"{small:.2f} s for {size:,} characters, {large:.2f} s for {8 * size:,}")


def _seconds(function: Callable[[str], object], piece: str, length: int) -> float:
    text = piece * (length // len(piece))
    start = time.process_time()
    function(text)
    return time.process_time() - start
