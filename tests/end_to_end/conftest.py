"""What the end-to-end tests share: a small benchmark, scripted models, and reading a run back."""

from __future__ import annotations

import json
import os
import shutil
import textwrap
from pathlib import Path
from typing import Any

# Loaded here because pytester would load them anew for every run, which numpy does not survive.
import numpy  # noqa: F401
import pytest
import scipy.special
import scipy.stats  # noqa: F401

import pytest_llmeval.plugin.worker  # noqa: F401
from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox import sandbox_identity
from support import order_project
from support.planted_project import BIASED
from support.planted_project import PLANTED_BENCHMARK
from support.planted_project import PLANTED_MODEL

# Nine items in three subjects of unequal size; the gold answer is always B. The model knows
# every item but the first of each subject, unless a test changes `answers`.
BENCHMARK = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

SIZES = {sizes!r}

def load(data_dir):
    items = [
        Item(f"{{subject}}-{{row:04d}}", subject, f"{{subject}} question {{row}}?", 1,
             ("one", "two", "three", "four"))
        for subject, size in SIZES.items()
        for row in range(size)
    ]
    return Dataset(tuple(items))

TEMPLATE = Template(
    name="plain",
    description=lambda subject: "",
    question=lambda item: item.question,
    choices=lambda item: ("A", "B", "C", "D"),
)

BENCH = Benchmark("bench", load, (Protocol("plain", TEMPLATE, scorer="letter"),
                                  Protocol("other", TEMPLATE, scorer="cloze")))

@pytest.mark.llmeval(BENCH)
def test_bench(answer):
    assert answer.correct
"""

MODEL = """
import os
import pytest
from pytest_llmeval import Response

class Scripted:
    name = "scripted"
    fingerprint = "weights-1"
    asks = frozenset({"choices"})

    def __init__(self):
        with open("loads.txt", "a") as file:
            file.write(f"{os.getpid()} {os.environ.get('PYTEST_XDIST_WORKER', 'main')}\\n")

    def answer(self, requests):
        for request in requests:
            with open("asked.txt", "a") as file:
                file.write(f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')} {request.id}\\n")
            yield self.respond(request)

    def respond(self, request):
        wrong = request.id.endswith("-0000")
        scores = (-1.0, -2.0, -3.0, -4.0) if wrong else (-2.0, -1.0, -3.0, -4.0)
        return Response(request.id, logprobs=scores, seconds=0.01)

@pytest.fixture(scope="session")
def model():
    return Scripted()
"""


# Other plugins have no part in these tests, and hypothesis takes a second to load.
QUICK = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")


class Project:
    """A user's project in pytester's folder."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path

    def benchmark(self, text: str = "", **sizes: int) -> None:
        """Write ``test_bench.py``: the common benchmark with these subjects, and more text."""
        body = BENCHMARK.format(sizes=sizes or {"art": 2, "law": 3, "zoo": 4})
        (self.path / "test_bench.py").write_text(body + textwrap.dedent(text))

    def model(self, text: str = MODEL, respond: str | None = None) -> None:
        """Write ``conftest.py``: the scripted model, with another ``respond`` method if given."""
        if respond is not None:
            head, _, rest = text.partition("    def respond(self, request):")
            _, fixture, tail = rest.partition("@pytest.fixture")
            body = textwrap.indent(textwrap.dedent(respond).strip("\n"), "    ")
            text = f"{head}{body}\n\n{fixture}{tail}"
        (self.path / "conftest.py").write_text(text)

    def thresholds(self, text: str) -> None:
        (self.path / "thresholds.toml").write_text("version = 1\n" + textwrap.dedent(text))

    def run(self, *arguments: str | Path) -> pytest.RunResult:
        """Run pytest in this process, which is quicker (xdist's workers are processes anyway)."""
        # A file written twice within a second looks unchanged to Python's bytecode cache.
        shutil.rmtree(self.path / "__pycache__", ignore_errors=True)
        return self.pytester.runpytest_inprocess(*QUICK, *arguments)

    @property
    def requested(self) -> list[str]:
        """Item ids in the order of the model's requests."""
        file = self.path / "asked.txt"
        return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def run_folder(self) -> Path:
        """The newest run folder."""
        return sorted((self.path / "runs").glob("*/"))[-1]

    def document(self, name: str) -> dict[str, Any]:
        return json.loads((self.run_folder / name).read_text())

    def metrics(self) -> dict[str, Any]:
        """The only result of the newest run's metrics.json."""
        (result,) = self.document("metrics.json")["results"]
        return result


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """A project with the common benchmark and the scripted model."""
    made = Project(pytester)
    made.benchmark()
    made.model()
    return made


@pytest.fixture(scope="session")
def docker_sandbox() -> None:
    """Skip where there is no Docker sandbox; with LLMEVAL_REQUIRE_SANDBOX, fail."""
    try:
        sandbox_identity("docker")
    except ConfigError as error:
        if os.environ.get("LLMEVAL_REQUIRE_SANDBOX"):
            pytest.fail(f"LLMEVAL_REQUIRE_SANDBOX is set, and {error}", pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
def planted(project):
    """A function that writes a project whose model answers by the rule."""

    def write(rule: str):
        (project.path / "test_bench.py").write_text(PLANTED_BENCHMARK)
        (project.path / "conftest.py").write_text(PLANTED_MODEL.replace("RULE", rule))
        return project

    return write


@pytest.fixture
def biased(planted):
    """A model that knows the answer and likes A: 25 % as it is, all right without the bias."""

    def write(backwards: bool = False):
        project = planted("gold")
        head, _, tail = PLANTED_MODEL.partition("            chosen = ")
        _, _, tail = tail.partition("sample=request.sample)\n")
        text = head + "            " + BIASED.strip() + "\n" + tail
        if backwards:
            text = text.replace("in requests:", "in reversed(list(requests)):")
            text = text.replace("request.sample)", "request.sample, arm=request.arm)")
        (project.path / "conftest.py").write_text(text)
        return project

    return write


@pytest.fixture
def alternating(project):
    """Sixty items in three subjects, one of each after the other, as a shuffled file has them."""
    project.benchmark(art=20, law=20, zoo=20)
    file = project.path / "test_bench.py"
    text = file.read_text()
    rows = "        for subject, size in SIZES.items()\n        for row in range(size)\n"
    assert rows in text
    file.write_text(
        text.replace(
            rows, "        for row in range(max(SIZES.values()))\n        for subject in SIZES\n"
        )
    )
    return project


@pytest.fixture
def orders(project):
    """A function that writes the project and its model."""

    def write(name: str = "fresh", options: str = order_project.RANDOM, **of_model):
        (project.path / "test_bench.py").write_text(order_project.benchmark(options))
        (project.path / "conftest.py").write_text(order_project.model(name, **of_model))
        return project

    return write
