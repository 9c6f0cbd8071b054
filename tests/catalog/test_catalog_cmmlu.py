"""CMMLU: 67 subjects, from the csv files and from the archive of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_llmeval.catalog import cmmlu
from pytest_llmeval.catalog.cmmlu import ARCHIVE
from pytest_llmeval.catalog.cmmlu import TEST_ROWS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.prompts.multiple_choice import CMMLU_SUBJECTS
from support.subject_copies import CMMLU


def test_published_sizes() -> None:
    assert (len(TEST_ROWS), sum(TEST_ROWS.values())) == (67, 11582)
    assert CMMLU_SUBJECTS.keys() == TEST_ROWS.keys()


def test_warnings_about_the_public_copy(data: Path) -> None:
    dataset = cmmlu().source(data)
    assert dataset.subject_sizes() == TEST_ROWS
    assert [warning.partition(" (")[0] for warning in dataset.warnings] == [
        "cmmlu: 1 item has equal options",  # but for a blank
        "cmmlu: 110 question texts occur more than once",
        "cmmlu: 5 questions have keys that contradict each other",
    ]


def test_shots_are_the_first_of_the_dev_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CMMLU.use_constants(monkeypatch)
    dataset = CMMLU.load(CMMLU.write(tmp_path))
    letter, lmeval = cmmlu().protocols[:2]
    item = dataset.items[0]
    shots = letter.select_shots(item, dataset.pool[item.subject])
    assert [shot.id for shot in shots] == [f"dev-logical-{n:04d}" for n in range(5)]
    assert (lmeval.shots, lmeval.template) == (0, letter.template)


def test_missing_subjects_and_rows_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        cmmlu().source(CMMLU.write(tmp_path, {"test": CMMLU.splits["test"], "dev": []}))
    assert "test agronomy has 0 of 169 rows; test anatomy has 0 of 148 rows" in str(caught.value)
    assert str(caught.value).endswith("test astronomy has 0 of 165 rows and 129 more")


@pytest.mark.parametrize("content", ["0,q,a,b,c,d,A\n", ""])
def test_a_file_without_the_header_is_named(tmp_path: Path, content: str) -> None:
    file = CMMLU.write(tmp_path) / "cmmlu" / "test" / "logical.csv"
    file.write_text(content, encoding="utf-8")
    reason = "row 1: a header with Question, A, B, C, D, Answer was expected"
    with pytest.raises(DataError, match=rf"test/logical\.csv, {reason}"):
        cmmlu().source(tmp_path)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "cmmlu").mkdir()
    (tmp_path / "cmmlu" / ARCHIVE).write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"cmmlu_v1_0_1\.zip: cannot be unpacked"):
        cmmlu().source(tmp_path)


def test_an_archive_that_cannot_be_downloaded_is_named(
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
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[hub\]'"):
        cmmlu().source(tmp_path)
