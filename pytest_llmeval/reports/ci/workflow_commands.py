"""What GitHub's runner makes of the log: it takes some lines for commands, whoever printed them.

A line that begins with ``::``, behind blanks or not, and one that has ``##[`` anywhere
(actions/runner, ActionCommand.cs).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_COMMAND = re.compile(r"((?:\A|[\r\n])\s*):(?=:)|(?<=##)\[")


def is_github(environment: Mapping[str, str]) -> bool:
    """Whether this is a job of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def harmless(text: str) -> str:
    r"""Text to be printed; in a job of GitHub Actions without what would be a command in it.

    A command is shown as ``\u003a:`` or ``##\u005b``, which leaves JSON what it is.
    """
    return _COMMAND.sub(_escape, text) if is_github(os.environ) else text


def _escape(found: re.Match[str]) -> str:
    return r"\u005b" if found[0] == "[" else rf"{found[1]}\u003a"
