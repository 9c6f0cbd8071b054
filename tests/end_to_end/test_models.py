"""The model is a fixture: a spec, several specs, an object, or a plain function."""

from __future__ import annotations

import json

import pytest

from pytest_llmeval.runs import load_run

FUNCTION = """
import pytest

def my_system(prompt):
    assert prompt.endswith("?")
    {body}

@pytest.fixture(scope="session")
def model():
    return my_system
"""


def test_a_plain_function_is_a_text_model(project):
    project.model(FUNCTION.format(body="return 'The answer is B.'"))
    project.thresholds("[benchmarks.bench]\naccuracy = 0.9")
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["PASS bench::accuracy: 1.0000*", "bench?choice?*9*1.0000*"])
    metrics = project.metrics()
    assert (metrics["scorer"], metrics["correct"], metrics["model"]) == ("choice", 9, "my_system")


def test_a_gate_for_another_scorer_is_not_met_by_it(project):
    project.model(FUNCTION.format(body="return 'B'"))
    project.thresholds("[benchmarks.bench.scorers.letter]\naccuracy = 0.1")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["UNDECIDED bench::scorers.letter::accuracy*"])


def test_a_function_that_raises_costs_one_item(project):
    project.model(
        FUNCTION.format(body="return {'B': 'B'}['C' if 'zoo question 1' in prompt else 'B']")
    )
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["ERROR test_bench.py::*: no answer: KeyError: 'C'"])
    assert project.metrics()["errors"] == 1


def test_a_function_that_is_ended_by_pytest_fail_costs_one_item(project):
    """As pytest-timeout does where a call hangs; the rest of the chunk was broken off."""
    project.model(
        FUNCTION.format(body="return pytest.fail('slow') if 'question 1' in prompt else 'B'")
    )
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["ERROR 3 items, such as *: no answer: Failed: slow"])
    assert project.metrics()["errors"] == 3
    assert project.metrics()["correct"] == 6


def test_a_function_that_returns_no_text_is_an_error(project):
    project.model(FUNCTION.format(body="return None"))
    assert project.run().ret == 1
    assert project.metrics()["errors"] == 9


@pytest.mark.parametrize("xdist", [(), ("-n", "2")])
def test_a_model_ends_the_session_by_pytest_exit(project, xdist):
    """It was one item's error, and the next thousand were requested."""
    project.model(FUNCTION.format(body="pytest.exit('no credit left', returncode=0)"))
    result = project.run(*xdist)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["!*model my_system: no credit left*!"])
    result.stdout.fnmatch_lines(["no answer was received: the run folder was removed"])


def test_pytest_exit_in_a_model_ends_the_run(project):
    project.model(respond="def respond(self, request):\n    pytest.exit('no credit left')")
    result = project.run()
    assert result.ret == 1
    assert project.requested == ["art-0000"]
    assert "INTERNALERROR" not in result.stdout.str()


def test_two_results_may_not_get_one_name(project):
    project.model(FUNCTION.format(body="return 'B'"))
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_other(answer):
            assert answer.correct
        """
    )
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*would both give the result (bench, choice): run one*"])


def test_an_object_with_answer_alone_is_enough(project):
    project.model(
        """
        import pytest
        from pytest_llmeval import Response

        class Mine:
            def answer(self, requests):
                for request in reversed(list(requests)):
                    yield Response(request.id, logprobs=(-3.0, -1.0, -2.0, -2.0))

        @pytest.fixture(scope="session")
        def model():
            return Mine()
        """.replace("\n        ", "\n")
    )
    assert project.run().ret == 0
    assert project.metrics()["correct"] == 9


def test_several_models_are_in_test_ids_and_have_separate_results(project):
    (project.path / "conftest.py").unlink()
    for name, letter in (("one", "A"), ("two", "B")):
        with (project.path / f"{name}.jsonl").open("w") as file:
            for subject, size in (("art", 2), ("law", 3), ("zoo", 4)):
                for row in range(size):
                    line = {"item": f"{subject}-{row:04d}", "text": letter}
                    file.write(json.dumps(line) + "\n")
    project.thresholds(
        """
        [benchmarks.bench]
        accuracy = 0.5
        [models."replay:one.jsonl".benchmarks.bench]
        accuracy = { max = 0.1 }
        """
    )
    arguments = ("--llm-model=replay:one.jsonl", "--llm-model=replay:two.jsonl")
    result = project.run(*arguments, "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "test_bench.py::test_bench[[]one-art-0000] WRONG*",
            "test_bench.py::test_bench[[]two-art-0000] PASSED*",
            "PASS replay:one.jsonl::bench::accuracy: 0.0000*",
            "PASS replay:two.jsonl::bench::accuracy: 1.0000*",
            "model replay:one.jsonl",
            "model replay:two.jsonl",
        ]
    )
    correct = {r.model: r.counts.correct for r in load_run(project.run_folder).results()}
    assert correct == {"replay:one.jsonl": 0, "replay:two.jsonl": 9}
    alone = project.document("metrics.json")
    assert project.run(*arguments, "-n", "2").ret == 0
    assert project.document("metrics.json") == alone


def test_item_and_model_are_fixtures_too(project):
    project.benchmark(
        """
        from pytest_llmeval import Protocol

        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_by_hand(item, model):
            (response,) = model.answer([BENCH.protocols[0].request(item, ())])
            assert response.logprobs[item.gold] == max(response.logprobs)
        """
    )
    assert project.run("-k", "by_hand").ret == 0
    counts = {r.scorer: r.counts for r in load_run(project.run_folder).results()}["cloze"]
    assert (counts.correct, counts.wrong) == (6, 3)


def test_no_weights_are_loaded_under_thresholds_that_are_wrong(project):
    project.thresholds("[benchmarks.bench]\nacuracy = 1")
    assert project.run().ret == 4
    assert not (project.path / "loads.txt").exists()


@pytest.mark.parametrize("spec", ["demo+", "replay", "hf", ":x", ""])
def test_specs_that_name_nothing(project, spec):
    (project.path / "conftest.py").unlink()
    result = project.run(f"--llm-model={spec}")
    assert result.ret == 4
    assert len([line for line in result.errlines if line]) == 1


HOLDS = """
import pytest
from pytest_llmeval import Response

@pytest.fixture(scope="session")
def model():
    class Holds:
        name = "holds"
        fingerprint = "weights-1"
        asks = frozenset({"choices"})

        def answer(self, requests):
            with open("held.txt", "a") as file:
                file.write("takes ")
            try:
                for request in requests:
                    yield Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
            finally:
                with open("held.txt", "a") as file:
                    file.write("gives ")
    return Holds()
"""


@pytest.mark.parametrize("more", [(), ("--llm-permutations", "cyclic"), ("-n2",)])
def test_resources_of_a_chunk_are_released_with_its_last_answer(project, more):
    project.model(HOLDS)
    assert project.run(*more).ret == 0
    held = (project.path / "held.txt").read_text().split()
    if "-n2" in more:
        assert held.count("takes") == held.count("gives") == 3
    else:
        # Three subjects, a chunk each: what texts were made with would fill the memory else.
        assert held == ["takes", "gives"] * (len(held) // 2)
        assert len(held) >= 6
