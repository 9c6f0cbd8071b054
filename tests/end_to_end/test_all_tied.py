"""A result in which nearly all options tie is no measurement, in the session and read back.

The fault behind it: vLLM counts a BOS token in the text offsets of an echoed prompt, so that all
choices get the value of the same earlier token, and the first of them wins.
"""

from __future__ import annotations

import json

import pytest

from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.runs import judge_run
from pytest_llmeval.runs import load_run
from pytest_llmeval.storage.folder import FORMAT

FLAT = """
def respond(self, request):
    flat = {flat!r}
    if request.id in {errors!r}:
        return Response(request.id, error="down")
    if request.id in flat:
        return Response(request.id, logprobs={values!r}, seconds=0.01)
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0), seconds=0.01)
"""
SAME = (-2.39,) * 4
NINE = [f"{s}-{n:04d}" for s, size in (("art", 2), ("law", 3), ("zoo", 4)) for n in range(size)]
EVERY_GATE = """
[benchmarks.bench]
accuracy = 0
macro_accuracy = { max = 1.0 }
normalized_gain = { min = -1 }
unparsed_rate = { max = 1.0 }
error_rate = { max = 1.0 }
"pass@1" = { min = 0 }
max_errors = 9
[benchmarks.bench.every_subject]
accuracy = 0
[benchmarks.bench.subjects.law]
accuracy = { max = 1.0, confidence = 0.95 }
max_errors = 9
"""


def flat_model(project, flat, values=SAME, errors=()):
    project.model(respond=FLAT.format(flat=list(flat), values=values, errors=list(errors)))


def judged(project) -> list[tuple[str, str, str]]:
    """(id, status, reason) of every gate, the same in the session and from the stored run."""
    gates = project.document("gates.json")["gates"]
    session = [(gate["id"], gate["status"], gate["reason"]) for gate in gates]
    run = load_run(project.run_folder)
    again = {"format": FORMAT, **run.metrics()}
    assert json.loads(json.dumps(again)) == project.document("metrics.json")
    stored = judge_run(run, load_thresholds(project.path / "thresholds.toml")).verdicts
    assert [(verdict.id, verdict.status, verdict.reason) for verdict in stored] == session
    return session


@pytest.mark.parametrize("workers", ["0", "2"])
def test_more_than_half_leaves_every_gate_undecided(project, workers):
    flat_model(project, NINE[:5])
    project.thresholds(EVERY_GATE)
    result = project.run("-n", workers)
    assert result.ret == 1
    judgments = judged(project)
    assert len(judgments) == 10
    reason = "not a measurement: all options have the same log-likelihood in 5 of 9 items (55.6%)"
    assert {(status, why) for _, status, why in judgments} == {("undecided", reason)}
    stored = project.pytester.run("llmeval", "gate", project.run_folder)
    assert stored.ret == 1
    for output in (result, stored):
        output.stdout.fnmatch_lines(
            ["UNDECIDED bench::accuracy: - (bound >= 0)", f"     {reason}"], consecutive=True
        )
        output.stdout.fnmatch_lines(
            [
                "bench[[]letter]: All options have the same log-likelihood in 5 of 9 answers (55.6%):*"
            ]
        )
    numbers = project.metrics()
    assert (numbers["all_tied"], numbers["all_tied_rate"]) == (5, pytest.approx(5 / 9))
    assert (numbers["measurement"], numbers["accuracy"], numbers["wilson95"]) == (False, None, None)
    assert numbers["subjects"]["zoo"]["accuracy"] is None
    assert numbers["macro_accuracy"] is None


def test_a_run_of_ties_is_undecided_at_any_accuracy(project):
    """Gold is the first option here: the accuracy would be 1."""
    test = project.path / "test_bench.py"
    test.write_text(test.read_text().replace('question {row}?", 1,', 'question {row}?", 0,'))
    flat_model(project, NINE)
    project.thresholds("[benchmarks.bench]\naccuracy = { chance = true }\n")
    assert project.run().ret == 1
    assert [status for _, status, _ in judged(project)] == ["undecided"]
    assert project.metrics()["correct"] == 9


@pytest.mark.parametrize(
    ("flat", "shown", "measured"),
    [(2, False, True), (3, True, True), (5, True, True), (6, True, False)],
)
def test_the_limits_are_shares_that_must_be_exceeded(project, flat, shown, measured):
    project.benchmark(art=10)
    flat_model(project, [f"art-{n:04d}" for n in range(flat)])
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    result = project.run("--llm-report=html,markdown")
    assert result.ret == (0 if measured else 1)
    assert judged(project)[0][1] == ("pass" if measured else "undecided")
    words = f"All options have the same log-likelihood in {flat} of 10 answers ({flat * 10}.0%)"
    markdown = (project.run_folder / "report.md").read_text()
    page = (project.run_folder / "report.html").read_text()
    printed = " ".join(result.stdout.str().split())  # lines are wrapped
    for text in (printed, markdown.replace("\\", ""), page):
        assert (words in text) is shown
        assert ("this is not a measurement" in text) is not measured


