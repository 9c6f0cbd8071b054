"""Scores of lm-eval's choice metrics by a task object, and tasks of groups, without lm-eval."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Item
from pytest_llmeval import Outcome
from pytest_llmeval import Response
from pytest_llmeval.catalog.lm_eval import members
from pytest_llmeval.catalog.lm_eval import scoring
from pytest_llmeval.catalog.lm_eval.members import members_of
from pytest_llmeval.catalog.lm_eval.scoring import TaskScorer
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import option_index
from pytest_llmeval.sources.lm_eval_index import Entry
from pytest_llmeval.sources.lm_eval_index import function_identity
from pytest_llmeval.sources.lm_eval_index import is_function

METRICS = ("acc", "acc_norm", "acc_bytes")


class ChoiceTask:
    """The metrics of a task of lm-eval, by numpy as there."""

    def process_results(self, document: Item, results: list[tuple[float, bool]]) -> dict[str, Any]:
        values = np.array([value for value, _ in results])
        characters = np.array([float(len(option)) for option in document.options])
        size = np.array([float(len(option.encode())) for option in document.options])
        with np.errstate(divide="ignore"):
            rows = (values, values / characters, values / size)
        compared = dict(zip(METRICS, rows, strict=True))
        return {name: float(np.argmax(row) == document.gold) for name, row in compared.items()}


class OtherTask:
    def __init__(self, value: Any) -> None:
        self.value = value

    def process_results(self, document: Item, results: list[tuple[float, bool]]) -> dict[str, Any]:
        return {"acc": self.value}


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "document_of", lambda item: (ChoiceTask(), item))


ITEM = Item("i", "s", "Q?", 1, ("yes", "no"))


@given(
    data=st.lists(
        st.tuples(st.sampled_from([-1.0, -2.0, -3.5, -8.0]), st.text("aé", min_size=1, max_size=9)),
        min_size=2,
        max_size=30,
    ),
    gold=st.integers(0, 29),
)
def test_outcomes_are_those_of_the_task(data: list[tuple[float, str]], gold: int) -> None:
    logprobs, options = zip(*data, strict=True)
    item = Item("i", "s", "Q?", gold % len(options), options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "document_of", lambda item: (ChoiceTask(), item))
        for metric in METRICS:
            score = TaskScorer(metric, "none")(item, Response("i", logprobs=logprobs))
            assert score.answer is not None
            chosen = option_index(score.answer)
            assert (score.outcome is Outcome.CORRECT) == (chosen == item.gold), metric


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize(
    ("response", "message"),
    [
        (Response("i", logprobs=(-1.0,)), "1 log-likelihoods for 2 options"),
        (Response("i", logprobs=(-1.0, float("nan"))), "not finite"),
        (Response("i", logprobs=(float("-inf"),) * 2), "no choice has a log-likelihood"),
        (Response("i", error="lost"), "lost"),
    ],
)
def test_values_that_cannot_be_compared_are_errors(response: Response, message: str) -> None:
    score = TaskScorer("acc", "none")(ITEM, response)
    assert score.outcome is Outcome.ERROR
    assert score.error is not None
    assert message in score.error


@pytest.mark.usefixtures("tasks")
def test_an_empty_option_has_no_value_per_character() -> None:
    item = Item("i", "s", "Q?", 0, ("yes", ""))
    response = Response("i", logprobs=(-1.0, -2.0))
    assert TaskScorer("acc", "none")(item, response).outcome is Outcome.CORRECT
    assert TaskScorer("acc_norm", "none")(item, response).error is not None


@pytest.mark.parametrize("value", [0.5, "right", None, (1, 0), float("nan")])
def test_a_value_that_is_neither_0_nor_1_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    monkeypatch.setattr(scoring, "document_of", lambda item: (OtherTask(value), item))
    with pytest.raises(ModelError, match="neither 0 nor 1"):
        TaskScorer("acc", "none")(ITEM, Response("i", logprobs=(-1.0, -2.0)))
    with pytest.raises(ModelError, match="the task computes acc, and not acc_norm"):
        TaskScorer("acc_norm", "none")(ITEM, Response("i", logprobs=(-1.0, -2.0)))


def test_functions_are_paths_of_modules(tmp_path: Path) -> None:
    assert is_function("/tasks/arc/utils.process_docs")
    assert not is_function("/tasks/arc/no function")
    assert not is_function("utils.process_docs")
    assert not is_function(["/tasks/arc/utils.process_docs"])
    (tmp_path / "utils.py").write_text("x = 1")
    first = function_identity(f"{tmp_path}/utils.f")
    (tmp_path / "utils.py").write_text("x = 2")
    assert function_identity(f"{tmp_path}/utils.f") != first
    assert first.startswith("!function utils.f ")


FILES: dict[str, tuple[Entry, dict[str, Any]]] = {
    "a": (Entry("a", "task", "/t/x/a.yaml"), {"task": "a", "num_fewshot": 5}),
    "b": (Entry("b", "task", "/t/y/b.yaml"), {"task": "b"}),
    "tagged": (Entry("tagged", "tag", "", ("a", "b")), {}),
    "group": (
        Entry("group", "group", "/t/group.yaml"),
        {
            "group": "group",
            "num_fewshot": 2,
            "task": [
                {"task": "b", "num_fewshot": 3},
                {"group": "inner", "task": ["a"]},
                {"task": "inline", "doc_to_text": "q"},
            ],
            "aggregate_metric_list": [{"metric": "acc", "weight_by_size": False}],
        },
    ),
    "outer": (Entry("outer", "group", "/t/outer.yaml"), {"group": "outer", "task": "group"}),
    "cycle": (Entry("cycle", "group", "/t/c.yaml"), {"group": "cycle", "task": ["cycle"]}),
    "twice": (Entry("twice", "group", "/t/d.yaml"), {"group": "twice", "task": ["a", "tagged"]}),
    "empty": (Entry("empty", "group", "/t/e.yaml"), {"group": "empty"}),
}


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Entry]:
    monkeypatch.setattr(members, "read_config", lambda entry: dict(FILES[entry.name][1]))
    monkeypatch.setattr(
        members, "optional_entry", lambda name, path: FILES[name][0] if name in FILES else None
    )
    monkeypatch.setattr(members, "find_entry", lambda name, path: FILES[name][0])
    return {name: entry for name, (entry, _) in FILES.items()}


def test_the_settings_of_a_group_reach_its_tasks(files: Mapping[str, Entry]) -> None:
    members = members_of(files["group"])
    shots = {name: config.get("num_fewshot") for name, config in members.configs.items()}
    assert shots == {"b": 3, "a": 2, "group::inline": 2}
    assert members.folders == ("/t", "/t/y", "/t/x")
    assert members.aggregation == [{"metric": "acc", "weight_by_size": False}]
    assert list(members_of(files["outer"]).configs) == list(members.configs)


def test_a_tag_and_a_task_have_their_own_settings(files: Mapping[str, Entry]) -> None:
    assert list(members_of(files["tagged"]).configs) == ["a", "b"]
    assert members_of(files["a"]).configs == {"a": {"task": "a", "num_fewshot": 5}}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cycle", "'cycle' contains itself"),
        ("twice", "'twice' has the task 'a' twice"),
        ("empty", "'empty' has no tasks"),
    ],
)
def test_broken_groups_are_refused(files: Mapping[str, Entry], name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        members_of(files[name])
