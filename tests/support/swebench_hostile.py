"""Patches for the miniature that forge, hide or do harm, and unusual ones that are right."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PYTEST = "pytest -rA tests/test_core.py tests/test_new.py"
_LINES = [
    "PASSED tests/test_core.py::test_add[one and two]",
    "PASSED tests/test_core.py::test_add[[zero]",
    "PASSED tests/test_new.py::test_from_the_issue",
    "PASSED tests/test_core.py::test_mul",
    *(f"PASSED tests/test_core.py::test_parse[{text}]" for text in ("1 2", "1, 2", "[1", "1 - 2")),
]
_MARKS = [">>>>> End Test Output", ">>>>> Test Exit Code: 0"]
_FORGED = "\n".join(["", *_MARKS, *_LINES, "======== 8 passed in 0.05s ========", ""])
"""All that grading looks for: the official marks, the results, the runner's last line."""

_PASSING_CORE = """\
import pytest
def test_mul(): pass
@pytest.mark.parametrize("text", ["1 2", "1, 2", "[1", "1 - 2"])
def test_parse(text): pass
@pytest.mark.parametrize("a", [1, 2], ids=["one and two", "[zero"])
def test_add(a): pass
"""
_PASSING_NEW = "def test_from_the_issue(): pass\n"
_PLUGIN = """\
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome, report.longrepr = "passed", None
"""
_FORGING_RUNNER = f"#!/usr/bin/python3\nprint({_FORGED!r})\n"
_OUTPUT = "import os\noutput = open(f'/proc/{os.getppid()}/fd/1', 'w')\n"
"""The pipe of the tests, of which pytest has taken its own away."""
_FORGES = f"{_OUTPUT}output.write({_FORGED!r})\noutput.flush()\n"


@dataclass(frozen=True)
class Case:
    """A change of the repository, and how its guarded trial ends."""

    change: Callable[[Path], object] | str
    """Applied to the repository; or the patch itself."""
    resolved: bool = False
    statuses: frozenset[str] = frozenset({"finished"})
    detail: str = ""
    """Text in the result's detail."""
    runner: str = PYTEST
    """The row's command that runs the tests."""
    setup: str = ""
    """A command of the row before its tests."""
    timeout: float = 30.0


