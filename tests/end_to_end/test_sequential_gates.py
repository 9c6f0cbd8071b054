"""Sequential runs with several gates, benchmarks, scorers, models and samples."""

from __future__ import annotations

import json

import pytest

from pytest_llmeval.cli import main
from support.wave_project import GATES
from support.wave_project import RULE
from support.wave_project import SIZES
from support.wave_project import gates


@pytest.fixture
def waves(project):
    """Three hundred items in three subjects, 80 % right, under one gate."""
    project.benchmark(**SIZES)
    project.model(respond=RULE.format(digits="19"))
    project.thresholds(GATES.format(accuracy=0.6))
    return project


SUBJECTS = """
[sequential]
alpha = 0.01
wave = 30
[benchmarks.bench.every_subject]
accuracy = 0.5
[benchmarks.bench.subjects.zoo]
accuracy = {{ min = 0.1{more} }}
"""


def test_decided_subjects_are_skipped_before_others(waves):
    waves.model(respond=RULE.format(digits="19").replace("wrong =", "wrong = request.id < 'b' or"))
    waves.thresholds(SUBJECTS.format(more=""))
    waves.run("--llm-sequential")
    verdicts = gates(waves)
    assert {id.split("::")[-2]: gate["status"] for id, gate in verdicts.items()} == {
        "art": "fail",
        "law": "pass",
        "zoo": "pass",
        "subjects.zoo": "pass",
    }
    subjects = waves.metrics()["subjects"]
    assert 0 < subjects["art"]["answered"] < 60
    for name, part in subjects.items():
        answers = verdicts[f"bench::every_subject::{name}::accuracy"]["n"]
        assert part["answered"] >= answers
    # Subjects of one benchmark stopped at different times, so that all items have no interval.
    assert waves.metrics()["stopped"]["population"] == 300


def test_a_gate_can_need_all_items(waves):
    waves.thresholds(SUBJECTS.format(more=", sequential = false"))
    result = waves.run("--llm-sequential")
    subjects = waves.metrics()["subjects"]
    assert subjects["zoo"]["missing"] == 0
    assert subjects["law"]["missing"] > 0
    result.stdout.fnmatch_lines(
        ["sequential: all items are needed by bench::subjects.zoo::accuracy (sequential = false)"]
    )


def test_subjects_without_a_gate_are_not_needed(waves):
    """They are part of the first wave, which is begun before any decision."""
    waves.thresholds("[sequential]\nwave = 30\n[benchmarks.bench.subjects.law]\naccuracy = 0.5\n")
    result = waves.run("--llm-sequential", "-v")
    assert result.ret == 0
    subjects = waves.metrics()["subjects"]
    assert 0 < subjects["art"]["answered"] < 20
    assert subjects["law"]["answered"] > 20
    result.stdout.fnmatch_lines(["*NOT NEEDED*"])


REGRESSION = (
    GATES.format(accuracy=0.1)
    + """
[benchmarks.bench.regression]
baseline = "release"
max_drop = 0.02
max_subject_drop = 0.3
"""
)


def test_a_regression_is_found_early(waves, monkeypatch):
    monkeypatch.chdir(waves.path)
    waves.run()
    main(["baseline", "latest", "release"])
    waves.thresholds(REGRESSION)
    for digits, status in (("19", "pass"), ("123459", "fail")):
        waves.model(respond=RULE.format(digits=digits))
        (waves.path / "asked.txt").unlink()
        waves.run("--llm-sequential")
        early = gates(waves)["bench::regression::max_drop"]
        assert early["status"] == status
        assert 0 < early["n"] < 300
        waves.run()
        assert gates(waves)["bench::regression::max_drop"]["status"] == status


def test_a_baseline_that_is_not_complete_is_refused(waves, monkeypatch):
    monkeypatch.chdir(waves.path)
    waves.run("-k", "law")
    main(["baseline", "latest", "release"])
    waves.thresholds(REGRESSION)
    result = waves.run("--llm-sequential")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*bench::regression::max_drop: the baseline has not one answer*"])


