"""Every exception of the tree in ``core/errors.py`` that ends a session has its exit code."""

from __future__ import annotations

import argparse

import pytest

import pytest_llmeval.cli
from pytest_llmeval.core import LlmevalError
from support.exception_tree import exceptions_with

RAISES = """
from pytest_llmeval.testing import FakeModel
import {module}
import pytest

@pytest.fixture(scope="session")
def model():
    failure = {module}.{name}("the reason")
    return FakeModel(lambda request: (-2.0, -1.0, -3.0, -4.0), errors={{"law-0001": failure}})
"""


def where(error: type[LlmevalError]) -> dict[str, str]:
    return {"module": error.__module__, "name": error.__name__}


@pytest.mark.parametrize("error", exceptions_with("exit code 4"))
def test_a_mistake_ends_the_command_with_4(error, monkeypatch, capsys):
    def fail(options: argparse.Namespace) -> int:
        raise error("the reason")

    parsed = argparse.Namespace(command=fail)
    parser = argparse.ArgumentParser()
    monkeypatch.setattr(parser, "parse_args", lambda arguments: parsed)
    monkeypatch.setattr(pytest_llmeval.cli, "make_parser", lambda names: parser)
    assert pytest_llmeval.cli.main([]) == 4
    assert capsys.readouterr().err == "llmeval: the reason\n"


@pytest.mark.parametrize("error", exceptions_with("exit code 4"))
def test_a_mistake_ends_the_session_with_4(project, error):
    text = (project.path / "test_bench.py").read_text()
    failure = "raise {module}.{name}('the reason')".format(**where(error))
    text = text.replace(
        "    items = [", f"    import {error.__module__}\n    {failure}\n    items = ["
    )
    (project.path / "test_bench.py").write_text(text)
    result = project.run()
    assert result.ret == 4
    assert [line for line in result.errlines if "the reason" in line]


@pytest.mark.parametrize(
    "error", [*exceptions_with("exit code 1"), *exceptions_with("exit code 4")]
)
def test_no_further_item_is_answered(project, error):
    """Also after a mistake that shows only while items are answered."""
    project.model(RAISES.format(**where(error)))
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the reason*"])
    assert any("is incomplete" in line for line in result.outlines)
    metrics = project.metrics()
    counts = {name: metrics[name] for name in ("correct", "wrong", "errors", "missing")}
    assert counts == {"correct": 3, "wrong": 0, "errors": 1, "missing": 5}
