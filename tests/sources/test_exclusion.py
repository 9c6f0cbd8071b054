"""``exclude=``: items left out by id or field, of any benchmark, and what is refused about it."""

from __future__ import annotations

import ast
import csv
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import mmlu
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts import LMEVAL_MMLU
from pytest_llmeval.sources import jsonl
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.exclusion import exclude_items

PROTOCOL = Protocol("letter", LMEVAL_MMLU, scorer="letter")


def benchmark(exclude: Any) -> Benchmark:
    return Benchmark("b", lambda data: dataset(), (PROTOCOL,), exclude=exclude)


def dataset() -> Dataset:
    kinds = ["ok", "OK ", "bad_key", "Bad Key", "unclear", None]
    items = tuple(
        Item(
            f"tea-{n}",
            "tea" if n < 4 else "milk",
            f"{n}?",
            n % 2,
            ("x", "y"),
            fields={"level": "1"},
            row={"error_type": kind, "year": 2020 + n % 2, "checked": n == 1, "uid": f"u {n}"},
        )
        for n, kind in enumerate(kinds)
    )
    return Dataset(items, {"tea": items[:1]})


def left(exclude: Any) -> list[str]:
    rest, _ = exclude_items("b", dataset(), benchmark(exclude).exclusion)
    return [item.id.removeprefix("tea-") for item in rest.items]


@pytest.mark.parametrize(
    ("exclude", "rest"),
    [
        ((), "012345"),
        ([], "012345"),
        ({}, "012345"),
        ({"error_type": []}, "012345"),
        (["tea-0", "tea-3"], "1245"),
        ("tea-0", "12345"),
        ({"tea-0", "tea-3"}, "1245"),
        ({"id": ["tea-5"]}, "01234"),
        ({"subject": "milk"}, "0123"),
        ({"error_type": "bad_key"}, "0145"),
        ({"error_type": ["BAD-KEY ", "unclear"]}, "015"),
        ({"error_type": [None]}, "01234"),
        ({"year": 2021}, "024"),
        ({"checked": True}, "02345"),
        ({"uid": ["u 3"]}, "01245"),
        ({"error_type": "unclear", "id": ["tea-0"]}, "1235"),
    ],
)
def test_items_are_left_out_where_any_field_has_one_of_the_values(exclude: Any, rest: str) -> None:
    assert "".join(left(exclude)) == rest


def test_the_words_have_counts_and_the_spellings_of_the_data() -> None:
    def words(exclude: Any) -> str:
        return exclude_items("b", dataset(), benchmark(exclude).exclusion)[1]

    assert words(()) == ""
    assert words({"error_type": ["bad key"], "year": [2020]}) == (
        "excluded 4 of 6 items: error_type = bad_key, Bad Key; year = 2020"
    )
    assert words(["tea-0"]) == "excluded 1 of 6 items: id = tea-0"


