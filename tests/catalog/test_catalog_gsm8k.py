"""GSM8K: answers are whole numbers, without thousands separators."""

from __future__ import annotations

from pathlib import Path

from pytest_llmeval.catalog import gsm8k


def test_every_protocol_is_answered_by_text() -> None:
    assert all(protocol.ask == "text" for protocol in gsm8k().protocols)


def test_answers_of_the_public_copy(data: Path) -> None:
    dataset = gsm8k().source(data)
    assert dataset.items[0].gold == "18"
    golds = [str(item.gold) for item in (*dataset.items, *dataset.pool["gsm8k"])]
    assert sum(gold.startswith("-") for gold in golds) == 5
    assert not any("," in gold for gold in golds)
    separated = [item for item in dataset.items if "," in item.fields["answer"].split("####")[1]]
    assert len(separated) == 14
