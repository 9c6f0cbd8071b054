"""Hypothesis profiles: `pytest tests/metrics --hypothesis-profile=thorough` for the long one."""

from __future__ import annotations

from hypothesis import settings

# No deadlines: the first call of a function may import scipy.
settings.register_profile("quick", deadline=None)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile("quick")
