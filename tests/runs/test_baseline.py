"""A baseline is small, complete in what it compares by, and damage in it is reported in one line."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.catalog.mmlu import TEST_ROWS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import baseline
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import save_baseline
from pytest_llmeval.runs.baseline import read_baseline
from support.stored_runs import LETTERS
from support.stored_runs import PLAIN
from support.stored_runs import planned
from support.stored_runs import records_of
from support.stored_runs import store
from support.stored_runs import together

ITEMS = {"art-0000": "c", "art-0001": "w", "law-0000": "u", "law-0001": "e", "zoo-0000": "c"}


def about(record: Record) -> tuple:
    """What a baseline keeps of a record."""
    return (
        record.model, record.benchmark, record.scorer, record.subject, record.item, record.sample,
        record.outcome, record.protocol, record.data, record.model_fingerprint,
    )  # fmt: skip


def test_a_baseline_measures_what_the_run_did(make_run, tmp_path):
    run = make_run("a", ITEMS, models=("demo", "other"))
    file = tmp_path / "baselines" / "release.json"
    save_baseline(run, file)
    back = load_baseline("release", tmp_path / "baselines")
    assert back.path == file
    assert sorted(map(about, back.records)) == sorted(map(about, run.records))
    assert back.metrics() == run.metrics()
    for loaded, other in zip(back.measurements(), run.measurements(), strict=True):
        assert (loaded.items, loaded.protocol, loaded.fingerprint) == (
            other.items, other.protocol, other.fingerprint,
        )  # fmt: skip
        assert (loaded.data_hash, loaded.model_fingerprint) == (
            other.data_hash,
            other.model_fingerprint,
        )


def test_refused_answers_are_still_counted(make_run, tmp_path):
    run = make_run("a", {"art-0": "u", "art-1": "u", "art-2": "c"})
    reasons = {"art-0": "refusal", "art-2": "content_filter"}
    records = [replace(r, finish_reason=reasons.get(r.item)) for r in run.records]
    run = replace(run, records=tuple(records))
    save_baseline(run, tmp_path / "a.json")
    for measured in (run, read_baseline(tmp_path / "a.json")):
        (measurement,) = measured.measurements()
        # A filtered reply with an answer in its text was not refused.
        assert (measurement.result.counts.unparsed, measurement.result.counts.refused) == (2, 1)


def test_choices_encoded_apart_are_still_counted(make_run, tmp_path):
    run = make_run("a", ITEMS)
    records = tuple(
        replace(record, encoded_apart=2 * (record.answer == "A")) for record in run.records
    )
    run = replace(run, records=records)
    save_baseline(run, tmp_path / "a.json")
    back = read_baseline(tmp_path / "a.json")
    assert back.metrics() == run.metrics()
    assert back.measurements()[0].result.encoded_apart == len(ITEMS)


def test_a_baseline_holds_outcomes_and_no_texts(make_run, tmp_path):
    save_baseline(make_run("a", ITEMS), tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    assert "a long answer" not in text
    document = json.loads(text)
    assert document["run"] == "a"
    (block,) = document["outcomes"]
    assert block["subjects"]["art"] == {"prefix": "art-000", "items": {"c": "0", "w": "1"}}


def test_the_same_run_gives_the_same_bytes_whatever_its_order(make_run, tmp_path):
    run = make_run("a", ITEMS, models=("demo", "other"))
    shuffled = list(run.records)
    random.Random(1).shuffle(shuffled)
    save_baseline(run, tmp_path / "one.json")
    save_baseline(replace(run, records=tuple(shuffled)), tmp_path / "two.json")
    save_baseline(read_baseline(tmp_path / "one.json"), tmp_path / "three.json")
    first, two, three = (
        (tmp_path / f"{name}.json").read_bytes() for name in ("one", "two", "three")
    )
    assert first == two == three
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "one.json",
        "three.json",
        "two.json",
    ]


NAMES = st.from_regex(r"[A-Za-z0-9_.-]{1,6}", fullmatch=True)


@given(
    items=st.dictionaries(NAMES, st.text("cwue", min_size=3, max_size=3), min_size=1, max_size=8)
)
def test_every_item_and_sample_comes_back(items, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    protocol = replace(PLAIN, ask="text", samples=3)
    result = replace(planned({}, protocol), subjects={"s": len(items)})
    records = tuple(replace(record, subject="s") for record in records_of(result, "demo", items))
    manifest = {"models": ["demo"], "own_model": False, "results": [result.as_json()]}
    run = Run(path / "run", manifest, records)
    save_baseline(run, path / "b.json")
    back = read_baseline(path / "b.json")
    assert sorted(map(about, back.records)) == sorted(map(about, records))


def test_samples_that_were_not_run_stay_so(make_run, tmp_path):
    run = make_run("a", {"art-0": "c-w", "art-1": "ccc", "art-2": "--c"})
    save_baseline(run, tmp_path / "a.json")
    back = read_baseline(tmp_path / "a.json")
    assert sorted(map(about, back.records)) == sorted(map(about, run.records))


def test_items_without_a_verdict_are_not_in_a_baseline(make_run, tmp_path):
    run = make_run("a", ITEMS)
    kept = tuple(replace(record, left_out=record.subject == "art") for record in run.records)
    save_baseline(replace(run, records=kept), tmp_path / "a.json")
    back = read_baseline(tmp_path / "a.json")
    assert {record.subject for record in back.records} == {"law", "zoo"}
    with pytest.raises(RunError, match="has no outcomes to save"):
        save_baseline(replace(run, records=()), tmp_path / "b.json")
    assert not (tmp_path / "b.json").exists()


def test_mmlu_is_small_enough_for_git(make_run, tmp_path):
    rng = random.Random(0)
    items = {
        f"{subject}-{row:04d}": rng.choice("ccccwwwwwu")
        for subject, rows in TEST_ROWS.items()
        for row in range(rows)
    }
    assert len(items) == 14042
    run = make_run("a", items)
    save_baseline(run, tmp_path / "mmlu.json")
    assert (tmp_path / "mmlu.json").stat().st_size < 150_000
    (comparison,) = compare(read_baseline(tmp_path / "mmlu.json"), run).comparisons
    assert comparison.complete
    assert comparison.newly_wrong == comparison.newly_right == ()


def test_a_baseline_of_several_results(make_run, tmp_path):
    both = together(
        tmp_path / "a", make_run("a", ITEMS), make_run("a", {"x-0": "c"}, benchmark="arc")
    )
    save_baseline(both, tmp_path / "a.json")
    assert read_baseline(tmp_path / "a.json").metrics() == both.metrics()


# Finding one ------------------------------------------------------------------------------


def test_a_run_folder_a_file_and_a_name(make_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = store(make_run("runs/a", ITEMS))
    save_baseline(run, tmp_path / "baselines" / "v1.json")
    folder = tmp_path / "baselines"
    for text in ("runs/a", "baselines/v1.json", "v1"):
        assert load_baseline(text, folder).metrics() == run.metrics()
    # A folder that is no run does not hide a baseline of its name.
    (tmp_path / "v1").mkdir()
    assert load_baseline("v1", folder).metrics() == run.metrics()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("realease", "in .*baselines is called 'realease'; did you mean 'release'[?]$"),
        ("runs/20261129-dem", "; did you mean 'runs/20261129-demo'[?]$"),
        ("nothing/like/it", "is called 'nothing/like/it'; known: nightly, release$"),
        ("../release", "is called '../release'"),
        ("", "no run.json"),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest(
    make_run, tmp_path, monkeypatch, text, message
):
    monkeypatch.chdir(tmp_path)
    run = store(make_run("runs/20261129-demo", ITEMS))
    for name in ("release", "nightly"):
        save_baseline(run, tmp_path / "baselines" / f"{name}.json")
    with pytest.raises(ConfigError, match=message) as caught:
        load_baseline(text, tmp_path / "baselines")
    assert "\n" not in str(caught.value)


def test_without_a_folder_of_baselines(tmp_path):
    with pytest.raises(ConfigError, match=r"is called 'release'$"):
        load_baseline("release", tmp_path / "baselines")


# Damage -----------------------------------------------------------------------------------


def test_a_torn_file_is_reported_in_one_line(make_run, tmp_path):
    save_baseline(make_run("a", ITEMS), tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    for end in range(0, len(text) - 2, 97):
        (tmp_path / "torn.json").write_text(text[:end])
        with pytest.raises(RunError, match=r"torn\.json") as caught:
            load_baseline("torn", tmp_path)
        assert "\n" not in str(caught.value)


def damage(document: dict, how: str) -> None:
    block = document["outcomes"][0]
    match how:
        case "foreign":
            document["kind"] = "metrics"
        case "format":
            document["format"] = 99
        case "no outcomes":
            del document["outcomes"]
        case "outcomes":
            document["outcomes"] = [[]]
        case "letter":
            block["subjects"]["art"]["items"] = {"x": "0000"}
        case "twice":
            block["subjects"]["art"]["items"] = {"c": "0 1", "w": "1"}
        case "subject":
            block["subjects"]["physics"] = block["subjects"].pop("art")
        case "too many samples":
            block["subjects"]["art"]["items"] = {"ccc": "0"}
        case "number":
            block["model"] = 3
        case "items":
            block["subjects"]["art"]["items"] = ["c"]
        case "results":
            document["results"] = [{}]
        case "models":
            del document["models"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("foreign", "not a baseline of this tool"),
        ("format", "not a document of format"),
        ("no outcomes", r"damaged baseline \(no 'outcomes'\)"),
        ("outcomes", r"damaged baseline"),
        ("letter", r"damaged baseline \('x' is not an outcome\)"),
        ("twice", r"damaged baseline \(item art-0001 occurs twice\)"),
        ("subject", r"damaged baseline \(unknown subject 'physics'\)"),
        ("too many samples", r"damaged baseline \(an item of 'art' has more answers than 1\)"),
        ("number", "damaged baseline"),
        ("items", "damaged baseline"),
        ("results", "damaged, or of another version: results.0.benchmark: Field required"),
        ("models", "damaged, or of another version: models"),
    ],
)
def test_damage_is_reported_in_one_line(make_run, tmp_path, how, message):
    save_baseline(make_run("a", ITEMS), tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    damage(document, how)
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(RunError, match=rf"a\.json: {message}") as caught:
        load_baseline("a", tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{}", "\ufffe", "[" * 100_000])
def test_other_files_are_no_baselines(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RunError, match=r"a\.json"):
        load_baseline("a", tmp_path)


def test_a_folder_that_cannot_be_made(make_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*file/a\.json: (File exists|Not a dir)"):
        save_baseline(make_run("a", ITEMS), tmp_path / "file" / "a.json")


def test_letters_are_all_outcomes():
    assert set(baseline._LETTERS) == set(Outcome) == set(LETTERS.values())
