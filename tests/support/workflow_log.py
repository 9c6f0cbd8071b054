"""Which lines of a log GitHub's runner takes for commands, by its own rules."""

from __future__ import annotations

import re

# Registered by the runner (actions/runner, ActionCommandManager.cs and its extensions).
NAMES = {
    *("add-mask", "add-matcher", "remove-matcher", "add-path", "set-env", "set-output"),
    *("save-state", "debug", "notice", "warning", "error", "group", "endgroup", "echo"),
    *("stop-commands", "internal-set-repo-path"),
}


def commands(log: str) -> list[str]:
    """The lines that are commands. Lines end as in .NET: at CR, LF or both."""
    return [line for line in re.split(r"\r\n|\r|\n", log) if _new(line) or _old(line)]


def _new(line: str) -> bool:
    """``::name key=value::message``, behind blanks or not."""
    head, separator, _ = line.lstrip().removeprefix("::").partition("::")
    begun = line.lstrip().startswith("::")
    return bool(begun and separator and head.split(" ")[0] in NAMES)


def _old(line: str) -> bool:
    """``##[name key=value]message``, anywhere in a line."""
    _, begun, rest = line.partition("##[")
    head, end, _ = rest.partition("]")
    return bool(begun and end and head.split(" ")[0] in NAMES)
