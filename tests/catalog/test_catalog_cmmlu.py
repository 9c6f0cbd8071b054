"""CMMLU: 67 subjects, from the csv files and from the archive of them."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from zipfile import ZipFile

import pytest

from pytest_llmeval.catalog import cmmlu
from pytest_llmeval.catalog.cmmlu import ARCHIVE
from pytest_llmeval.catalog.cmmlu import TEST_ROWS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.prompts.multiple_choice import CMMLU_SUBJECTS

CONTENT_HASH = "997d753404903211"
HEADER = ["", "Question", "A", "B", "C", "D", "Answer"]


def write_tree(root: Path, test: dict[str, int]) -> Path:
    for split, sizes in (("test", test), ("dev", dict.fromkeys(test, 5))):
        (root / split).mkdir(parents=True, exist_ok=True)
        for subject, count in sizes.items():
            rows = [
                [n, f"{subject}{split}{n}？", "一", "二", "None", "四", "B"] for n in range(count)
            ]
            with (root / split / f"{subject}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([HEADER, *rows])
    return root


def pack(root: Path, archive: Path) -> Path:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(archive, "w") as packed:
        for path in sorted(root.rglob("*.csv")):
            packed.write(path, path.relative_to(root))
    return archive


def test_the_public_copy_is_complete_and_its_doubts_are_told(data: Path) -> None:
    dataset = cmmlu().source(data)
    check_dataset("cmmlu", dataset)
    assert dataset.content_hash() == CONTENT_HASH
    assert dataset.subject_sizes() == TEST_ROWS
    assert (len(TEST_ROWS), sum(TEST_ROWS.values())) == (67, 11582)
    assert CMMLU_SUBJECTS.keys() == TEST_ROWS.keys()
    assert [warning.partition(" (")[0] for warning in dataset.warnings] == [
        "cmmlu: 1 item has equal options",  # but for a blank
        "cmmlu: 110 question texts occur more than once",
        "cmmlu: 5 questions have keys that contradict each other",
    ]


def test_the_archive_gives_the_same_items(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = pack(data / "cmmlu", tmp_path / "data" / "cmmlu" / ARCHIVE)
    assert cmmlu().source(tmp_path / "data").content_hash() == CONTENT_HASH
    hub = importlib.import_module("pytest_llmeval.catalog.cmmlu").hub

    def download(path: str, file: str, revision: str) -> Path:
        assert (path, file, len(revision)) == ("haonan-li/cmmlu", ARCHIVE, 40)
        return archive

    monkeypatch.setattr(hub, "download", download)
    assert cmmlu().source(tmp_path).content_hash() == CONTENT_HASH


def test_shots_are_the_first_of_the_dev_split(tmp_path: Path) -> None:
    write_tree(tmp_path / "cmmlu" / "data", dict(TEST_ROWS))
    dataset = cmmlu().source(tmp_path)
    letter, lmeval = cmmlu().protocols[:2]
    item = dataset.items[0]
    shots = letter.draw_shots(item, dataset.pool[item.subject])
    assert [shot.id for shot in shots] == [f"dev-agronomy-{n:04d}" for n in range(5)]
    assert (item.gold_label, item.options) == ("B", ("一", "二", "None", "四"))
    assert (lmeval.shots, lmeval.template) == (0, letter.template)


def test_an_incomplete_copy_is_refused(tmp_path: Path) -> None:
    sizes = {**TEST_ROWS, "virology": 3}
    del sizes["logical"]
    write_tree(tmp_path / "cmmlu", sizes)
    with pytest.raises(DataError) as caught:
        cmmlu().source(tmp_path)
    message = str(caught.value)
    assert "test logical has 0 of 123 rows; test virology has 3 of 169 rows" in message
    assert "dev logical has 0 of 5 rows" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (",Question,A,B,C,D,Answer\n0,q,a,b,c,d,\n", "row 2: no gold label in this split"),
        (",Question,A,B,C,D,Answer\n0,q,a,b,c,d,E\n", "row 2: answer 'E' is not a letter A to D"),
        ("0,q,a,b,c,d,A\n", "row 1: a header with Question, A, B, C, D, Answer was expected"),
        ("", "row 1: a header with Question"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, content: str, message: str) -> None:
    root = write_tree(tmp_path / "cmmlu", {"logical": 2})
    (root / "test" / "logical.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=rf"test/logical\.csv, {message}"):
        cmmlu().source(tmp_path)


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "cmmlu").mkdir()
    (tmp_path / "cmmlu" / ARCHIVE).write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"cmmlu_v1_0_1\.zip: cannot be unpacked"):
        cmmlu().source(tmp_path)


def test_a_hub_that_is_out_of_reach_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = pytest.importorskip("huggingface_hub")

    def offline(*_: object, **__: object) -> None:
        raise OSError("no network\nat all")

    monkeypatch.setattr(library, "hf_hub_download", offline)
    with pytest.raises(DataError) as caught:
        cmmlu().source(tmp_path)
    assert "cmmlu_v1_0_1.zip of hub data set 'haonan-li/cmmlu' at revision efcc940752ea" in str(
        caught.value
    )
    assert "no network at all" in str(caught.value)
    monkeypatch.setitem(importlib.import_module("sys").modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[hub\]'"):
        cmmlu().source(tmp_path)
