"""The same items, ids and numbers however many workers answer, and whatever happens to them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.runs import load_run

SIZES = {"art": 7, "law": 130, "zoo": 40}


def outcomes(project) -> dict[str, str]:
    """Outcome by item id, and the metrics with them."""
    return {r.item: str(r.outcome) for r in load_run(project.run_folder).records}


@pytest.mark.parametrize("workers", ["2", "4"])
def test_workers_change_nothing(project, workers, monkeypatch):
    project.benchmark(**SIZES)
    assert project.run().ret == 0
    alone = outcomes(project), project.document("metrics.json")
    monkeypatch.setenv("PYTHONHASHSEED", "random")  # in every worker another
    result = project.run("-n", workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*174 passed, 3 wrong*"])
    assert (outcomes(project), project.document("metrics.json")) == alone


def test_selection_changes_no_id_and_no_answer(project):
    project.benchmark(**SIZES)
    project.run()
    everything = outcomes(project)
    for arguments in (("-k", "zoo"), ("--llm-limit=3",), ("-n2", "-k", "art or zoo")):
        project.run(*arguments)
        part = outcomes(project)
        assert part.items() < everything.items()


def test_a_limit_draws_by_seed_and_keeps_what_a_smaller_one_drew(project):
    project.benchmark(**SIZES)
    drawn = {}
    for limit, seed in ((3, 0), (5, 0), (3, 1)):
        project.run(f"--llm-limit={limit}", f"--llm-seed={seed}")
        drawn[limit, seed] = set(outcomes(project))
    assert len(drawn[3, 0]) == 9
    assert drawn[3, 0] < drawn[5, 0]
    assert drawn[3, 0] != drawn[3, 1]


def test_a_chunk_stays_on_one_worker_and_weights_are_loaded_once(project):
    project.benchmark(**SIZES)
    project.run("-n", "2")
    loads = [line.split()[1] for line in (project.path / "loads.txt").read_text().splitlines()]
    assert sorted(loads) == ["gw0", "gw1"]  # once in each worker, never in the controller
    by_chunk: dict[str, set[str]] = {}
    for line in (project.path / "asked.txt").read_text().splitlines():
        worker, item = line.split()
        subject, row = item.split("-")
        # law's 130 items make two chunks of 65, each with a worker of its own
        by_chunk.setdefault(f"{subject}{int(row) // 65}", set()).add(worker)
    assert by_chunk.keys() == {"art0", "law0", "law1", "zoo0"}
    assert all(len(workers) == 1 for workers in by_chunk.values())


def test_the_longest_chunk_is_sent_first(project):
    project.benchmark(**SIZES)
    project.run("-n", "1")
    assert project.requested[0].startswith("law")
    assert project.requested[-1].startswith("art")


DIES = """
def respond(self, request):
    if {where}:
        os._exit(1)
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0), seconds=0.0)
"""


@pytest.mark.parametrize("reruns", [(), ("--reruns=2",)])
def test_a_dead_worker_costs_one_item_and_turns_the_build_red(project, reruns):
    """Also where another plugin would have the test run again: a chunk is not sent twice."""
    if reruns:
        pytest.importorskip("pytest_rerunfailures")
    project.benchmark(**SIZES)
    project.model(respond=DIES.format(where="request.id == 'law-0070'"))
    project.thresholds("[benchmarks.bench]\naccuracy = 0.5")
    result = project.run("-n", "2", *reruns)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAIL bench::accuracy*incomplete: 1 error*", "*worker 'gw*' crashed while running*"],
        consecutive=False,
    )
    metrics = project.metrics()
    assert (metrics["correct"], metrics["errors"], metrics["missing"]) == (176, 1, 0)
    # What the dead worker had answered was found on disk, and what killed it was left alone.
    assert sorted(project.requested) == sorted(set(project.requested))
    expected = project.document("metrics.json")
    del expected["format"]
    assert load_run(project.run_folder).metrics() == expected


def test_a_chunk_that_kills_every_worker_is_given_up(project):
    project.benchmark(**SIZES)
    project.model(respond=DIES.format(where="'law-0070' <= request.id < 'lawn'"))
    result = project.run("-n", "2")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*not answered: the items of its*"])
    metrics = project.metrics()
    assert metrics["missing"] == 0
    assert metrics["subjects"]["art"]["complete"]
    assert metrics["subjects"]["zoo"]["complete"]
    assert metrics["errors"] <= 65


@pytest.mark.parametrize(
    "where",
    [
        "request.id == 'law-0070'",
        "request.id == 'law-0000'",
        "request.id in ('zoo-0003', 'law-0070')",
    ],
)
def test_workers_that_may_not_be_replaced(project, where):
    """The session ends with the worker: red, and each item is there once at most."""
    project.benchmark(**SIZES)
    project.model(respond=DIES.format(where=where))
    project.thresholds("[benchmarks.bench]\naccuracy = 0.5")
    result = project.run("-n", "2", "--max-worker-restart=0", "--junitxml=junit.xml")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*bench::accuracy*"])
    metrics = project.metrics()
    assert metrics["errors"] == 1
    assert metrics["correct"] + metrics["wrong"] + metrics["errors"] + metrics["missing"] == 177
    # A worker that died in its last test may have left the other nothing undone.
    status = "interrupted" if metrics["missing"] else "finished"
    assert project.document("run.json")["status"] == status
    cases = ET.parse(project.path / "junit.xml").getroot()[0]
    names = [case.get("name") for case in cases if case.get("name").startswith("test_bench[")]
    assert len(names) == len(set(names)) == 177 - metrics["missing"]
    records = load_run(project.run_folder).records
    assert len(records) == len({record.item for record in records})


def test_a_run_without_its_last_worker_is_not_finished(project, capsys):
    project.benchmark(**SIZES)
    project.model(respond=DIES.format(where="request.id == 'law-0070'"))
    result = project.run("-n", "1", "--max-worker-restart=0")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["the run is not finished (interrupted): *--llm-resume*"])
    assert project.metrics()["missing"] > 0
    assert project.document("run.json")["status"] == "interrupted"
    main(["show", str(project.run_folder)])
    assert "the run is not finished (interrupted)" in capsys.readouterr().out
    project.model()
    assert project.run("-n", "1", "--llm-resume").ret == 0
    assert project.document("run.json")["status"] == "finished"
    assert project.metrics()["answered"] == 177


def test_a_model_that_cannot_be_used_stops_the_session(project):
    project.model(
        respond="""
        def respond(self, request):
            from pytest_llmeval.core import ModelError
            raise ModelError("no such GPU")
        """
    )
    for arguments in ((), ("-n", "2")):
        result = project.run(*arguments)
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*model scripted: no such GPU*"])


def test_ids_that_depend_on_chance_are_refused(project):
    project.benchmark(
        """
        import os
        @pytest.mark.parametrize("x", [os.getpid()])
        def test_random(x): pass
        """
    )
    result = project.run("-n", "2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: the workers collected different tests*"])
