"""Texts that all reports share: verdicts, gates, weakest subjects, protocols, models, ties, errors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from pytest_llmeval.core import Record
from pytest_llmeval.gates import State
from pytest_llmeval.gates import Verdict
from pytest_llmeval.metrics import ALL_TIED_LIMIT
from pytest_llmeval.metrics import ALL_TIED_SHOWN
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.runs.measured_orders import contamination_entries
from pytest_llmeval.runs.measured_orders import order_lines
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import exclusions
from pytest_llmeval.runs.measurement import extraction_summary
from pytest_llmeval.runs.measurement import hybrid_lines
from pytest_llmeval.runs.measurement import scorer_disagreements
from pytest_llmeval.runs.reply_problems import ErrorGroup
from pytest_llmeval.runs.reply_problems import error_groups
from pytest_llmeval.runs.reply_problems import reply_notes
from pytest_llmeval.runs.run import Run
from pytest_llmeval.scorers import counts_all_items

_FAILURES = 10  # reasons of errors in a list


def run_notes(run: Run) -> list[str]:
    """Return notes on excluded items, scorers, unread replies, hybrid scores and order tests."""
    measurements = run.measurements()
    return [
        *imported_lines(run.manifest),
        *replica_lines(run.manifest),
        *addition_lines(run.manifest),
        *run.incomplete_debiasing(),
        *exclusions(measurements),
        *scorer_disagreements(measurements),
        *extraction_summary(measurements),
        *reply_notes(run.records),
        *hybrid_lines(measurements, run.hybrid),
        *order_lines(contamination_entries(run.measured_orders)),
    ]


def imported_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the origin of an imported run, and what its log has that was not imported."""
    if "imported" in manifest:
        origin = manifest["imported"]
        yield f"imported from {origin['from']}, a log of {origin['harness']}"
    yield from manifest.get("notes", ())


def replica_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield, for every model that ran as replicas, how many and where."""
    for model, where in manifest.get("replicas", {}).items():
        places = ", ".join(
            f"{place['node']} ({place['device']})" for place in where.get("places", ())
        )
        dtype = f", {where['dtype']}" if where.get("dtype") else ""
        yield (
            f"{model} ran as {where['replicas']} replicas on Ray ({where['address']}): {places}{dtype}"
        )


def addition_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield, for every model with added body fields or headers, what its requests had."""
    for model, added in manifest.get("additions", {}).items():
        parts = [
            *(f"{name}={json.dumps(value)}" for name, value in added.get("body", {}).items()),
            *(f"header {name}" for name in added.get("headers", ())),
            *([f"neutral values for {added['server']}"] if added.get("server") else []),
        ]
        yield f"{model.partition('?')[0]}: requests were sent with {', '.join(parts)}"


def failure_lines(records: Iterable[Record]) -> Iterator[str]:
    """Yield each reason of a run's errors once; an answer counts once, not once per scorer."""
    counted = (record for record in records if not record.left_out and not record.response_of)
    failures = error_groups(counted)
    yield from (failure_line(failure, "answers") for failure in failures[:_FAILURES])
    if len(failures) > _FAILURES:
        yield f"ERROR {len(failures) - _FAILURES:,} other reasons"


def failure_line(failure: ErrorGroup, noun: str) -> str:
    """Format a reason of errors: ``ERROR 12 items, such as ID: reason``.

    ``noun``: plural of the things that are counted.
    """
    many = f"{failure.count:,} {noun}, such as " if failure.count > 1 else ""
    return f"ERROR {many}{failure.example}: {failure.reason}"


def model_fingerprints(measurements: Iterable[Measurement]) -> dict[str, str]:
    """Return model → fingerprint of its weights, empty if there is none."""
    fingerprints: dict[str, str] = {}
    for measurement in measurements:
        model = measurement.result.model
        fingerprints[model] = measurement.model_fingerprint or fingerprints.get(model, "")
    return fingerprints


_SCORERS = {
    "letter": "The answer is the letter with the highest log-likelihood",
    "cloze": "The answer is the option whose text has the highest log-likelihood for its length",
    "choice": "The answer is the option that the text names",
    "number": "The last number that the text gives as its answer is compared with the right one",
    "execution": "The program is run in a sandbox; it is right if all tests pass",
    "resolved": "The patch is applied in the instance's image; it is right if the tests pass there",
    "resolved_official": "The patch is judged by the instance's own script and the official rules",
}

_METRICS = {
    "accuracy": "accuracy",
    "macro_accuracy": "macro accuracy",
    "normalized_gain": "gain over chance",
    "max_errors": "errors",
    "refused_rate": "refused answers",
    "truncated_rate": "truncated answers",
    "unparsed_rate": "unparsed answers",
    "error_rate": "error rate",
    "resolved_rate": "resolved of all instances",
    "max_drop": "drop against the baseline",
    "max_subject_drop": "drop of a subject",
    "max_gain": "gain from items in the corpus",
    "max_overlap": "items in the corpus",
    "option_order": "preference for the published order of options",
    "item_order": "preference for the published order of items",
    "max_gap": "gap to the rewritten copy",
}


