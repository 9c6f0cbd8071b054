"""The README's files run as printed, its commands exist, and it stays short."""

from __future__ import annotations

import configparser
import re
import textwrap
from pathlib import Path

import pytest

from pytest_llmeval.gates import parse_thresholds
from support.paths import REPOSITORY

README = REPOSITORY / "README.md"
TEXT = README.read_text(encoding="utf-8")
FIRST_SCREEN = "\n".join(TEXT.splitlines()[:40])
FILE = re.compile(r'^( *)```\w+ title="([^"]+)"\n(.*?)^ *```$', re.MULTILINE | re.DOTALL)
FILES = {name: textwrap.dedent(text) for _, name, text in FILE.findall(TEXT)}
PICTURE = re.compile(r'(?:srcset|src)="([^"]+)"')


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    for name, text in FILES.items():
        (pytester.path / name).write_text(text, encoding="utf-8")
    return pytester.path


def test_the_whole_readme_has_180_lines_at_most():
    assert len(TEXT.splitlines()) <= 180


def test_the_first_screen_has_the_two_commands_and_a_complete_gate():
    environments = configparser.ConfigParser()
    environments.read(REPOSITORY / "tox.ini")
    for command in ("tox -e quickstart", "tox"):
        line = rf"^python -m pip install tox && {command}  +#"
        assert re.search(line, FIRST_SCREEN, re.MULTILINE)
    assert environments.has_section("testenv:quickstart")
    assert set(FILES) == {name for _, name, _ in FILE.findall(FIRST_SCREEN)}
    lines = [line for text in FILES.values() for line in text.splitlines() if line]
    assert len(lines) <= 12


def test_the_pictures_exist_and_are_small():
    pictures = [REPOSITORY / path for path in PICTURE.findall(FIRST_SCREEN)]
    assert {picture.stem for picture in pictures} == {"report-dark", "report-light"}
    assert sum(picture.stat().st_size for picture in pictures) < 300_000


def test_the_gate_of_the_readme_is_valid_for_its_benchmark():
    gates = parse_thresholds(FILES["thresholds.toml"]).benchmarks["mmlu"]
    assert gates.accuracy is not None
    assert gates.accuracy.confidence == 0.95
    assert gates.regression is not None
    assert gates.regression.max_subject_drop == 0.05


def test_the_mmlu_test_of_the_readme_is_collected(pytester: pytest.Pytester, folder: Path):
    """Without data and network, one line reports where it was looked for."""
    # In a process of its own: `datasets`, which the search imports, can be imported only once.
    result = pytester.runpytest_subprocess(
        "test_mmlu.py", "--llm-data=.", "--llm-model=demo", "-p", "no:hypothesispytest"
    )
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line.startswith("ERROR")]
    assert "mmlu" in line


def test_options_and_links_of_the_readme_exist(pytester: pytest.Pytester):
    help_text = pytester.runpytest_inprocess("--help", "-p", "no:hypothesispytest").stdout.str()
    options = set(re.findall(r"--llm-[a-z-]+[a-z]", TEXT))
    assert options
    assert options <= set(re.findall(r"--llm-[a-z-]+[a-z]", help_text))
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", TEXT)
    assert links
    assert not [link for link in links if not (REPOSITORY / link).exists()]
