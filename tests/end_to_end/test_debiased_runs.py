"""Results without the model's preference for positions: ``--llm-debias``."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec

import numpy
import pytest

from pytest_llmeval.core import ModelError
from support.planted_project import BLUE
from support.planted_project import FUNCTION
from support.planted_project import PLANTED_BENCHMARK
from support.planted_project import TWICE

DEBIASED = ("--llm-permutations=cyclic", "--llm-debias=cyclic,pride,batch")


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("backwards", [False, True])
def test_debiasing_removes_a_preference(biased, workers, backwards):
    """In whatever order the answers come."""
    project = biased(backwards)
    assert project.run(*DEBIASED, "-n", workers).ret == 0
    results = {result["scorer"]: result for result in project.document("metrics.json")["results"]}
    accuracies = {scorer: result["accuracy"] for scorer, result in results.items()}
    assert accuracies == {
        "letter": 0.25,
        "letter+cyclic": 1.0,
        "letter+pride": 1.0,
        "letter+batch": 1.0,
    }
    fingerprints = {result["protocol_fingerprint"] for result in results.values()}
    assert len(fingerprints) == 4
    again = project.pytester.run("llmeval", "show", str(project.run_folder))
    again.stdout.fnmatch_lines(["planted?letter+pri* 40 * 1.0000 *"])


def test_a_batch_is_of_the_answers_in_the_original_order(biased):
    """An attack shows some orders again with other shots."""
    project = biased(backwards=True)
    assert project.run("--llm-permutations=attack", "--llm-debias=batch").ret == 0
    results = {result["scorer"]: result for result in project.document("metrics.json")["results"]}
    assert results["letter+batch"]["accuracy"] == 1.0


def test_a_debiased_result_is_reported_and_may_be_a_baseline(biased):
    project = biased()
    assert project.run(*DEBIASED, "--llm-report=html,json").ret == 0
    assert (project.run_folder / "report.html").read_text().count("letter+pride") > 0
    run = str(project.run_folder)
    assert project.pytester.run("llmeval", "baseline", run, "last").ret == 0
    compared = project.pytester.run("llmeval", "compare", "last", run, "--format=json")
    (pride,) = (
        comparison
        for comparison in json.loads(compared.stdout.str())["comparisons"]
        if comparison["scorer"] == "letter+pride"
    )
    assert (pride["overall"]["items"], pride["overall"]["baseline"]) == (40, 1.0)
    project.thresholds("[benchmarks.planted.scorers.'letter+pride'.regression]\nmax_drop = 0.01")
    assert project.run(*DEBIASED, "--llm-baseline=last").ret == 0


def test_items_with_other_numbers_of_options_are_left_unchanged_with_a_note(biased):
    project = biased()
    text = (project.path / "test_bench.py").read_text()
    sizes = "range({7: 5, 8: 3}.get(number, 4))"
    text = text.replace("range(4))\n    return", f"{sizes})\n    return", 1)
    text = text.replace("number % 4, options)", "number % 3, options)")
    (project.path / "test_bench.py").write_text(text)
    text = (project.path / "conftest.py").read_text()
    text = text.replace("[A-D]", "[A-E]").replace("% 4}", "% 3}").replace("% 4)", "% 3)")
    (project.path / "conftest.py").write_text(text.replace("[0.0] * 4", "[0.0] * len(options)"))
    result = project.run(*DEBIASED)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["planted?letter+pride?: 1 of 40 items are not debiased*"])
    results = {result["scorer"]: result for result in project.document("metrics.json")["results"]}
    # Item 7, of five options in four orders, is left with its bias: its answer is at B.
    assert results["letter+pride"]["accuracy"] == 39 / 40
    assert project.run("--llm-permutations=full", "--llm-debias=pride").ret == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--llm-debias=prid"], "*unknown 'prid'*'pride'*"),
        (["--llm-debias=pride"], "*add --llm-permutations cyclic*"),
    ],
)
def test_mistakes_about_debiasing(planted, arguments, message):
    result = planted("gold").run(*arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra bias")
def test_a_scorer_without_its_model_ends_the_run_and_keeps_the_answers(project, monkeypatch):
    (project.path / "test_bench.py").write_text(TWICE)
    (project.path / "conftest.py").write_text(BLUE.replace('"blue"', '"azure"'))

    def missing(name):
        raise ModelError(f"embeddings by {name}: no such thing")

    scorer = import_module("pytest_llmeval.scorers.matched")  # the package has its function there
    monkeypatch.setattr(scorer, "load_embedder", missing)
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*scorer matched: embeddings by Qwen/*: no such thing*"])
    assert len(project.requested) == 1
    monkeypatch.setattr(
        scorer, "load_embedder", lambda _: lambda texts: numpy.ones((len(texts), 2))
    )
    assert project.run("--llm-resume").ret == 0
    assert project.metrics()["answered"] == 20
    assert len(project.requested) == 20


def test_results_that_cannot_be_debiased_are_reported(planted):
    project = planted("gold")
    (project.path / "conftest.py").write_text(FUNCTION)
    result = project.run("--llm-debias=batch")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["planted?letter+batch? is not computed: *"])
    (project.path / "test_bench.py").write_text(
        PLANTED_BENCHMARK.replace("number % 4, options)", "options[0])")
        .replace('"letter"', '"contains"')
        .replace("shots=2", "ask='text'")
    )
    (project.path / "conftest.py").write_text(BLUE)
    result = project.run("--llm-permutations=cyclic")
    result.stdout.fnmatch_lines(
        ["--llm-permutations: no effect, because no benchmark of this run has options"]
    )
