"""Records survive the disk, other writers, and a writer that stops within a line."""

from __future__ import annotations

import math
import multiprocessing
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.storage import line_writer
from pytest_llmeval.storage.records import RecordWriter
from pytest_llmeval.storage.records import from_line
from pytest_llmeval.storage.records import key
from pytest_llmeval.storage.records import latest_records
from pytest_llmeval.storage.records import read_records
from pytest_llmeval.storage.records import to_line
from support.record_writers import make
from support.record_writers import write_many

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    text=st.none() | TEXT,
    answer=st.none() | TEXT,
    logprobs=st.lists(FINITE | st.just(-math.inf)).map(tuple),
    outcome=st.sampled_from(Outcome),
    seconds=st.none() | FINITE,
    tie=st.booleans(),
)
def test_a_record_comes_back_as_it_was(text, answer, logprobs, outcome, seconds, tie):
    record = Record(
        "m", "b", "s", "i", "x", outcome, answer, "A",
        text=text, logprobs=logprobs, seconds=seconds, tie=tie,
    )  # fmt: skip
    line = to_line(record)
    assert line.count("\n") == 1
    assert from_line(line) == record


@pytest.mark.parametrize("line", ["", "{", "[]", "{}", '{"item": "i"}', '{"nonsense": 1}', "3"])
def test_invalid_records_are_refused(line):
    with pytest.raises(ValueError):
        from_line(line)


@given(cut=st.integers(1, 200))
def test_a_torn_tail_is_cut_off_by_the_next_writer(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("run") / "records.jsonl"
    whole = to_line(make("first")).encode()
    path.write_bytes(whole + to_line(make("torn")).encode()[: -min(cut, len(whole) - 1)])
    assert [record.item for record in read_records(path)] == ["first"]
    writer = RecordWriter(path)
    writer.append(make("second"))
    writer.close()
    assert [record.item for record in read_records(path)] == ["first", "second"]


def test_a_torn_tail_longer_than_a_block(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_line(make("first")).encode() + b"x" * 200_000)
    writer = RecordWriter(path)
    writer.append(make("second"))
    assert [record.item for record in read_records(path)] == ["first", "second"]


def test_damage_in_the_middle_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(to_line(make()) + "{broken\n" + to_line(make()))
    with pytest.raises(RunError, match=r"records.jsonl, line 2: damaged record"):
        list(read_records(path))


def test_many_writers_tear_nothing(tmp_path):
    path = tmp_path / "records.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(path, name)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    items = [record.item for record in read_records(path)]
    assert sorted(items) == sorted(f"{name}-{n}" for name in "abc" for n in range(200))


def test_a_write_that_falls_short_is_taken_back(tmp_path, monkeypatch):
    path = tmp_path / "records.jsonl"
    writer = RecordWriter(path)
    writer.append(make("first"))
    write = os.write
    monkeypatch.setattr(line_writer.os, "write", lambda handle, data: write(handle, data[:10]))
    with pytest.raises(RunError, match=r"cannot write .*: no space left on device"):
        writer.append(make("second"))
    monkeypatch.undo()
    assert [record.item for record in read_records(path)] == ["first"]
    writer.append(make("third"))
    assert [record.item for record in read_records(path)] == ["first", "third"]


@given(
    st.lists(
        st.builds(
            Record,
            model=st.sampled_from("mn"),
            benchmark=st.sampled_from("bc"),
            scorer=st.sampled_from("st"),
            item=st.sampled_from("ij"),
            subject=st.just("x"),
            outcome=st.sampled_from(Outcome),
            answer=st.none(),
            gold=st.just("A"),
            sample=st.integers(0, 1),
            arm=st.sampled_from(("", "cyclic@1")),
        ),
        max_size=40,
    )
)
def test_the_record_written_last_of_an_answer_counts(tmp_path_factory, records):
    file = tmp_path_factory.mktemp("records") / "records.jsonl"
    writer = RecordWriter(file)
    writer.append(*records)
    writer.close()
    last = {key(record): place for place, record in enumerate(records)}
    assert latest_records(file) == [records[place] for place in sorted(last.values())]
