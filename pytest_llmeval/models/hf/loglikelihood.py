"""Answers a list of requests for choices: which way each is computed, in which batches."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import NamedTuple

from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.hf.batching import Group
from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.batching import batches
from pytest_llmeval.models.hf.batching import group
from pytest_llmeval.models.hf.batching import joined
from pytest_llmeval.models.hf.encoding import Encoder
from pytest_llmeval.models.hf.forward import PackedForward
from pytest_llmeval.models.hf.forward import Scores
from pytest_llmeval.models.hf.loading import Loaded
from pytest_llmeval.models.hf.model_limits import KEYS_PER_TOKEN
from pytest_llmeval.models.hf.model_limits import default_budget
from pytest_llmeval.models.hf.model_limits import free
from pytest_llmeval.models.hf.model_limits import is_out_of_memory
from pytest_llmeval.models.hf.model_limits import reason_of
from pytest_llmeval.models.hf.model_limits import window_of
from pytest_llmeval.models.hf.self_check import Paths
from pytest_llmeval.models.hf.self_check import find_paths

log = logging.getLogger("pytest_llmeval.models.hf")

_Score = Callable[[Sequence[Question]], Scores]


class _Answered(NamedTuple):
    """``outcome``: the log-probabilities of the choices, or what went wrong."""

    question: Question
    seconds: float
    outcome: list[float] | str


class ChoiceEngine:
    """Log-likelihoods of choices with one loaded model. One prefix is kept alive."""

    def __init__(
        self, loaded: Loaded, batch_tokens: int | None = None, paths: Paths | None = None
    ) -> None:
        """``paths``: found before, by another engine with the same model."""
        paths = paths or find_paths(loaded.model, loaded.device)
        self._budget = batch_tokens or default_budget(loaded.device)
        window = window_of(loaded.model.config, loaded.tokenizer)
        self._encoder = Encoder(loaded.tokenizer, window, loaded.day)
        self._full, self._packed, self._reach = paths.full, paths.packed, paths.reach
        self._device = loaded.device
        # TokenUsage per batch for the rest of a call: less than the budget once memory ran out.
        self._allowed = self._budget

    def answer(self, requests: Sequence[Request], setup_seconds: float = 0.0) -> Iterator[Response]:
        """Yield a response a request, batch by batch, early requests early.

        ``setup_seconds`` (loading) is spread over the requests, as is what a prefix costs over
        those that share it.
        """
        started = time.perf_counter()
        self._allowed = self._budget
        questions, refused = self._encoder.questions(requests)
        each = (setup_seconds + time.perf_counter() - started) / max(1, len(questions))
        yield from refused
        if self._packed is not None:
            questions = joined(questions, [request.id for request in requests])
        for answered in self._answers(questions):
            for part in _parts(answered):
                yield _response(requests[part.question.index], part, each)

    def _answers(self, questions: Sequence[Question]) -> Iterator[_Answered]:
        packed = self._packed
        in_full = list(questions)
        if packed is not None:
            in_full = [question for question in questions if question.length > self._reach]
            for part in group([q for q in questions if q.length <= self._reach]):
                yield from self._group(packed, part, alone=len(questions) == 1)
        for batch in batches(
            in_full, lambda question: question.full_size, lambda: self._allowed, padded=True
        ):
            yield from self._batch(batch, self._full.score)

    def _group(
        self, packed: PackedForward, part: Group[Question], *, alone: bool
    ) -> Iterator[_Answered]:
        started = time.perf_counter()
        live = packed.shared_with_live(part.questions[0].shareable)
        prefix = part.prefix(live, alone=alone)
        try:
            packed.read(prefix)
            failed = None
        except Exception as error:
            failed = error
        if failed is not None:
            log.warning("the shared prefix could not be computed (%s); going on without", failed)
            packed.forget()
            self._free()
            prefix = ()
        each = (time.perf_counter() - started) / len(part.questions)

        def score(batch: Sequence[Question]) -> Scores:
            return packed.score(batch, prefix)

        def size(question: Question) -> int:
            own = question.tree.size - len(prefix)
            # Where questions are padded, each also gets a copy of the prefix's keys.
            return max(own, question.tree.size // KEYS_PER_TOKEN) if packed.pads else own

        for batch in batches(part.questions, size, lambda: self._allowed, padded=packed.pads):
            for answered in self._batch(batch, score):
                yield answered._replace(seconds=answered.seconds + each)

    def _batch(self, batch: Sequence[Question], score: _Score) -> Iterator[_Answered]:
        """Score a batch; one that fails is halved, and only what fails alone is an error."""
        started = time.perf_counter()
        try:
            scores = score(batch)
            failure = None
        except Exception as error:
            failure, memory = reason_of(error), is_out_of_memory(error)
        # Outside the handler: the error's traceback keeps the failed batch's tensors alive.
        if failure is None:
            each = (time.perf_counter() - started) / len(batch)
            for question, outcome in zip(batch, scores, strict=True):
                yield _Answered(question, each, outcome)
            return
        if memory:
            self._free()
        if len(batch) == 1 and batch[0].parts:
            batch = batch[0].parts
        if len(batch) == 1:
            yield _Answered(batch[0], time.perf_counter() - started, failure)
            return
        if memory:
            self._allowed = max(1, min(self._allowed, _tokens(batch)) // 2)
            log.warning(
                "out of memory on %d prompts at once: halved; the rest of this chunk is computed"
                " %d tokens at a time (option batch_tokens sets it for the whole run)",
                len(batch),
                self._allowed,
            )
        middle = len(batch) // 2
        yield from self._batch(batch[:middle], score)
        yield from self._batch(batch[middle:], score)

    def _free(self) -> None:
        free(self._device)


def _parts(answered: _Answered) -> Iterator[_Answered]:
    """The answers to the questions that were asked together."""
    question, seconds, outcome = answered
    if not question.parts or isinstance(outcome, str):
        yield answered
        return
    ends = list(itertools.accumulate(len(part.rows) for part in question.parts))
    for part, begin, end in zip(question.parts, [0, *ends], ends, strict=False):
        yield _Answered(part, seconds / len(question.parts), outcome[begin:end])


def _tokens(batch: Sequence[Question]) -> int:
    return sum(question.tree.size for question in batch)


def _response(request: Request, answered: _Answered, each: float) -> Response:
    question, outcome = answered.question, answered.outcome
    error = outcome if isinstance(outcome, str) else _unusable(outcome)
    return Response(
        request.id,
        logprobs=() if isinstance(outcome, str) or error else tuple(outcome),
        prompt_tokens=question.prompt_tokens,
        dropped_shots=question.dropped_shots,
        encoded_apart=question.encoded_apart,
        seconds=answered.seconds + each,
        error=error,
        sample=request.sample,
        arm=request.arm,
    )


def _unusable(logprobs: Sequence[float]) -> str | None:
    """Why no choice can be read from these values, if so. An argmax would be the first choice."""
    if any(math.isnan(value) for value in logprobs):
        return "the model's log-probabilities are not numbers (NaN)"
    if all(value == -math.inf for value in logprobs):
        return "the model gave every choice probability zero"
    return None
