"""No green build without a measurement, and the same number in every place."""

from __future__ import annotations

import pytest

from support.run_checks import check_consistent

ONE_ERROR = """
def respond(self, request):
    if request.id == "zoo-0002":
        return Response(request.id, error="lost")
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
"""


def test_tolerated_errors_do_not_hide_failing_unit_tests(project):
    project.model(respond=ONE_ERROR)
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1\nmax_errors = 3")
    assert project.run().ret == 0
    (project.path / "test_unit.py").write_text("def test_unit(): assert 0")
    assert project.run().ret == 1
    assert project.run("-n", "2").ret == 1


def test_a_body_that_asserts_nothing_is_reported(project):
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_silent(answer):
            print(answer.extracted)
        """
    )
    result = project.run("-k", "silent")
    result.stdout.fnmatch_lines(["3 items count as correct because their test passed, although*"])


def test_xfail_in_the_body_measures_nothing(project):
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_known(answer):
            if not answer.correct:
                pytest.xfail("known")
        """
    )
    project.thresholds("[benchmarks.bench.scorers.cloze]\naccuracy = 0.1")
    result = project.run("-k", "known")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["UNDECIDED bench::scorers.cloze::accuracy*", "*only 6 of 9*"])
    check_consistent(project)


@pytest.mark.parametrize("xdist", [(), ("-n", "2")])
@pytest.mark.parametrize(
    ("test", "line"),
    [
        (
            "import unittest\n"
            "@pytest.mark.llmeval(BENCH)\n"
            "class TestIt(unittest.TestCase):\n"
            "    def test_it(self): pass\n",
            "cannot be evaluated",
        ),
        (
            "@pytest.mark.llmeval(BENCH, protocol='other')\n"
            "@pytest.mark.llmeval(BENCH)\n"
            "def test_it(answer): pass\n",
            "has two llmeval markers",
        ),
        (
            "@pytest.mark.parametrize('x', [1, 2])\n"
            "@pytest.mark.llmeval(BENCH, protocol='other')\n"
            "def test_it(answer, x): pass\n",
            "has more than one test for item",
        ),
        (
            "@pytest.fixture(scope='session', params=['a', 'b'])\n"
            "def model(request): return lambda prompt: 'B'\n"
            "@pytest.mark.llmeval(BENCH, protocol='other')\n"
            "def test_it(answer): pass\n",
            "its `model` fixture is parametrized by the project",
        ),
        (
            "OTHER = Benchmark('bench', lambda d: Dataset((Item('a', 's', 'q', 0, ('x', 'y')),)),"
            " BENCH.protocols)\n"
            "@pytest.mark.llmeval(OTHER, protocol='other')\n"
            "def test_it(answer): pass\n",
            "call different data 'bench'",
        ),
    ],
)
def test_tests_that_could_not_be_evaluated_are_refused(project, test, line, xdist):
    project.benchmark(test)
    result = project.run(*xdist)
    assert result.ret == 4
    (error,) = [text for text in result.errlines if text]
    assert line in error


def test_a_marker_added_too_late_is_refused(project):
    with (project.path / "conftest.py").open("a") as file:
        file.write(
            "\n\ndef pytest_collection_modifyitems(items):\n"
            "    for item in items:\n"
            "        item.add_marker(pytest.mark.llmeval(None))\n"
        )
    (project.path / "test_bench.py").write_text("def test_plain(): pass")
    assert project.run().ret == 4


@pytest.mark.parametrize("xdist", [(), ("-n", "2")])
def test_a_model_and_nothing_to_evaluate_it_on(project, xdist):
    (project.path / "test_bench.py").write_text("def test_plain(): pass")
    assert project.run(*xdist).ret == 0
    result = project.run("--llm-model=demo", *xdist)
    assert result.ret == 4
    assert "no test marked @pytest.mark.llmeval was selected" in result.stderr.str()


def test_errors_alone_pass_no_gate(project):
    project.model(
        respond="def respond(self, request):\n    return Response(request.id, error='down')"
    )
    project.thresholds("[benchmarks.bench]\nmax_errors = 9")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["UNDECIDED bench::max_errors*no item was answered: 9 errors"])


def test_two_model_fixtures_are_refused(project):
    for name in ("a", "b"):
        (project.path / name).mkdir()
        (project.path / name / "conftest.py").write_text(
            "import pytest\n\n@pytest.fixture(scope='session')\ndef model():\n"
            f"    return lambda prompt: '{name}'\n"
        )
    body = (project.path / "test_bench.py").read_text()
    (project.path / "test_bench.py").unlink()
    (project.path / "a" / "test_a.py").write_text(body)
    (project.path / "b" / "test_b.py").write_text(
        body.replace("llmeval(BENCH)", 'llmeval(BENCH, protocol="other")')
    )
    result = project.run()
    assert result.ret == 4
    assert "have different `model` fixtures" in result.stderr.str()


