"""Where data is looked for, and whether it is all there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

LOCAL, HUB = (Dataset((Item(name, "s", "?", "!"),)) for name in ("local", "hub"))


@pytest.fixture(autouse=True)
def no_data_folder_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLMEVAL_DATA", raising=False)


def refuse() -> Dataset:
    raise ConfigError("no hub today")


def test_the_data_folder_comes_before_the_hub(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert load_first("mine", tmp_path, lambda folder: LOCAL, refuse) is LOCAL
    assert load_first("other", tmp_path, lambda folder: LOCAL, lambda: HUB) is HUB
    assert load_first("mine", None, lambda folder: LOCAL, lambda: HUB) is HUB


def test_a_folder_that_is_no_copy_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()

    def broken(folder: Path) -> Dataset:
        raise DataError(f"{folder}: not a copy")

    with pytest.raises(DataError, match="not a copy"):
        load_first("mine", tmp_path, broken, lambda: HUB)


def test_data_found_nowhere_is_named_with_all_places(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"'mine' not found: looked in .*mine.*; no hub today; give"
    ):
        load_first("mine", tmp_path, lambda folder: LOCAL, refuse)


def test_the_first_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("b", encoding="utf-8")
    (tmp_path / "a").mkdir()
    assert first_file(tmp_path, "a", "b") == tmp_path / "b"
    assert first_file(tmp_path, "a", "c") is None


def test_parts_of_another_size_are_named() -> None:
    published = {"tea": 1000, "milk": 2}
    check_sizes("mine", "there", [("test", dict(reversed(published.items())), published)])
    with pytest.raises(DataError) as caught:
        check_sizes("mine", "there", [("test", {"milk": 2, "soap": 3}, published), ("dev", {}, {})])
    assert str(caught.value) == (
        "mine in there is not the complete set: test tea has 0 of 1,000 rows;"
        " test soap has 3 of 0 rows"
    )
    with pytest.raises(DataError, match=r"s4 has 0 of 1 rows and 2 more$"):
        check_sizes("mine", "there", [("test", {}, {f"s{n}": 1 for n in range(7)})])
