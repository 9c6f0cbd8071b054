"""Likelihoods of choices: batches of questions, with recovery from failed batches."""

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
from pytest_llmeval.models.hf.batching import PrefixGroup
from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.batching import group_by_prefix
from pytest_llmeval.models.hf.batching import merge_questions
from pytest_llmeval.models.hf.batching import split_batches
from pytest_llmeval.models.hf.encoding import Encoder
from pytest_llmeval.models.hf.forward import PackedForward
from pytest_llmeval.models.hf.forward import Scores
from pytest_llmeval.models.hf.loading import LoadedModel
from pytest_llmeval.models.hf.model_limits import KEYS_PER_TOKEN
from pytest_llmeval.models.hf.model_limits import context_window
from pytest_llmeval.models.hf.model_limits import default_batch_tokens
from pytest_llmeval.models.hf.model_limits import error_summary
from pytest_llmeval.models.hf.model_limits import free_memory
from pytest_llmeval.models.hf.model_limits import is_out_of_memory
from pytest_llmeval.models.hf.self_check import ForwardPaths
from pytest_llmeval.models.hf.self_check import find_paths

log = logging.getLogger("pytest_llmeval.models.hf")

_Score = Callable[[Sequence[Question]], Scores]


class _QuestionResult(NamedTuple):
    """Result of a question."""

    question: Question
    seconds: float
    #: Log-probabilities of the choices, or an error message.
    outcome: list[float] | str


class ChoiceEngine:
    """Engine that computes log-likelihoods of choices with one loaded model."""

    def __init__(
        self,
        loaded: LoadedModel,
        batch_tokens: int | None = None,
        paths: ForwardPaths | None = None,
    ) -> None:
        """Prepare the encoder and the forward passes.

        ``batch_tokens``: tokens to compute per batch. ``paths``: result of ``find_paths`` for the
        model.
        """
        paths = paths or find_paths(loaded.model, loaded.device)
        self._budget = batch_tokens or default_batch_tokens(loaded.device)
        window = context_window(loaded.model.config, loaded.tokenizer)
        self._encoder = Encoder(loaded.tokenizer, window, loaded.day)
        self._full, self._packed, self._reach = paths.full, paths.packed, paths.reach
        self._device = loaded.device
        # Tokens per batch for the rest of a call: less than the budget after memory ran out.
        self._allowed = self._budget

    def answer(self, requests: Sequence[Request], setup_seconds: float = 0.0) -> Iterator[Response]:
        """Yield one response per request, batch by batch, early requests first.

        ``setup_seconds`` (loading) is divided among the requests, the time for a prefix among the
        requests that share it.
        """
        started = time.perf_counter()
        self._allowed = self._budget
        questions, refused = self._encoder.encode_questions(requests)
        each = (setup_seconds + time.perf_counter() - started) / max(1, len(questions))
        yield from refused
        if self._packed is not None:
            questions = merge_questions(questions, [request.id for request in requests])
        for result in self._answers(questions):
            for part in _split_merged(result):
                yield _response(requests[part.question.index], part, each)

    def _answers(self, questions: Sequence[Question]) -> Iterator[_QuestionResult]:
        packed = self._packed
        unpacked = list(questions)
        if packed is not None:
            unpacked = [question for question in questions if question.length > self._reach]
            for part in group_by_prefix([q for q in questions if q.length <= self._reach]):
                yield from self._group(packed, part, alone=len(questions) == 1)
        for batch in split_batches(
            unpacked, lambda question: question.full_size, lambda: self._allowed, padded=True
        ):
            yield from self._batch(batch, self._full.score)

    def _group(
        self, packed: PackedForward, part: PrefixGroup[Question], *, alone: bool
    ) -> Iterator[_QuestionResult]:
        started = time.perf_counter()
        live = packed.live_length(part.questions[0].shareable)
        prefix = part.prefix(live, alone=alone)
        try:
            packed.read(prefix)
            failure = None
        except Exception as error:
            failure = error
        if failure is not None:
            log.warning("cannot compute the shared prefix (%s): continuing without it", failure)
            packed.forget()
            self._free()
            prefix = ()
        each = (time.perf_counter() - started) / len(part.questions)

        def score(batch: Sequence[Question]) -> Scores:
            return packed.score(batch, prefix)

        def size(question: Question) -> int:
            own = question.tree.size - len(prefix)
            # With padding, every question also has a copy of the prefix's keys.
            return max(own, question.tree.size // KEYS_PER_TOKEN) if packed.pads else own

        for batch in split_batches(part.questions, size, lambda: self._allowed, padded=packed.pads):
            for result in self._batch(batch, score):
                yield result._replace(seconds=result.seconds + each)

    def _batch(self, batch: Sequence[Question], score: _Score) -> Iterator[_QuestionResult]:
        """Score a batch; halve it if it fails, so that only single questions become errors."""
        started = time.perf_counter()
        try:
            scores = score(batch)
            failure = None
        except Exception as error:
            failure, memory = error_summary(error), is_out_of_memory(error)
        # Outside the handler: the error's traceback keeps the failed batch's tensors alive.
        if failure is None:
            each = (time.perf_counter() - started) / len(batch)
            for question, outcome in zip(batch, scores, strict=True):
                yield _QuestionResult(question, each, outcome)
            return
        if memory:
            self._free()
        if len(batch) == 1 and batch[0].parts:
            batch = batch[0].parts
        if len(batch) == 1:
            yield _QuestionResult(batch[0], time.perf_counter() - started, failure)
            return
        if memory:
            self._allowed = max(1, min(self._allowed, _tokens(batch)) // 2)
            log.warning(
                "out of memory on a batch of %d prompts: halved; computing the rest of this chunk"
                " %d tokens at a time (option batch_tokens sets this for the whole run)",
                len(batch),
                self._allowed,
            )
        middle = len(batch) // 2
        yield from self._batch(batch[:middle], score)
        yield from self._batch(batch[middle:], score)

    def _free(self) -> None:
        free_memory(self._device)


def _split_merged(result: _QuestionResult) -> Iterator[_QuestionResult]:
    """Split the result of a merged question into those of its parts."""
    question, seconds, outcome = result
    if not question.parts or isinstance(outcome, str):
        yield result
        return
    ends = list(itertools.accumulate(len(part.rows) for part in question.parts))
    for part, begin, end in zip(question.parts, [0, *ends], ends, strict=False):
        yield _QuestionResult(part, seconds / len(question.parts), outcome[begin:end])


def _tokens(batch: Sequence[Question]) -> int:
    return sum(question.tree.size for question in batch)


def _response(request: Request, result: _QuestionResult, each: float) -> Response:
    question, outcome = result.question, result.outcome
    error = outcome if isinstance(outcome, str) else _invalid_values(outcome)
    return Response(
        request.id,
        logprobs=() if isinstance(outcome, str) or error else tuple(outcome),
        prompt_tokens=question.prompt_tokens,
        dropped_shots=question.dropped_shots,
        encoded_apart=question.encoded_apart,
        seconds=result.seconds + each,
        error=error,
        sample=request.sample,
        arm=request.arm,
    )


def _invalid_values(logprobs: Sequence[float]) -> str | None:
    """Return an error if the values determine no choice (their argmax would be the first one)."""
    if any(math.isnan(value) for value in logprobs):
        return "the model's log-probabilities are not numbers (NaN)"
    if all(value == -math.inf for value in logprobs):
        return "the model gave every choice probability zero"
    return None
