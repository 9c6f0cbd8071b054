"""Trees, segments, groups and batches: plain token arithmetic."""

from __future__ import annotations

import random

import pytest

from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.batching import build_segment
from pytest_llmeval.models.hf.batching import build_tree
from pytest_llmeval.models.hf.batching import common_length
from pytest_llmeval.models.hf.batching import group_by_prefix
from pytest_llmeval.models.hf.batching import merge_questions
from pytest_llmeval.models.hf.batching import split_batches


def question(context: tuple[int, ...], *choices: tuple[int, ...], index: int = 0) -> Question:
    rows = tuple(context + choice for choice in choices)
    return Question(index, rows, (len(context),) * len(rows), build_tree(rows), len(context))


def test_each_row_predicts_the_next_token() -> None:
    """Token 2 is predicted by row 1 and token 3 by row 2: −0.5 − 1.25, not rows 2 and 3."""
    rows = [
        [-2.0, -1.0, -3.0, -0.9],
        [-3.0, -2.0, -0.5, -1.4],
        [-2.2, -1.9, -0.7, -1.25],
        [-1.0, -1.5, -2.5, -0.8],
    ]
    segment = build_segment(question((0, 1), (2, 3)), 0)
    assert segment.tokens == (0, 1, 2)
    assert sum(rows[item.node][item.token] for item in segment.scored) == -1.75


def test_one_token_choices_cost_no_token() -> None:
    single = question((7, 8, 9), (1,), (2,), (3,), (4,))
    segment = build_segment(single, 2)
    assert segment.tokens == (9,)
    assert segment.positions == (2,)
    assert [(item.node, item.token) for item in segment.scored] == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert segment.is_chain


def test_longer_choices_share_the_context_and_branch() -> None:
    """Rows 5 6 | 1 2 3, 5 6 | 1 4 and 5 6 | 9: the first two also share token 1."""
    single = question((5, 6), (1, 2, 3), (1, 4), (9,))
    segment = build_segment(single, 0)
    assert segment.tokens[:2] == (5, 6)
    assert segment.positions[0:2] == (0, 1)
    # What each scored token's reader has seen, followed back by position and branch.
    for item in segment.scored:
        branch = segment.branch_of[item.node]
        seen = [
            token
            for place, token in enumerate(segment.tokens[: item.node + 1])
            if segment.branch_of[place] in (0, branch)
        ]
        row = single.rows[item.choice]
        assert tuple(seen) == row[: len(seen)]
        assert row[len(seen)] == item.token
        assert segment.positions[item.node] == len(seen) - 1


def test_full_size_counts_every_distinct_row() -> None:
    assert question((1, 2, 3), (4,), (5,)).full_size == 3
    assert question((1, 2, 3), (4, 5), (4, 6)).full_size == 4
    assert question((1, 2, 3), (4, 5, 6), (7,), (8, 9)).full_size == 3 * 5


def test_common_length() -> None:
    assert common_length([(1, 2, 3), (1, 2), (1, 2, 9)]) == 2
    assert common_length([(1, 2)]) == 2
    assert common_length([(), (1,)]) == 0


def test_a_subject_is_one_group() -> None:
    """Chance agreement of a few first words must not split a batch."""
    shots = tuple(range(100, 400))
    questions = [question((*shots, n % 3, n, n), (1,), (2,), index=n) for n in range(20)]
    (only,) = group_by_prefix(questions)
    assert only.shared == 300
    assert [q.index for q in only.questions] == list(range(20))


def test_subjects_requested_together_are_groups_in_order() -> None:
    subjects = [tuple(range(5)) + tuple(range(100 * s, 100 * s + 80)) for s in (9, 3, 6)]
    questions = [question((*subjects[n % 3], n, n + 1), (1,), (2,), index=n) for n in range(30)]
    groups = group_by_prefix(questions)
    assert [part.shared for part in groups] == [85, 85, 85]
    assert [part.questions[0].index for part in groups] == [0, 1, 2]
    assert sorted(q.index for part in groups for q in part.questions) == list(range(30))


