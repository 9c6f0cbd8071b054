"""From the output of a test run to the status of every test, by the rules of SWE-bench.

Seven parsers serve the eighteen repositories of SWE-bench, Lite and Verified; a row names its
parser by the repository's (``parse_log_flask``). The rules are those of swebench 5.0.2
(``swebench/harness/log_parsers/python.py``, MIT), held to its verdicts by recorded logs. All are
linear in the log, whatever a candidate prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion

Statuses = dict[str, str]
"""Test → the word that its line has for its status, in the order of the log.

Mostly one of ``STATUSES``; official parsers also accept a word that only begins as one, such as
``ERROR:``, which then neither passes nor fails.
"""

STATUSES = ("FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL")

_FAILED, _PASSED, _SKIPPED, _ERROR, _ = STATUSES
_SKIP_COUNT = re.compile(r"\[\d+\]")
_COLOUR = re.compile(r"\[\d+m")
_CONTROL = dict.fromkeys(range(1, 32))


def pytest_names(log: str) -> Statuses:
    """Parse a short summary of pytest; names end at their first blank."""
    statuses: Statuses = {}
    for status, words in _summary(log.split("\n")):
        statuses[words[0]] = status
    return statuses


def pytest_options(log: str) -> Statuses:
    """Parse as ``pytest_names``, a parameter that is an absolute path being its last part."""
    statuses: Statuses = {}
    for status, words in _summary(log.split("\n")):
        statuses[_without_folders(words[0])] = status
    return statuses


def pytest_mouse(log: str) -> Statuses:
    """Parse as ``pytest_names``, with the mouse buttons of newer matplotlib as numbers."""
    log = log.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3")
    return pytest_names(log)


def pytest_whole_names(log: str) -> Statuses:
    """Parse a summary of pytest with whole names, and lines of old versions that end in a status.

    Control characters and what remains of colours are left out.
    """
    statuses: Statuses = {}
    for coloured in log.split("\n"):
        line = _COLOUR.sub("", coloured).translate(_CONTROL)
        if line.startswith(STATUSES):
            if line.startswith(_FAILED):
                line = line.partition(" - ")[0]
            for status, words in _summary([line]):
                statuses[" ".join(words)] = status
        elif line.endswith(STATUSES):
            *words, status = line.split()
            if words:
                statuses[" ".join(words)] = status
    return statuses


def seaborn(log: str) -> Statuses:
    """Parse lines of pytest that begin with a status, or have PASSED behind the name."""
    statuses: Statuses = {}
    for line in log.split("\n"):
        words = line.split()
        if len(words) < 2:
            continue
        if line.startswith(_FAILED):
            statuses[words[1]] = _FAILED
        elif f" {_PASSED} " in line:
            if words[1] == _PASSED:
                statuses[words[0]] = _PASSED
        elif line.startswith(_PASSED):
            statuses[words[1]] = _PASSED
    return statuses


def sympy(log: str) -> Statuses:
    """Parse the output of ``bin/test``: ``test_name ok`` (``F``, ``E``), and titles of failures."""
    lines = log.split("\n")
    statuses = dict.fromkeys(filter(None, map(_title, lines)), _FAILED)
    ends = {" E": _ERROR, " F": _FAILED, " ok": _PASSED}
    for line in map(str.strip, lines):
        if line.startswith("test_"):
            for end, status in ends.items():
                if line.endswith(end):
                    statuses[line.split()[0]] = status
    return statuses


def django(log: str) -> Statuses:
    """Parse the output of ``runtests.py``: ``name ... ok``, and the titles of failures.

    Other output may come between ``...`` and ``ok``.
    """
    statuses: Statuses = {}
    latest = None
    for line in map(str.strip, log.split("\n")):
        if _VERSION_TEST in line:
            statuses[_VERSION_TEST] = _PASSED
        if " ... " in line:
            latest = line.partition(" ... ")[0]
        for end in (" ... ok", " ... OK", " ...  OK"):
            if line.endswith(end):
                if line.startswith(_BEHIND_MIGRATION):
                    line = line.partition("...")[2].strip()
                statuses[line.removesuffix(end)] = _PASSED
                break
        if " ... skipped" in line:
            statuses[line.partition(" ... skipped")[0]] = _SKIPPED
        for word, status in (("FAIL", _FAILED), ("ERROR", _ERROR)):
            if line.endswith(f" ... {word}"):
                statuses[line.partition(f" ... {word}")[0]] = status
            if line.startswith(f"{word}:"):
                statuses.update(dict.fromkeys(line.split()[1:2], status))
        if line.startswith("ok") and latest is not None:
            statuses[latest] = _PASSED
    return statuses | dict.fromkeys(_interrupted(log), _PASSED)


_VERSION_TEST = "--version is equivalent to version"
_BEHIND_MIGRATION = "Applying sites.0002_alter_domain_unique...test_no_migrations"

# What django prints between a test's name and its `ok`: the beginning of that message, its end, and
# where the end is: at once, at the end of the line, or on any later line.
_PRINTED_WITHIN = (
    (r"System check identified no issues \(0 silenced\)", r"\nok$", "at once"),
    (r"Internal Server Error: /", r"/\nok$", "line"),
    (r"Testing against Django installed in ", r" silenced\)\.\nok$", "later"),
)


def _interrupted(log: str) -> Iterator[str]:
    """Names of tests whose line such a message interrupts."""
    for message, end, place in _PRINTED_WITHIN:
        tail = re.compile(end, re.MULTILINE)
        position = line_end = 0
        for head in re.finditer(rf"\s\.\.\.\s{message}", log):
            if head.start() < position:
                continue
            if place == "later":
                close = tail.search(log, head.end())
                if close is None:
                    break  # nor has a later message an end
            elif place == "line":
                if (
                    0 <= line_end < head.end()
                ):  # looked up once a line, however many messages it has
                    line_end = log.find("\n", head.end())
                close = tail.match(log, line_end - 1) if line_end > head.end() else None
            else:
                close = tail.match(log, head.end())
            if close is not None:
                yield log[log.rfind("\n", position, head.start()) + 1 : head.start()]
                position = close.end()


def _summary(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Status and further words of the lines that begin with a status and go on."""
    for line in lines:
        if not line.startswith(STATUSES):
            continue
        if line.startswith(_FAILED):
            line = line.replace(" - ", " ")
        status, *words = line.split()
        # `SKIPPED [3] tests/test_a.py:5: reason` counts skipped tests and names none.
        if words and not (status == _SKIPPED and _SKIP_COUNT.fullmatch(words[0])):
            yield status, words


