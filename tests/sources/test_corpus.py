"""Documents of a corpus in every format, and files that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.sources import corpus
from pytest_llmeval.sources.corpus import check_libraries
from pytest_llmeval.sources.corpus import corpus_files
from pytest_llmeval.sources.corpus import documents
from pytest_llmeval.sources.corpus import looks_encoded

TEXTS = ["one\ntwo", "", "drei \u2028 vier", "五"]
LINES = "".join(json.dumps({"id": k, "text": text}) + "\n" for k, text in enumerate(TEXTS)).encode()


def zstd(data: bytes) -> bytes:
    arrow = pytest.importorskip("pyarrow")
    sink = arrow.BufferOutputStream()
    with arrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def read(path: Path, field: str = "text") -> list[tuple[int, str]]:
    return [(document.place, "".join(document.parts)) for document in documents(path, field)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", LINES),
        ("a.JSON", LINES.removesuffix(b"\n")),
        ("a.ndjson", b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n\r\n")),
        ("a.json.gz", gzip.compress(LINES)),
        ("a.jsonl.gz", gzip.compress(LINES[:50]) + gzip.compress(LINES[50:])),
    ],
)
def test_json_lines(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    assert [text for _, text in read(path)] == TEXTS
    assert [place for place, _ in read(path)] == ([1, 3, 5, 7] if b"\r" in data else [1, 2, 3, 4])


def test_lines_longer_than_a_read(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "_CHUNK", 7)
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES)
    assert [text for _, text in read(path)] == TEXTS


def test_zstandard(tmp_path):
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstd(LINES[:60]) + zstd(LINES[60:]))
    check_libraries([path])
    assert [text for _, text in read(path)] == TEXTS
    path.write_bytes(zstd(LINES * 2000)[:-20])
    with pytest.raises(DataError, match=r"a\.jsonl\.zst"):
        read(path)


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"text": [*TEXTS, None, "last"], "n": range(6)}), path)
    assert read(path) == [*enumerate(TEXTS, start=1), (6, "last")]
    with pytest.raises(DataError, match="no field 'txt'; did you mean 'text'"):
        read(path, "txt")
    with pytest.raises(DataError, match="row 1: field 'n' is int, not text"):
        read(path, "n")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read"):
        read(path)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.txt.gz"])
def test_text_is_one_document(tmp_path, monkeypatch, name):
    monkeypatch.setattr(corpus, "_CHUNK", 3)
    path = tmp_path / name
    data = "äöü\n{}\r\n漢字".encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read(path) == [(1, "äöü\n{}\r\n漢字")]
    (document,) = documents(path)
    assert document.by_line


def test_bytes_that_are_not_utf8_are_replaced(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 au lait")
    assert read(tmp_path / "a.txt") == [(1, "caf\ufffd au lait")]
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "caf\xe9 au lait"}')
    assert read(tmp_path / "a.jsonl") == [(1, "caf\ufffd au lait")]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'{"text": "a"}\n{"text": "b', "a.jsonl, line 2: not valid JSON (Unterminated string"),
        (b"[1]\n", "a.jsonl, line 1: a JSON object was expected, not list"),
        (b'{"Text": "a"}', "a.jsonl, line 1: no field 'text'; did you mean 'Text'? (--field)"),
        (b'{"text": 5}', "a.jsonl, line 1: field 'text' is int, not text"),
        (b"[" * 100_000, "a.jsonl, line 1: not valid JSON"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, data, line):
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        read(path)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_torn_archive_is_named(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(LINES * 1000)[:-30])
    with pytest.raises(DataError, match=r"a\.jsonl\.gz: cannot be read"):
        read(path)
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"a\.jsonl\.gz: cannot be read \(Not a gzipped file"):
        read(path)


def test_null_is_no_document(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": null}\n{"text": "a"}\n')
    assert read(path) == [(2, "a")]


def test_files_folders_and_patterns(tmp_path):
    (tmp_path / "d" / "e").mkdir(parents=True)
    for name in ("b.jsonl", "a.txt", "d/c.parquet", "d/e/f.json.zst", "d/notes.csv"):
        (tmp_path / name).touch()
    names = [path.relative_to(tmp_path).as_posix() for path in corpus_files([str(tmp_path)])]
    assert names == ["a.txt", "b.jsonl", "d/c.parquet", "d/e/f.json.zst"]
    several = corpus_files([f"{tmp_path}/*.jsonl", f"{tmp_path}/**/f*", f"{tmp_path}/b.jsonl"])
    assert [path.name for path in several] == ["b.jsonl", "f.json.zst"]
    with pytest.raises(DataError, match=r"d/notes\.csv: not a known format \(\.jsonl"):
        corpus_files([f"{tmp_path}/d/*"])
    with pytest.raises(DataError, match=r"no such file; did you mean 'b\.jsonl'"):
        corpus_files([f"{tmp_path}/b.jsnl"])


def test_a_missing_library_is_named_before_the_pass(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl.zst"
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    check_libraries([tmp_path / "a.jsonl.gz"])
    with pytest.raises(
        ConfigError, match=r"zst cannot be read, pyarrow is not installed: .*corpus"
    ):
        check_libraries([path])


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ('{"text": "a\\nb"}\n', True),
        ('  {"a": 1}', True),
        ('{"text": "cut\\nof', True),
        ("{ a block }", False),
        ("prose", False),
        ("", False),
    ],
)
def test_encoded_text_is_recognised(text, encoded):
    assert looks_encoded(text) == encoded
