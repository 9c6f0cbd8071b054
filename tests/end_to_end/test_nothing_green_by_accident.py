"""Every table and key of thresholds.toml that checks nothing: verdict, exit code, printed line.

The common benchmark has 9 items in the subjects art, law and zoo under scorer letter, and the
scripted model answers 6 of them correctly.
"""

from __future__ import annotations

import re

import pytest

from pytest_llmeval.cli import main

GREEN, RED, REFUSED = 0, 1, 4
PASSING = "[benchmarks.bench]\naccuracy = 0.5\n"

# Name of the case, the file behind PASSING, exit code, and what is printed about the table.
CASES = [
    # A key whose data is not there.
    ("accuracy, no item", "[benchmarks.mmlu]\naccuracy = 0.5", GREEN, "NOT RUN mmlu: *"),
    ("required", "[benchmarks.mmlu]\nrequired = true", RED, "FAIL mmlu: required but not run"),
    ("required, was run", "required = true", GREEN, "PASS bench::accuracy: *"),
    ("required = false alone", "[benchmarks.gsm8k]\nrequired = false", GREEN, "NOT RUN gsm8k: *"),
    ("max_errors", "max_errors = 0", GREEN, "PASS bench::max_errors: 0 *"),
    ("truncated", "truncated_rate = 0", GREEN, "PASS bench::truncated_rate: *"),
    ("pass@k, one sample", '"pass@2" = 0.1', REFUSED, "*pass@2 needs at least 2 samples*"),
    ("audit that was not requested", "consistency = 0.5", RED, "UNDECIDED bench::consistency: *"),
    ("position_range", "position_range = 0.5", RED, "UNDECIDED bench::position_range: *"),
    ("recall_std", "recall_std = 0.5", RED, "UNDECIDED bench::recall_std: *"),
    (
        "scorer that did not run",
        "scorers.cloze.accuracy = 0.5",
        RED,
        "UNDECIDED bench::scorers.cloze::accuracy: *scorer 'cloze' did not run*",
    ),
    (
        "hybrid of a scorer that did not run",
        'hybrids."0.5*letter+0.5*cloze" = 0.5',
        RED,
        "UNDECIDED bench::hybrids.*'cloze' did not run*",
    ),
    ("subject", "subjects.art.accuracy = 0.5", GREEN, "PASS bench::subjects.art::accuracy: *"),
    ("every subject", "every_subject.accuracy = 0.5", GREEN, "PASS bench::every_subject::*"),
    ("regression", "regression.max_drop = 0.1", RED, "UNDECIDED bench::regression:*"),
    ("subject drop", "regression.max_subject_drop = 0.1", RED, "UNDECIDED bench::regression:*"),
    ("no limit", "regression.alpha = 0.1", REFUSED, "*needs max_drop or max_subject_dr*"),
    (
        "baseline that does not exist",
        'regression = { max_drop = 0.1, baseline = "last" }',
        REFUSED,
        "*baseline = 'last': no run folder*--llm-baseline none",
    ),
    (
        "two baselines",
        'regression = { max_drop = 0.1, baseline = "a" }\n'
        'scorers.letter.regression = { max_drop = 0.1, baseline = "b" }',
        REFUSED,
        "*a run is compared with one baseline",
    ),
    # A name that refers to nothing.
    ("benchmark, misspelt", "[benchmarks.bensh]\naccuracy = 1", REFUSED, "*mean 'bench'?*"),
    (
        "catalog, misspelt",
        "[benchmarks.arc]\naccuracy = 1",
        REFUSED,
        "*mean 'arc_challenge' or 'arc_easy'?*",
    ),
    ("unlike any", "[benchmarks.q7]\naccuracy = 1", REFUSED, "*unknown benchmark 'q7'*"),
    ("elsewhere", "[benchmarks.q7]\naccuracy = 1\nrequired = false", GREEN, "NOT RUN q7: *"),
    (
        "printed form",
        '[benchmarks."bench[[]letter]"]\naccuracy = 1',
        REFUSED,
        "*write [[]benchmarks.bench.scorers.letter]",
    ),
    ("gate's name", '[benchmarks."bench::accuracy"]\nmin = 1', REFUSED, "*"),
    ("test", "[benchmarks.test_bench]\naccuracy = 1", REFUSED, "*write [[]benchmarks.bench]"),
    ("subject, misspelt", "subjects.arts.accuracy = 0", REFUSED, "*did you mean 'art'?"),
    ("scorer, misspelt", "scorers.leter.accuracy = 0", REFUSED, "*did you mean 'letter'?"),
    ("metric, misspelt", "acuracy = 0", REFUSED, "*did you mean 'accuracy'?"),
    ("table, misspelt", "[benchmark.bench]\naccuracy = 1", REFUSED, "*did you mean 'benchmarks'?"),
    ("empty table", "[benchmarks.mmlu]", REFUSED, "*empty table*"),
    (
        "model, elsewhere",
        "[models.x]\nrequired = false\nbenchmarks.bench.accuracy = 1",
        GREEN,
        "NOT RUN models.x: no model of this run",
    ),
    (
        "model that ran",
        "[models.scripted.benchmarks.bench]\naccuracy = 1",
        RED,
        "FAIL bench::accuracy: 0.6667 *",
    ),
    # A key that the benchmark cannot have.
    ("in a subject", "subjects.art.macro_accuracy = 0", REFUSED, "*gate of a whole benchmark*"),
    ("outside", "max_drop = 0.1", REFUSED, "*belongs to the table regression*"),
    ("out of range", "unparsed_rate = 5", REFUSED, "*outside [[]0, 1]*"),
    ("percentage", "unparsed_rate = 28", REFUSED, "*write 0.28 for 28 %*"),
]


