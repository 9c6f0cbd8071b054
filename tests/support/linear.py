"""Assertion that a function's time grows no faster than its input, from two sizes."""

from __future__ import annotations

import time
from collections.abc import Callable


def assert_linear(function: Callable[[str], object], piece: str, size: int = 60_000) -> None:
    """Compare processor time on ``piece`` repeated to ``size`` and to eight times that.

    Quadratic time would be 64 times as much, linear is 8; the allowance covers a busy machine.
    """
    small, large = (_seconds(function, piece, length) for length in (size, 8 * size))
    assert large < 40 * small + 0.2


def _seconds(function: Callable[[str], object], piece: str, length: int) -> float:
    text = piece * (length // len(piece))
    times = []
    for _ in range(3):
        start = time.process_time()
        function(text)
        times.append(time.process_time() - start)
    return min(times)
