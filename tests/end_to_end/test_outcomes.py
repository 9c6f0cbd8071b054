"""Outcomes of items: in pytest's counts, in JUnit, in the run folder."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pytest_llmeval.runs import load_run


def test_wrong_is_neither_passed_nor_failed(project):
    result = project.run("--junitxml=junit.xml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*6 passed, 3 wrong in*"])
    suite = ET.parse(project.path / "junit.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "9",
        "failures": "0",
        "errors": "0",
        "skipped": "3",
    }
    reasons = {skipped.get("message") for skipped in suite.iter("skipped")}
    assert reasons == {"wrong: answered A, gold B"}
    assert not list(suite.iter("property"))


def test_the_numbers_of_a_run(project):
    project.run()
    metrics = project.metrics()
    assert metrics["correct"] == 6
    assert metrics["n_total"] == 9
    assert metrics["accuracy"] == 6 / 9
    assert metrics["macro_accuracy"] == (1 / 2 + 2 / 3 + 3 / 4) / 3
    assert metrics["chance"] == 0.25
    assert project.document("run.json")["status"] == "finished"


def test_stored_records_give_the_same_metrics(project):
    project.run()
    expected = project.document("metrics.json")
    del expected["format"]
    assert load_run(project.run_folder).metrics() == expected


def test_wrong_can_be_made_a_failure(project):
    result = project.run("--llm-wrong=fail")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*3 failed, 6 passed in*"])
    assert project.metrics()["correct"] == 6
    assert project.metrics()["errors"] == 0


def test_last_failed_does_not_run_wrong_items_again(project):
    project.pytester.runpytest_inprocess()
    result = project.pytester.runpytest_inprocess("--lf")
    result.stdout.fnmatch_lines(["*6 passed, 3 wrong in*"])


def test_the_body_has_the_last_word(project):
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_lenient(answer):
            assert answer.correct or answer.item.subject == "zoo"
        """
    )
    result = project.run("-k", "lenient")
    assert result.ret == 0
    scores = {r.scorer: r for r in load_run(project.run_folder).results()}
    assert scores["cloze"].counts.correct == 7
    assert scores["cloze"].counts.wrong == 2


def test_an_exception_in_the_body_is_an_error(project):
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_broken(answer):
            if answer.item.id == "law-0001":
                raise RuntimeError("the grader is broken")
            assert answer.correct
        """
    )
    result = project.run("-k", "broken")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*RuntimeError: the grader is broken*"])
    counts = {r.scorer: r for r in load_run(project.run_folder).results()}["cloze"].counts
    assert (counts.correct, counts.wrong, counts.error) == (5, 3, 1)


def test_a_response_with_an_error_is_an_error_of_its_item_alone(project):
    project.model(
        respond="""
        def respond(self, request):
            if request.id == "zoo-0002":
                return Response(request.id, error="the machine caught fire")
            return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
        """
    )
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["ERROR test_bench.py::*: no answer: the machine caught fire", "*8 passed, 1 error in*"]
    )
    result.stdout.fnmatch_lines(["*bench?letter? is incomplete: 1 error; 8 correct of 8 answered*"])
    metrics = project.metrics()
    assert metrics["accuracy"] is None
    assert (metrics["accuracy_answered"], metrics["accuracy_with_errors"]) == (1.0, 8 / 9)


def test_a_model_that_raises_costs_the_item_that_causes_it(project):
    project.model(
        respond="""
        def respond(self, request):
            if request.id == "law-0001":
                raise ValueError("bad weights")
            return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
        """
    )
    result = project.run()
    assert result.ret == 1
    result.assert_outcomes(passed=8, errors=1)
    assert project.metrics()["errors"] == 1


def test_scores_that_are_no_numbers_are_errors(project):
    project.model(
        respond="""
        def respond(self, request):
            bad = {"art-0000": float("nan"), "art-0001": float("-inf")}.get(request.id)
            if bad is not None:
                return Response(request.id, logprobs=(bad,) * 4)
            return Response(request.id, logprobs=(float("-inf"), -1.0, -3.0, -4.0))
        """
    )
    project.run()
    assert project.metrics()["errors"] == 2
    assert project.metrics()["correct"] == 7
    # One impossible option is a score like any other and survives the disk.
    (record,) = [r for r in load_run(project.run_folder).records if r.item == "zoo-0001"]
    assert record.logprobs[0] == float("-inf")


def test_a_skipped_body_leaves_the_item_out(project):
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_skipping(answer):
            if answer.item.id == "zoo-0003":
                pytest.skip("not today")
            assert answer.correct
        """
    )
    project.thresholds("[benchmarks.bench.scorers.cloze]\naccuracy = 0.1")
    result = project.run("-k", "skipping")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["UNDECIDED bench::scorers.cloze::accuracy*", "*8 of 9 items*"])


