"""Readers of local files: everything is text, and what cannot be read is one line."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.sources.files import _parse_csv
from pytest_llmeval.sources.files import read_csv
from pytest_llmeval.sources.files import read_jsonl
from pytest_llmeval.sources.files import read_parquet
from pytest_llmeval.sources.files import read_tsv


def csv_file(folder: Path, content: bytes, name: str = "f.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def test_words_for_missing_values_are_text(tmp_path: Path) -> None:
    content = (
        b"How many moons has Mercury?,None,One,Two,Four,A\n"
        b"Symbol for sodium?,NA,So,Sd,NULL,A\nWhat is 0/0 in floats?,nan,inf,0,1,A\n"
    )
    rows = read_csv(csv_file(tmp_path, content))
    assert [row[1:5] for row in rows] == [
        ["None", "One", "Two", "Four"],
        ["NA", "So", "Sd", "NULL"],
        ["nan", "inf", "0", "1"],
    ]
    assert [row[5] for row in rows] == ["A", "A", "A"]


def test_quoted_commas_quotes_and_line_breaks(tmp_path: Path) -> None:
    content = (
        b'"Read: ""Go, now""\nWho speaks?","a king, dying",a boy,"x""y",nobody,B\n2+2?,3,4,5,6,B\n'
    )
    assert read_csv(csv_file(tmp_path, content)) == [
        ['Read: "Go, now"\nWho speaks?', "a king, dying", "a boy", 'x"y', "nobody", "B"],
        ["2+2?", "3", "4", "5", "6", "B"],
    ]


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz"])
@pytest.mark.parametrize(
    "content",
    [
        b"a,b\nc,d\n",
        b"a,b\nc,d",
        b"a,b\r\nc,d\r\n",
        b"a,b\r\nc,d\n",
        b"a,b\n\nc,d\n\n",
        b"\xef\xbb\xbfa,b\nc,d",
    ],
)
def test_line_ends_and_byte_order_mark(tmp_path: Path, content: bytes, name: str) -> None:
    assert read_csv(csv_file(tmp_path, content, name)) == [["a", "b"], ["c", "d"]]


def test_line_breaks_inside_cells_are_kept(tmp_path: Path) -> None:
    assert read_csv(csv_file(tmp_path, b'"a\r\nb",c\r\n"d\ne",f')) == [
        ["a\r\nb", "c"],
        ["d\ne", "f"],
    ]


def test_a_very_long_cell_is_read_and_the_limit_restored(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    assert len(read_csv(csv_file(tmp_path, b"x" * 300_000 + b",b\n"))[0][0]) == 300_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\nc\n", "row 2: 1 cells where the first row has 2"),
        (b"a,b\nc,d,e\n", "row 2: 3 cells where the first row has 2"),
        (b'"x\ny",b\nc,\xff\n', r"row 2: not UTF-8 \(byte 0xff\)"),
        (b'a,b\n"c,d\ne,f\n', "row 2: not valid csv"),
    ],
)
def test_bad_csv_names_file_and_row(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=rf"f\.csv, {message}") as caught:
        read_csv(csv_file(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    csv_file(tmp_path, b"a,b\n", "anatomy.csv")
    with pytest.raises(DataError, match=r"no such file; did you mean 'anatomy\.csv'\?"):
        read_csv(tmp_path / "anatomi.csv")
    (tmp_path / "no.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match="cannot be read"):
        read_csv(tmp_path / "no.csv.gz")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 1000)[:-20])
    with pytest.raises(DataError, match="cannot be read"):
        list(read_jsonl(tmp_path / "cut.jsonl.gz"))
    with pytest.raises(DataError, match="cannot be read"):
        read_csv(tmp_path)


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=2)))
def test_whatever_csv_writes_is_read_back(rows: list[list[str]]) -> None:
    buffer = io.StringIO(newline="")
    # QUOTE_ALL: the writer leaves a cell with a lone carriage return unquoted otherwise.
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows(rows)
    assert _parse_csv(Path("f.csv"), buffer.getvalue()) == rows


@pytest.mark.parametrize("name", ["f.jsonl", "f.jsonl.gz"])
def test_jsonl_lines_are_cut_at_line_feeds_only(tmp_path: Path, name: str) -> None:
    content = '\ufeff{"a": "x\u2028y"}\r\n\n{"a": "NaN"}'.encode()
    path = csv_file(tmp_path, content, name)
    assert list(read_jsonl(path)) == [(1, {"a": "x\u2028y"}), (3, {"a": "NaN"})]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "a JSON object was expected, not list"),
        (b'{"a": "\xff"}', r"not UTF-8 \(byte 0xff\)"),
        (b"[" * 200_000, "not valid JSON"),
    ],
)
def test_bad_jsonl_names_file_and_line(tmp_path: Path, line: bytes, message: str) -> None:
    path = csv_file(tmp_path, b'{"a": 1}\n' + line + b"\n", "f.jsonl")
    with pytest.raises(DataError, match=rf"f\.jsonl, line 2: {message}") as caught:
        list(read_jsonl(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["f.tsv", "f.tsv.gz"])
def test_tsv_cells_are_cut_at_tabs_and_quotes_are_text(tmp_path: Path, name: str) -> None:
    content = '\ufeff"a\t1,000\r\n\nb "c"\u2028\t \nlast'.encode()
    assert read_tsv(csv_file(tmp_path, content, name)) == [
        ['"a', "1,000"],
        ['b "c"\u2028', " "],
        ["last"],
    ]


def test_bad_tsv_names_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"f\.tsv, line 2: not UTF-8 \(byte 0xff\)"):
        read_tsv(csv_file(tmp_path, b"a\tb\n\xff\n", "f.tsv"))
    with pytest.raises(DataError, match=r"no such file; did you mean 'f\.tsv'"):
        read_tsv(tmp_path / "g.tsv")


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"a": ["x", "N/A"], "b": 1}, {"a": [], "b": None}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "f.parquet")
    assert read_parquet(tmp_path / "f.parquet") == rows
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"damaged\.parquet: not a parquet file") as caught:
        read_parquet(tmp_path / "damaged.parquet")
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"g\.parquet: no such file; did you mean 'f\.parquet'"):
        read_parquet(tmp_path / "g.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[hub\]'"):
        read_parquet(tmp_path / "f.parquet")