def pattern(text: str) -> str:
    """A shell pattern as a regular expression of a whole line."""
    return "|".join(
        ".*".join(re.escape(part) for part in text.replace("[[]", "[").split("*")).splitlines()
    )


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [pytest.param(*case, id=name) for name, *case in CASES],
)
def test_a_table_that_checks_nothing(project, capsys, text, code, line):
    project.thresholds(PASSING + text.replace("[[]", "["))
    result = project.run("-q")
    printed = result.outlines + result.errlines
    assert result.ret == code, printed
    assert any(
        re.fullmatch(rf"(ERROR: )?{pattern(line)}", printed_line.strip())
        for printed_line in printed
    ), printed
    assert (project.path / "runs").exists() == (code != REFUSED)
    if code != REFUSED:
        capsys.readouterr()
        assert main(["gate", str(project.run_folder)]) == code
        judged = capsys.readouterr().out.splitlines()
        assert any(re.fullmatch(pattern(line), gate_line) for gate_line in judged), judged


def test_the_table_of_a_model_that_never_ran_is_red(project, capsys):
    """A `model` fixture names its model only when it answers, a stored run at once."""
    project.thresholds(PASSING + "[models.scriptet.benchmarks.bench]\naccuracy = 1")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAIL models.scriptet: no model of this run or of an earlier one*"]
    )
    assert main(["gate", str(project.run_folder)]) == 4
    assert "unknown model 'scriptet', did you mean 'scripted'?" in capsys.readouterr().err


def test_a_regression_table_without_a_baseline_fails_unless_allowed(project, capsys):
    """A model that falls from 6 of 9 to none must not pass because nothing was compared."""
    project.thresholds(PASSING.replace("0.5", "0") + "regression.max_drop = 0.1")
    project.benchmark(art=20, law=20)
    worse = (
        "def respond(self, request):\n    return Response(request.id, logprobs=(0.0, -1.0, -2, -3))"
    )
    first = project.run("--llm-baseline=none")
    assert first.ret == 0
    first.stdout.fnmatch_lines(["NOT RUN bench::regression: --llm-baseline none: *"])
    assert main(["gate", str(project.run_folder)]) == 0  # it remembers `none`
    assert main(["baseline", str(project.run_folder), "last-release"]) == 0

    project.model(respond=worse)
    assert project.run().ret == 1
    compared = project.run("--llm-baseline=last-release")
    assert compared.ret == 1
    compared.stdout.fnmatch_lines(["FAIL bench::regression::max_drop: 0.9500 *"])
    # A stored run remembers what it was compared with.
    capsys.readouterr()
    assert main(["gate", str(project.run_folder)]) == 1
    assert "FAIL bench::regression::max_drop: 0.9500 " in capsys.readouterr().out


def test_the_file_names_the_baseline(project, capsys):
    regression = 'regression = { max_drop = 0.1, baseline = "last-release" }'
    project.thresholds(PASSING + regression)
    refused = project.run()
    assert refused.ret == 4
    assert "for the first run, give --llm-baseline none" in refused.stderr.str()
    assert project.run("--llm-baseline=none").ret == 0
    assert main(["baseline", str(project.run_folder), "last-release"]) == 0
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["PASS bench::regression::max_drop: 0.0000 *"])
    # Other gates, no option: the run still knows its baseline.
    project.thresholds("[benchmarks.bench]\nregression.max_drop = 0.2")
    capsys.readouterr()
    assert main(["gate", str(project.run_folder)]) == 0
    assert "PASS bench::regression::max_drop: 0.0000 " in capsys.readouterr().out


def test_an_incomparable_baseline_leaves_the_gate_undecided_with_the_reason(project):
    project.thresholds(PASSING + "regression.max_drop = 0.1")
    assert project.run("--llm-baseline=none").ret == 0
    baseline = project.run_folder
    project.benchmark(art=3, law=3)
    result = project.run(f"--llm-baseline={baseline}")
    assert result.ret == 4
    assert "data" in result.stderr.str()


def test_a_model_fixture_and_a_model_on_the_command_line_are_refused_together(project):
    result = project.run("--llm-model=demo")
    assert result.ret == 4
    (line,) = (error_line for error_line in result.errlines if error_line.strip())
    assert re.search(r"--llm-model demo is given, and conftest\.py:\d+ has a `model` fixture", line)
    assert "give one of the two" in line
    assert not (project.path / "runs").exists()


@pytest.mark.parametrize("name", ["answer", "item"])
def test_a_project_fixture_that_hides_ours_is_named(project, name):
    with (project.path / "conftest.py").open("a") as file:
        file.write(f"\n@pytest.fixture\ndef {name}():\n    return 1\n")
    result = project.run()
    assert result.ret == 4
    assert re.search(
        rf"the fixture `{name}` of conftest\.py:\d+ hides the one of", result.stderr.str()
    )
