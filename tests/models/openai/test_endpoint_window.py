"""The window: grows while it pays, shrinks when refused, and distinguishes causes.

Servers are simulated: what they answer a second depends on how many requests are in flight.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pytest_llmeval.models.openai.background_loop import ConcurrencyWindow

# In flight → (answers a second, share of requests that are pushed back).
Endpoint = Callable[[int], tuple[float, float]]


def run(window: ConcurrencyWindow, endpoint: Endpoint, seconds: float = 300) -> list[int]:
    """The window's limit over time, when there are always more requests."""
    random, now, limits = Random(1), 0.0, []
    while now < seconds:
        rate, refused = endpoint(window.limit)
        now += 1 / rate
        if random.random() < refused:
            window.rejected(now)
        else:
            window.succeeded(now, full=True)
        limits.append(window.limit)
    return limits


def saturating(at: int) -> Endpoint:
    """Ten answers a second for each request in flight, up to so many at a time."""
    return lambda limit: (10.0 * min(limit, at), 0.0)


def refusing(above: int) -> Endpoint:
    """So many at a time are answered, all others refused at once."""

    def endpoint(limit: int) -> tuple[float, float]:
        refused = max(0, limit - above) / limit
        return 10.0 * limit, refused

    return endpoint


def mean_at_the_end(limits: list[int]) -> float:
    last = limits[len(limits) // 2 :]
    return sum(last) / len(last)


def test_the_window_grows_to_where_the_server_is_full() -> None:
    limits = run(ConcurrencyWindow(256), saturating(50))
    assert 32 <= mean_at_the_end(limits) <= 100


def test_the_window_does_not_flood_a_server_that_takes_few() -> None:
    limits = run(ConcurrencyWindow(256), saturating(8))
    assert max(limits) <= 16
    assert mean_at_the_end(limits) < 12


def test_the_window_grows_to_its_maximum() -> None:
    limits = run(ConcurrencyWindow(100), saturating(1000))
    assert limits[-1] == max(limits) == 100


def test_the_window_shrinks_for_a_server_that_refuses() -> None:
    limits = run(ConcurrencyWindow(256, fixed=True), refusing(20))
    assert limits[0] == 256
    assert 14 <= mean_at_the_end(limits) <= 40


def test_faults_that_do_not_depend_on_the_number_do_not_shrink_it() -> None:
    limits = run(ConcurrencyWindow(64, fixed=True), lambda limit: (10.0 * limit, 0.18))
    assert mean_at_the_end(limits) > 50


def test_a_fixed_limit_is_kept_while_all_is_well() -> None:
    assert set(run(ConcurrencyWindow(64, fixed=True), saturating(10))) == {64}


def test_the_window_does_not_grow_without_load() -> None:
    window = ConcurrencyWindow(256)
    for number in range(1000):
        window.succeeded(number * 0.01, full=False)
    assert window.limit == 8
