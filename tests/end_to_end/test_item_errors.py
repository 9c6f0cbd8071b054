"""Equal errors of items are shown once; every one of them still counts."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

UNAVAILABLE = """
def respond(self, request):
    if not request.id.startswith("zoo"):
        number = int(request.id[-4:])
        told = f"503 Service Unavailable (request 3fa85f64-{number:04d}, after {number}.5 s)"
        return Response(request.id, error=told)
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
"""


def shown_of(result) -> list[str]:
    return [line for line in result.outlines if line.startswith("ERROR ")]


@pytest.fixture
def outage(project):
    """165 items, 115 of which end in errors that differ only in ids and times."""
    project.benchmark(art=55, law=60, zoo=50)
    project.model(respond=UNAVAILABLE)
    project.thresholds(
        "[benchmarks.bench]\naccuracy = 0.5\n[benchmarks.bench.every_subject]\naccuracy = 0.5\n"
    )
    return project


@pytest.mark.parametrize("xdist", [(), ("-n", "2")])
def test_equal_errors_are_one_line_with_a_count_and_an_example(outage, xdist):
    result = outage.run("--junitxml=junit.xml", *xdist)
    assert result.ret == 1
    (line,) = shown_of(result)
    assert line.startswith("ERROR 115 items, such as test_bench.py::test_bench[")
    text = " ".join(result.stdout.str().split())
    assert "]: no answer: 503 Service Unavailable (request 3fa85f64-0" in text
    assert "50 passed, 115 errors, " in result.outlines[-1]
    assert len(result.outlines) < 45
    assert "Service Unavailable" not in "\n".join(result.outlines).partition("= llmeval =")[0]
    suite = ET.parse(outage.path / "junit.xml").getroot()[0]
    errors = [error.get("message") for error in suite.iter("error")]
    assert suite.get("errors") == "115" == str(len(errors))
    assert all("503 Service Unavailable" in message for message in errors)


@pytest.mark.parametrize("option", ["-vv", "-rA"])
def test_every_error_is_listed_on_request(outage, option):
    result = outage.run(option)
    listed = [line for line in shown_of(result) if " - Failed: no answer" in line]
    assert len(listed) == 115
    assert result.ret == 1


def test_the_last_failed_option_runs_them_again(outage):
    outage.pytester.runpytest_inprocess()
    result = outage.pytester.runpytest_inprocess("--lf")
    assert "115 errors" in result.outlines[-1]
    assert "passed" not in result.outlines[-1].partition("gates")[0]


def test_subjects_that_are_incomplete_are_one_gate(outage):
    lines = [line for line in outage.run("-v").outlines if line.startswith("FAIL ")]
    assert lines == [
        "FAIL bench::accuracy: - (bound >= 0.5) incomplete: 115 errors (max_errors 0)",
        "FAIL bench::every_subject::accuracy: - (bound >= 0.5) 2 of 3 subjects, such as art:"
        " incomplete: 55 errors here, 115 in all (max_errors 0); 1 passed, worst zoo 1.0000",
    ]


def test_other_reasons_have_lines_of_their_own_and_one_traceback(project):
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_graded(answer):
            if answer.item.subject == "law":
                raise RuntimeError("the grader is broken")
            if answer.item.subject == "zoo":
                raise KeyError(answer.item.id)
            assert answer.correct
        """
    )
    result = project.run("-k", "graded")
    assert result.ret == 1
    assert shown_of(result) == [
        "ERROR 4 items, such as test_bench.py::test_graded[zoo-0000]: KeyError: 'zoo-0000'",
        "ERROR 3 items, such as test_bench.py::test_graded[law-0000]: RuntimeError: the grader is"
        " broken",
    ]
    assert sum(line.startswith(">") for line in result.outlines) == 2
    assert "7 failed" in result.outlines[-1]


def test_a_single_error_is_one_line(project):
    project.model(
        respond="""
        def respond(self, request):
            return Response(request.id, **(
                {"error": "on fire"} if request.id == "zoo-0002" else {"logprobs": (-2, -1, -3, -4)}
            ))
        """
    )
    result = project.run()
    assert shown_of(result) == ["ERROR test_bench.py::test_bench[zoo-0002]: no answer: on fire"]
    assert "8 passed, 1 error in " in result.outlines[-1]


def test_ordinary_tests_keep_their_sections(outage):
    (outage.path / "test_ordinary.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef broken():\n    raise OSError('ordinary')\n\n"
        "def test_plain(broken):\n    pass\n\ndef test_wrong():\n    assert 1 == 2\n"
    )
    result = outage.run()
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_plain*",
            "*_ test_wrong _*",
            "FAILED test_ordinary.py::test_wrong*",
            "ERROR test_ordinary.py::test_plain*",
            "*1 failed, 50 passed, 116 errors*",
        ]
    )


def test_wrong_answers_that_are_to_fail_are_ordinary_failures(project):
    result = project.run("--llm-wrong=fail")
    assert sum(line.startswith("FAILED ") for line in result.outlines) == 3
    assert not shown_of(result)


def test_errors_of_a_teardown_are_gathered_too(project):
    project.benchmark(
        """
        @pytest.fixture
        def closing():
            yield
            raise OSError("cannot close")

        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_closing(answer, closing):
            assert answer.correct
        """
    )
    result = project.run("-k", "closing")
    assert result.ret == 1
    assert shown_of(result) == [
        "ERROR 9 items, such as test_bench.py::test_closing[art-0000]: teardown: OSError: cannot"
        " close"
    ]


def test_many_reasons_are_cut(project):
    project.benchmark(art=30)
    project.model(
        respond="""
        def respond(self, request):
            return Response(request.id, error="reason " + chr(97 + int(request.id[-4:]) % 26) * 3)
        """
    )
    lines = shown_of(project.run())
    assert len(lines) == 11
    assert lines[-1] == "ERROR 16 more items, 16 other reasons"