@pytest.mark.parametrize(
    ("values", "flat"),
    [
        ((-2.39, -2.39 - 1e-7, -2.39, -2.39), True),  # one token, evaluated in two batches
        ((-9999.0,) * 4, True),  # a server's placeholder
        ((0.0,) * 4, True),
        ((-2.39, -2.3905, -2.39, -2.39), False),
        ((-1.0, -1.0, -1.0, -2.0), False),  # a tie, but not of all
        ((float("-inf"), float("-inf"), -1.0, -1.0), False),
    ],
)
def test_equal_log_probabilities(project, values, flat):
    project.model(
        respond=f"def respond(self, request):\n    inf = float('inf')\n"
        f"    return Response(request.id, logprobs={values!r})"
    )
    project.thresholds("[benchmarks.bench]\naccuracy = { max = 1.0 }\n")
    project.run()
    assert project.metrics()["all_tied"] == (9 if flat else 0)
    assert judged(project)[0][1] == ("undecided" if flat else "pass")


def test_impossible_choices_are_errors_and_no_ties(project):
    project.model(
        respond="def respond(self, request):\n"
        "    return Response(request.id, logprobs=(-float('inf'),) * 4)"
    )
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    assert project.run().ret == 1
    assert judged(project) == [("bench::accuracy", "fail", "incomplete: 9 errors (max_errors 0)")]
    assert (project.metrics()["errors"], project.metrics()["all_tied"]) == (9, 0)


def test_errors_leave_the_share_and_too_many_still_fail(project):
    """4 of the 7 that were answered; the gates may not become merely undecided by it."""
    flat_model(project, NINE[:4], errors=NINE[7:])
    for limit, status in ((2, "undecided"), (1, "fail")):
        project.thresholds(f"[benchmarks.bench]\naccuracy = 0\nmax_errors = {limit}\n")
        assert project.run().ret == 1
        assert {judgment[1] for judgment in judged(project)} == {status}
    assert project.metrics()["all_tied_rate"] == pytest.approx(4 / 7)


def test_a_test_that_fails_after_its_answer_is_an_error_and_no_tie(project):
    test = project.path / "test_bench.py"
    body = "if answer.item.subject == 'zoo': raise OSError\n    assert answer.correct"
    test.write_text(test.read_text().replace("assert answer.correct", body))
    flat_model(project, NINE)
    project.thresholds("[benchmarks.bench]\nmax_errors = 4\n")
    project.run()
    assert project.metrics()["all_tied"] == 5
    judged(project)


def test_one_subject_alone(project):
    flat_model(project, ["art-0000", "art-0001"])
    project.thresholds(
        "[benchmarks.bench]\naccuracy = 0\n[benchmarks.bench.every_subject]\naccuracy = 0\n"
    )
    result = project.run()
    assert result.ret == 1
    statuses = {name: status for name, status, _ in judged(project)}
    assert statuses == {
        "bench::accuracy": "pass",
        "bench::every_subject::art::accuracy": "undecided",
        "bench::every_subject::law::accuracy": "pass",
        "bench::every_subject::zoo::accuracy": "pass",
    }
    assert project.metrics()["subjects"]["art"]["accuracy"] is None
    result.stdout.fnmatch_lines(["UNDECIDED bench::every_subject::accuracy*", "*in 2 of 2 items*"])


def test_items_that_were_not_run_are_no_part_of_the_share(project):
    flat_model(project, NINE[:2])
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    assert project.run("-k", "art").ret == 1
    assert judged(project)[0][2].startswith("not a measurement")


def test_allowed_undecided_gates(project):
    flat_model(project, NINE)
    project.thresholds("[benchmarks.bench]\naccuracy = 0.2\n")
    assert project.run("--llm-allow-undecided").ret == 0


def test_another_scorer_of_the_same_values_and_a_hybrid_of_both(project):
    test = project.path / "test_bench.py"
    test.write_text(
        test.read_text().replace(
            'TEMPLATE, scorer="letter")', 'TEMPLATE, scorer="letter", also=("likelihood",))'
        )
    )
    project.thresholds(
        """
        [benchmarks.bench.scorers.letter]
        accuracy = 0
        [benchmarks.bench.scorers.likelihood]
        accuracy = 0
        [benchmarks.bench.hybrids]
        "0.5*letter+0.5*likelihood" = { min = 0 }
        """
    )
    assert project.run().ret == 0
    flat_model(project, NINE[:6])
    for workers in ("0", "2"):
        result = project.run("-n", workers, "--llm-hybrid=letter=0.5,likelihood=0.5")
        assert result.ret == 1
        assert [status for _, status, _ in judged(project)] == ["undecided"] * 3
        (hybrid,) = project.document("metrics.json")["hybrids"]
        assert hybrid["value"] is None
        assert hybrid["reason"].startswith("letter is not a measurement")
        assert project.pytester.run("llmeval", "gate", project.run_folder).ret == 1


