"""Shards make the run they are parts of, or are refused by one line."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.runs import MismatchError
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs import merge
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.records import read_records
from support import stored_runs
from support.stored_runs import PLAIN
from support.stored_runs import store
from support.stored_runs import together

ITEMS = {f"{subject}-{n}": "cwue"[(n * n) % 4] for subject in ("art", "law") for n in range(6)}


def cut(make_run, parts: int, items=ITEMS, **more):
    """The shards of a run over these items, in order."""
    ids = list(items)
    shards = []
    for part in range(1, parts + 1):
        own = ids[len(ids) * (part - 1) // parts : len(ids) * part // parts]
        shard = make_run(
            f"shard-{part}",
            {item: items[item] for item in own},
            not_run=tuple(item for item in ids if item not in own),
            shard=[part, parts],
            started=f"2026-11-0{part}",
            command=["pytest", f"--llm-shard={part}/{parts}"],
            **more,
        )
        # Every shard knows the whole benchmark, in one order.
        sizes = {"art": 6, "law": 6}
        results = [{**result, "subjects": sizes} for result in shard.manifest["results"]]
        shards.append(replace(shard, manifest={**shard.manifest, "results": results}))
    return shards


@pytest.mark.parametrize("parts", [1, 2, 4, 5])
def test_the_numbers_are_those_of_one_run_byte_for_byte(make_run, tmp_path, parts):
    whole = make_run("whole", ITEMS)
    RunFolder(store(whole).path).write("metrics.json", whole.metrics())
    shards = [load_run(store(run).path) for run in cut(make_run, parts)]
    folder = merge(list(reversed(shards)), tmp_path / "merged")
    assert folder.path == tmp_path / "merged"
    assert (folder.path / "metrics.json").read_bytes() == (
        tmp_path / "whole" / "metrics.json"
    ).read_bytes()
    assert list(read_records(folder.records)) == list(whole.records)
    assert load_run(folder.path).metrics() == whole.metrics()
    assert not list(tmp_path.glob(".*"))


def test_samples_and_several_models(make_run, tmp_path):
    items = {item: f"{letter}cw" for item, letter in ITEMS.items()}
    models = ("one", "two")
    whole = make_run("whole", items, models=models)
    folder = merge(cut(make_run, 3, items, models=models), tmp_path / "merged")
    assert load_run(folder.path).metrics() == whole.metrics()


def test_the_manifest_lists_the_joined_runs(make_run, tmp_path):
    folder = merge(cut(make_run, 2), tmp_path / "merged")
    manifest = folder.read("run.json")
    assert manifest["shard"] is None
    assert manifest["status"] == "finished"
    assert manifest["selected"] == 12
    assert manifest["model_fingerprints"] == {"demo": "weights of demo"}
    assert manifest["merged"] == [
        {"run": f"shard-{n}", "started": f"2026-11-0{n}",
         "command": ["pytest", f"--llm-shard={n}/2"]}
        for n in (1, 2)
    ]  # fmt: skip
    assert "command" not in manifest
    with pytest.raises(ConfigError, match=r"merged is not a shard"):
        merge([load_run(folder.path)], tmp_path / "again")


@given(cuts=st.sets(st.integers(1, 11), max_size=3), seed=st.randoms())
def test_however_the_items_are_split(cuts, seed, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    make = partial(stored_runs.make_run, path)
    whole = make("whole", ITEMS)
    bounds = [0, *sorted(cuts), len(ITEMS)]
    ids = list(ITEMS)
    seed.shuffle(ids)
    shards = []
    for part, (start, end) in enumerate(pairwise(bounds), start=1):
        own = {item: ITEMS[item] for item in ids[start:end]}
        run = make(f"s{part}", own, shard=[part, len(bounds) - 1])
        results = [{**whole.manifest["results"][0], "asked": len(own)}]
        shards.append(replace(run, manifest={**run.manifest, "results": results}))
    folder = merge(shards, path / "merged")
    assert folder.read("metrics.json") == {"format": folder.read("run.json")["format"]} | (
        whole.metrics()
    )


# What is refused --------------------------------------------------------------------------


def refused(runs, out, message: str, kind: type[ConfigError] = ConfigError) -> None:
    with pytest.raises(kind, match=message) as caught:
        merge(runs, out)
    assert "\n" not in str(caught.value)
    assert not out.exists()


def changed(run, **manifest):
    return replace(run, manifest={**run.manifest, **manifest})


def test_a_folder_that_is_not_a_shard(make_run, tmp_path):
    first, two = cut(make_run, 2)
    refused([first, changed(two, shard=None)], tmp_path / "m", r"shard-2 is not a shard")
    refused([first, changed(two, shard="2/2")], tmp_path / "m", r"shard '2/2' is not \[I, N\]")
    refused([], tmp_path / "m", r"no shards")


def test_gaps_and_repetitions(make_run, tmp_path):
    first, two, three, four = cut(make_run, 4)
    refused([first, two, four], tmp_path / "m", r"^gap: shard 3/4 is missing$")
    refused([two], tmp_path / "m", r"^gap: shards 1/4, 3/4, 4/4 are missing$")
    refused([first, two, three, four, two], tmp_path / "m", r"shard-2 and .*shard-2 are both shard")
    refused([first, changed(two, shard=[2, 3])], tmp_path / "m", r"one of 4 shards, .* one of 3$")


def test_an_item_in_two_shards(make_run, tmp_path):
    first, two = cut(make_run, 2)
    two = replace(two, records=(*two.records, first.records[3]))
    refused([first, two], tmp_path / "m", r"item art-3 of mmlu is in .*shard-1 and in .*shard-2")


def test_a_shard_that_was_interrupted(make_run, tmp_path):
    first, two = cut(make_run, 2)
    for status in ("interrupted", "running"):
        cut_short = changed(two, status=status)
        refused([first, cut_short], tmp_path / "m", r"shard-2 was not finished: resume it first")


def test_a_shard_of_which_items_were_deselected(make_run, tmp_path):
    first, two = cut(make_run, 2)
    message = r"gap: .*shard-2 left out 2 of the 6 items of its shard"
    refused([first, changed(two, selected=4)], tmp_path / "m", message)


def test_an_item_that_its_test_skipped_is_no_gap(make_run, tmp_path):
    first, two = cut(make_run, 2)
    out = (replace(two.records[0], left_out=True), *two.records[1:])
    shards = [changed(first, answers=6), changed(replace(two, records=out), answers=5)]
    folder = merge(shards, tmp_path / "m")
    (result,) = load_run(folder.path).results()
    assert (result.counts.attempted, result.counts.missing) == (11, 1)


def test_records_that_were_lost_are_noticed(make_run):
    run = make_run("a", ITEMS, answers=12)
    store(replace(run, records=run.records[:-1]))
    with pytest.raises(RunError, match=r"has 11 of the 12 answers of its run\.json$"):
        load_run(run.path)


def test_an_item_lost_with_a_worker_is_an_outcome(make_run, tmp_path):
    items = dict.fromkeys(ITEMS, "ccc") | {"law-5": "e"}
    folder = merge(cut(make_run, 2, items), tmp_path / "m")
    (result,) = load_run(folder.path).results()
    assert result.counts.error == 1


def test_shards_of_other_runs(make_run, tmp_path):
    first, two = cut(make_run, 2)

    def against(message: str, **manifest) -> None:
        refused([first, changed(two, **manifest)], tmp_path / "m", message, MismatchError)

    against(r"are not shards of one run: models \['demo'\] against \['x'\]", models=["x"])
    against(r": seed 0 against 7", seed=7)
    against(r": limit None against 3", limit=3)
    planned = two.manifest["results"][0]
    against(
        r"mmlu\[letter\]\.data '0123abcd' against 'ff'", results=[{**planned, "data_hash": "ff"}]
    )
    against(r"drawn None against \{'art': 3\}", results=[{**planned, "drawn": {"art": 3}}])
    against(r"mmlu\[letter\] .* against \(absent\)", results=[])
    other = cut(make_run, 2, protocol=replace(PLAIN, shots=5))[1]
    refused([first, other], tmp_path / "m", r"mmlu\[letter\]\.shots 0 against 5", MismatchError)


def test_shards_of_other_weights(make_run, tmp_path):
    first, two = cut(make_run, 2)
    new = tuple(replace(record, model_fingerprint="new") for record in two.records)
    refused(
        [first, replace(two, records=new)],
        tmp_path / "m",
        r"fingerprint of demo \['weights of demo'\] against \['new'\]",
        MismatchError,
    )
    named = tuple(replace(record, model="mine") for record in first.records)
    others = tuple(replace(record, model="yours") for record in two.records)
    own = {"own_model": True, "models": ["conftest"]}
    refused(
        [
            changed(replace(first, records=named), **own),
            changed(replace(two, records=others), **own),
        ],
        tmp_path / "m",
        r"model \['mine'\] against \['yours'\]",
        MismatchError,
    )


def test_a_shard_in_which_nothing_was_answered_has_no_weights(make_run, tmp_path):
    first, two = cut(make_run, 2, {item: "c" if item < "b" else "e" for item in ITEMS})
    lost = tuple(
        replace(record, model_fingerprint=None, error="worker died") for record in two.records
    )
    folder = merge([first, replace(two, records=lost)], tmp_path / "m")
    (result,) = load_run(folder.path).results()
    assert (result.counts.correct, result.counts.error) == (6, 6)


def test_nothing_is_overwritten(make_run, tmp_path):
    (tmp_path / "m").mkdir()
    with pytest.raises(ConfigError, match=r"m exists already"):
        merge(cut(make_run, 2), tmp_path / "m")
    assert not list((tmp_path / "m").glob("*/"))


def test_a_disk_that_fills_up_leaves_nothing_behind(make_run, tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(
        "pytest_llmeval.storage.line_writer.os.write", lambda handle, data: write(handle, data[:10])
    )
    shards = cut(make_run, 2)
    with pytest.raises(RunError, match="no space left"):
        merge(shards, tmp_path / "m")
    assert not list(tmp_path.glob("*/"))


def test_results_in_both_shards_of_several_benchmarks(make_run, tmp_path):
    pairs = [cut(make_run, 2), cut(make_run, 2, benchmark="arc")]
    shards = []
    for part in (0, 1):
        run = together(tmp_path / f"s{part}", *(pair[part] for pair in pairs))
        shards.append(changed(run, selected=12))
    whole = together(tmp_path / "w", make_run("w", ITEMS), make_run("w", ITEMS, benchmark="arc"))
    folder = merge(shards, tmp_path / "m")
    assert load_run(folder.path).metrics() == whole.metrics()