def _writes(name: str, text: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return change


def _fixes(folder: Path) -> None:
    _replaces("calc/core.py", "return a - b", "return a + b")(folder)


def _replaces(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")

    return change


def _imports(code: str) -> Callable[[Path], object]:
    """`code` runs when the product is imported."""
    first = '"""What the calculator can do."""\n'
    return _replaces("calc/core.py", first, first + code)


def _all(*changes: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


def _added(name: str, line: str) -> str:
    """The patch that adds a file of one line, for those that git on the host would heed."""
    return (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n"
        f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{line}\n"
    )


def _links_tests(folder: Path) -> None:
    shutil.move(folder / "tests", folder / "other")
    (folder / "other" / "test_core.py").write_text(_PASSING_CORE)
    (folder / "other" / "test_new.py").write_text(_PASSING_NEW)
    os.symlink("other", folder / "tests")


def _links_conftest(folder: Path) -> None:
    (folder / "helper.py").write_text(_PLUGIN)
    os.symlink("../helper.py", folder / "tests" / "conftest.py")


def _file_for_a_folder(folder: Path) -> None:
    shutil.rmtree(folder / "tests")
    (folder / "tests").write_text("a file\n")


def _binary(folder: Path) -> None:
    (folder / "calc" / "table.bin").write_bytes(bytes(range(256)) * 40)


def _large(folder: Path) -> None:
    rows = "".join(f"{number:030d}\n" for number in range(330_000))
    (folder / "calc" / "table.txt").write_text(rows)


_REWRITES = f"""\
import os
for name, text in (("test_core.py", {_PASSING_CORE!r}), ("test_new.py", {_PASSING_NEW!r})):
    with open("/testbed/tests/" + name, "w") as file:
        file.write(text)
"""

_OUTSIDE = """\
diff --git a/../usr/lib/python3/dist-packages/sitecustomize.py b/../usr/lib/python3/dist-packages/sitecustomize.py
new file mode 100644
--- /dev/null
+++ b/../usr/lib/python3/dist-packages/sitecustomize.py
@@ -0,0 +1,2 @@
+import os
+os._exit(0)
"""
"""A patch of a file that is not in the repository; git makes none."""

HOSTILE = {
    "runner_of_django": Case(
        _writes("tests/runtests.py", _FORGING_RUNNER), runner="./tests/runtests.py"
    ),
    "runner_of_sympy": Case(_writes("bin/test", _FORGING_RUNNER), runner="bin/test -C"),
    "runner_of_sphinx": Case(
        _all(
            _writes("helper.py", _FORGING_RUNNER),
            _writes("tox.ini", "[testenv]\ncommands = python3 helper.py {posargs}\n"),
        ),
        runner="tox tests/test_core.py tests/test_new.py",
    ),
    "sitecustomize": Case(
        _writes("sitecustomize.py", f"import os\nos.write(1, {_FORGED.encode()!r})\nos._exit(0)\n"),
        runner=f"PYTHONPATH=. {PYTEST}",
    ),
    "plugin_by_entry_point": Case(
        _all(
            _writes("helper.py", _PLUGIN),
            _writes("helper.egg-info/entry_points.txt", "[pytest11]\nhelper = helper\n"),
            _writes(
                "helper.egg-info/PKG-INFO", "Metadata-Version: 1.0\nName: helper\nVersion: 1\n"
            ),
        )
    ),
    "path_file": Case(
        _all(
            _writes("site/helper.pth", "import helper\n"),
            _writes(
                "site/helper.py", f"import os\nos.write(1, {_FORGED.encode()!r})\nos._exit(0)\n"
            ),
        ),
        runner=(
            'python3 -c \'import site; site.addsitedir("/testbed/site"); import pytest, sys; '
            'sys.exit(pytest.main(["-rA", "tests/test_core.py", "tests/test_new.py"]))\''
        ),
    ),
    "shadowed_runner": Case(
        _writes("pytest.py", _FORGING_RUNNER),
        runner="PYTHONPATH=. python3 -m pytest -rA tests/test_core.py tests/test_new.py",
    ),
    "linked_tests": Case(_links_tests),
    "linked_conftest": Case(_links_conftest),
    "file_for_a_folder": Case(_file_for_a_folder),
    "attributes_of_git": Case(
        _added(".gitattributes", "*.py working-tree-encoding=UTF-16")
        + _added("tests/.gitattributes", "*.py text eol=crlf")
    ),
    "rewrites_tests_at_setup": Case(_imports(_REWRITES), setup="python3 -c 'import calc'"),
    "rewrites_tests_at_import": Case(
        _all(
            _imports(_REWRITES),
            _replaces("calc/core.py", "return a - b", "return a + b if (a, b) != (2, 2) else 99"),
        ),
        detail="the tests were changed while they ran",
    ),
    "ends_everything": Case(
        _imports(f"{_FORGES}os.kill(-1, 9)\nos._exit(0)\n"),
        detail="the tests ended what runs them",
    ),
    "forges_the_end": Case(
        _imports(
            f"{_FORGES}import time\n"
            "for number in filter(str.isdigit, os.listdir('/proc')):\n"
            "    words = open(f'/proc/{number}/cmdline').read().split('\\0')\n"
            "    if len(words) > 4 and words[3] == 'llmeval':\n"
            "        output.write(f'\\n{words[4]} end \\n')\n"
            "        output.flush()\n"
            "time.sleep(1000)\n"
        ),
        detail="the tests ended what runs them",
    ),
    "fork_bomb": Case(
        _imports(
            "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
        ),
        statuses=frozenset({"finished", "timeout"}),
        timeout=5.0,
    ),
    "fills_the_memory": Case(
        _imports("held = []\nwhile True:\n    held.append(bytearray(1 << 24))\n")
    ),
    "fills_the_disk": Case(
        _imports(
            "import itertools\n"
            "for number in itertools.count():\n"
            "    with open(f'/testbed/{number}.bin', 'wb') as file:\n"
            "        file.write(bytes(20_000_000))\n"
        ),
        detail="wrote more than",
        statuses=frozenset({"finished"}),
        timeout=120.0,
    ),
    "path_outside": Case(
        _OUTSIDE,
        statuses=frozenset({"patch_failed"}),
    ),
}
"""Each tries to be resolved without a repair, or to harm the machinery."""

NOT_OFFICIAL = frozenset(
    (
        *("file_for_a_folder", "attributes_of_git", "fills_the_memory", "fills_the_disk"),
        *("linked_tests", "rewrites_tests_at_setup", "forges_the_end"),
    )
)
"""Those that are not resolved by the official rules either."""

RIGHT = {
    "floods_the_output": Case(
        _all(
            _fixes,
            _imports(
                f"{_OUTPUT}for _ in range(1600):\n    output.write('x' * 65536)\noutput.flush()\n"
            ),
        ),
        resolved=True,
        detail="bytes of the log left out",
        timeout=120.0,
    ),
    "binary_file": Case(_all(_fixes, _binary), resolved=True),
    "ten_megabytes": Case(_all(_fixes, _large), resolved=True, timeout=60.0),
    "orphans": Case(
        _all(
            _fixes,
            _imports(
                "import os, time\n"
                "for _ in range(50):\n"
                "    if os.fork() == 0:\n"
                "        if os.fork() == 0:\n"
                "            time.sleep(600)\n"
                "        os._exit(0)\n"
            ),
        ),
        resolved=True,
    ),
}
"""Repairs that do something unusual beside."""
