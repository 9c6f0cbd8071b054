"""Every command of the documentation runs as printed, or is marked as needing what is not here.

A page is a script: its files are written, its commands run, in their order, in an empty folder. A
comment before a block says what is special about it: ``needs`` (it is not run), ``extra`` (a library
it takes), ``exit`` (its exit code); at the top of a page ``files`` names the page whose files it
goes on with, and ``logs`` the harness whose logs are there. In expected output ``…`` stands for anything.

The demo model takes a minute, so a quick one stands in for it, and numbers are not looked at. With
LLMEVAL_DOCS_LITERAL=1 (``tox -e docs``) it is the demo model, and they are.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_llmeval.catalog import starter
from pytest_llmeval.cli import main
from pytest_llmeval.cli import make_parser
from pytest_llmeval.core.prices import load_prices
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.models import demo
from pytest_llmeval.testing import FakeModel
from support.foreign_logs import page_logs
from support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
TUTORIAL = "tutorial.md"
LITERAL = os.environ.get("LLMEVAL_DOCS_LITERAL") == "1"

BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^>\n]*) -->\n)?"
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
LOGS = re.compile(r"^<!-- logs: (\S+) -->$", re.MULTILINE)
GOES_ON = re.compile(r"^<!-- files: (\S+) -->$", re.MULTILINE)
NEEDS = {"network", "gpu", "docker"}
COMMAND = re.compile(r"^\s*(?:\$ |pip |python -m |pytest |llmeval |tox |docker )", re.MULTILINE)


# Right on about as many questions as the demo model, with the same weakest subject.
def stand_in(rest: str) -> FakeModel:
    data = starter().source(None)
    sizes = data.subject_sizes()
    answers = {}
    for item in data.items:
        correct = 17 if item.subject == "animals" else 0.7 * sizes[item.subject]
        wrong = (item.gold + 1) % len(item.options)
        chosen = item.gold if int(item.id[-4:]) < correct else wrong
        answers[item.id] = [-1.0 if n == chosen else -9.0 - n for n in range(len(item.options))]
    return FakeModel(answers, name="demo", asks=["choices"])


class Block(NamedTuple):
    page: str
    mark: str
    language: str
    title: str | None
    text: str

    @property
    def needs(self) -> set[str]:
        kind, _, names = self.mark.partition(": ")
        return set(names.split(", ")) if kind == "needs" else set()

    @property
    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Every command with the lines expected of it."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            yield command, lines


def blocks(page: str) -> list[Block]:
    return [
        Block(page, match["mark"] or "", match["language"], match["title"], match["text"])
        for match in BLOCK.finditer((DOCS / page).read_text(encoding="utf-8"))
    ]


ALL = [block for page in PAGES for block in blocks(page)]
RUN = sorted({block.page for block in ALL if block.language == "console" and not block.needs})


def test_there_is_something_to_run():
    assert {TUTORIAL, "howto/own-benchmark.md", "howto/sharding.md"} <= set(RUN)


class Shell:
    """Runs the commands of a page in pytester's folder, in this process."""

    def __init__(self, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
        self.pytester = pytester
        self.capsys = capsys

    def run(self, command: str) -> tuple[int, list[str]]:
        program, *words = [part for word in shlex.split(command) for part in self.expand(word)]
        if program == "cat":
            return 0, Path(*words).read_text().splitlines()
        if program == "llmeval":
            self.capsys.readouterr()
            code = main(words)
            out, err = self.capsys.readouterr()
            return code, [*out.splitlines(), *err.splitlines()]
        assert program == "pytest", f"mark this block with what it needs: {command}"
        # A file written twice within a second looks unchanged to Python's bytecode cache.
        shutil.rmtree(self.pytester.path / "__pycache__", ignore_errors=True)
        quick = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
        result = self.pytester.runpytest_inprocess(*quick, *words)
        return int(result.ret), [*result.outlines, *result.errlines]

    def expand(self, word: str) -> list[str]:
        if "*" not in word:
            return [word]
        # As a shell does, without hidden files.
        paths = sorted(str(path) for path in Path().glob(word) if not path.name.startswith("."))
        assert paths, f"nothing is called {word}"
        return paths


def pattern(line: str) -> re.Pattern[str]:
    """What a printed line must look like."""
    parts = []
    for part in re.split(r"(=+…|…|\s+|[-+]?\d[\d.,]*)", line):
        number = re.fullmatch(r"[-+]?\d[\d.,]*", part) and not LITERAL
        if part == "…":
            parts.append(".*")
        elif part.endswith("…"):  # pytest's last line is as wide as the terminal
            parts.append("=+")
        elif part.isspace():
            parts.append(r"\s+")
        else:
            parts.append(r"[-+]?\d[\d.,]*" if number else re.escape(part))
    return re.compile("".join(parts))


def check(command: str, expected: list[str], printed: list[str]) -> None:
    """Every expected line is printed, in this order."""
    rest = iter(printed)
    for line in expected:
        if line.strip() == "…":
            continue
        assert any(
            pattern(line.rstrip()).fullmatch(output_line.rstrip()) for output_line in rest
        ), f"{command}: no line like {line!r} in its place in\n" + "\n".join(printed)


@pytest.fixture
def folder(pytester, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(pytester.path)
    if not LITERAL:
        monkeypatch.setattr(demo, "open_model", stand_in)
    return pytester.path


@pytest.mark.parametrize("page", [page for page in RUN if page != TUTORIAL])
def test_a_page_runs_as_printed(page, folder, pytester, capsys):
    follow(page, Shell(pytester, capsys))
    for records in Path("runs").glob("*/records.jsonl"):
        ties = [json.loads(line).get("tie") for line in records.read_text().splitlines()]
        assert not ties or not all(ties), "the page's model does not distinguish any options"


def follow(page: str, shell: Shell) -> None:
    """Write the page's files and run its commands, in their order."""
    for harness in LOGS.findall((DOCS / page).read_text()):
        page_logs(harness)
    before = [
        block
        for other in GOES_ON.findall((DOCS / page).read_text())
        for block in blocks((Path(page).parent / other).as_posix())
        if block.title
    ]
    for block in (*before, *blocks(page)):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "console" and not block.needs:
            kind, _, value = block.mark.partition(": ")
            if kind == "extra" and importlib.util.find_spec(value) is None:
                continue
            *_, last = [command for command, _ in block.commands]
            for command, expected in block.commands:
                code, printed = shell.run(command)
                check(command, expected, printed)
                wanted = int(value) if kind == "exit" and command == last else 0
                assert code == wanted, "\n".join(printed)


def test_the_tutorial_has_the_printed_result(folder, pytester, capsys):
    """Followed literally, it leaves the files that it names and no others, and gates that pass."""
    follow(TUTORIAL, Shell(pytester, capsys))
    _, _, end = (DOCS / TUTORIAL).read_text().partition("## What you have now")
    listed = set(re.findall(r"^- `([^`]+)`", end, re.MULTILINE))
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    made = [file for file in files if file.suffix != ".pyc"]
    assert {"runs" if file.parts[0] == "runs" else file.as_posix() for file in made} == listed
    assert main(["gate", *map(str, Path("runs").glob("*/"))]) == 0


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.page)
def test_a_block_runs_as_printed(block):
    """Marks are known; commands are in blocks that are run or marked; files can be read."""
    kind = block.mark.partition(": ")[0]
    assert kind in ("", "needs", "exit", "extra", "files", "logs")
    assert block.needs <= NEEDS
    if block.language == "console":
        assert list(block.commands)
    elif block.language in ("", "text"):
        assert not COMMAND.search(block.text), "a command outside of a console block"
    elif block.language == "python":
        compile(block.text, block.page, "exec")
    elif block.language == "toml" and "currency" not in block.text:
        parse_thresholds(block.text)
    elif block.language == "yaml":
        yaml = pytest.importorskip("yaml", reason="PyYAML reads workflows")
        yaml.safe_load(block.text)
        assert block.needs or "run:" not in block.text


def test_prices_can_be_read(tmp_path):
    for block in ALL:
        if block.title == "prices.toml":
            (tmp_path / block.title).write_text(block.text)
            assert load_prices(tmp_path / block.title).models


def test_options_and_commands_that_are_named_exist(pytester):
    """Also those in sentences, in workflows, and in commands that are not run here."""
    help_text = pytester.runpytest_inprocess("--help", "-p", "no:hypothesispytest").stdout.str()
    options = set(re.findall(r"--llm-[a-z-]+[a-z]", help_text))
    (commands,) = [action.choices for action in make_parser()._actions if action.choices]
    for page in PAGES:
        if page == "decisions.md":
            continue  # what was decided then is not what is so now
        text = (DOCS / page).read_text()
        assert set(re.findall(r"--llm-[a-z-]+[a-z]", text)) <= options, page
        assert set(re.findall(r"^\$ llmeval ([a-z]+)", text, re.MULTILINE)) <= set(commands)


def test_links_between_pages_lead_somewhere():
    """`mkdocs build --strict` sees this too, but is run more seldom."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", (DOCS / page).read_text()):
            assert (DOCS / page).parent.joinpath(target).resolve().is_file(), (page, target)
