"""Models, protocols, gates and ties in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_llmeval.gates import Verdict
from pytest_llmeval.metrics import ALL_TIED_SHOWN
from pytest_llmeval.reports.numbers import count

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


def verdict_words(verdict: str, counts: Mapping[Any, int], items_failed: int = 0) -> str:
    """The verdict with how many gates came to which status, and how many items failed."""
    told = [
        f"{counts[status]:,} {words}"
        for status, words in (
            ("fail", "failed"),
            ("undecided", "undecided"),
            ("pass", "passed"),
            ("not run", "not run"),
        )
        if counts.get(status)
    ]
    if items_failed and not (counts.get("fail") or counts.get("undecided")):
        verdict = "pass" if counts.get("pass") else "not gated"
    head = _VERDICTS.get(verdict, verdict)
    if items_failed:
        head += f"; {failed_items_words(items_failed)}"
    return f"{head}: {', '.join(told)}" if told else head