def test_a_lone_surrogate_in_a_reply_is_no_trouble(project):
    project.model(
        MODEL_OF_TEXT.format(reply=r"'B \ud83d'"),
    )
    result = project.run("-n", "2", "--junitxml=junit.xml")
    assert result.ret == 0
    ET.parse(project.path / "junit.xml")
    assert load_run(project.run_folder).results()[0].counts.answered == 9


def test_unparsed_is_wrong_and_counted_apart(project):
    project.model(MODEL_OF_TEXT.format(reply="'I would rather not say.'"))
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*9 unparsed in*"])
    metrics = project.metrics()
    assert (metrics["accuracy"], metrics["unparsed_rate"]) == (0.0, 1.0)


def test_seconds_are_spread_over_the_items(project):
    result = project.run("--durations=0", "-vv")
    assert "0.01s setup" in result.stdout.str()


MODEL_OF_TEXT = """
import pytest

@pytest.fixture(scope="session")
def model():
    return lambda prompt: {reply}
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_short_summary_counts_passed_items(project, workers):
    lines = project.run("-rA", "-n", workers).outlines
    listed = [line for line in lines if line.endswith("test_bench.py::test_bench[law-0001]")]
    assert listed == ["PASSED test_bench.py::test_bench[law-0001]"]


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_a_run_stays_in_the_folder_it_was_started_in(project, tmp_path_factory, workers):
    # pytest takes the value for a test argument, and what all arguments share for its rootdir.
    elsewhere = tmp_path_factory.mktemp("data")
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1")
    result = project.run("test_bench.py", "--llm-data", elsewhere, *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["PASS bench::accuracy*"])
    assert len(project.document("metrics.json")["results"]) == 1


def test_the_rootdir_that_an_ini_file_or_an_option_names_holds_the_runs(project, monkeypatch):
    inner = project.path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert project.run("..", "--rootdir=..").ret == 0
    (project.path / "pytest.ini").write_text("[pytest]\n")
    assert project.run("..").ret == 0
    assert len(list((project.path / "runs").glob("*/"))) == 2
    assert not (inner / "runs").exists()


@pytest.mark.parametrize("body", ["answer.correct", "return answer.correct", "pass"])
def test_a_body_without_assert_is_reported(project, body):
    """Every answer is right for it, and the gates are green."""
    text = (project.path / "test_bench.py").read_text()
    (project.path / "test_bench.py").write_text(text.replace("assert answer.correct", body))
    line = "test_bench.py::test_bench has no assert: every answer counts as correct"
    assert line in project.run().outlines


@pytest.mark.parametrize("body", ["assert answer.correct", "check(answer)", "raise ValueError"])
def test_a_body_that_can_fail_is_not(project, body):
    text = (project.path / "test_bench.py").read_text()
    checked = text.replace("assert answer.correct", body)
    (project.path / "test_bench.py").write_text(
        f"def check(answer): assert answer.correct\n{checked}"
    )
    assert "has no assert" not in project.run().stdout.str()
