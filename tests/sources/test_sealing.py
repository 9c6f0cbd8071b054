"""Orders and canary of sealed files, and their commitment."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import DataError
from pytest_llmeval.sources.jsonl_benchmark import jsonl
from pytest_llmeval.sources.sealing import check_sealed
from pytest_llmeval.sources.sealing import commitment
from pytest_llmeval.sources.sealing import jsonl_text
from pytest_llmeval.sources.sealing import read_rows
from pytest_llmeval.sources.sealing import refers_by_place
from pytest_llmeval.sources.sealing import seal
from pytest_llmeval.sources.sealing import unseal

SEED = "0123456789abcdef"


@st.composite
def rows(draw):
    made = []
    for number in range(draw(st.integers(1, 12))):
        row = {"question": f"q{number}", "note": draw(st.text(max_size=5)), "answer": "text"}
        size = draw(st.integers(0, 6))
        if size >= 2:
            gold = draw(st.integers(0, size - 1))
            row["options"] = [f"{number} {k}" for k in range(size)]
            row["answer"] = draw(st.sampled_from([gold, "ABCDEF"[gold]]))
        made.append(row)
    return made


def gold_text(row):
    answer, options = row["answer"], row.get("options")
    if not options:
        return answer
    return options["ABCDEF".index(answer) if isinstance(answer, str) else answer]


@given(rows(), st.text(min_size=16, max_size=20))
def test_sealing_keeps_items_and_answers_and_is_reversible(before, seed):
    sealed = seal(before, seed)
    assert unseal(sealed, seed) == before
    assert all(row["drawn_orders"] is True for row in sealed)
    assert len({row["canary"] for row in sealed}) == 1
    by_question = {row["question"]: row for row in before}
    for row in sealed:
        original = by_question.pop(row["question"])
        assert gold_text(row) == gold_text(original)
        assert sorted(row.get("options", ())) == sorted(original.get("options", ()))
        assert type(row["answer"]) is type(original["answer"])
    assert not by_question


def test_all_orders_are_equally_likely():
    row = {"question": "q", "options": ["a", "b", "c"], "answer": 0}
    orders = Counter(
        "".join(sealed["options"])
        for seed in range(200)
        for sealed in seal([row] * 30, f"seed {seed}")
    )
    assert len(orders) == 6
    # 6,000 orders, each 1,000 times on average, with a standard deviation of 29.
    assert all(870 < count < 1130 for count in orders.values())
    items = [{"question": str(k), "answer": "x"} for k in range(3)]
    places = Counter("".join(r["question"] for r in seal(items, f"s{k}")) for k in range(6000))
    assert len(places) == 6
    assert all(870 < count < 1130 for count in places.values())


def test_seeds_have_their_own_canary_and_commitment():
    row = {"question": "q", "answer": "x"}
    canaries = {seal([row], f"seed {k}")[0]["canary"] for k in range(50)}
    assert len(canaries) == 50
    guid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.search(f"Canary GUID {guid}$", canary) for canary in canaries)
    commitments = {commitment([row], "a"), commitment([row], "b"), commitment([row, row], "a")}
    assert len(commitments) == 3


def test_the_orders_of_a_seed_never_change():
    """A commitment has to be verified by later versions."""
    made = [{"question": f"q{k}", "options": list("wxyz"), "answer": "B"} for k in range(4)]
    sealed = seal(made, SEED)
    assert [row["question"] for row in sealed] == FIXED[0]
    assert ["".join(row["options"]) + row["answer"] for row in sealed] == FIXED[1]
    assert sealed[0]["canary"].endswith(FIXED[2])
    assert commitment(made, SEED)[:16] == FIXED[3]


FIXED = (
    ["q3", "q2", "q0", "q1"],
    ["xzwyA", "yxzwB", "zwxyC", "xyzwA"],
    "09d762ad-b6d5-4592-91c0-4b65ed60cb63",
    "6c199954dbd2e9eb",
)


def test_a_sealed_file_is_a_benchmark(tmp_path):
    made = [{"question": f"q{k}", "options": list("wxyz"), "answer": "B"} for k in range(4)]
    (tmp_path / "a.jsonl").write_text(jsonl_text(seal(made, SEED)))
    dataset = jsonl(tmp_path / "a.jsonl")(None)
    assert dataset.drawn_orders
    assert {item.gold_text for item in dataset.items} == {"x"}
    (tmp_path / "b.jsonl").write_text(jsonl_text([*seal(made, SEED), made[0]]))
    assert not jsonl(tmp_path / "b.jsonl")(None).drawn_orders


def test_numbers_keep_their_digits(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"question": "How much?", "answer": 0.10}\n')
    rows_read = read_rows(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_text(jsonl_text(seal(rows_read, SEED)))
    for name in ("a.jsonl", "b.jsonl"):
        assert jsonl(tmp_path / name)(None).items[0].gold == "0.10"
    assert check_sealed(tmp_path / "b.jsonl", SEED, commitment(rows_read, SEED)) == rows_read


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda sealed: sealed.reverse(), "changed after it was sealed"),
        (lambda sealed: sealed[0]["options"].reverse(), "changed after it was sealed"),
        (lambda sealed: sealed[1].update(note="x"), "changed after it was sealed"),
        (lambda sealed: sealed.pop(), "changed after it was sealed"),
        (lambda sealed: sealed[2].update(canary="x"), "it has another canary"),
        (lambda sealed: sealed[2].pop("drawn_orders"), "not sealed: no field 'drawn_orders'"),
    ],
)
def test_every_change_is_noticed(tmp_path, change, line):
    made = [{"question": f"q{k}", "options": list("wxyz"), "answer": "B"} for k in range(6)]
    published = commitment(made, SEED)
    sealed = json.loads(json.dumps(seal(made, SEED)))
    file = tmp_path / "a.jsonl"
    file.write_text(jsonl_text(sealed))
    assert check_sealed(file, SEED, published) == made
    change(sealed)
    file.write_text(jsonl_text(sealed))
    with pytest.raises(DataError, match=line):
        check_sealed(file, SEED, published)
    with pytest.raises(DataError):
        check_sealed(file, f"{SEED}0", published)


@pytest.mark.parametrize(
    ("option", "refers"),
    [
        ("All of the above", True),
        ("None of the above.", True),
        ("both of the preceding answers", True),
        ("A and B", True),
        ("Both (A) and (C)", True),
        ("A, B and D only", True),
        ("Neither B nor C", True),
        ("Options A or D are correct", True),
        ("None of these", False),
        ("Vitamins A and D", False),
        ("both sugar and salt", False),
        ("temperatures above 5 °C", False),
        ("A", False),
        ("A and", False),
        ("I and II", False),
    ],
)
def test_options_that_refer_by_place(option, refers):
    assert refers_by_place(option) == refers
