"""JUnit and the other plugins that report: well-formed for any output of a model, with the same counts."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

# Everything in a text that can break a report: controls, markup, surrogates, right-to-left, size.
HOSTILE = '"\\x00\\x08\\x1b[31m</failure>]]><script>alert(1)</script>&\\u202e\\ud800\\uffff" + "x" * 1_000_000'

TEXT_MODEL = """
import pytest
from pytest_llmeval.testing import FakeModel

HOSTILE = {hostile}

@pytest.fixture(scope="session")
def model():
    texts = {{"right": "B", "mute": ""}}
    return FakeModel(
        lambda request: texts.get(request.id.rpartition("-")[0], HOSTILE),
        errors={{f"lost-{{n}}": "broken: " + HOSTILE for n in range(2)}},
        name="hostile",
    )
"""

TEST = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

SUBJECTS = ("right", "wrong", "mute", "lost", "raised", "skipped", "failed")

def load(data_dir):
    items = [Item(f"{name}-{n}", name + EVIL, f"question {n}?", "B") for name in SUBJECTS for n in range(2)]
    return Dataset(tuple(items))

EVIL = "\\x01\\x1b<&\\u202e"
TEMPLATE = Template("t", description=lambda subject: "", question=lambda item: item.question,
                    choices=lambda item: ())
BENCH = Benchmark("bench", load, (Protocol("plain", TEMPLATE, scorer=SCORER, ask="text"),))

@pytest.mark.llmeval(BENCH)
def test_bench(answer, item, record_property):
    print(answer.text)
    kind = item.id.rpartition("-")[0]
    if kind == "failed":
        record_property("text", answer.text)
    if kind == "raised":
        raise ValueError(answer.text)
    if kind == "skipped":
        pytest.skip("not this one: " + answer.text)
    if kind != "failed":
        assert answer.correct
    elif FAIL:
        pytest.fail(answer.text)
    else:
        assert answer.text == "B"
"""
TEST = TEST.replace("SCORER", '"exact_match"').replace("FAIL", "True")

GATES = """
[benchmarks.bench]
accuracy = 0.9
unparsed_rate = 1.0
max_errors = 100
[benchmarks.bench.every_subject]
accuracy = 0.0
[benchmarks.mmlu]
accuracy = 0.5
"""


@pytest.fixture
def hostile(project):
    """A project whose run has every outcome, and whose model answers with the worst possible texts."""
    (project.path / "conftest.py").write_text(TEXT_MODEL.format(hostile=HOSTILE))
    (project.path / "test_bench.py").write_text(TEST)
    project.thresholds(GATES)
    return project


def counts(line: str) -> dict[str, int]:
    """The counts in pytest's last line, by word."""
    pairs = re.findall(r"(\d+) ([a-z ]+?)(?:,| in )", line)
    return {word.removesuffix("s") if word == "errors" else word: int(n) for n, word in pairs}


def suite_of(project) -> ET.Element:
    return ET.parse(project.path / "junit.xml").getroot()[0]


def test_counts_agree_and_all_is_well_formed(hostile):
    pytest.importorskip("jinja2", reason="the HTML report needs it")
    result = hostile.run("--junitxml=junit.xml", "--llm-report=json,markdown,html", "-rA")
    suite = suite_of(hostile)
    printed = counts(result.outlines[-1])
    # Terminal against JUnit: wrong, unparsed and what was not run are skipped there.
    passed = printed["passed"] + printed["gates passed"]
    skipped = (
        printed["wrong"]
        + printed.get("unparsed", 0)
        + printed["skipped"]
        + printed["gates not run"]
    )
    junit = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    red_gates = printed["gates undecided"]
    assert junit["failures"] == printed["failed"] + red_gates
    assert junit["errors"] == printed["error"] == 2
    assert junit["skipped"] == skipped
    assert junit["tests"] == passed + skipped + printed["failed"] + red_gates + printed["error"]
    assert len(suite.findall("testcase")) == junit["tests"]
    # Terminal against the run's own documents.
    value = json.loads((hostile.run_folder / "export.json").read_bytes())
    (measured,) = value["results"]
    assert measured["correct"] == printed["passed"] == 2
    assert measured["wrong"] == printed["wrong"]
    assert measured["unparsed"] == printed.get("unparsed", 0)
    assert measured["missing"] == printed["skipped"] == 2
    statuses = [gate["status"] for gate in value["gates"]]
    assert statuses.count("pass") == printed["gates passed"]
    red = [case for case in suite if case.get("classname").startswith("thresholds") and len(case)]
    red = [case for case in red if case.find("failure") is not None]
    assert len(red) == red_gates
    assert measured["errors"] == printed["error"] + printed["failed"] == 6
    page = (hostile.run_folder / "report.html").read_text()
    shown = re.findall(r'class="key (\w+)"[^>]*>(?:<span[^>]*>.</span> )?([\d,]+) ', page)
    assert {name: int(number) for name, number in shown} == {
        "correct": measured["correct"],
        "wrong": measured["wrong"],
        "unparsed": measured["unparsed"],
        "error": measured["errors"],
        "missing": measured["missing"],
    }
    text = (hostile.run_folder / "report.md").read_text()
    assert "**6 answers ended in errors:**" in text
    assert "| `bench[exact_match]` | 6 of 14 | - | - | - | - | 2 | 6 |" in text