def test_length_normalisation_breaks_ties_of_raw_likelihoods(project):
    """Cloze divides by the length: the longest option wins, which is no knowledge either."""
    test = project.path / "test_bench.py"
    test.write_text(test.read_text().replace("BENCH)\ndef", "BENCH, protocol='other')\ndef"))
    flat_model(project, NINE)
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    assert project.run().ret == 1
    assert project.metrics()["scorer"] == "cloze"
    assert (project.metrics()["ties"], project.metrics()["all_tied"]) == (0, 9)
    assert judged(project)[0][1] == "undecided"


def test_other_orders_and_what_is_debiased_from_such_values(project):
    flat_model(project, NINE)
    project.thresholds(
        """
        [benchmarks.bench.scorers.letter]
        consistency = 0
        [benchmarks.bench.scorers."letter+cyclic"]
        accuracy = 0
        """
    )
    assert project.run("--llm-permutations=cyclic", "--llm-debias=cyclic").ret == 1
    assert [status for _, status, _ in judged(project)] == ["undecided"] * 2
    assert project.pytester.run("llmeval", "gate", project.run_folder).ret == 1


@pytest.mark.parametrize("named", [False, True])
def test_a_baseline_that_is_no_measurement_decides_no_regression(project, named):
    project.thresholds("[benchmarks.bench.regression]\nmax_drop = 0.5\nmax_subject_drop = 0.9\n")
    flat_model(project, NINE)
    project.run("--llm-runs=old")
    (baseline,) = (project.path / "old").glob("*/")
    if named:
        assert project.pytester.run("llmeval", "baseline", baseline, "flat").ret == 0
        baseline = "flat"
    project.model()
    result = project.run(f"--llm-baseline={baseline}")
    assert result.ret == 1
    gates = project.document("gates.json")["gates"]
    assert {gate["status"] for gate in gates} == {"undecided"}
    assert all("options all tie '100.0%' against '0.0%'" in gate["reason"] for gate in gates)
    again = project.pytester.run("llmeval", "gate", project.run_folder, "--baseline", baseline)
    assert again.ret == 1
    leaderboard = project.pytester.run("llmeval", "compare", baseline, project.run_folder)
    leaderboard.stdout.fnmatch_lines(["*no verdict*options all tie*"])


def test_a_candidate_that_is_no_measurement_decides_no_regression(project):
    project.run("--llm-runs=old")
    (baseline,) = (project.path / "old").glob("*/")
    flat_model(project, NINE)
    project.thresholds("[benchmarks.bench.regression]\nmax_drop = 0.5\n")
    assert project.run(f"--llm-baseline={baseline}").ret == 1
    (gate,) = project.document("gates.json")["gates"]
    assert gate["status"] == "undecided"
    assert gate["reason"].startswith("not a measurement")


def test_a_subject_without_measurement_decides_no_drop(project):
    project.run("--llm-runs=old")
    (baseline,) = (project.path / "old").glob("*/")
    flat_model(project, ["art-0000", "art-0001"])
    project.thresholds("[benchmarks.bench.regression]\nmax_subject_drop = 0.9\n")
    assert project.run(f"--llm-baseline={baseline}").ret == 1
    gates = {g["subject"]: g["status"] for g in project.document("gates.json")["gates"]}
    assert gates == {"art": "undecided", "law": "pass", "zoo": "pass"}


def test_shards_are_judged_together(project):
    """One of them alone is no measurement; what counts is the whole."""
    flat_model(project, NINE[:4])
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    for part in (1, 2):
        project.run(f"--llm-shard={part}/2")
    shards = sorted((project.path / "runs").glob("*/"))
    assert project.pytester.run("llmeval", "merge", *shards, "--out", "whole").ret == 0
    assert project.pytester.run("llmeval", "gate", "whole").ret == 0
    whole = json.loads((project.path / "whole" / "metrics.json").read_text())
    assert whole["results"][0]["all_tied"] == 4


def test_a_resumed_run_counts_ties(project):
    flat_model(project, NINE)
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    project.run("--maxfail=1", "--llm-wrong=fail")
    assert project.run("--llm-resume").ret == 1
    assert project.metrics()["all_tied"] == 9
    assert judged(project)[0][1] == "undecided"
