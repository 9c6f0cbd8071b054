"""Gates decide the exit code, and nothing ran is not green."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest


def test_a_run_without_thresholds_reports_that_nothing_was_gated(project):
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["nothing was gated: no thresholds.toml"])


@pytest.mark.parametrize("xdist", [(), ("-n", "2")])
def test_a_thresholds_file_that_is_not_read_is_named(project, xdist):
    """It is next to the tests, and the project's ini file elsewhere."""
    project.pytester.makeini("[pytest]\n")
    folder = project.path / "evals"
    folder.mkdir()
    for name in ("test_bench.py", "conftest.py"):
        (project.path / name).rename(folder / name)
    (folder / "thresholds.toml").write_text("version = 1\n[benchmarks.bench]\naccuracy = 0.9")
    line = "nothing was gated: evals/thresholds.toml is read only if --llm-thresholds names it"
    result = project.run(*xdist)
    assert result.ret == 0
    assert line in result.outlines
    assert project.run("--llm-thresholds=evals/thresholds.toml", *xdist).ret == 1


def test_a_dangling_link_as_thresholds_file_is_refused(project):
    """As where a submodule was not checked out; it was taken for no file at all, and green."""
    (project.path / "thresholds.toml").symlink_to("shared/thresholds.toml")
    result = project.run()
    assert result.ret == 4
    assert "thresholds.toml: no such thresholds file" in result.stderr.str()


def test_gates_pass_and_are_tests_in_every_report(project):
    project.thresholds(
        """
        [benchmarks.bench]
        accuracy = 0.66
        macro_accuracy = { min = 0.6, max = 0.7 }
        normalized_gain = 0.5
        max_errors = 0
        [benchmarks.bench.every_subject]
        accuracy = 0.5
        [benchmarks.bench.subjects.zoo]
        accuracy = 0.75
        """
    )
    result = project.run("--junitxml=junit.xml", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "PASS bench::accuracy: 0.6667 (bound >= 0.66)*6 of 9 correct; detectable drop 0.*",
            "PASS bench::every_subject::accuracy: 0.5000 (bound >= 0.5)*worst of 3 subjects: art; detectable *",
            "PASS bench::subjects.zoo::accuracy: 0.75*3 of 4 correct; detectable *",
            "*8 gates passed*",
        ]
    )
    names = [
        case.get("classname") for case in ET.parse(project.path / "junit.xml").iter("testcase")
    ]
    assert names.count("thresholds.toml.bench") == 4
    assert project.document("gates.json")["verdict"] == "pass"


def test_a_missed_gate_fails_the_build(project):
    project.thresholds("[benchmarks.bench]\naccuracy = 0.7")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAIL bench::accuracy: 0.6667 (bound >= 0.7)*", "*6 passed, 3 wrong, 1 gates failed in*"]
    )
    assert project.document("gates.json")["verdict"] == "fail"


def test_a_bound_is_met_exactly(project):
    project.benchmark(art=25)
    project.thresholds("[benchmarks.bench]\naccuracy = 0.96")
    assert project.run().ret == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--llm-limit=1",), "sampled 3 of 9 items: *between 0.2493 and 0.9000 (95 %)*"),
        (("-k", "zoo"), "only 4 of 9 items were run"),
        (("test_bench.py::test_bench[law-0001]",), "only 1 of 9 items were run"),
    ],
)
def test_part_of_a_benchmark_decides_nothing(project, arguments, reason):
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1")
    result = project.run(*arguments, "-v")
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"UNDECIDED bench::accuracy*{reason}"])
    assert project.run(*arguments, "--llm-allow-undecided").ret == 0


@pytest.mark.parametrize(
    ("bound", "status"),
    [
        ("{ min = 0.75, confidence = 0.9 }", "pass"),
        ("{ min = 0.9, confidence = 0.9 }", "undecided"),
        ("{ min = 0.97, confidence = 0.9 }", "fail"),
        ("0.97", "fail"),  # the whole benchmark cannot reach it, as far as 95 % go
        ("0.5", "undecided"),
    ],
)
def test_a_sample_decides_a_gate_with_confidence(project, bound, status):
    """Twenty of 400 items in one subject, and all 20 of a small one."""
    project.benchmark(art=400, zoo=20)
    project.model(
        respond="""
        def respond(self, request):
            wrong = request.id.endswith("7")
            scores = (-1.0, -2.0, -3.0, -4.0) if wrong else (-2.0, -1.0, -3.0, -4.0)
            return Response(request.id, logprobs=scores)
        """
    )
    project.thresholds(
        f"[benchmarks.bench]\naccuracy = {bound}\n[benchmarks.bench.subjects.zoo]\naccuracy = 0.9\n"
    )
    result = project.run("--llm-limit=60", "--llm-seed=1")
    assert result.ret == (0 if status == "pass" else 1)
    gates = {gate["id"]: gate for gate in project.document("gates.json")["gates"]}
    assert gates["bench::accuracy"]["status"] == status
    assert gates["bench::accuracy"]["reason"].startswith("sampled 80 of 420 items")
    assert gates["bench::subjects.zoo::accuracy"]["status"] == "pass"
    sampled = project.metrics()["sampled"]
    assert sampled["items"] == 80
    art = project.metrics()["subjects"]["art"]["accuracy"]
    assert sampled["accuracy"] == pytest.approx((400 * art + 20 * 0.9) / 420)