def test_no_text_is_longer_than_can_be_read(hostile):
    hostile.run("--junitxml=junit.xml", "-o", "junit_logging=all")
    assert (hostile.path / "junit.xml").stat().st_size < 2_000_000
    longest = max(
        (len(text), element.tag)
        for element in suite_of(hostile).iter()
        for text in [element.text or "", *element.attrib.values()]
    )
    assert longest[0] < 21_000
    cut = [
        e.get("message")
        for e in suite_of(hostile).iter("skipped")
        if e.get("type") == "pytest.xfail"
    ]
    assert cut
    assert all("is in records.jsonl" in message for message in cut if "answered" in message)
    assert all(message.endswith("gold B") for message in cut)


def test_junit_validates_against_the_schema(hostile):
    etree = pytest.importorskip("lxml.etree", reason="lxml reads schemas")
    hostile.run("--junitxml=junit.xml", "-o", "junit_logging=all", "-o", "junit_family=xunit2")
    schema = etree.XMLSchema(file=str(Path(__file__).with_name("junit.xsd")))
    schema.assertValid(etree.parse(str(hostile.path / "junit.xml")))


def test_wrong_as_failures_validates(hostile):
    etree = pytest.importorskip("lxml.etree", reason="lxml reads schemas")
    hostile.run("--junitxml=junit.xml", "--llm-wrong=fail", "-n1", "-p", "xdist")
    schema = etree.XMLSchema(file=str(Path(__file__).with_name("junit.xsd")))
    schema.assertValid(etree.parse(str(hostile.path / "junit.xml")))
    assert int(suite_of(hostile).get("failures")) > 4


def test_without_a_terminal(hostile):
    result = hostile.pytester.runpytest_inprocess(
        *("-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"),
        "--junitxml=junit.xml",
    )
    assert result.ret == 1
    assert int(suite_of(hostile).get("errors")) == 2
    assert hostile.document("gates.json")["verdict"] == "fail"


def test_beside_pytest_html(hostile):
    pytest.importorskip("pytest_html")
    result = run_plain(hostile, "--html=report.html", "--self-contained-html")
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    printed = counts(result.outlines[-1])
    page = (hostile.path / "report.html").read_text()
    shown = {
        name.lower(): int(number)
        for number, name in re.findall(r"(\d+) (Passed|Failed|Skipped|Errors)\b", page)
    }
    assert shown["passed"] == printed["passed"] + printed["gates passed"]
    assert shown["failed"] == printed["failed"] + printed["gates undecided"]
    assert shown["errors"] == printed["error"]
    assert "<script>alert(1)" not in page


def test_beside_pytest_json_report(hostile):
    pytest.importorskip("pytest_jsonreport")
    result = run_plain(hostile, "--json-report", "--json-report-file=told.json")
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    printed = counts(result.outlines[-1])
    summary = json.loads((hostile.path / "told.json").read_text())["summary"]
    assert summary["error"] == printed["error"]
    assert summary["failed"] == printed["failed"]