_MODELS = {
    "demo": "the demo model, SmolLM2-135M-Instruct, run here by transformers",
    "hf": "run here by transformers",
    "openai": "behind an endpoint",
    "replay": "recorded answers; no model was queried",
}


def model_words(model: str, manifest: Mapping[str, Any]) -> str:
    """Describe the kind of a model by its spec. ``manifest``: the ``run.json`` of its run."""
    if "imported" in manifest:
        return f"evaluated by {manifest['imported']['harness']}"
    if manifest["own_model"]:
        return "a custom model, from the project's model fixture"
    return _MODELS.get(model.partition(":")[0].partition("?")[0], "")


def tie_words(scorer: str) -> str:
    """Describe how a scorer breaks ties between equal likelihoods or equal meanings."""
    seeded = scorer.partition("+")[0] == "matched"
    return "broken at random with the seed" if seeded else "the first option was taken"


def all_tied_words(numbers: Mapping[str, Any]) -> str | None:
    """Warn if all options of many items have the same likelihood; None if only of few.

    ``numbers``: a result's entry of ``metrics.json``.
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


def protocol_words(protocol: Mapping[str, Any], request_mode: str) -> str:
    """Describe the prompt and how the answer is read, in a few sentences.

    ``request_mode``: how log-likelihoods were obtained, or empty.
    """
    if "harness" in protocol:
        return _imported(protocol)
    return " ".join([_shots(protocol), _question(protocol, request_mode), _reading(protocol)])


def _imported(protocol: Mapping[str, Any]) -> str:
    """Describe the protocol of another harness, whose prompts and verdicts a run has."""
    harness = f"{protocol['harness']} {protocol['harness_version']}".strip()
    answers = {"choices": "compares the log-likelihoods of choices", "text": "generates texts"}
    return (
        f"Prompts and verdicts are those of {harness}, which {answers[protocol['ask']]} here"
        f" (scorer {protocol['scorer']})."
    )


def _shots(protocol: Mapping[str, Any]) -> str:
    shots = protocol["shots"]
    if not shots:
        return "The prompt has no worked examples."
    examples = "one worked example" if shots == 1 else f"{shots} worked examples"
    return f"The prompt has {examples} before each question ({protocol['draw']})."


def _question(protocol: Mapping[str, Any], request_mode: str) -> str:
    chat = (
        "The question is formatted with the model's chat template"
        + (", the examples as text in the same turn" if protocol.get("shots_as_text") else "")
        + _system(protocol)
        if protocol["chat"]
        else "The question is plain text, without a chat template"
    )
    if protocol["ask"] == "choices":
        mode = f", read by {request_mode}" if request_mode else ""
        return f"{chat}; the log-likelihoods of the choices are compared{mode}."
    decoding = protocol["decoding"]
    temperature = decoding["temperature"]
    tokens = "greedily" if temperature == 0 else f"at temperature {temperature:g}"
    samples = protocol["samples"]
    texts = "one text is" if samples == 1 else f"{samples} texts are"
    # An added body field can change the text; the plain mode (chat, completions) cannot.
    mode = f", requested by {request_mode}" if " " in request_mode else ""
    limit = f"with at most {decoding['max_tokens']:,} tokens"
    return f"{chat}; {texts} generated {tokens}, {limit}{mode}."


def _system(protocol: Mapping[str, Any]) -> str:
    """Return the system prompt that the user added, in words; empty if there is none."""
    text = protocol.get("system")
    return f", after the system prompt {json.dumps(text, ensure_ascii=False)}" if text else ""


def _reading(protocol: Mapping[str, Any]) -> str:
    scorer = protocol["scorer"]
    return f"{_SCORERS.get(scorer, 'The answer is read from the response')} (scorer {scorer})."


def gate_words(gate: Verdict) -> str:
    """Describe metric and subject of a gate, such as ``accuracy, every subject``."""
    words = _METRICS.get(gate.metric or "", gate.metric or "benchmark")
    if gate.subject is not None:
        return f"{words}, {gate.subject}"
    if "::clean::" in gate.id and gate.metric != "max_gain":
        return f"{words}, items without overlap"
    if "::every_subject::" in gate.id:
        return f"{words}, every subject"
    return words


def failed_items_words(items: int) -> str:
    """Format a number of failed items: ``1 item failed the build``."""
    return f"{count(items, 'item')} failed the build"


def verdict_headline(verdict: str, counts: Mapping[State, int], items_failed: int = 0) -> str:
    """Return the verdict on the build in a line: ``FAIL: 3 of 14 gates failed, 11 passed``.

    The parameters are those of ``verdict_words``.
    """
    return f"{verdict.upper()}: {verdict_words(verdict, counts, items_failed)}"


def verdict_words(verdict: str, counts: Mapping[State, int], items_failed: int = 0) -> str:
    """Describe a verdict by the number of gates in each state and the number of failed items.

    ``verdict``: ``pass``, ``fail`` or ``not gated``. ``counts``: of ``count_states``.
    """
    text = _gates_words(counts, allowed=verdict == "pass")
    return f"{text}; {failed_items_words(items_failed)}" if items_failed else text


def _gates_words(counts: Mapping[State, int], allowed: bool) -> str:
    """Describe the states of gates; ``allowed``: undecided gates do not fail the build."""
    judged = sum(number for state, number in counts.items() if state != "not run")
    not_run = f", {counts['not run']:,} not run" if "not run" in counts else ""
    if not judged:
        return f"No gate was judged{not_run}"
    warned = counts.get("warned", 0)
    if judged == warned + counts.get("passed", 0):
        gates = "The only gate" if judged == 1 else f"All {judged:,} gates"
        warnings = f", {warned:,} with a warning" if warned else ""
        return f"{gates} passed{warnings}{not_run}"
    states: Mapping[State, str] = {
        "failed": "failed",
        "undecided": "undecided (allowed)" if allowed else "undecided",
        "warned": "passed with a warning",
        "passed": "passed",
    }
    (first, number), *others = [(words, counts[s]) for s, words in states.items() if s in counts]
    rest = "".join(f", {other:,} {words}" for words, other in others)
    return f"{number:,} of {count(judged, 'gate')} {first}{rest}{not_run}"


def undecided_words(gates: int) -> str:
    """Describe the effect of undecided gates and the option that allows them."""
    fail = "1 undecided gate fails" if gates == 1 else f"{gates:,} undecided gates fail"
    return (
        f"{fail} the build; to allow them during development, add --llm-allow-undecided"
        " (llmeval gate: --allow-undecided)"
    )


class SubjectCounts(NamedTuple):
    """Right and all answered items of one subject."""

    subject: str
    correct: int
    answered: int

    @property
    def accuracy(self) -> float:
        """Share of right answers, a proportion."""
        return self.correct / self.answered

    @property
    def text(self) -> str:
        """``0.1800 (9/50)``."""
        return f"{self.accuracy:.4f} ({self.correct:,}/{self.answered:,})"


def weakest_subjects(numbers: Mapping[str, Any], most: int) -> tuple[int, list[SubjectCounts]]:
    """Return the number of measured subjects and the ``most`` weakest of them, weakest first.

    ``numbers``: a result's entry of ``metrics.json``. The list is empty for fewer than two subjects
    and for a result that is not a measurement.
    """
    if not numbers.get("measurement", True):
        return 0, []
    subjects = [
        SubjectCounts(name, entry["correct"], entry["answered"])
        for name, entry in numbers["subjects"].items()
        if entry["answered"] and (entry.get("all_tied_rate") or 0.0) <= ALL_TIED_LIMIT
    ]
    weakest = sorted(subjects, key=lambda entry: (entry.accuracy, entry.subject))
    return len(subjects), weakest[:most] if len(subjects) > 1 else []


def sampled_words(numbers: Mapping[str, Any]) -> str:
    """Describe a random sample of items and the accuracy that it implies for all items.

    ``numbers``: a result's entry of ``metrics.json`` that has ``sampled``.
    """
    sample = numbers["sampled"]
    low, high = sample["interval95"]
    return (
        f"sampled {sample['items']:,} of {numbers['items']:,} items; the estimate for all items is"
        f" {sample['accuracy']:.4f}, between {low:.4f} and {high:.4f} (95 %)"
    )


def stopped_words(numbers: Mapping[str, Any]) -> str | None:
    """Describe at how many items a sequential run stopped; None of another run.

    ``numbers``: as of ``truncated_words``.
    """
    stopped = numbers.get("stopped")
    if stopped is None:
        return None
    return f"stopped at {stopped['asked']:,} of {stopped['population']:,} items (--llm-sequential)"


def resolved_words(numbers: Mapping[str, Any]) -> str | None:
    """Return the official rate of a result of patches, over all instances; None of another result.

    ``numbers``: as of ``truncated_words``.
    """
    if not counts_all_items(numbers["scorer"]) or not numbers["n_total"]:
        return None
    rate = numbers["correct"] / numbers["n_total"]
    return (
        f"{numbers['correct']:,} of all {numbers['n_total']:,} resolved ({rate:.1%}): the official"
        " rate, in which errors and what is missing are not resolved"
    )


def truncated_words(numbers: Mapping[str, Any]) -> str | None:
    """Describe how many answers were truncated and the option that helps; None if none was.

    ``numbers``: a result's entry of ``metrics.json``.
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
    """Yield the reasons of a result's errors, each with an example.

    ``numbers``: a result's entry of ``metrics.json``.
    """
    for failure in numbers.get("failures", ()):
        example = failure["example"]
        such = f", such as {example}" if failure["count"] > 1 else f" ({example})"
        yield f"{count(failure['count'], 'error')}{such}: {failure['reason']}"


def unfinished_words(manifest: Mapping[str, Any]) -> str | None:
    """Describe the state of an unfinished run and the next step; None for a finished run.

    ``manifest``: its ``run.json``.
    """
    status = manifest.get("status", "finished")
    if status == "finished" or "merged" in manifest:
        return None
    return f"the run is not finished ({status}): the same command with --llm-resume continues it"
