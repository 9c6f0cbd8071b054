"""All accesses to private parts of pytest, each with the reason why no public API suffices.

No other module has any. pytest 8.4 to 9.2 have all these parts.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.junitxml import xml_key

Function = Callable[..., Any]


def ini_names(config: pytest.Config) -> Iterable[str]:
    """Return the names of all settings in the ini file and ``-o``, to find misspelt ones.

    ``Config.getini`` takes one registered name. pytest's own warning about unknown names does not
    end the session, and ``Config.inicfg``, which had them before pytest 9, is deprecated.
    """
    names: Iterable[str] = config._inicfg if hasattr(config, "_inicfg") else config.inicfg
    return names


def junit_plugin(config: pytest.Config) -> object | None:
    """Return the plugin that writes ``--junitxml``, to pass it other reports; None if not in use.

    It is registered without a name, so that ``PytestPluginManager.get_plugin`` cannot find it.
    """
    plugin: object | None = config.stash.get(xml_key, None)
    return plugin


def intercept(
    config: pytest.Config, hook: str, plugin: object, around: Callable[[Function], Function]
) -> None:
    """Replace a plugin's implementation of a hook by ``around(implementation)``.

    Affects only this configuration; no effect if the plugin is not registered. A hook wrapper gets
    the results of all plugins together, and cannot change the arguments of one of them or leave it
    out; ``subset_hook_caller`` is for the caller of a hook, which is pytest here.
    """
    for implementation in getattr(config.hook, hook).get_hookimpls():
        if implementation.plugin is plugin:
            implementation.function = around(implementation.function)
