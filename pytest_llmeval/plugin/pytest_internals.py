"""Every access to a part of pytest that is not public, with what it is for and what is missing.

No other module uses one. pytest 8.4 to 9.2 have all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.junitxml import xml_key

Function = Callable[..., Any]


def ini_names(config: pytest.Config) -> Iterable[str]:
    """Names of all settings that the ini file and ``-o`` give, for those that are misspelt.

    ``Config.getini`` answers for one known name. pytest's own warning of unknown names does not end
    the session, and ``Config.inicfg``, which had them before pytest 9, is deprecated.
    """
    names: Iterable[str] = config._inicfg if hasattr(config, "_inicfg") else config.inicfg
    return names


def junit_plugin(config: pytest.Config) -> object | None:
    """The plugin that writes ``--junitxml``, to give it other reports; None without the option.

    It is registered without a name that ``PytestPluginManager.get_plugin`` could find it by.
    """
    plugin: object | None = config.stash.get(xml_key, None)
    return plugin


def intercept(
    config: pytest.Config, hook: str, plugin: object, around: Callable[[Function], Function]
) -> None:
    """Replace a plugin's function in a hook by what ``around`` makes of it.

    For this configuration alone, whose plugins have implementations of their own; no effect where
    the plugin is not registered. A hook wrapper sees the results of all plugins together, and cannot
    give one of them other arguments or leave it out; ``subset_hook_caller`` serves the caller of a
    hook, which is pytest here.
    """
    for implementation in getattr(config.hook, hook).get_hookimpls():
        if implementation.plugin is plugin:
            implementation.function = around(implementation.function)