SEVERAL = """
[sequential]
wave = 32
[benchmarks.bench]
macro_accuracy = 0.5
[benchmarks.second.scorers.letter]
accuracy = 0.3
[benchmarks.second.scorers.cloze]
accuracy = { max = 0.95 }
"""

SECOND = """
    BOTH = Protocol("both", TEMPLATE, scorer="letter", also=("cloze",))
    SECOND = Benchmark("second", load, (BOTH,))
    THIRD = Benchmark("third", lambda data: Dataset(load(data).items[:40]), (BOTH,))

    @pytest.mark.llmeval(SECOND)
    def test_second(answer):
        assert answer.correct

    @pytest.mark.llmeval(THIRD)
    def test_third(answer):
        assert answer.correct

    def test_ordinary():
        pass
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_several_benchmarks_and_scorers(waves, workers):
    """Each benchmark has waves of its own; one without gates is run in full."""
    waves.benchmark(SECOND, **SIZES)
    waves.thresholds(SEVERAL)
    result = waves.run("--llm-sequential", *workers)
    assert result.ret == 0
    verdicts = gates(waves)
    assert verdicts["bench::macro_accuracy"]["status"] == "pass"
    assert verdicts["bench::macro_accuracy"]["n"] < 300
    for scorer in ("letter", "cloze"):
        gate = verdicts[f"second::scorers.{scorer}::accuracy"]
        assert (gate["status"], gate["sequential"]["population"]) == ("pass", 300)
    by_name = {
        (entry["benchmark"], entry["scorer"]): entry
        for entry in waves.document("metrics.json")["results"]
    }
    assert by_name["third", "letter"]["missing"] == 0
    assert "stopped" not in by_name["third", "letter"]
    assert by_name["bench", "letter"]["stopped"]["asked"] == verdicts["bench::macro_accuracy"]["n"]


def test_several_models(waves):
    """Every model has its own order, and its own probability of error."""
    (waves.path / "conftest.py").unlink()
    lines = {"good": "B", "bad": "A"}
    for name, letter in lines.items():
        (waves.path / f"{name}.jsonl").write_text(
            "".join(
                json.dumps({"item": f"{s}-{n:04d}", "text": letter}) + "\n"
                for s, size in SIZES.items()
                for n in range(size)
            )
        )
    waves.thresholds("[sequential]\nwave = 32\n[benchmarks.bench]\naccuracy = 0.6")
    result = waves.run(
        "--llm-sequential",
        "--llm-protocol=plain+generate",
        *(f"--llm-model=replay:{name}.jsonl" for name in lines),
    )
    assert result.ret == 1
    statuses = {gate["model"]: gate["status"] for gate in gates(waves).values()}
    assert sorted(statuses.values()) == ["fail", "pass"]
    courses = waves.document("order.json")["courses"]
    assert [item for item, _ in courses[0]["items"]] != [item for item, _ in courses[1]["items"]]


def test_several_samples(waves):
    """The scores of items with several answers are means."""
    waves.model(respond=RULE.format(digits="19"))
    conftest = (waves.path / "conftest.py").read_text()
    text = conftest.replace('frozenset({"choices"})', 'frozenset({"text"})').replace(
        "return Response(request.id, logprobs=scores, seconds=0.01)",
        'return Response(request.id, text="A" if wrong else "B", sample=request.sample)',
    )
    (waves.path / "conftest.py").write_text(text)
    waves.thresholds('[sequential]\nwave = 32\n[benchmarks.bench]\n"pass@2" = 0.5')
    result = waves.run("--llm-sequential", "--llm-samples=2", "--llm-temperature=1")
    assert result.ret == 0
    gate = gates(waves)["bench::pass@2"]
    assert (gate["status"], gate["sequential"]["population"]) == ("pass", 300)
    assert 0 < gate["n"] < 300
    assert gate["interval"][0] >= 0.5
