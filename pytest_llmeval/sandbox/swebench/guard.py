"""Files that the guard restores, files of a patch, and the parts of a row's script; all pure."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

GUARDED_NAMES = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "setup.py",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    ".gitattributes",
)
"""Names of files, in any folder, that decide how tests are found, run and reported.

`setup.py` is among them for the entry points by which an installed package becomes a plugin of
pytest, `.gitattributes` since it decides how git writes the files that are restored.
"""

GUARDED_PATHS = (
    "runtests.py",
    "tests/runtests.py",
    "bin/test",
    "sympy/testing/runtests.py",
    "sympy/testing/pytest.py",
    "sympy/utilities/runtests.py",
    "sympy/utilities/pytest.py",
    "*.egg-info/*",
    "*.dist-info/*",
    "pytest.py",
    "pytest/*",
    "_pytest/*",
    "tox.py",
    "tox/*",
)
"""Paths below the repository's root with the same role: test runners that are part of the
repository (django, sympy), entry points of installed packages, and modules that would be imported
in place of the runner's own."""

_START = ": '>>>>> Start Test Output'\n"
_END = ": '>>>>> End Test Output'\n"
_EXIT_CODE = "SWEBENCH_TEST_EXIT_CODE"
_TEST_PATCH = re.compile(
    r"^git checkout [^\n]*\n(?:rm -f [^\n]*\n)*"
    r"^git apply [^\n]*<<'(?P<end>EOF_\w+)'\n.*?^(?P=end)\n",
    re.MULTILINE | re.DOTALL,
)


def find_guarded() -> str:
    """Return a shell command that lists the guarded files below the working folder, NUL-ended."""
    tests = [f"-name {shlex.quote(name)}" for name in GUARDED_NAMES]
    tests += [f"-path {shlex.quote('./' + path)}" for path in GUARDED_PATHS]
    return f"find . -path ./.git -prune -o \\( {' -o '.join(tests)} \\) -print0"


@dataclass(frozen=True, slots=True)
class PatchedFiles:
    """Paths that a patch of git changes; a file that it renames is in both."""

    old: tuple[str, ...] = ()
    """Files that exist before it: edited, deleted, renamed from."""
    new: tuple[str, ...] = ()
    """Files that it makes: added, renamed to, copied to."""


def patched_files(patch: str) -> PatchedFiles:
    """Paths in `patch`, which is one that git has written (a row's, not a candidate's)."""
    old: dict[str, None] = {}
    new: dict[str, None] = {}
    for header in _headers(patch):
        before, after = _names(header)
        if before is not None:
            old[before] = None
        if after is not None and after != before:
            new[after] = None
    return PatchedFiles(tuple(old), tuple(new))


def _headers(patch: str) -> Iterator[list[str]]:
    """Return the lines of each file's header, up to its first hunk."""
    header: list[str] = []
    in_header = False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            if header:
                yield header
            header, in_header = [line], True
        elif line.startswith(("@@ ", "GIT binary patch", "Binary files ")):
            in_header = False
        elif in_header:
            header.append(line)
    if header:
        yield header


def _names(header: list[str]) -> tuple[str | None, str | None]:
    """Return the file's path before and after the change, None where it does not exist."""
    first, *lines = header
    before: str | None
    after: str | None
    before, after = _both_names(first.removeprefix("diff --git "))
    for line in lines:
        if line.startswith("new file mode "):
            before = None
        elif line.startswith("deleted file mode "):
            after = None
        elif line.startswith("rename from "):
            before = _unquoted(line.removeprefix("rename from "))
        elif line.startswith("copy from "):
            before = None  # The original stays as it is.
        elif line.startswith(("rename to ", "copy to ")):
            after = _unquoted(line.partition(" to ")[2])
        elif line.startswith("--- ") and before is not None:
            before = _without_side(line[4:])
        elif line.startswith("+++ ") and after is not None:
            after = _without_side(line[4:])
    return before, after


def _both_names(text: str) -> tuple[str, str]:
    """Both names of `a/NAME b/NAME`; blanks in names are not quoted, and then both are equal."""
    if text.startswith('"') or text.endswith('"'):
        names = re.findall(r'"(?:[^"\\]|\\.)*"|\S+', text)
        return _without_side(names[0]), _without_side(names[-1])
    half = len(text) // 2
    return _without_side(text[:half]), _without_side(text[half + 1 :])


def _without_side(name: str) -> str:
    return _unquoted(name.rstrip("\t\r")).partition("/")[2]


def _unquoted(name: str) -> str:
    """`name` without the quotes of C that git gives to names with unusual characters."""
    if not name.startswith('"'):
        return name
    data: bytes = ast.literal_eval("b" + name)
    return data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class ScriptParts:
    """A row's script without the reset of its test files and its copy of the test patch."""

    setup: str
    """Activates the environment and installs the project."""
    tests: str
    """Runs the tests."""


def script_parts(eval_script: str) -> ScriptParts:
    """Return the parts of a row's `eval_script`; `ValueError` for one of another form.

    All 823 scripts of Verified and Lite are of this form: setup, `git checkout` of the test files,
    `git apply` of the test patch, and the tests between two markers.
    """
    reset = _TEST_PATCH.search(eval_script)
    if reset is None:
        raise ValueError("the row's eval_script does not apply its test patch as SWE-bench does")
    _, start, rest = eval_script[reset.end() :].partition(_START)
    tests, end, _ = rest.partition(_END)
    if not start or not end:
        raise ValueError("the row's eval_script has no markers around its tests")
    return ScriptParts(eval_script[: reset.start()], tests)


def guarded_script(eval_script: str, folder: str) -> str:
    """Return a script that sets up and tests; its exit code is that of the tests' last command.

    The output of the setup goes to a file in `folder`, and so do the setup's commands that fail:
    the row's script goes on after them, too. The setup runs code of the candidate: tests and runner
    configuration are written again after it, from `kept.tar` in `folder`.
    """
    parts = script_parts(eval_script)
    note = (
        'llmeval_code=$?; [ "${#BASH_SOURCE[@]}" != 1 ] || '
        f'echo "$BASH_COMMAND (exit $llmeval_code)" >>{folder}/failed'
    )
    return (
        f"trap {shlex.quote(note)} ERR\n"
        f"{{\n{parts.setup}\n}} >{folder}/setup.log 2>&1\n"
        "{ trap - ERR; } 2>/dev/null\n"
        f"{{ tar --extract --file={folder}/kept.tar --directory=/testbed; }} 2>/dev/null\n"
        f"{parts.tests}\n"
    )


def official_script(eval_script: str) -> str:
    """Return the row's script, extended to print the tests' exit code as swebench 5.0.2 does."""
    before, end, after = eval_script.partition(_END)
    if not end:
        return eval_script
    shown = f'echo ">>>>> Test Exit Code: ${_EXIT_CODE}"\n'
    return f"{before}{_EXIT_CODE}=$?\n{end}{shown}{after}"
