"""Texts in the making, and the order in which they are worked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models.hf.batching import EncodedPrompt
from pytest_llmeval.models.hf.generation_state import Generation
from pytest_llmeval.models.hf.generation_state import Schedule
from pytest_llmeval.models.hf.generation_state import sampling_key
from pytest_llmeval.models.stopping import StopWatcher

END = 9


def text(
    number: int = 0,
    prompt: tuple[int, ...] = (1, 2, 3),
    *,
    limit: int = 5,
    shared: int = 0,
    stop: tuple[str, ...] = (),
    temperature: float = 0.0,
    key: bytes = b"",
) -> Generation:
    decoding = Decoding(temperature=temperature, stop=stop)
    watch = StopWatcher(lambda ids: "".join(map(str, ids)), stop)
    opening = EncodedPrompt(number, prompt, limit)
    return Generation(opening, decoding, frozenset({END}), watch, key, shared)


def test_a_text_ends_with_an_end_token_a_stop_string_or_its_limit() -> None:
    for given_tokens, stop, finish, content in [
        ((4, 5, END), (), "stop", [4, 5]),
        ((4, 5, 6), ("56",), "stop", [4, 5, 6]),
        ((4, 5, 6, 7, 8), (), "length", [4, 5, 6, 7, 8]),
        # The end on the last token that is allowed is an end.
        ((4, 5, 6, 7, END), (), "stop", [4, 5, 6, 7]),
        ((4, 5, 6, 7, 8), ("78",), "stop", [4, 5, 6, 7, 8]),
    ]:
        generation = text(stop=stop)
        for token in given_tokens[:-1]:
            generation.add(token)
            assert not generation.done
        generation.add(given_tokens[-1])
        assert generation.done
        assert (generation.finish, generation.content) == (finish, content)
        assert generation.all_tokens == (1, 2, 3, *given_tokens)


def test_no_token_is_an_error() -> None:
    generation = text()
    generation.add(None)
    assert generation.done
    assert generation.finish is None
    assert "NaN" in str(generation.error)


def test_random_numbers_depend_on_seed_id_sample_arm_and_place_alone() -> None:
    request = Request("q", Prompt("", (), "?"))
    keys = {
        sampling_key(request)
        for request in (
            request,
            replace(request, id="r"),
            replace(request, sample=1),
            replace(request, arm="cyclic@1"),
            replace(request, seed=1),
            # Neither these nor the prompt: a greedy text and a sampled one may share them.
            replace(request, prompt=Prompt("", (), "!")),
            replace(request, decoding=Decoding(temperature=1.0)),
        )
    }
    assert len(keys) == 5
    generation = text(key=sampling_key(request))
    first = generation.next_random()
    assert generation.next_random() == first
    generation.add(4)
    assert generation.next_random() != first
    again = text(key=sampling_key(request))
    assert again.next_random() == first


def test_random_numbers_are_spread_evenly() -> None:
    numbers_drawn = []
    for number in range(2000):
        numbers_drawn.append(text(key=str(number).encode()).next_random())
    assert all(0 <= value < 1 for value in numbers_drawn)
    for tenth in range(10):
        assert 140 < sum(tenth <= 10 * value < tenth + 1 for value in numbers_drawn) < 260


# --- the schedule


def schedule(
    texts: Sequence[Generation], rows: int, budget: int, *, padded: bool = False
) -> Schedule:
    return Schedule(
        texts, rows, lambda generation: generation.unshared_length, budget, padded=padded
    )


def numbers(texts: Sequence[Generation]) -> list[int]:
    return [generation.prompt.index for generation in texts]


def test_texts_are_begun_together_up_to_the_budget() -> None:
    plan = schedule([text(n, (1,) * (n + 1)) for n in range(6)], 10, 6)
    assert numbers(plan.next_batch()) == [0, 1, 2]
    assert numbers(plan.next_batch()) == [3]
    plan = schedule([text(n, (1,) * (n + 1)) for n in range(6)], 10, 6, padded=True)
    assert numbers(plan.next_batch()) == [0, 1]
    # One that exceeds the budget by itself is begun by itself.
    assert numbers(schedule([text(0, (1,) * 9), text(1)], 10, 6).next_batch()) == [0]


def test_texts_with_another_prefix_are_begun_apart() -> None:
    prompts = [(1, 2, 3), (1, 2, 4), (1, 5, 6)]
    plan = schedule([text(n, p, shared=2) for n, p in enumerate(prompts)], 10, 100)
    assert [numbers(plan.next_batch()) for _ in range(3)] == [[0, 1], [2], []]


def test_a_free_row_is_filled_at_once_and_of_many_rows_a_few() -> None:
    plan = schedule([text(n) for n in range(100)], 32, 1000)
    plan.running += plan.next_batch()
    assert len(plan.running) == 32
    assert plan.next_batch() == []
    for row in (3, 31, 7):
        plan.running[row].finish = "stop"
    assert numbers([generation for _, generation in plan.release()]) == [31, 7, 3]
    assert plan.next_batch() == []
    plan.running[0].finish = "stop"
    list(plan.release())
    assert numbers(plan.next_batch()) == [32, 33, 34, 35]
    few = schedule([text(n) for n in range(9)], 4, 1000)
    few.running += few.next_batch()
    few.running[2].finish = "stop"
    list(few.release())
    assert numbers(few.next_batch()) == [4]


def test_the_last_waiting_are_not_held_back() -> None:
    plan = schedule([text(n) for n in range(33)], 32, 1000)
    plan.running += plan.next_batch()
    plan.running[5].finish = "length"
    list(plan.release())
    assert numbers(plan.next_batch()) == [32]


def test_returned_requests_come_first_in_order() -> None:
    plan = schedule([text(n) for n in range(6)], 4, 1000)
    plan.running += plan.next_batch()
    plan.requeue_running()
    assert plan.running == []
    assert numbers(plan.waiting) == [0, 1, 2, 3, 4, 5]


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), max_size=40), st.integers(1, 9))
def test_rows_stay_without_gaps_and_every_text_ends(
    lives: list[tuple[int, int]], rows: int
) -> None:
    """A mirror that is moved as the schedule says holds what runs in every row."""
    prompts = [(1, 2), (3, 4), (5, 6)]
    texts = [text(n, prompts[which], shared=1, limit=life) for n, (life, which) in enumerate(lives)]
    plan = schedule(texts, rows, 7)
    mirror: list[Generation] = []
    ended: list[int] = []
    for _ in range(1000):
        if batch := plan.next_batch():
            assert len({generation.prefix for generation in batch}) == 1
            plan.running += batch
            mirror += batch
        elif not plan.running:
            break
        for generation in plan.running:
            generation.add(4)
        for row, generation in plan.release():
            assert mirror[row] is generation
            last = mirror.pop()
            if row < len(mirror):
                mirror[row] = last
            ended.append(generation.prompt.index)
        assert mirror == plan.running
        assert len(mirror) <= rows
    assert sorted(ended) == list(range(len(lives)))
