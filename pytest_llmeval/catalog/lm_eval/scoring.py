"""Scores of lm-eval's metrics, computed by the task objects of lm-eval themselves."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import Item
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core import option_label
from pytest_llmeval.core.logprobs import all_same
from pytest_llmeval.core.logprobs import logprobs_fault
from pytest_llmeval.core.scorer import Scorer
from pytest_llmeval.core.scorer import add_scorer
from pytest_llmeval.sources.lm_eval_documents import document_of

VERSION = 1

_ANSWER_LENGTH = 1000
"""Characters of an extracted answer that a record has."""


@dataclass(frozen=True)
class TaskScorer:
    """Score of one metric after one filter.

    A response that no regular expression of the filter matches is unparsed (lm-eval's ``[invalid]``,
    which it counts as wrong). Raises ModelError, which ends the run, for a value that is neither 0
    nor 1: the metric is not what its name promises.
    """

    metric: str
    filter: str

    def __call__(self, item: Item, response: Response) -> Score:
        task, document = document_of(item)
        if item.options:
            return self._choice(item, response, task, document)
        if response.text is None:
            return Score(Outcome.ERROR, error="the response has no text")
        answer, fallbacks = _filtered(task, document, self.filter, response.text)
        right = self._value(task, document, [answer])
        if not right and any(answer == fallback for fallback in fallbacks):
            return Score(Outcome.UNPARSED)
        outcome = Outcome.CORRECT if right else Outcome.WRONG
        return Score(outcome, answer=str(answer)[:_ANSWER_LENGTH])

    def _choice(self, item: Item, response: Response, task: Any, document: Any) -> Score:
        values = compared_values(self.metric, response.logprobs, item.options)
        fault = logprobs_fault(item, response)
        if fault is None and values is None:
            fault = f"an option is empty: {self.metric} is undefined"
        if fault is not None or values is None:
            return Score(Outcome.ERROR, error=fault)
        # The second value is whether the choice is the greedy text, which no metric here uses.
        right = self._value(task, document, [(value, False) for value in response.logprobs])
        highest = max(values)
        return Score(
            Outcome.CORRECT if right else Outcome.WRONG,
            answer=option_label(values.index(highest)),
            tie=values.count(highest) > 1,
            all_tied=all_same(response.logprobs) or all_same(values),
        )

    def _value(self, task: Any, document: Any, results: list[Any]) -> bool:
        values = task.process_results(document, results)
        if self.metric not in values:
            raise ModelError(f"the task computes {', '.join(values)}, and not {self.metric}")
        value = values[self.metric]
        if not _is_binary(value):
            raise ModelError(f"{self.metric} is {value!r:.60}, neither 0 nor 1")
        return bool(value)


def compared_values(
    metric: str, logprobs: Sequence[float], options: Sequence[str]
) -> list[float] | None:
    """Return the values of which lm-eval takes the highest; None where a length of 0 divides."""
    if metric == "acc_norm":
        lengths = [len(option) for option in options]
    elif metric == "acc_bytes":
        lengths = [len(option.encode("utf-8", "surrogatepass")) for option in options]
    else:
        lengths = [1] * len(options)
    if not all(lengths):
        return None
    return [value / length for value, length in zip(logprobs, lengths, strict=False)]


def _is_binary(value: Any) -> bool:
    try:
        return float(value) in (0.0, 1.0)
    except (TypeError, ValueError):
        return False


def _filtered(task: Any, document: Any, name: str, text: str) -> tuple[Any, list[Any]]:
    """Return a text after a task's filter, and what the filter returns where it finds nothing."""
    instance = importlib.import_module("lm_eval.api.instance").Instance
    ensemble = next(ensemble for ensemble in task._filters if ensemble.name == name)
    request = instance("generate_until", doc=document, arguments=(), idx=0, resps=[text])
    ensemble.apply([request])
    fallbacks = [made.fallback for make in ensemble.filters if hasattr(made := make(), "fallback")]
    return request.filtered_resps[name], fallbacks


def register(name: str, metric: str, filter_name: str) -> str:
    """Register the scorer of a metric after a filter, and return its name."""
    add_scorer(Scorer(name, VERSION, TaskScorer(metric, filter_name), needs=("lm_eval", "lm-eval")))
    return name
