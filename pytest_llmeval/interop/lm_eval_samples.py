"""Samples of lm-evaluation-harness: documents with their requests, responses and verdicts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.interop.collecting import Value
from pytest_llmeval.interop.log import LoggedAnswer
from pytest_llmeval.interop.names import scorer_name
from pytest_llmeval.interop.names import short_hash

PREFIX = "lmeval"

_JOINING = frozenset({"majority_vote", "take_first_k"})
_INVALID = "[invalid]"


def scorer_of(metric: str, key: str) -> str:
    """Return the scorer of a metric under the filter ``key``; lm-eval calls no filter ``none``."""
    return scorer_name(PREFIX, metric) if key == "none" else scorer_name(PREFIX, metric, key)


def pipeline(config: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the steps of a filter in the configuration of a task."""
    for entry in config.get("filter_list") or ():
        if entry.get("name") == name:
            return list(entry.get("filter") or ())
    return []


def joins_answers(config: Mapping[str, Any], name: str) -> bool:
    """Return whether a filter makes one answer of several (``repeats``) to a document."""
    steps = {str(step.get("function")) for step in pipeline(config, name)}
    return int(config.get("repeats") or 1) > 1 and bool(steps & _JOINING)


@dataclass
class LoggedDocument:
    """A document with its requests as a hash: the texts of 100 MB of samples are not kept."""

    content: str
    requests: str
    gold: str
    text: str | None
    logprobs: tuple[float, ...]
    #: Number of choices; 0 if text was generated.
    options: int
    prompt_sha256: str
    error: str | None
    #: Verdicts by scorer, of all filters.
    values: dict[str, Value] = field(default_factory=dict, compare=False)
    filters: set[str] = field(default_factory=set, compare=False)

    @classmethod
    def of(cls, line: Mapping[str, Any], config: Mapping[str, Any]) -> LoggedDocument:
        """Return the document of a line, still without verdicts."""
        arguments = list(line["arguments"].values())
        prompt = arguments[0].get("arg_0") if arguments else None
        is_choice = config.get("output_type") == "multiple_choice"
        logprobs = _logprobs(line.get("resps")) if is_choice else ()
        text = None if is_choice else _flat(line.get("resps"))
        wrong = any(map(math.isnan, logprobs)) or math.inf in logprobs
        return cls(
            content=short_hash(line["doc"], line["target"]),
            requests=short_hash(arguments),
            gold=str(line["target"]),
            text=text if isinstance(text, str) else None,
            logprobs=() if wrong else logprobs,
            options=len(arguments) if is_choice else 0,
            prompt_sha256=hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
            if isinstance(prompt, str)
            else "",
            error="a log-likelihood in the log is not a number" if wrong else None,
        )

    def answer(self, item: str, subject: str) -> LoggedAnswer:
        """Return the answer to the document, without scores."""
        return LoggedAnswer(
            item,
            subject,
            0,
            {},
            self.gold,
            text=self.text,
            logprobs=self.logprobs,
            prompt_sha256=self.prompt_sha256,
        )


def read_documents(file: Path, config: Mapping[str, Any]) -> dict[Any, LoggedDocument]:
    """Return the documents of a file by ``doc_id``, with the verdicts of all their lines.

    A document has a line for every filter, and the lines of a filter may follow those of another.
    Raises ConfigError, naming the line, for a damaged line, for one that occurs twice, and if the
    lines of a document differ in its content.
    """
    documents: dict[Any, LoggedDocument] = {}
    for number, line in _lines(file):
        key, name = line["doc_id"], str(line["filter"])
        document = LoggedDocument.of(line, config)
        first = documents.setdefault(key, document)
        place = f"{file}, line {number}: document {key}"
        if name in first.filters:
            raise ConfigError(f"{place} occurs twice under filter {name!r}")
        if first != document:
            raise ConfigError(f"{place} has two different contents")
        first.filters.add(name)
        first.values.update(_values(line, name, config))
    return documents


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines of a file of samples. Raises ConfigError for a damaged one."""
    with file.open("rb") as stream:
        for number, text in enumerate(stream, start=1):
            try:
                line = json.loads(text)
                if not {"doc_id", "doc", "target", "arguments", "filter"} <= line.keys():
                    raise ValueError("not a sample of lm-eval 0.4.4 or newer")
            except (ValueError, AttributeError, RecursionError) as error:
                raise ConfigError(f"{file}, line {number}: {error}") from None
            yield number, line


def _values(line: Mapping[str, Any], name: str, config: Mapping[str, Any]) -> Mapping[str, Value]:
    """Return the verdicts of a line by scorer."""
    answer = _flat(line.get("filtered_resps"))
    extracted = answer if isinstance(answer, str) else None
    is_text = config.get("output_type") == "generate_until"
    invalid = is_text and extracted in _fallbacks(config, name)
    return {
        scorer_of(metric, name): Value(
            line.get(metric), extracted if is_text and not invalid else None, invalid
        )
        for metric in line.get("metrics", ())
    }


def _fallbacks(config: Mapping[str, Any], name: str) -> set[str]:
    """Return the texts that the filters of a pipeline give if no answer can be extracted."""
    steps = pipeline(config, name)
    return {str(step["fallback"]) for step in steps if "fallback" in step} | {_INVALID}


def _flat(value: Any) -> Any:
    """Return the only element of nested lists of one element; other values unchanged."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _logprobs(resps: Any) -> tuple[float, ...]:
    """Return the log-likelihoods of the choices, which the log has as texts; none if it has others."""
    try:
        return tuple(float(_flat(choice)[0]) for choice in resps)
    except (TypeError, ValueError, IndexError, KeyError):
        return ()
