"""``llmeval``: commands for stored runs, which need no model."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Iterable
from collections.abc import Sequence
from typing import NoReturn

from pytest_llmeval.core import ConfigError
from pytest_llmeval.reports.formatting import escape_workflow_commands

USAGE_ERROR = 4
"""pytest's exit code for a user's mistake; the other codes are pytest's too."""

_MODULES = {
    "gate": ("gate",),
    "show": ("show",),
    "compare": ("compare",),
    "report": ("report", "history"),
    "export": ("export",),
    "stored": ("baseline", "merge", "cache"),
    "import_log": ("import",),
    "extract": ("extract",),
    "sandbox": ("sandbox",),
    "swebench": ("swebench",),
    "init": ("init",),
    "overlap": ("overlap",),
    "seal": ("seal",),
}
"""Module of this package → the commands that it adds."""


class _Parser(argparse.ArgumentParser):
    """A parser that exits with pytest's code for usage errors instead of argparse's."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.format_usage()}{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 (passed), 1 (a gate failed) or 4 (a user's mistake)."""
    words = sys.argv[1:] if arguments is None else arguments
    # A command imports only its own module: another's may take longer than the command.
    named = [name for name, commands in _MODULES.items() if words and words[0] in commands]
    options = make_parser(named or _MODULES).parse_args(words)
    for stream in (sys.stdout, sys.stderr):
        # A log that cannot encode a character must not prevent the verdict.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = options.command(options)
    except ConfigError as error:
        print(escape_workflow_commands(f"llmeval: {error}"), file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        # The reader of the output has gone (`| head`), so there is no verdict to print.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # A name too long for the file system, a folder that may not be read, a full disk.
        reason = f"{error.filename or 'output'}: {error.strerror or error}"
        print(escape_workflow_commands(f"llmeval: {reason}"), file=sys.stderr)
        return USAGE_ERROR
    return code


def make_parser(names: Iterable[str] = tuple(_MODULES)) -> argparse.ArgumentParser:
    """Return the parser of the commands in these modules, by default of all."""
    parser = _Parser(
        prog="llmeval", description="Work with stored runs and set up a project, without a model."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in names:
        importlib.import_module(f"{__name__}.{name}").add_commands(commands)
    return parser
