"""Audits that are resumed, sharded, replayed or cut short."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from support.planted_project import BLUE
from support.planted_project import PLANTED_BENCHMARK
from support.planted_project import TWICE
from support.planted_project import audit


def test_a_resumed_audit_and_a_stored_one_have_the_same_results(planted):
    project = planted("shot")
    assert project.run("--llm-permutations=attack").ret == 0
    before, requested = project.metrics(), len(project.requested)
    file = project.run_folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]))
    assert project.run("--llm-permutations=attack", "--llm-resume").ret == 0
    assert project.metrics() == before
    assert len(project.requested) == requested + len(lines) - len(lines) // 2
    gate = project.pytester.run("llmeval", "show", str(project.run_folder))
    gate.stdout.fnmatch_lines(["*copies the position of the shots' answers*"])


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra bias")
@pytest.mark.parametrize("arguments", [["--llm-samples=4"], ["--llm-permutations=cyclic"]])
def test_ties_of_texts_are_broken_alike_when_resumed(project, arguments):
    (project.path / "test_bench.py").write_text(TWICE)
    (project.path / "conftest.py").write_text(BLUE)
    assert project.run(*arguments).ret == 0
    before = project.metrics()
    file = project.run_folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    answers = [json.loads(line)["answer"] for line in lines]
    assert {answers.count("B"), answers.count("C")} != {0, len(answers)}
    file.write_text("".join(lines[:-1]))
    assert project.run(*arguments, "--llm-resume").ret == 0
    assert project.metrics() == before


def test_a_dry_run_counts_every_order(planted):
    result = planted("gold").run("--llm-permutations=attack", "--llm-dry-run")
    result.stdout.fnmatch_lines(["planted?letter? * 40 * 520 *"])


def test_shards_of_different_audits_are_not_joined(planted):
    project = planted("gold")
    assert project.run("--llm-shard=1/2", "--llm-permutations=cyclic").ret == 0
    assert project.run("--llm-shard=2/2").ret == 0
    runs = sorted(str(folder) for folder in (project.path / "runs").glob("*/"))
    joined = project.pytester.run("llmeval", "merge", *runs, "--out", "whole")
    assert joined.ret != 0
    joined.stderr.fnmatch_lines(["*are not shards of one run: *orders*"])


def test_joined_shards_of_an_audit_are_the_audit(planted):
    project = planted("__import__('zlib').crc32(bytes([gold, shot])) % 4")
    arguments = ("--llm-permutations=attack", "--llm-debias=batch")
    for part in ("1/2", "2/2"):
        assert project.run(f"--llm-shard={part}", *arguments).ret == 0
    runs = sorted(str(folder) for folder in (project.path / "runs").glob("*/"))
    assert project.pytester.run("llmeval", "merge", *runs, "--out", "whole").ret == 0
    assert project.run(*arguments, "--llm-runs=undivided").ret == 0
    (undivided,) = (project.path / "undivided").glob("*/")
    made, wanted = (
        json.loads((folder / "metrics.json").read_text())["results"]
        for folder in (project.path / "whole", undivided)
    )
    assert made == wanted


def test_items_that_were_not_reached_count_in_no_order(biased):
    project = biased(backwards=True)  # all answers are on disk with the first
    body = "    if answer.item.id == 'item-03':\n        raise RuntimeError\n    assert"
    (project.path / "test_bench.py").write_text(PLANTED_BENCHMARK.replace("    assert", body))
    assert project.run("--llm-permutations=cyclic", "-x").ret == 1
    assert audit(project)["items"] == 3
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    last = {(record["item"], record.get("arm")): record for record in map(json.loads, lines)}
    assert len(last) == 160
    assert sum(not record.get("left_out") for record in last.values()) == 4 * 4


def test_interrupted_answers_are_errors_of_their_orders(planted):
    project = planted("gold")
    file = project.path / "conftest.py"
    file.write_text(
        file.read_text().replace(
            "            options =",
            "            if request.id == 'item-03': pytest.fail('hangs')\n            options =",
        )
    )
    assert project.run("--llm-permutations=cyclic").ret == 1
    assert project.metrics()["errors"] == 37
    assert audit(project)["items"] == 3
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    stored = list(map(json.loads, lines))
    assert len({(record.get("arm"), record["protocol"]) for record in stored}) == 4
    assert not any("sample" in record for record in stored)


def test_recorded_samples_are_no_answers_to_other_orders(planted):
    project = planted("gold")
    (project.path / "conftest.py").unlink()
    rows = [{"item": f"item-{n:02d}", "samples": ["(A)"] * 4} for n in range(40)]
    (project.path / "said.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert project.run("--llm-model=replay:said.jsonl").ret == 0
    result = project.run("--llm-model=replay:said.jsonl", "--llm-permutations=cyclic")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*no answer to 3 of 4 prompts:*", "*recorded answer for item-00, cyclic@1*"]
    )


def test_a_recorded_audit_is_replayed(planted):
    project = planted("shot")
    assert project.run("--llm-permutations=attack").ret == 0
    wanted = audit(project)
    (project.run_folder / "records.jsonl").rename(project.path / "records.jsonl")
    (project.path / "conftest.py").unlink()
    model = "--llm-model=replay:records.jsonl"
    assert project.run(model, "--llm-permutations=attack", "--llm-runs=again").ret == 0
    (folder,) = (project.path / "again").glob("*/")
    (result,) = json.loads((folder / "metrics.json").read_text())["results"]
    assert result["audit"] == wanted
