"""Answers as texts against answers as letters in one run: the table, from the session and from disk."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from types import SimpleNamespace

import numpy
import pytest

from pytest_llmeval.scorers.matched import embedding

pytest.importorskip("sentence_transformers")  # loaded before anything runs, by any embedding

# Forty items; the model answers by a text and by a letter.
BENCHMARK = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol
from pytest_llmeval.prompts.uniform_labels import DASHED, LETTERED

def load(data_dir):
    return Dataset(tuple(
        Item(f"item-{n:02d}", "all", f"Which is {n}?", n % 4, tuple(f"{n} {c}" for c in "klmn"))
        for n in range(40)
    ))

BENCH = Benchmark("both", load, (
    Protocol("matched", DASHED, scorer="matched+minilm", ask="text"),
    Protocol("lettered", LETTERED, scorer="choice", also=("mmlu_pro_official",), ask="text"),
))

@pytest.mark.llmeval(BENCH, protocol="matched")
def test_texts(answer):
    assert answer.correct

@pytest.mark.llmeval(BENCH, protocol="lettered")
def test_letters(answer):
    assert answer.correct
"""

# Of texts it knows those of even items; by letter it answers A to all.
MODEL = """
import re
import pytest
from pytest_llmeval import Response

class Both:
    name, fingerprint, asks = "both", "weights-1", frozenset({"text"})

    def answer(self, requests):
        for request in requests:
            options = re.findall(r"(?m)^(?:-|[A-D]\\.) (.*)$", request.prompt.question)
            n = int(request.id[-2:])
            text = f"{n} {'klmn'[(n + n % 2) % 4]}"
            lettered = "A." in request.prompt.question
            said = "The answer is (A)." if lettered else f"The answer is {text}."
            yield Response(request.id, text=said, sample=request.sample, finish_reason="stop",
                           prompt_tokens=10, completion_tokens=3, seconds=0.5 if lettered else 0.25)

@pytest.fixture(scope="session")
def model():
    return Both()
"""


@pytest.fixture
def both(project):
    (project.path / "test_bench.py").write_text(BENCHMARK)
    (project.path / "conftest.py").write_text(MODEL)
    return project


ROWS = [
    "both, texts against letters: 40 items, as they are and in 4 orders of 'test'",
    "matched+minilm * 0.5000 * 0.5000 * 0.00000 * 1.0000 * 0.0000 * 50.0 * 2,600",
    "choice * 0.2500 * 0.2500 * 0.15000 * 0.3750 * 0.4330 * 100.0 * 2,600",
    "variance ratio, texts over letters: 0: the texts are the steadier",
]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_table(both, workers):
    result = both.run("--llm-permutations=attack", "-n", workers, "--llm-report=markdown")
    assert result.ret == 0
    (pair,) = both.document("metrics.json")["pairs"]
    texts, letters = pair.pop("texts"), pair.pop("letters")
    assert pair == {
        "model": "both",
        "benchmark": "both",
        "items": 40,
        "arms": ["test@A", "test@B", "test@C", "test@D"],
        "variance_ratio": 0.0,
    }
    assert texts == {
        "scorer": "matched+minilm",
        "protocol": "matched",
        "accuracy": 0.5,
        "mean": 0.5,
        "variance": 0.0,
        "consistency": 1.0,
        "recall_std": 0.0,
        # 40 items, as they are and with the answer in four places.
        "seconds": pytest.approx(200 * 0.25),
        "prompt_tokens": 2000,
        "completion_tokens": 600,
    }
    # Accuracies 1/4 as they are, then 1, 0, 0, 0: their mean is 1/4.
    assert letters["variance"] == pytest.approx((0.75**2 + 3 * 0.25**2) / 5)
    assert letters["recall_std"] == pytest.approx((3 / 16) ** 0.5)
    assert (letters["accuracy"], letters["mean"]) == (0.25, 0.25)
    # What stands at A is the answer once, else what stood there: three equal pairs of six. Where
    # that was the answer, another option comes there each time.
    assert letters["consistency"] == 3 / 4 * 3 / 6
    assert letters["seconds"] == pytest.approx(200 * 0.5)
    result.stdout.fnmatch_lines(ROWS)
    shown = both.pytester.run("llmeval", "show", str(both.run_folder))
    shown.stdout.fnmatch_lines(ROWS)
    markdown = (both.run_folder / "report.md").read_text()
    assert "| `choice` | 0.2500 | 0.2500 | 0.15000 | 0.3750 | 0.4330 | 100.0 | 2,600 |" in markdown


def test_the_page_shows_texts_and_letters(both):
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    both.run("--llm-permutations=attack", "--llm-report=html")
    page = (both.run_folder / "report.html").read_text()
    assert "texts against letters: 40 items" in page
    assert '<td class="num">0.4330</td>' in page


@pytest.mark.parametrize(
    "arguments",
    [
        (),  # no other orders
        ("--llm-permutations=attack", "-k", "texts or 00"),  # other items
        ("--llm-permutations=attack", "-k", "texts"),  # one of them alone
    ],
)
def test_unlike_things_are_not_compared(both, arguments):
    both.run(*arguments)
    assert "pairs" not in both.document("metrics.json")


def test_a_stored_run_has_the_results_of_its_session(both):
    both.run("--llm-permutations=cyclic")
    document = both.document("metrics.json")
    (pair,) = document["pairs"]
    # Rotations: A is right of one in four, whatever the order.
    assert (pair["letters"]["variance"], pair["variance_ratio"]) == (0.0, None)
    (both.run_folder / "metrics.json").unlink()
    exported = both.pytester.run("llmeval", "report", str(both.run_folder), "--format", "markdown")
    assert exported.ret == 0
    assert "that of the letters is 0" in (both.run_folder / "report.md").read_text()
    assert json.loads(json.dumps(pair)) == pair


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra bias")
def test_embedding_is_part_of_the_cost(both, monkeypatch):
    clock = count()
    scorer = import_module("pytest_llmeval.scorers.matched")  # the package has its function there
    monkeypatch.setattr(scorer, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    embed = embedding.Embedder(lambda texts: numpy.eye(len(texts), 8), "planted")
    monkeypatch.setattr(scorer, "load_embedder", lambda _: embed)
    (both.path / "conftest.py").write_text(MODEL.replace("{text}.", "number {text} I think."))
    both.run("-k", "texts and 07", "--llm-allow-undecided")
    (record,) = map(json.loads, (both.run_folder / "records.jsonl").read_text().splitlines())
    # A quarter of a second for the model, one tick of the clock for the one batch.
    assert record["seconds"] == 1.25
