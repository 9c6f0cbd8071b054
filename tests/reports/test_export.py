"""An exported run: one schema in both formats, whatever its texts hold."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.reports import export
from pytest_llmeval.reports.registry import ReportInput
from pytest_llmeval.reports.registry import write_report
from pytest_llmeval.runs import load_run
from support.judged_runs import THRESHOLDS
from support.judged_runs import judged
from support.judged_runs import write_documents
from support.stored_runs import make_run
from support.stored_runs import store

HOSTILE = "\x00\x1b[31m<script>\u202e]]>\ud800\U0001f600\r\n\t" + "x" * 1_000_000


@pytest.fixture
def run(tmp_path):
    """A stored run with every outcome; the second answer has a hostile text."""
    made = make_run(tmp_path, "run", {"art-0": "c", "art-1": "w", "law-0": "u", "law-1": "e"})
    records = list(made.records)
    records[0] = replace(records[0], logprobs=(-0.5, -math.inf), seconds=0.25, prompt_tokens=7)
    records[1] = replace(records[1], text=HOSTILE, answer=HOSTILE)
    records[3] = replace(records[3], answer=None, error="it broke", text=None)
    return store(replace(made, records=tuple(records)))


def test_the_document_has_a_schema_and_every_column(run):
    file = write_report("json", ReportInput(run.path))
    assert file == run.path / "export.json"
    value = json.loads(file.read_bytes())
    assert (value["schema"], value["version"]) == ("pytest-llmeval/run", 2)
    names = [column.name for column in export.COLUMNS]
    assert all(list(row) == names for row in value["answers"])
    assert [row["outcome"] for row in value["answers"]] == ["correct", "wrong", "unparsed", "error"]
    assert [row["correct"] for row in value["answers"]] == [True, False, False, None]
    assert value["answers"][0]["logprobs"] == [-0.5, None]
    assert value["answers"][0]["protocol"] == "plain"
    assert value["answers"][0]["protocol_fingerprint"] in value["protocols"]
    assert value["verdict"] == "not gated"
    (result,) = value["results"]
    assert [result[name] for name in ("correct", "wrong", "unparsed", "errors")] == [1, 1, 1, 1]


def test_hostile_texts_come_back_as_they_were_recorded(run):
    # A lone surrogate cannot be written as UTF-8: the record on disk has "?" in its place.
    recorded = load_run(run.path).records[1].text
    assert recorded == HOSTILE.replace("\ud800", "?")
    value = json.loads(write_report("json", ReportInput(run.path)).read_text("ascii"))
    assert value["answers"][1]["text"] == recorded
    pq = pytest.importorskip("pyarrow.parquet")
    rows = pq.read_table(write_report("parquet", ReportInput(run.path))).to_pylist()
    assert rows[1]["text"] == recorded


def test_parquet_has_the_rows_of_the_json(run):
    pq = pytest.importorskip("pyarrow.parquet")
    value = json.loads(write_report("json", ReportInput(run.path)).read_bytes())
    table = pq.read_table(write_report("parquet", ReportInput(run.path)))
    assert table.to_pylist() == value.pop("answers")
    assert json.loads(table.schema.metadata[b"llmeval"]) == value
    types = {field.name: str(field.type) for field in table.schema}
    spelt = {"list<element: double>": "list<double>"}
    assert {name: spelt.get(kind, kind) for name, kind in types.items()} == {
        column.name: column.type for column in export.COLUMNS
    }


def test_more_rows_than_a_batch(run, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(export, "_BATCH", 3)
    assert pq.read_table(write_report("parquet", ReportInput(run.path))).num_rows == 4


def test_gates_are_those_of_the_session(tmp_path):
    judged_run = judged(tmp_path, {"art": "cccw"}, thresholds=THRESHOLDS)
    store(make_run(tmp_path, "run", {f"art-{n:04d}": c for n, c in enumerate("cccw")}))
    write_documents(judged_run)
    value = json.loads(write_report("json", ReportInput(judged_run.path)).read_bytes())
    assert value["verdict"] == "pass"
    assert value["thresholds"] == "thresholds.toml"
    assert [gate["id"] for gate in value["gates"]] == [
        verdict.id for verdict in judged_run.verdicts
    ]
    assert "format" not in value


def test_the_command_prints_what_it_wrote(run, tmp_path, capsys):
    assert main(["export", str(run.path), "--out", str(tmp_path / "x.json")]) == 0
    assert capsys.readouterr().out.startswith(f"wrote {tmp_path / 'x.json'} (")
    assert json.loads((tmp_path / "x.json").read_bytes())["run"]["name"] == "run"


def test_mistakes_are_one_line(run, tmp_path, capsys):
    assert main(["export", str(tmp_path / "nowhere")]) == 4
    assert main(["export", str(run.path), "--out", str(tmp_path / "no" / "x.json")]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "is not a run folder" in lines[0]
    assert lines[1].startswith("llmeval: cannot write ")
