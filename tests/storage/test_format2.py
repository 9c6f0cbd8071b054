"""Records of format 2 become those of this format, each by the fingerprint of its own arm."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_llmeval.core import RunError
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.storage.folder import FORMAT
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.records import key
from pytest_llmeval.storage.records import read_records
from pytest_llmeval.storage.resuming import ResumableRun
from pytest_llmeval.storage.resuming import reopen

OLD = Path(__file__).parents[1] / "data" / "format2" / "run"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    shutil.copytree(OLD, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def test_every_record_is_of_the_arm_with_its_number(folder: RunFolder) -> None:
    manifest = folder.read("run.json")
    rows = [json.loads(line) for line in folder.records.read_text().splitlines()]
    records = list(folder.read_records(manifest))
    assert len(records) == len(rows) == 74
    by_benchmark = {result["benchmark"]: result["arms"] for result in reversed(manifest["results"])}
    for row, record in zip(rows, records, strict=True):
        number = row.get("sample", 0)
        if "order" in row:
            assert record.answer_key == (by_benchmark[record.benchmark][number - 1], 0)
        else:
            assert record.answer_key == ("", number)
        assert record.content_free == ("order" in row and row["gold"] == "")
    # All kinds are among them: orders under two scorers, inputs without content, samples.
    assert {(record.benchmark, record.scorer, record.arm) for record in records if record.arm} >= {
        ("lettered", "letter", "cyclic@3"),
        ("lettered", "letter", "free@[MASK]"),
        ("said", "choice", "cyclic@1"),
        ("said", "exact_match", "cyclic@1"),
    }
    assert {record.sample for record in records if record.benchmark == "sums"} == {0, 1, 2}


def test_a_later_record_replaces_an_earlier_of_the_same_arm(folder: RunFolder) -> None:
    manifest = folder.read("run.json")
    rows = folder.records.read_text().splitlines(keepends=True)
    latest = folder.latest_records(manifest)
    assert len({key(record) for record in latest}) == len(latest)
    folder.records.write_text("".join([*rows, *rows]))
    assert folder.latest_records(manifest) == latest


def test_an_order_that_run_json_does_not_have_is_one_line(folder: RunFolder) -> None:
    manifest = folder.read("run.json")
    protocol = arm_fingerprint(manifest["results"][0]["ways"][0]["fingerprint"], "cyclic@1")
    text = folder.records.read_text()
    assert protocol in text
    folder.records.write_text(text.replace(protocol, "0123456789abcdef"))
    with pytest.raises(RunError, match=r"line 2: damaged record \(its option order is not in run"):
        list(folder.read_records(manifest))


def test_a_folder_that_is_taken_up_becomes_one_of_this_format(folder: RunFolder) -> None:
    old = list(folder.read_records(folder.read("run.json")))
    with folder.records.open("a") as file:
        file.write('{"torn')
    reopen(ResumableRun(folder), Plan())
    assert folder.read("run.json")["format"] == FORMAT == 3
    assert list(read_records(folder.records)) == old
    # Where the session ended between the two files, nothing is done twice.
    manifest = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps({**manifest, "format": 2}))
    assert list(folder.read_records(folder.read("run.json"))) == old
    folder.release()


def test_records_that_cannot_be_rewritten_stay(folder: RunFolder, monkeypatch) -> None:
    before = folder.records.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(RunError, match=r"cannot write .*records.jsonl: No space left on device"):
        reopen(ResumableRun(folder), Plan())
    folder.release()
    assert folder.records.read_bytes() == before