@pytest.mark.parametrize(
    ("exclude", "message"),
    [
        (["tea-9"], "exclude: no item has id 'tea-9'; did you mean 'tea-"),
        (["TEA-1"], "exclude: no item has id 'TEA-1'; did you mean 'tea-1'?"),
        ({"eror_type": ["x"]}, "no item has a field 'eror_type'; did you mean 'error_type'?"),
        (
            {"error_type": ["bad_keys"]},
            "no item has error_type 'bad_keys'; did you mean 'bad_key'?",
        ),
        ({"year": ["2020"]}, "no item has year '2020'; did you mean '2020'?"),
        ({"checked": [1]}, "no item has checked 1; known: false, true"),
        ({"level": ["1"]}, "exclude leaves none of its 6 items"),
    ],
)
def test_what_matches_nothing_or_everything_is_refused(exclude: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        left(exclude)
    assert message in str(caught.value)
    assert str(caught.value).startswith("benchmark 'b'")


@pytest.mark.parametrize(
    ("exclude", "message"),
    [
        ([["tea-0"]], "exclude takes ids, or fields with their values, not list (['tea-0'])"),
        ({"error_type": [{}]}, "exclude takes ids, or fields with their values, not dict"),
        (lambda item: True, "exclude takes ids, or fields with their values, not function"),
        ({1: ["x"]}, "a field of exclude is of type int, not str"),
    ],
)
def test_invalid_exclusions_are_refused(exclude: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        benchmark(exclude)
    assert message in str(caught.value)


def test_hash_and_pool() -> None:
    whole = dataset()
    rest, _ = exclude_items("b", whole, (("subject", ("milk",)),))
    same, _ = exclude_items("b", whole, (("id", ("tea-4", "tea-5")),))
    assert rest.content_hash() == same.content_hash() != whole.content_hash()
    assert rest.pool == whole.pool
    # What is only known of the items is no part of their content.
    bare = replace(whole, items=tuple(replace(item, row={}, line=3) for item in whole.items))
    assert bare.content_hash() == whole.content_hash()


def test_doubts_are_those_of_the_items_that_are_left() -> None:
    items = tuple(
        Item(
            f"i{n}", "s", "same?" if n < 2 else f"{n}?", n % 2, ("x", "x") if n == 2 else ("x", "y")
        )
        for n in range(4)
    )
    whole = Dataset(items, warnings=(*item_warnings("b", items), "b: half of it is lost"))
    assert len(whole.warnings) == 3
    rest, _ = exclude_items("b", whole, (("id", ("i2",)),))
    assert rest.warnings == (
        "b: 1 question has keys that contradict each other (i0 = i1)",
        "b: half of it is lost",
    )
    assert exclude_items("b", rest, (("id", ("i0",)),))[0].warnings == ("b: half of it is lost",)


# MMLU-Redux -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def redux(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """MMLU-Redux's annotations as a custom benchmark, rows as the annotators left them."""
    folder = data / "mmlu_redux"
    file = tmp_path_factory.mktemp("redux") / "redux.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for path in sorted(folder.glob("mmlu_*.csv")):
            text = path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
            delimiter = ";" if text.partition("\n")[0].count(";") > 3 else ","
            for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter):
                choices = ast.literal_eval(row["choices"])
                made = {
                    "subject": path.stem.removeprefix("mmlu_"),
                    "question": row["question"],
                    "options": choices,
                    "answer": int(row["answer"]),
                    "error_type": row["error_type"],
                }
                lines.write(json.dumps(made) + "\n")
    return file


def test_wrong_keys_of_mmlu_redux_are_left_out_in_every_spelling(redux: Path) -> None:
    spelt = Counter(json.loads(line)["error_type"] for line in redux.open(encoding="utf-8"))
    wrong = {
        k: n for k, n in spelt.items() if k.strip().lower().replace(" ", "_") == "wrong_groundtruth"
    }
    assert len(wrong) > 1
    whole = jsonl(redux)(None)
    rest, words = exclude_items("redux", whole, (("error_type", ("wrong_groundtruth",)),))
    assert len(whole.items) == sum(spelt.values()) == 5700
    assert len(rest.items) == 5700 - sum(wrong.values())
    assert words.startswith(f"excluded {sum(wrong.values()):,} of 5,700 items: error_type = ")
    assert {item.row["error_type"] for item in rest.items}.isdisjoint(wrong)
    with pytest.raises(DataError, match="did you mean 'wrong_groundtruth"):
        exclude_items("redux", whole, (("error_type", ("wrong_ground_truht",)),))


def test_ids_of_a_benchmark_of_the_catalog(data: Path) -> None:
    benchmark = replace(mmlu(), exclude=["anatomy-0003"])
    whole = benchmark.source(data)
    rest, words = exclude_items(benchmark.name, whole, benchmark.exclusion)
    assert words == "excluded 1 of 14,042 items: id = anatomy-0003"
    assert (rest.subject_sizes()["anatomy"], rest.pool) == (134, whole.pool)
    with pytest.raises(DataError, match=r"no item has id 'anatomy-0999'; did you mean 'anatomy-0"):
        exclude_items(benchmark.name, whole, (("id", ("anatomy-0999",)),))
