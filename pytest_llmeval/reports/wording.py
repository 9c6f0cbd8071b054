"""Models, protocols, gates and ties in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Record
from pytest_llmeval.gates import State
from pytest_llmeval.gates import Verdict
from pytest_llmeval.metrics import ALL_TIED_SHOWN
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import disagreements
from pytest_llmeval.runs.measurement import exclusions
from pytest_llmeval.runs.measurement import how_read
from pytest_llmeval.runs.measurement import hybrid_lines
from pytest_llmeval.runs.reply_problems import Failure
from pytest_llmeval.runs.reply_problems import failures_of
from pytest_llmeval.runs.reply_problems import reply_notes
from pytest_llmeval.runs.run import Run
from pytest_llmeval.scorers.choice.reader import Candidate
from pytest_llmeval.scorers.choice.reader import explain_choice
from pytest_llmeval.scorers.number import explain_number

_FAILURES = 10  # reasons of errors


def run_notes(run: Run) -> list[str]:
    """Items left out of the data, scorers that disagree, replies without an answer, hybrid scores."""
    measurements = run.measurements()
    return [
        *run.incomplete_debiasing(),
        *exclusions(measurements),
        *disagreements(measurements),
        *how_read(measurements),
        *reply_notes(run.records),
        *hybrid_lines(measurements, run.hybrid),
    ]


def failure_lines(records: Iterable[Record]) -> Iterator[str]:
    """The reasons of a run's errors, each once; other scorers' of one answer are not counted."""
    counted = (one for one in records if not one.left_out and not one.response_of)
    failures = failures_of(counted)
    yield from (failure_line(one, "answers") for one in failures[:_FAILURES])
    if len(failures) > _FAILURES:
        yield f"ERROR {len(failures) - _FAILURES:,} other reasons"


def failure_line(failure: Failure, noun: str) -> str:
    """``ERROR 12 items, such as ID: reason``; ``noun``: what is counted."""
    many = f"{failure.count:,} {noun}, such as " if failure.count > 1 else ""
    return f"ERROR {many}{failure.example}: {failure.reason}"


def models_of(measurements: Iterable[Measurement]) -> dict[str, str]:
    """Model → the fingerprint of its weights, empty where it has none."""
    found: dict[str, str] = {}
    for one in measurements:
        found[one.result.model] = one.model_fingerprint or found.get(one.result.model, "")
    return found


_OPTION = re.compile(r"(?:^|\n)[ \t]*\(?([A-Z])[).:][ \t]+(.+)")


def candidate_words(candidate: Candidate) -> str:
    return one_line(f"{candidate.role} ({candidate.rule})")


def why(record: Record, question: str | None) -> str | None:
    """Role and rule of the candidate that decided the answer of a record.

    Computed again from the response, with the options that ``question`` lists line by line; None
    where that gives another answer, as for an option's text that is not listed.
    """
    if record.text is None:
        return None
    if record.scorer == "choice":
        listed = dict(_OPTION.findall(question or ""))
        options = [listed.get(label, "") for label in LABELS[: max(len(listed), 10)]]
        found = explain_choice(record.text, options)
    elif record.scorer == "number":
        found = explain_number(record.text)
    else:
        return None
    if not found.candidates or found.answer != record.answer:
        return None
    return candidate_words(found.candidates[0])


_SCORERS = {
    "letter": "The letter with the highest log-likelihood is its answer",
    "cloze": "The option whose text has the highest log-likelihood for its length is its answer",
    "choice": "The option that its text names is its answer",
    "number": "The last number that its text gives as the answer is compared with the right one",
    "execution": "Its program is run in a sandbox; it is right if all tests pass",
}

_METRICS = {
    "accuracy": "accuracy",
    "macro_accuracy": "macro accuracy",
    "normalized_gain": "gain over chance",
    "max_errors": "errors",
    "truncated_rate": "truncated answers",
    "unparsed_rate": "unparsed answers",
    "error_rate": "error rate",
    "max_drop": "drop against the baseline",
    "max_subject_drop": "drop of a subject",
}


_MODELS = {
    "demo": "the demo model, SmolLM2-135M-Instruct, run here by transformers",
    "hf": "run here by transformers",
    "openai": "behind an endpoint",
    "replay": "recorded answers; no model was asked",
}


def model_words(model: str, own: bool) -> str:
    """What kind of a model it is, by its spec; ``own``: a fixture of the project made it."""
    if own:
        return "the project's own, made by its model fixture"
    return _MODELS.get(model.partition(":")[0].partition("?")[0], "")


def tie_words(scorer: str) -> str:
    """What becomes of several best choices: likelihoods of equal height, or equal meanings."""
    drawn = scorer.partition("+")[0] == "matched"
    return "decided by a seeded draw" if drawn else "the first option was taken"


def all_tied_words(numbers: Mapping[str, Any]) -> str | None:
    """That all options of many items have one likelihood; None where that is hardly ever so.

    ``numbers``: of a result, as ``metrics.json`` has them.
    """
    rate = numbers.get("all_tied_rate")  # a run of an earlier version has none
    if rate is None or rate <= ALL_TIED_SHOWN:
        return None
    many = f"{numbers['all_tied']:,} of {count(numbers['answered'], 'answer')} ({rate:.1%})"
    consequence = "" if numbers["measurement"] else ": this is not a measurement of the model"
    return (
        f"All options have the same log-likelihood in {many}{consequence}. Check which tokens the"
        " log-probabilities belong to."
    )


def protocol_words(protocol: Mapping[str, Any], asked: str) -> str:
    """What a model is asked, and how its answer is read, in a few sentences."""
    return " ".join([_shots(protocol), _question(protocol, asked), _reading(protocol)])


def _shots(protocol: Mapping[str, Any]) -> str:
    shots = protocol["shots"]
    if not shots:
        return "The model is asked without worked examples."
    examples = "one worked example" if shots == 1 else f"{shots} worked examples"
    return f"The model sees {examples} before each question ({protocol['draw']})."


def _question(protocol: Mapping[str, Any], asked: str) -> str:
    chat = (
        "The question goes through the model's chat template"
        + (", the examples as text in the same turn" if protocol.get("shots_as_text") else "")
        if protocol["chat"]
        else "The question is plain text, without a chat template"
    )
    if protocol["ask"] == "choices":
        way = f", read by {asked}" if asked else ""
        return f"{chat}; the log-likelihoods of the choices are compared{way}."
    decoding = protocol["decoding"]
    heat = decoding["temperature"]
    drawn = "the likeliest token each time" if heat == 0 else f"drawn at temperature {heat:g}"
    samples = protocol["samples"]
    texts = "one text is" if samples == 1 else f"{samples} texts are"
    return f"{chat}; {texts} written, {drawn}, of at most {decoding['max_tokens']:,} tokens."


def _reading(protocol: Mapping[str, Any]) -> str:
    scorer = protocol["scorer"]
    return f"{_SCORERS.get(scorer, 'Its answer is read')} (scorer {scorer})."


def gate_words(gate: Verdict) -> str:
    """What a gate is about, such as ``accuracy, every subject``."""
    words = _METRICS.get(gate.metric or "", gate.metric or "benchmark")
    if gate.subject is not None:
        return f"{words}, {gate.subject}"
    if "::every_subject::" in gate.id:
        return f"{words}, every subject"
    return words


_VERDICTS = {
    "pass": "Every gate passed",
    "fail": "The gates did not pass",
    "not gated": "Nothing was gated",
}


def failed_items_words(items: int) -> str:
    """``1 item turned the build red``."""
    return f"{count(items, 'item')} turned the build red"


def verdict_words(verdict: str, counts: Mapping[State, int], items_failed: int = 0) -> str:
    """The verdict with the number of gates in each state, and how many items failed.

    ``counts``: of ``count_states``.
    """
    if items_failed and not (counts.get("failed") or counts.get("undecided")):
        green = counts.get("passed") or counts.get("warned")
        verdict = "pass" if green else "not gated"
    head = _VERDICTS.get(verdict, verdict)
    if items_failed:
        head += f"; {failed_items_words(items_failed)}"
    told = ", ".join(f"{number:,} {state}" for state, number in counts.items())
    return f"{head}: {told}" if told else head


def undecided_words(gates: int) -> str:
    """The next step where gates are undecided."""
    are = "1 gate is" if gates == 1 else f"{gates:,} gates are"
    return (
        f"{are} undecided, which is red; during development --llm-allow-undecided"
        " (llmeval gate: --allow-undecided) accepts that"
    )


def truncated_words(numbers: Mapping[str, Any]) -> str | None:
    """How many answers were cut off, and the option that helps; None where none was.

    ``numbers``: of a result, as ``metrics.json`` has them.
    """
    truncated = numbers["truncated"]
    if not truncated:
        return None
    was = "was" if truncated == 1 else "were"
    return (
        f"{count(truncated, 'answer')} ({numbers['truncated_rate']:.1%}) {was} cut off at the token"
        " limit: raise it with --llm-max-tokens"
    )


def failure_words(numbers: Mapping[str, Any]) -> Iterator[str]:
    """The reasons of a result's errors, each with an example.

    ``numbers``: of a result, as ``metrics.json`` has them.
    """
    for one in numbers.get("failures", ()):
        such = f", such as {one['example']}" if one["count"] > 1 else f" ({one['example']})"
        yield f"{count(one['count'], 'error')}{such}: {one['reason']}"


def unfinished_words(manifest: Mapping[str, Any]) -> str | None:
    """The state of a run that did not end, and the next step; None for one that did.

    ``manifest``: its ``run.json``.
    """
    status = manifest.get("status", "finished")
    if status == "finished" or "merged" in manifest:
        return None
    return f"the run is not finished ({status}): the same command with --llm-resume continues it"
