"""From a response to a scored record, and back: pure functions."""

from __future__ import annotations

import math
from dataclasses import replace

from pytest_llmeval.core import FILTERED
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import Item
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core.logprobs import all_same
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.core.reasoning import is_cut_off
from pytest_llmeval.evaluation.jobs import Job
from pytest_llmeval.scorers import get_scorer


def score_response(item: Item, response: Response, scorer: str) -> Score | Job:
    """Return the score of a response, or the job whose result determines it.

    Refusals and withheld replies are unparsed, whatever their text. An exception of a scorer is an
    error, not a wrong answer. Raises ModelError if the scorer's embedding model cannot be used: every
    other item would fail, too.
    """
    if response.error is not None:
        return Score(Outcome.ERROR, error=response.error)
    if response.finish_reason == REFUSED or (
        response.finish_reason == FILTERED and not (response.text or response.logprobs)
    ):
        return Score(Outcome.UNPARSED)
    try:
        rules = get_scorer(scorer)
        if rules.jobs is None:
            return rules.score(item, response)
        job: Score | Job = rules.jobs.job(item, response)
        return job
    except ModelError:
        raise
    except Exception as error:
        return Score(Outcome.ERROR, error=f"scorer {scorer}: {error!r}")


def score_orders(blank: Record, response: Response) -> Score:
    """Return the score of the likelihoods of several orders: no answer, or an error.

    ``blank.detail`` begins with the number of orders, and a missing or infinite value is an error.
    """
    orders = int(blank.detail.partition(" ")[0])
    values = response.logprobs
    if response.error is not None:
        return Score(Outcome.ERROR, error=response.error)
    if len(values) != orders:
        problem = f"{len(values)} log-likelihoods for {orders} orders"
        return Score(Outcome.ERROR, error=problem)
    if not all(map(math.isfinite, values)):
        problem = f"log-likelihoods are not finite: {list(values)}"
        return Score(Outcome.ERROR, error=problem)
    return Score(Outcome.UNPARSED, detail=blank.detail, all_tied=all_same(values))


def scored_record(blank: Record, response: Response, verdict: Score) -> Record:
    """Return the record with a response and its score.

    A text that ends within its reasoning was truncated, whatever the model or its server reports.
    """
    cut_off = bool(response.text) and is_cut_off(response.text or "")
    return replace(
        blank,
        outcome=verdict.outcome,
        answer=verdict.answer,
        tie=verdict.tie,
        all_tied=verdict.all_tied,
        error=verdict.error,
        detail=verdict.detail,
        log=verdict.log,
        node=verdict.node,
        # Values that are not numbers can neither be compared later nor written as JSON.
        logprobs=() if verdict.outcome is Outcome.ERROR else response.logprobs,
        text=response.text,
        reasoning=response.reasoning,
        finish_reason="length" if cut_off else response.finish_reason,
        prompt_tokens=response.prompt_tokens,
        completion_tokens=response.completion_tokens,
        dropped_shots=blank.dropped_shots + response.dropped_shots,
        encoded_apart=response.encoded_apart,
        seconds=response.seconds,
    )


def in_original_order(score: Score, order: str) -> Score:
    """Return the score with its answer's label in the original order of the options.

    ``order``: original labels in the order shown, such as ``BADC``; empty for the original order.
    """
    answer = score.answer
    if not order or answer is None or len(answer) != 1 or answer not in LABELS[: len(order)]:
        return score
    return replace(score, answer=order[LABELS.index(answer)])


def stored_response(record: Record, missing_shots: int) -> Response:
    """Reconstruct the response from a record."""
    return Response(
        record.item,
        logprobs=record.logprobs,
        text=record.text,
        reasoning=record.reasoning,
        finish_reason=record.finish_reason,
        prompt_tokens=record.prompt_tokens,
        completion_tokens=record.completion_tokens,
        dropped_shots=record.dropped_shots - missing_shots,
        encoded_apart=record.encoded_apart,
        seconds=record.seconds,
    )


def for_other_scorers(plan: Plan, result: int, record: Record) -> tuple[Record, ...]:
    """Return the records of other scorers for the same response, without the response and scores."""
    scorers = plan.other_scorers(result)
    if not scorers:
        return ()
    planned = plan.results[result]

    def of_arm(variant: ProtocolVariant) -> str:
        if not record.arm:
            return variant.fingerprint
        return arm_fingerprint(variant.fingerprint, record.arm)

    if record.protocol != of_arm(planned.variants[0]):
        return ()  # a model that returns only text has one scorer
    return tuple(
        replace(
            record,
            scorer=other.scorer,
            protocol=of_arm(other.variants[0]),
            response_of=record.scorer,
            answer=None,
            text=None,
            reasoning=None,
            logprobs=(),
            prompt_sha256="",
            prompt_tokens=None,
            completion_tokens=None,
            seconds=None,
            tie=False,
            all_tied=False,
            detail="",
            log="",
            node="",
        )
        for other in scorers
    )
