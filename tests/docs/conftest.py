"""Loaded here because pytester would load them anew for every run, which numpy does not survive."""

from __future__ import annotations

import numpy  # noqa: F401
import scipy.special
import scipy.stats  # noqa: F401
