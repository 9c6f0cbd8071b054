"""The generated reference names everything that the code has."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import tomllib
import warnings
from types import ModuleType

import pytest

from pytest_llmeval import catalog
from pytest_llmeval import metrics
from pytest_llmeval.gates import thresholds
from pytest_llmeval.reports.export import COLUMNS
from pytest_llmeval.scorers import SCORERS
from support.paths import DATA
from support.paths import REPOSITORY

SCRIPT = REPOSITORY / "docs" / "generate.py"
FACTS = tomllib.loads((REPOSITORY / "docs" / "benchmarks.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(script: ModuleType) -> dict[str, str]:
    return script.pages()


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


def test_every_benchmark_has_a_row_of_facts(pages):
    assert set(FACTS) == set(catalog.NAMES)
    for name in catalog.NAMES:
        (row,) = [line for line in pages["catalog.md"].splitlines() if f"[`{name}`]" in line]
        for protocol in getattr(catalog, name)().protocols:
            assert f"`{protocol.name.removesuffix('_greedy')}`" in row
        assert f"), {FACTS[name]['paper']} | {FACTS[name]['items']:,}" in row
        assert row.endswith(f" | {FACTS[name]['licence']} |")


# The local copy of HellaSwag is a sample, INCLUDE is not among the files, and test_catalog_swebench.py
# counts the rows of SWE-bench, which are in another folder.
@pytest.mark.parametrize(
    "name",
    sorted({*catalog.NAMES} - {"hellaswag", "include", "swebench_lite", "swebench_verified"}),
)
def test_the_sizes_are_those_of_the_data(name):
    if name not in ("starter", "nonsenseqa") and not (DATA / "mmlu").is_dir():
        pytest.skip(f"no public data: {DATA}/mmlu does not exist (set LLMEVAL_DATA)")
    with warnings.catch_warnings(action="ignore"):
        dataset = getattr(catalog, name)().source(DATA)
    assert len(dataset.items) == FACTS[name]["items"]
    assert len(dataset.subject_sizes()) == FACTS[name]["subjects"]


def test_every_module_of_the_python_reference_documents_its_public_names(pages, script):
    listed = set(re.findall(r"^::: \S+\.(\w+)$", pages["api.md"], re.MULTILINE))
    listed |= set(re.findall(r"`(\w+)`", pages["api.md"]))
    for name in script.API:
        module = importlib.import_module(name)
        assert set(module.__all__) <= listed
        values = [getattr(module, public_name) for public_name in module.__all__]
        own = [value for value in values if inspect.isclass(value) or inspect.isfunction(value)]
        assert own or name == "pytest_llmeval.prompts"
        assert not [value for value in own if not (value.__doc__ or "").strip()]


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
    help_text = pytester.runpytest_inprocess("--help", "-p", "no:hypothesispytest").stdout.str()
    for option in set(re.findall(r"^ +(--llm-[a-z-]+)", help_text, re.MULTILINE)):
        assert f"| `{option}" in pages["options.md"]
    assert {"gate", "compare", "export", "history", "init", "sandbox build"} <= headings(
        pages["commands.md"]
    )
    assert pages["commands.md"].count("usage: llmeval ") == len(headings(pages["commands.md"])) - 1


def test_markup_of_docstrings_does_not_act(pages):
    """Outside of code there is no HTML and no accidental emphasis."""
    for name, text in pages.items():
        if name == "api.md":
            continue  # rendered by mkdocstrings
        bare = re.sub(r"~~~~.*?~~~~|`[^`\n]*`", "", text, flags=re.DOTALL)
        assert not re.search(r"<\w", bare)
