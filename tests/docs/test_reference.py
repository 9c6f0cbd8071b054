"""The generated reference names everything that the code has."""

from __future__ import annotations

import importlib.util
import re

import pytest

from pytest_llmeval import catalog
from pytest_llmeval import metrics
from pytest_llmeval.gates import thresholds
from pytest_llmeval.reports.export import COLUMNS
from pytest_llmeval.scorers import SCORERS
from support.paths import REPOSITORY

SCRIPT = REPOSITORY / "docs" / "generate.py"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


def headings(text: str) -> set[str]:
    return set(re.findall(r"^#+ (.+)$", text, re.MULTILINE))


def test_the_repository_has_a_page_where_the_site_has_a_generated_one(pages):
    """So that links to it work in both."""
    committed = {path.name: path.read_text() for path in SCRIPT.with_name("reference").iterdir()}
    assert committed.keys() == pages.keys()
    for name, text in committed.items():
        assert text.splitlines()[0] == pages[name].splitlines()[0]


def test_every_benchmark_with_its_protocols(pages):
    for name in catalog.NAMES:
        names = [protocol.name for protocol in getattr(catalog, name)().protocols]
        assert {name, *names} <= headings(pages["benchmarks.md"])


def test_every_scorer_metric_and_column(pages):
    assert set(SCORERS) <= headings(pages["scorers.md"])
    functions = {name for name in metrics.__all__ if name.islower()}
    assert functions <= headings(pages["metrics.md"])
    for column in COLUMNS:
        assert f"| `{column.name}` | `{column.type}` |" in pages["data.md"]


def test_every_key_of_a_thresholds_file_with_its_range(pages):
    text = pages["thresholds.md"]
    for model in (thresholds.BenchmarkGates, thresholds.SubjectGates, thresholds.RegressionGates):
        for key in model.model_fields:
            assert f"| `{key}` |" in text
    assert "| `normalized_gain` | bound; a number is its `min` | -1 to 1 |" in text
    assert "| `truncated_rate` | bound; a number is its `max` | 0 to 1 |" in text
    assert "| `alpha` | number | between 0 and 1 |" in text


def test_every_option_and_command(pages, pytester):
    told = pytester.runpytest_inprocess("--help", "-p", "no:hypothesispytest").stdout.str()
    for option in set(re.findall(r"^ +(--llm-[a-z-]+)", told, re.MULTILINE)):
        assert f"| `{option}" in pages["options.md"]
    assert {"gate", "compare", "export", "history", "init", "sandbox build"} <= headings(
        pages["commands.md"]
    )
    assert pages["commands.md"].count("usage: llmeval ") == len(headings(pages["commands.md"])) - 1


def test_markup_of_docstrings_does_not_act(pages):
    """Outside of code there is no HTML and no accidental emphasis."""
    for text in pages.values():
        bare = re.sub(r"~~~~.*?~~~~|`[^`\n]*`", "", text, flags=re.DOTALL)
        assert not re.search(r"<\w", bare)
