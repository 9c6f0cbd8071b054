"""SWE-bench: the published rows from every layout; other sets and old rows refused in one line."""

from __future__ import annotations

import importlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import swebench_lite
from pytest_llmeval.catalog import swebench_verified
from pytest_llmeval.catalog.swebench import LITE_SIZES
from pytest_llmeval.catalog.swebench import LOG_PARSERS
from pytest_llmeval.catalog.swebench import VERIFIED_SIZES
from pytest_llmeval.catalog.swebench import dataset
from pytest_llmeval.catalog.swebench import swebench_rows
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.scorers.swebench.log_parsers import PARSERS
from pytest_llmeval.scorers.swebench.resolved import FIELDS
from pytest_llmeval.scorers.swebench.resolved import expected_tests
from support.paths import REPOSITORY
from support.swebench_data import RECORDED
from support.swebench_data import needs_recorded
from support.swebench_rows import row

MODULE = importlib.import_module("pytest_llmeval.catalog.swebench")
PUBLISHED = {
    "swebench_verified": ("SWE-bench_Verified_test", swebench_verified, VERIFIED_SIZES),
    "swebench_lite": ("SWE-bench_Lite_test", swebench_lite, LITE_SIZES),
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(rows) if path.suffix == ".json" else "\n".join(map(json.dumps, rows))
    path.write_text(text, encoding="utf-8")
    return path


def refusal(*rows: dict[str, Any]) -> str:
    with pytest.raises(DataError) as caught:
        dataset((f"rows.jsonl, line {number}", row) for number, row in enumerate(rows, start=1))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@needs_recorded
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_rows(name, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    file, benchmark, sizes = PUBLISHED[name]
    (tmp_path / "a" / name).mkdir(parents=True)
    source = RECORDED / "rows" / f"{file}.parquet"
    (tmp_path / "a" / name / "test-00000-of-00001.parquet").symlink_to(source)
    loaded = benchmark().source(tmp_path / "a")
    check_dataset(name, loaded)
    assert loaded.subject_sizes().keys() == sizes.keys()
    assert sum(sizes.values()) == len(loaded.items)
    facts = tomllib.loads((REPOSITORY / "docs" / "benchmarks.toml").read_text())[name]
    assert (facts["items"], facts["subjects"]) == (len(loaded.items), len(sizes))
    assert loaded.chance() is None
    counts = [expected_tests(item) for item in loaded.items]
    totals = [
        sum(len(count.fail_to_pass) for count in counts),
        sum(len(count.pass_to_pass) for count in counts),
    ]
    assert totals == {"swebench_verified": [1516, 60136], "swebench_lite": [1040, 24514]}[name]
    assert all(set(FIELDS) <= item.fields.keys() for item in loaded.items)
    # The same rows in other files have the same hash.
    rows = parquet.read_table(source).to_pylist()
    write(tmp_path / "b" / name / "rows.jsonl", rows)
    for published in rows:  # as newer releases have them
        published["FAIL_TO_PASS"] = json.loads(published["FAIL_TO_PASS"])
    write(tmp_path / "c" / name / "rows.json", rows)
    hashes = {benchmark().source(tmp_path / folder).content_hash() for folder in "abc"}
    assert hashes == {loaded.content_hash()}
    write(tmp_path / "d" / name / "rows.jsonl", rows[1:])
    with pytest.raises(DataError, match=r"not the complete set: test astropy/astropy has \d+ of"):
        benchmark().source(tmp_path / "d")


@needs_recorded
def test_multilingual_is_refused():
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(RECORDED / "rows" / "SWE-bench_Multilingual_test.parquet")
    assert "unknown log parser 'parse_log_" in refusal(*table.to_pylist())


def test_every_parser_of_a_row_is_one_of_the_scorers():
    assert PARSERS.keys() == LOG_PARSERS


def test_the_dev_repositories_have_parsers(tmp_path):
    names = ("sqlfluff", "pvlib", "astroid", "pydicom", "marshmallow", "pyvista")
    rows = [row(n, log_parser=f"parse_log_{name}") for n, name in enumerate(names)]
    assert len(dataset(("x", row) for row in rows).items) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_assets": "{}"}, "SWE-bench Multimodal"),
        ({"dockerhub_tag": "x"}, "SWE-bench Pro"),
        ({"selected_test_files_to_run": "[]"}, "SWE-bench Pro"),
        ({"test_cmds": []}, "SWE-bench-Live"),
        ({"install_config": {}}, "SWE-rebench"),
        ({"image_name": "x"}, "SWE-smith"),
        ({"trajectory": []}, "a set of trajectories"),
        ({"eval_type": "fail_only"}, "eval_type 'fail_only', which is not supported"),
        ({"log_parser": "parse_log_jest"}, "unknown log parser 'parse_log_jest'"),
        ({"FAIL_TO_PASS": "['a']"}, "FAIL_TO_PASS is neither a list of names nor one as JSON"),
        ({"PASS_TO_PASS": [1]}, "PASS_TO_PASS is neither a list of names nor one as JSON"),
        ({"FAIL_TO_PASS": "[]"}, "FAIL_TO_PASS is empty"),
        ({"PASS_TO_PASS": None}, "no PASS_TO_PASS: not a row of SWE-bench"),
        ({"repo": None}, "no repo: not a row of SWE-bench"),
        ({"patch": ""}, "no text in patch"),
        ({"base_commit": 1}, "no text in base_commit"),
    ],
)
def test_rows_that_are_refused(changes, message):
    line = refusal(row(1), row(2, **changes))
    assert line.startswith("rows.jsonl, line 2: ")
    assert message in line


