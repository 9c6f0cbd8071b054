"""Plans: chunks, identity, and the transfer to the controller and back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Benchmark
from pytest_llmeval import Dataset
from pytest_llmeval import Item
from pytest_llmeval import Protocol
from pytest_llmeval.bias.arms import arms
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.evaluation.planner import CHUNK_SIZE
from pytest_llmeval.evaluation.planner import SelectedTest
from pytest_llmeval.evaluation.planner import make_plan
from pytest_llmeval.evaluation.suite import Evaluation
from pytest_llmeval.prompts import LMEVAL_MMLU

PROTOCOL = Protocol("letter", LMEVAL_MMLU, scorer="letter")


def planned(sizes: dict[str, int], protocol: Protocol = PROTOCOL) -> Plan:
    items = tuple(
        Item(f"{subject}-{row}", subject, "?", 0, ("a", "b"))
        for subject, size in sizes.items()
        for row in range(size)
    )
    dataset = Dataset(items)
    bench = Benchmark("bench", lambda _: dataset, (protocol,))
    evaluation = Evaluation("t.py::test", bench, protocol, dataset, dataset.content_hash(), items)
    selected = [SelectedTest(f"t.py::test[{item.id}]", 0, evaluation, item) for item in items]
    return make_plan(["demo"], [evaluation], selected, own_model=False)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 300), min_size=1))
def test_chunks_hold_one_subject_and_are_even(sizes):
    plan = planned(sizes)
    by_subject: dict[str, list[int]] = {}
    for members in plan.chunks.values():
        assert len({item.subject for item in members}) == 1
        assert len(members) <= CHUNK_SIZE
        by_subject.setdefault(members[0].subject, []).append(len(members))
    for subject, lengths in by_subject.items():
        assert sum(lengths) == sizes[subject]
        assert len(lengths) == -(-sizes[subject] // CHUNK_SIZE)
        assert max(lengths) - min(lengths) < len(lengths)
    assert len(plan.costs) == len(plan.chunks)


def test_a_plan_travels_as_json():
    plan = planned({"a": 3, "b": 200})
    assert Plan.from_json(plan.to_json()) == replace(
        plan, results=Plan.from_json(plan.to_json()).results
    )
    assert Plan.from_json(plan.to_json()).to_json() == plan.to_json()
    assert Plan.from_json(plan.to_json()).identity == plan.identity


def test_identity_changes_with_what_moves_a_score():
    plan = planned({"a": 3})
    assert planned({"a": 3}).identity == plan.identity
    assert planned({"a": 4}).identity != plan.identity
    assert planned({"a": 3}, replace(PROTOCOL, chat=True)).identity != plan.identity
    assert replace(plan, models=("other",)).identity != plan.identity


def debiased_fingerprints(kind: str, seed: int, limit: int | None = None) -> dict[str | None, str]:
    items = tuple(Item(f"i-{n}", "s", "Q", 0, ("a", "b", "c", "d")) for n in range(4))
    benchmark = Benchmark("b", lambda _: Dataset(items), (PROTOCOL,))
    evaluation = Evaluation(
        "t",
        benchmark,
        PROTOCOL,
        Dataset(items),
        "hash",
        items[:limit],
        None if limit is None else {"s": limit},
        arms=arms(kind, 4)[1:],
        debias=("cyclic", "pride", "batch"),
    )
    plan = make_plan(["demo"], [evaluation], [], own_model=False, seed=seed)
    return {result.debias: result.variants[0].fingerprint for result in plan.results}


def test_a_debiased_fingerprint_has_all_that_moves_its_score():
    usual = debiased_fingerprints("cyclic", 0)

    def differing(kind: str, seed: int, limit: int | None = None) -> set[str | None]:
        other = debiased_fingerprints(kind, seed, limit)
        return {how for how in usual if usual[how] != other[how]}

    assert differing("cyclic", 0) == set()
    assert differing("full", 0) == {"cyclic", "pride"}
    assert differing("cyclic", 1) == {"pride"}
    assert differing("cyclic", 0, limit=2) == {"pride", "batch"}
