"""From a response to a scored record, and back: pure functions."""

from __future__ import annotations

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
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.core.reasoning import is_cut_off
from pytest_llmeval.evaluation.jobs import Job
from pytest_llmeval.scorers import get_scorer


def read(item: Item, response: Response, scorer: str) -> Score | Job:
    """The score of a response, or the job whose result decides on it.

    No answer is read from a refusal, whatever it mentions, nor from a reply that was withheld. A
    scorer that raises is an error, not a wrong answer. ModelError of one whose own model cannot
    be used at all: the next item would fare no better, after as long a wait.
    """
    if response.error is not None:
        return Score(Outcome.ERROR, error=response.error)
    if response.finish_reason == REFUSED or (
        response.finish_reason == FILTERED and not (response.text or response.logprobs)
    ):
        return Score(Outcome.UNPARSED)
    try:
        chosen = get_scorer(scorer)
        if chosen.jobs is None:
            return chosen.score(item, response)
        job: Score | Job = chosen.jobs.job(item, response)
        return job
    except ModelError:
        raise
    except Exception as error:
        return Score(Outcome.ERROR, error=f"scorer {scorer}: {error!r}")


def filled_in(blank: Record, response: Response, verdict: Score) -> Record:
    """The record with the response and its score in it.

    A text that ends within its reasoning was cut off, whatever the model or its server reports.
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
        # Scores that are no numbers cannot be compared later, nor written as JSON.
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


def in_original_order(score: Score, shown: str) -> Score:
    """The score with the label of its answer as in the original order of the options."""
    answer = score.answer
    if not shown or answer is None or len(answer) != 1 or answer not in LABELS[: len(shown)]:
        return score
    return replace(score, answer=shown[LABELS.index(answer)])


def response_of(record: Record, missing_shots: int) -> Response:
    """The response that a record was made of."""
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
    """What becomes of a record's response under the other scorers, without a response."""
    scorers = plan.other_scorers(result)
    if not scorers:
        return ()
    planned = plan.results[result]

    def of_arm(way: ProtocolVariant) -> str:
        return arm_fingerprint(way.fingerprint, record.arm) if record.arm else way.fingerprint

    if record.protocol != of_arm(planned.ways[0]):
        return ()  # a model that gives only text has one way to score it
    return tuple(
        replace(
            record,
            scorer=other.scorer,
            protocol=of_arm(other.ways[0]),
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
        )
        for other in scorers
    )
