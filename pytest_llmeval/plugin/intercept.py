"""Standing between a hook and what another plugin does in it, of which pytest has no public form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Function = Callable[..., Any]


def intercept(
    config: pytest.Config, hook: str, plugin: object, around: Callable[[Function], Function]
) -> None:
    """Have a plugin's function in a hook replaced by what ``around`` makes of it.

    For this configuration alone, whose plugins have implementations of their own. No effect where
    the plugin is not there.
    """
    for implementation in getattr(config.hook, hook).get_hookimpls():
        if implementation.plugin is plugin:
            implementation.function = around(implementation.function)