def test_a_threshold_tighter_than_the_noise_is_warned_about_at_the_start(project):
    project.thresholds("[benchmarks.bench]\naccuracy = { min = 0.99, confidence = 0.95 }\n")
    result = project.run()
    assert result.ret == 1
    lines = result.outlines
    (first, *_) = [n for n, line in enumerate(lines) if "cannot be met" in line]
    assert "thresholds.toml" in lines[first - 1]
    assert first < next(n for n, line in enumerate(lines) if line.startswith("test_bench.py"))


def test_a_selection_without_items_of_a_requested_model_is_refused(project):
    """Ordinary tests alone, without a model on the command line, are none of our business."""
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1")
    (project.path / "conftest.py").unlink()
    (project.path / "answers.jsonl").write_text('{"item": "art-0000", "text": "B"}\n')
    (project.path / "test_unit.py").write_text("def test_unit(): pass")
    result = project.run("-k", "test_unit", "--llm-model=replay:answers.jsonl")
    assert result.ret == 4
    assert "no test marked @pytest.mark.llmeval was selected" in result.stderr.str()
    ordinary = project.run("-k", "test_unit")
    assert ordinary.ret == 0
    ordinary.assert_outcomes(passed=1, deselected=1)


def test_a_subject_is_judged_when_it_is_complete(project):
    project.thresholds(
        """
        [benchmarks.bench]
        accuracy = 0.1
        [benchmarks.bench.subjects.zoo]
        accuracy = 0.75
        [benchmarks.bench.subjects.law]
        accuracy = 0.1
        """
    )
    result = project.run("-k", "zoo", "--llm-allow-undecided")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["UNDECIDED bench::subjects.law::accuracy*", "PASS bench::subjects.zoo::accuracy*"],
        consecutive=False,
    )


def test_a_run_cut_short_decides_nothing(project):
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1")
    result = project.run("-x", "--llm-wrong=fail")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["UNDECIDED bench::accuracy*only 1 of 9 items*"])


ONE_ERROR = """
def respond(self, request):
    if request.id == "zoo-0002":
        return Response(request.id, error="lost")
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
"""


def test_an_error_fails_the_gates_unless_it_is_allowed_for(project):
    project.model(respond=ONE_ERROR)
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAIL bench::accuracy*incomplete: 1 error (max_errors 0)*"])
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1\nmax_errors = 1")
    result = project.run("-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["PASS bench::accuracy: 0.8889*8 of 9*8 of 8*"])


def test_a_benchmark_that_was_not_requested(project):
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1\n[benchmarks.mmlu]\naccuracy = 0.3")
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["NOT RUN mmlu*"])
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1\n[benchmarks.mmlu]\nrequired = true")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAIL mmlu: required but not run"])


def test_no_gate_for_what_ran_is_red(project):
    project.thresholds("[benchmarks.mmlu]\naccuracy = 0.3")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAIL no-gate: no gate of thresholds.toml was decided by this run"]
    )
    assert project.document("gates.json")["verdict"] == "fail"


def test_overrides_for_one_model(project):
    project.thresholds(
        """
        [benchmarks.bench]
        accuracy = 0.1
        [models.scripted.benchmarks.bench]
        accuracy = 0.9
        """
    )
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAIL bench::accuracy*(bound >= 0.9)*"])


def test_a_stored_run_is_judged_again_without_a_model(project):
    project.run()
    strict = project.path / "strict.toml"
    strict.write_text("version = 1\n[benchmarks.bench]\naccuracy = 0.9")
    loose = project.path / "loose.toml"
    loose.write_text("version = 1\n[benchmarks.bench]\naccuracy = 0.5")
    for file, code in ((strict, 1), (loose, 0), (project.path / "none.toml", 4)):
        result = project.pytester.run("llmeval", "gate", project.run_folder, file)
        assert result.ret == code