def test_a_prefix_ends_before_the_first_needed_position() -> None:
    same = [question((1, 2, 3, 4), (5,), (6,), index=n) for n in range(40)]
    (only,) = group_by_prefix(same)
    assert only.shared == 3


@pytest.mark.parametrize("seed", range(20))
def test_groups_cost_no_more_than_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    questions = [
        question(
            tuple(rng.choice((0, 1)) for _ in range(rng.randrange(1, 9)))
            + tuple(rng.randrange(9) for _ in range(rng.randrange(1, 300))),
            (1,),
            (2, 3),
            index=n,
        )
        for n in range(rng.randrange(1, 60))
    ]
    groups = group_by_prefix(questions)
    assert sorted(q.index for part in groups for q in part.questions) == list(range(len(questions)))
    for part in groups:
        beginnings = {q.shareable[: part.shared] for q in part.questions}
        assert len(beginnings) == 1
        assert len(next(iter(beginnings))) == part.shared
    cost = sum(
        part.shared + sum(len(q.tree.trunk) - part.shared for q in part.questions)
        for part in groups
    )
    assert cost <= sum(len(q.tree.trunk) for q in questions)


def test_deeply_nested_beginnings_end() -> None:
    """Row n begins with n zeros: every prefix of every row is shared by the later ones."""
    questions = [question((0,) * n + (1, 2), (3,), (4,), index=n) for n in range(1500)]
    groups = group_by_prefix(questions)
    assert sum(len(part.questions) for part in groups) == 1500


def test_batches_keep_the_order_where_nothing_is_padded() -> None:
    questions = [
        question((0,) * length, (1,), (2,), index=n) for n, length in enumerate((5, 9, 2, 7))
    ]
    cut = list(split_batches(questions, lambda q: q.tree.size - 1, lambda: 12, padded=False))
    assert [[q.index for q in batch] for batch in cut] == [[0, 1], [2, 3]]


def test_batches_sort_by_length_where_padding_costs() -> None:
    questions = [
        question((0,) * length, (1,), (2,), index=n) for n, length in enumerate((5, 9, 2, 7))
    ]
    cut = list(split_batches(questions, lambda q: q.full_size, lambda: 10, padded=True))
    assert [[q.index for q in batch] for batch in cut] == [[2, 0], [3], [1]]


def test_a_question_larger_than_the_budget_is_a_batch() -> None:
    questions = [question((0,) * 50, (1,), (2,), index=n) for n in range(3)]
    cut = split_batches(questions, lambda q: q.tree.size, lambda: 10, padded=False)
    assert [len(batch) for batch in cut] == [1, 1, 1]


def test_orders_of_one_items_options_are_one_question_with_a_branch_each() -> None:
    """What all orders share is computed once; the scores are those of every order by itself."""
    stem = tuple(range(50, 70))
    orders = [question((*stem, *order, 9), (1,), (2,), index=n) for n, order in enumerate(ORDERS)]
    (together,) = merge_questions(orders, ["one"] * 3)
    assert together.parts == tuple(orders)
    assert together.tree.trunk == stem
    assert len(together.tree.branches) == 3
    assert together.tree.size == 20 + 3 * 4 < sum(order.tree.size for order in orders)
    assert together.shareable == stem
    segment = build_segment(together, 0)
    assert [(item.token, item.choice) for item in segment.scored] == [
        (token, 2 * n + token - 1) for n in range(3) for token in (1, 2)
    ]


ORDERS = ((11, 12, 13), (12, 13, 11), (13, 11, 12))


def test_questions_that_share_little_or_belong_to_two_items_stay_apart() -> None:
    short = [question((5, *order), (1,), (2,), index=n) for n, order in enumerate(ORDERS)]
    assert merge_questions(short, ["one"] * 3) == short
    stem = tuple(range(50, 70))
    two = [question((*stem, n), (1,), (2,), index=n) for n in range(2)]
    assert merge_questions(two, ["one", "other"]) == two
    # Choices of several tokens: every choice of every order would be a branch with all options.
    long = [
        question((*stem, *order), (1, 2, 3), (2, 3, 4), index=n) for n, order in enumerate(ORDERS)
    ]
    assert merge_questions(long, ["one"] * 3) == long