def run_plain(project, *arguments):
    """A run in a process of its own, where these plugins may keep what they like."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return project.pytester.run(*command)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_item_without_an_answer_stays_an_error_when_its_test_is_run_again(project, workers):
    """pytest-rerunfailures repeats what failed; an error is no wrong answer the second time."""
    pytest.importorskip("pytest_rerunfailures")
    project.model(
        respond="""
        def respond(self, request):
            if request.id == "law-0001":
                return Response(request.id, error="down")
            return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
        """
    )
    project.thresholds("[benchmarks.bench]\nmax_errors = 0\n")
    result = run_plain(project, "--reruns=2", "-n", workers)
    printed = counts(result.outlines[-1])
    assert (printed["passed"], printed["error"], printed["rerun"]) == (8, 1, 2)
    assert result.ret == 1
    assert (project.metrics()["errors"], project.metrics()["wrong"]) == (1, 0)
    assert len(project.requested) == 9


# A case for every subject ---------------------------------------------------------------------


def cases(project) -> dict[str, ET.Element]:
    by_name = {f"{case.get('classname')} {case.get('name')}": case for case in suite_of(project)}
    assert len(by_name) == len(suite_of(project))
    return by_name


def properties(case: ET.Element) -> dict[str, int]:
    return {entry.get("name"): int(entry.get("value")) for entry in case.iter("property")}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_case_for_every_subject(project, workers):
    project.model(
        respond="""
        def respond(self, request):
            if request.id == "law-0001":
                return Response(request.id, error="down")
            wrong = request.id.endswith("-0000")
            scores = (-1.0, -2.0, -3.0, -4.0) if wrong else (-2.0, -1.0, -3.0, -4.0)
            return Response(request.id, logprobs=scores, seconds=0.5)
        """
    )
    project.benchmark(
        """
        @pytest.mark.parametrize("n", range(2))
        def test_ordinary(n, record_property):
            record_property("n", n)
            assert n == 0
        """
    )
    project.thresholds("[benchmarks.bench]\naccuracy = 0.5")
    result = project.run("--junitxml=junit.xml", "--llm-junit=subjects", "-n", workers)
    assert result.ret == 1
    by_name = cases(project)
    assert by_name.keys() == {
        *(f"test_bench.bench letter[{subject}]" for subject in ("art", "law", "zoo")),
        *(f"test_bench test_ordinary[{n}]" for n in range(2)),
        "thresholds.toml.bench accuracy",
    }
    art, law, zoo = (
        by_name[f"test_bench.bench letter[{subject}]"] for subject in ("art", "law", "zoo")
    )
    assert properties(art) == {"correct": 1, "wrong": 1, "unparsed": 0, "errors": 0, "missing": 0}
    assert properties(law) == {"correct": 1, "wrong": 1, "unparsed": 0, "errors": 1, "missing": 0}
    # A wrong answer is no failure, an error is.
    assert [child.tag for child in (*art, *zoo)] == ["properties"] * 2
    assert [child.tag for child in law] == ["properties", "error"]
    assert law.find("error").text.startswith(
        "1 of 3 answers are errors; 1 tests failed:\nlaw-0001:"
    )
    assert "down" in law.find("error").text
    assert float(zoo.get("time")) >= 2.0
    assert by_name["test_bench test_ordinary[1]"].find("failure") is not None
    assert by_name["thresholds.toml.bench accuracy"].find("failure") is not None
    suite = suite_of(project)
    counted = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": 6, "failures": 2, "errors": 1, "skipped": 0}


def test_subjects_of_a_hostile_run_validate(hostile):
    etree = pytest.importorskip("lxml.etree", reason="lxml reads schemas")
    for more in ((), ("--llm-wrong=fail",)):
        hostile.run(
            "--junitxml=junit.xml", "-o", "llm_junit=subjects", "-o", "junit_family=xunit2", *more
        )
        schema = etree.XMLSchema(file=str(Path(__file__).with_name("junit.xsd")))
        schema.assertValid(etree.parse(str(hostile.path / "junit.xml")))
        tags = {
            re.search(r"exact_match\[([a-z]+)", name)[1]: {child.tag for child in case}
            - {"properties"}
            for name, case in cases(hostile).items()
            if "exact_match" in name
        }
        wrong = {"failure"} if more else set()
        assert tags == {
            "right": set(),
            "wrong": wrong,
            "mute": wrong,
            "lost": {"error"},
            "raised": {"failure"},
            "skipped": {"skipped"},
            "failed": {"failure"},
        }
        assert (hostile.path / "junit.xml").stat().st_size < 1_000_000


def test_subjects_of_every_model_and_every_scorer(project):
    (project.path / "conftest.py").unlink()
    project.benchmark(
        """
        @pytest.mark.llmeval(BENCH, protocol="other")
        def test_other(answer):
            assert answer.correct
        """
    )
    models = ("--llm-model=demo", "--llm-model=demo:?batch_tokens=512")
    project.run("--junitxml=junit.xml", "--llm-junit=subjects", *models, "-k", "art")
    # Subjects of which nothing was selected have none.
    assert cases(project).keys() == {
        f"test_bench.{model}.bench {scorer}[art]"
        for model in ("demo", "demo:?batch_tokens=512")
        for scorer in ("letter", "cloze")
    }


def test_no_test_case_more_where_no_file_is_written(project):
    assert project.run("--llm-junit=subjects").ret == 0
    assert project.run("--llm-junit=subjects", "--junitxml=junit.xml", "-p", "no:junitxml").ret == 4
    project.run("--llm-junit=nonsense").stderr.fnmatch_lines(["*invalid choice: 'nonsense'*"])