def _without_folders(name: str) -> str:
    start, end = name.find("["), name.rfind("]")
    if not 0 <= start < end:
        return name
    option = name[start + 1 : end]
    if option.startswith("/") and not option.startswith("//") and "*" not in option:
        option = f"/{option.rpartition('/')[2]}"
    return f"{name[:start]}[{option}]"


def _title(line: str) -> str | None:
    """``file.py:test`` of a line ``____ file.py:test ____``; None of another."""
    start, end = line.find(" ") + 1, line.rfind(" ")
    suffix = line.rfind(".py:", start, end) if start else -1
    return None if suffix < 0 else f"{line[start:suffix]}.py:{line[suffix + 4 : end]}"


Parser = Callable[[str], Statuses]

PARSERS: Mapping[str, Parser] = {
    f"parse_log_{name}": parser
    for parser, names in (
        (pytest_names, "pytest astroid flask marshmallow pvlib pyvista sqlfluff xarray"),
        (pytest_options, "pytest_options pydicom pylint requests"),
        (pytest_whole_names, "pytest_v2 astropy scikit sphinx"),
        (pytest_mouse, "matplotlib"),
        (seaborn, "seaborn"),
        (sympy, "sympy"),
        (django, "django"),
    )
    for name in names.split()
}
"""Public name → parser: those of SWE-bench, Lite and Verified, test and dev."""


def get_parser(name: str) -> Parser:
    """Return the parser of a public name; ConfigError with the nearest for an unknown one."""
    try:
        return PARSERS[name]
    except KeyError:
        raise ConfigError(f"unknown log parser {name!r}{suggestion(name, PARSERS)}") from None


_SEQUENCE = re.compile(r"\x1b\[[\d;]*m")
_PYTEST_END = re.compile(r"\d+ [a-z]+\b.* in \d[\d.]* ?s")
_DJANGO_END = re.compile(r"Ran \d+ tests? in ")


def ended(name: str, log: str) -> bool:
    """Whether a log has the last line of its runner, such as ``3 passed in 0.12s``.

    Where it is missing, the run was broken off: by the candidate's code, perhaps, after it
    printed results of its own.
    """
    parser = get_parser(name)
    if parser is sympy:
        return "tests finished:" in log
    end = _DJANGO_END if parser is django else _PYTEST_END
    return any(end.match(_SEQUENCE.sub("", line).strip("= ")) for line in log.split("\n"))
