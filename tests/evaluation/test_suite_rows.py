"""The rows that items are made of are there for exclusions, and for nothing after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_llmeval import Benchmark
from pytest_llmeval import Protocol
from pytest_llmeval.evaluation.suite import Suite
from pytest_llmeval.plugin.options import read_settings
from pytest_llmeval.prompts.multiple_choice import LMEVAL_MMLU
from pytest_llmeval.sources import jsonl


def test_items_lose_their_rows_once_exclusions_are_applied(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    rows = [
        {"question": f"{n}?", "options": ["a", "b"], "answer": "AB"[n % 2], "checked": n > 1}
        for n in range(5)
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = jsonl(tmp_path / "items.jsonl")
    protocols = (Protocol("letter", LMEVAL_MMLU, scorer="letter"),)
    suite = Suite(read_settings(pytestconfig))
    whole = suite.add("test_whole", Benchmark("whole", source, protocols), None, abs)
    checked = Benchmark("checked", source, protocols, exclude={"checked": [False]})
    part = suite.add("test_part", checked, None, abs)
    assert [item.line for item in whole.items] == [1, 2, 3, 4, 5]
    assert [item.line for item in part.items] == [3, 4, 5]
    assert not any(item.row for item in (*whole.items, *part.items))
    assert part.items == whole.items[2:]
    suite.release()
    assert suite.get("test_part") is part