@pytest.mark.parametrize("missing", ["image", "eval_script", "log_parser"])
def test_rows_older_than_august_2026_are_refused(missing):
    old = row(1)
    del old[missing]
    assert f"no {missing}: the data set is older than August 2026" in refusal(old)


def test_an_instance_that_occurs_twice_is_refused():
    assert refusal(row(1), row(2), row(1)) == (
        "rows.jsonl, line 3: instance mini__calc-1 occurs twice"
    )


def test_broken_files_are_one_line(tmp_path):
    benchmark = swebench_verified()
    folder = tmp_path / "swebench_verified"
    folder.mkdir()
    with pytest.raises(DataError, match="0 files of rows, where test-"):
        benchmark.source(tmp_path)
    (folder / "rows.jsonl").write_text('{"instance_id": "x"\n')
    with pytest.raises(DataError, match="line 1: not valid JSON"):
        benchmark.source(tmp_path)
    (folder / "more.json").write_text("{}")
    with pytest.raises(DataError, match=r"2 files of rows.*: more.json, rows.jsonl"):
        benchmark.source(tmp_path)
    (folder / "rows.jsonl").unlink()
    with pytest.raises(DataError, match="a list of JSON objects was expected"):
        benchmark.source(tmp_path)


def test_prompts_come_from_a_file_beside_the_rows(tmp_path):
    write(tmp_path / "rows.jsonl", [row(1), row(2, text="its own")])
    write(tmp_path / "prompts.jsonl", [{"instance_id": "mini__calc-1", "text": "published"}])
    benchmark = swebench_rows(tmp_path / "rows.jsonl", name="mine")
    items = benchmark.source(None).items
    assert [item.fields["text"] for item in items] == ["published", "its own"]
    protocol = next(protocol for protocol in benchmark.protocols if protocol.name == "text")
    assert protocol.request(items[0], ()).prompt.text == "published"
    patch = benchmark.protocols[0].request(items[0], ()).prompt.text
    assert "add(1, 2) is 0" in patch
    assert "mini/calc" in patch


def test_a_relative_file_is_looked_up_in_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data" / "rows.jsonl", [row(1)])
    assert len(swebench_rows("rows.jsonl").source(tmp_path / "data").items) == 1
    with pytest.raises(DataError, match=r"other.jsonl: no such file, neither in"):
        swebench_rows("other.jsonl").source(tmp_path / "data")


def test_the_hub_is_asked_at_a_revision_that_the_user_names(monkeypatch):
    monkeypatch.delenv("LLMEVAL_DATA", raising=False)
    with pytest.raises(DataError, match=r"give swebench_lite\(revision=…\); give its files with"):
        swebench_lite().source(None)
    questions = []

    def load_rows(*question):
        questions.append(question)
        return [row(1)]

    files = importlib.import_module("pytest_llmeval.sources.files")
    monkeypatch.setattr(files.hub, "load_rows", load_rows)
    with pytest.raises(DataError, match="not the complete set"):
        swebench_lite(revision="abc").source(None)
    assert questions == [("SWE-bench/SWE-bench_Lite", None, "test", "abc")]


def test_two_calls_share_one_data_set():
    assert swebench_verified().source == swebench_verified(exclude=["x"]).source
    assert swebench_verified().source != swebench_lite().source
    assert hash(swebench_verified().source) == hash(swebench_verified().source)