def test_an_own_model_and_several_specs_are_refused(project):
    result = project.run("--llm-model=demo", "--llm-model=replay:x")
    assert result.ret == 4


def test_skipped_in_the_body(project):
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_skipping(answer):
            if answer.item.subject == "zoo":
                pytest.skip("not today")
            assert answer.correct
        """
    )
    project.run("-k", "skipping")
    check_consistent(project)
    gates = project.path / "gates.toml"
    gates.write_text("version = 1\n[benchmarks.bench.scorers.cloze]\naccuracy = 0.1")
    assert project.pytester.run("llmeval", "gate", project.run_folder, gates).ret == 1


def test_a_body_that_is_mended_before_the_run_is_resumed(project):
    project.benchmark(
        """
        import os
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_body(answer):
            if not os.path.exists("mended"):
                raise RuntimeError("broken") if answer.item.subject == "zoo" else AssertionError
            assert answer.correct
        """
    )
    project.run("-k", "body")
    check_consistent(project)
    requested = len(project.requested)
    (project.path / "mended").touch()
    result = project.run("-k", "body", "--llm-resume")
    assert len(project.requested) == requested
    result.stdout.fnmatch_lines(["9 answers of an earlier session were reused"])
    check_consistent(project)


def test_a_run_that_stops_early_with_answers_in_another_order(project):
    project.model(
        """
        import pytest
        from pytest_llmeval import Response

        class Backwards:
            name = "backwards"
            fingerprint = "1"

            def answer(self, requests):
                for request in reversed(list(requests)):
                    yield Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))

        @pytest.fixture(scope="session")
        def model():
            return Backwards()
        """.replace("\n        ", "\n")
    )
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_body(answer):
            assert answer.item.id != "law-0001", 1 / 0
        """
    )
    project.run("-k", "body", "-x")
    check_consistent(project)
    assert sum(r["answered"] for r in project.document("metrics.json")["results"]) == 3


def test_a_crash_and_its_resume(project):
    project.model(
        respond="""
        def respond(self, request):
            if request.id == "law-0001" and not os.path.exists("mended"):
                os._exit(1)
            return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
        """
    )
    project.run("-n", "2")
    check_consistent(project)
    (project.path / "mended").touch()
    assert project.run("-n", "2", "--llm-resume").ret == 0
    check_consistent(project)
    assert project.metrics()["correct"] == 9


def test_the_stored_runs_gates_are_checked_for_spelling(project):
    project.run()
    gates = project.path / "gates.toml"
    for text, line in (
        ("[benchmarks.bensch]\naccuracy = 0.1", "did you mean 'bench'?"),
        ("[benchmarks.bench.subjects.zooo]\naccuracy = 0.1", "did you mean 'zoo'?"),
    ):
        gates.write_text(f"version = 1\n{text}")
        result = project.pytester.run("llmeval", "gate", project.run_folder, gates)
        assert result.ret == 4
        assert line in result.stderr.str()


def test_a_run_that_stops_early_distinguishes_benchmarks_with_the_same_items(project):
    """The second was not run at all, which does not affect the first."""
    project.benchmark(
        """
        @pytest.mark.llmeval(Benchmark("other", load, BENCH.protocols))
        def test_other(answer):
            assert answer.correct
        """
    )
    project.run("--maxfail=1", "--llm-wrong=fail", "--llm-report=json")
    shown = project.pytester.run("llmeval", "show", str(project.run_folder))
    assert shown.ret == 0
    shown.stdout.fnmatch_lines(["bench?letter? *1 *", "other?letter? *0 *"])


@pytest.mark.parametrize("xdist", [(), ("-n", "2")])
def test_an_item_that_cannot_exist_is_explained_when_it_is_selected(project, xdist):
    """Without its benchmark a test has no items, so that ``-k`` matches nothing."""
    (project.path / "test_bench.py").write_text(
        "import pytest\n@pytest.mark.llmeval()\ndef test_bench(answer): pass\n"
    )
    result = project.run("-k", "anatomy", "--llm-model=demo", *xdist)
    assert result.ret == 4
    (error,) = [text for text in result.errlines if text]
    assert error.startswith("ERROR: no test was selected; test_bench.py::test_bench")
