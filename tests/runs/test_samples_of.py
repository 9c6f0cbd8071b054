"""Grouping the records of a result by item and sample."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.runs.run import samples_of


def record(item: str, sample: int, text: str) -> Record:
    return Record(
        "m", "b", "choice", item, "law", Outcome.WRONG, "A", "B", sample=sample, text=text
    )


written = st.builds(record, st.sampled_from("xyz"), st.integers(0, 5), st.text(max_size=2))


@given(st.lists(written, max_size=25))
def test_samples_are_in_order_and_the_one_written_last_counts(records: list[Record]) -> None:
    expected: dict[str, dict[int, Record]] = {}
    for record in records:
        expected.setdefault(record.item, {})[record.sample] = record
    grouped = samples_of(records)
    assert list(grouped) == list(expected)
    for item, samples in expected.items():
        assert grouped[item] == [samples[number] for number in sorted(samples)]
