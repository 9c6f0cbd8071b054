"""Replies of 150,000 characters in failed assertions: seconds, not the minutes of a whole diff."""

from __future__ import annotations

import pytest

LONG = """
import pytest

LONG = " ".join(f"word{n}" for n in range(17_000))

@pytest.fixture(scope="session")
def model():
    def long(prompt):
        return LONG
    return long
"""

TEST = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

KINDS = ("equal", "changed", "lines", "absent", "present", "list", "set", "dict", "bytes", "start")
LONG = " ".join(f"word{n}" for n in range(17_000))

def load(data_dir):
    return Dataset(tuple(Item(kind, "s", kind, "B") for kind in KINDS))

TEMPLATE = Template("t", description=lambda subject: "", question=lambda item: item.question,
                    choices=lambda item: ())
BENCH = Benchmark("bench", load, (Protocol("plain", TEMPLATE, scorer="exact_match", ask="text"),))

@pytest.mark.llmeval(BENCH)
def test_bench(answer, item):
    other = LONG[::-1]
    if item.id == "equal":
        assert answer.text == "B"
    if item.id == "changed":
        assert answer.text == LONG[:75_000] + "!" + LONG[75_001:]
    if item.id == "lines":
        assert answer.text.replace(" ", "\\n") == other.replace(" ", "\\n")
    if item.id == "absent":
        assert "nowhere" in answer.text
    if item.id == "present":
        assert "word500" not in answer.text
    if item.id == "list":
        assert answer.text.split() == other.split()
    if item.id == "set":
        assert set(answer.text.split()) == set(other.split())
    if item.id == "dict":
        assert dict.fromkeys(answer.text.split()) == dict.fromkeys(other.split())
    if item.id == "bytes":
        assert answer.text.encode() == other.encode()
    if item.id == "start":
        assert answer.text.startswith("nothing")

def test_ordinary():
    assert "a\\nb\\n" == "a\\nc\\n"
"""


@pytest.mark.parametrize("wrong", ["fail", "record"])
def test_long_replies_are_shown_in_part(project, wrong):
    (project.path / "conftest.py").write_text(LONG)
    (project.path / "test_bench.py").write_text(TEST)
    result = project.run("-vv", f"--llm-wrong={wrong}", "--junitxml=junit.xml")
    assert result.ret == 1
    assert project.metrics()["correct"] == 0
    output = result.stdout.str()
    assert len(output) < 500_000
    # An ordinary test has its diff.
    assert "- c" in output
    assert "+ b" in output
    if wrong == "fail":
        assert "the first difference is at character 75,000" in output
        assert "assert 'word500' not in …'" in output
