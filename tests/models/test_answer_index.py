"""The index of recorded answers against a dictionary of all that was put into it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.models.replay.answer_index import AnswerIndex
from pytest_llmeval.models.replay.answer_index import AnswerLocation

items = st.sampled_from(("law-0001", "law-0002", "art-0001"))
places = st.builds(
    AnswerLocation,
    arm=st.sampled_from(("", "cyclic@1")),
    sample=st.integers(0, 3),
    prompt=st.sampled_from((None, b"\x01" * 32, b"\x02" * 32)),
    offset=st.integers(0, 2**40),
    number=st.integers(1, 2**31),
    element=st.integers(0, 9),
)


@given(st.lists(st.tuples(items, places), max_size=30))
def test_the_last_place_of_an_answer_counts(put: list[tuple[str, AnswerLocation]]) -> None:
    index = AnswerIndex()
    expected: dict[str, dict[tuple[object, ...], AnswerLocation]] = {}
    for item, place in put:
        index.put(item, place)
        expected.setdefault(item, {})[place.arm, place.sample, place.prompt] = place
    for item in ("law-0001", "law-0002", "art-0001", "unknown"):
        assert sorted(index.places(item), key=repr) == sorted(
            expected.get(item, {}).values(), key=repr
        )
