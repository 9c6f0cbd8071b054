"""Logs of Inspect (``inspect_ai``), format 2: ``.eval`` and ``.json``.

Epochs are samples. Inspect's own accuracy is the mean over items of the mean over the epochs that
did not fail (``EvalResults``); here a failed epoch is an error and stays in the denominator.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.interop.collecting import Collector
from pytest_llmeval.interop.collecting import Value
from pytest_llmeval.interop.inspect_files import VERSION
from pytest_llmeval.interop.inspect_files import InspectFile
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.log import Log
from pytest_llmeval.interop.log import LoggedAnswer
from pytest_llmeval.interop.log import LoggedBenchmark
from pytest_llmeval.interop.log import whole_sizes
from pytest_llmeval.interop.names import SetHash
from pytest_llmeval.interop.names import benchmark_name
from pytest_llmeval.interop.names import cleaned
from pytest_llmeval.interop.names import is_path
from pytest_llmeval.interop.names import model_name
from pytest_llmeval.interop.names import scorer_name
from pytest_llmeval.interop.names import short_hash
from pytest_llmeval.interop.names import without
from pytest_llmeval.sources.item_ids import safe_id

PREFIX = "inspect"

_VERDICTS: Mapping[Any, int] = {"C": 1, "I": 0, "N": 0}
_NO_ANSWER = "N"
_UNREADABLE = "invalid_response_format"
# Of the client, not of the answer.
_OPERATIONAL = (
    *("max_retries", "timeout", "attempt_timeout", "max_connections", "adaptive_connections"),
    *("batch", "cache", "cache_prompt"),
)
_LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit")
_FINISHED = {"max_tokens": "length", "model_length": "length"}
_ATTACHMENT = "attachment://"
_ROUNDING = 1e-6


def read_inspect(file: InspectFile, options: ImportOptions) -> Log:
    """Read a log. Raises ConfigError, in one line, for one that is not finished, valid and whole."""
    log, header = str(file.path), file.header
    spec, config = header["eval"], header["eval"].get("config") or {}
    _check(log, header, config)
    task = str(spec["task"])
    benchmark = benchmark_name(PREFIX, options.name or task.rpartition("/")[2])
    collector, requests = Collector(log), _Requests()
    samples: list[_LoggedSample] = []
    for sample in file.samples():
        item = safe_id(str(sample["id"]))
        subject = _subject(log, sample, options.subject, benchmark)
        samples.append(
            _LoggedSample.of(sample, _answer(sample, item, subject), _options(sample, header))
        )
        requests.add(item, sample)
    _check_whole(log, spec, config, header, len(samples))
    with_answers = {
        name for sample in samples for name, (_, answer, _) in sample.scores.items() if answer
    }
    for each in samples:
        values = {
            scorer_name(PREFIX, name): _value(score, name in with_answers)
            for name, score in each.scores.items()
        }
        collector.add(each.answer, values, each.content, error=each.error, options=each.options)
    _check_means(log, header, samples)
    names = _score_names(header, samples)
    scorers, answers, notes = collector.scored(
        [scorer_name(PREFIX, name) for name in names], options.scorers, PREFIX
    )
    whole = (spec.get("dataset") or {}).get("samples")
    limit = config.get("limit") or config.get("sample_id")
    sizes = whole_sizes(log, answers, whole, None if limit is None else f"limit {limit}", options)
    return Log(
        harness="inspect",
        version=str((spec.get("packages") or {}).get("inspect_ai", "")),
        model=_model(log, spec, options.model),
        model_fingerprint=None,
        started=spec.get("created"),
        benchmarks=(
            LoggedBenchmark(
                name=benchmark,
                version=str(spec.get("task_version", "")),
                protocol=_protocol(header, requests),
                scorers={
                    scorer: options_of
                    for name in names
                    if (scorer := scorer_name(PREFIX, name)) in scorers
                    for options_of in (_scorer_options(header, name),)
                },
                answers=answers,
                data_hash=collector.data.hexdigest(),
                sizes=sizes,
                chance=collector.chance,
                samples=collector.samples,
            ),
        ),
        files=(file.path,),
        notes=tuple(notes),
    )


# Checks ------------------------------------------------------------------------------------


def _check(log: str, header: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    if header.get("version") != VERSION:
        raise ConfigError(
            f"{log} has version {header.get('version')!r} of Inspect's format; version {VERSION} is"
            " read (`inspect log convert` writes it)"
        )
    if header["status"] != "success":
        raise ConfigError(f"{log} has status {header['status']!r}: only a finished log is imported")
    if header.get("invalidated"):
        raise ConfigError(f"{log} was marked as invalid")
    if config.get("log_samples") is False:
        raise ConfigError(f"{log} has no samples (written with log_samples=False)")


def _check_whole(
    log: str,
    spec: Mapping[str, Any],
    config: Mapping[str, Any],
    header: Mapping[str, Any],
    answers: int,
) -> None:
    """Check that every epoch of every sample is there; the collector refuses repeated ones."""
    ids = (spec.get("dataset") or {}).get("sample_ids")
    expected = (header.get("results") or {}).get("total_samples")
    if ids:
        expected = len(ids) * int(config.get("epochs") or 1)
    if (expected is not None and expected != answers) or not answers:
        raise ConfigError(
            f"{log} has {answers:,} of the {expected or 0:,} answers that were requested: it is not the"
            " whole log"
        )


def _check_means(log: str, header: Mapping[str, Any], samples: Iterable[_LoggedSample]) -> None:
    """Check the verdicts against the accuracies that Inspect computed; ConfigError if they differ."""
    reducer = (header["eval"].get("config") or {}).get("epochs_reducer") or ["mean"]
    reported = {
        score["name"]: metric["value"]
        for score in (header.get("results") or {}).get("scores", ())
        for metric in (score.get("metrics") or {}).values()
        if metric.get("name") == "accuracy" and not metric.get("params") and reducer == ["mean"]
    }
    values: dict[str, dict[Any, list[float]]] = {name: {} for name in reported}
    for sample in samples:
        for name, (verdict, _, _) in sample.scores.items():
            if name in values and sample.error is None:
                if isinstance(verdict, bool | int | float) and verdict in (0, 1):
                    values[name].setdefault(sample.answer.item, []).append(verdict)
                else:
                    del values[name]  # not a verdict, or not scored: left out or an error
    for name, by_item in values.items():
        means = [sum(own) / len(own) for own in by_item.values()]
        mean = sum(means) / len(means) if means else None
        if mean is not None and abs(mean - reported[name]) > _ROUNDING:
            raise ConfigError(
                f"{log}: the answers give {name} an accuracy of {mean:.6f}, and the log reports"
                f" {reported[name]:.6f}"
            )


# Samples -----------------------------------------------------------------------------------


_Verdict = tuple[Any, str | None, bool]
"""Value, extracted answer, and whether the scorer reports an unreadable response."""


@dataclass(frozen=True, slots=True)
class _LoggedSample:
    """One epoch of a sample, without its messages."""

    answer: LoggedAnswer
    scores: Mapping[str, _Verdict]
    content: str
    error: str | None
    options: int

    @classmethod
    def of(cls, sample: Mapping[str, Any], answer: LoggedAnswer, options: int) -> _LoggedSample:
        content = [_messages(sample, sample["input"]), sample.get("choices"), sample["target"]]
        scores = {name: _verdict(score) for name, score in (sample.get("scores") or {}).items()}
        return cls(answer, scores, short_hash(content), _error(sample), options)


def _answer(sample: Mapping[str, Any], item: str, subject: str) -> LoggedAnswer:
    target = sample["target"]
    output = sample.get("output") or {}
    choices = output.get("choices") or [{}]
    content = (choices[0].get("message") or {}).get("content")
    text, reasoning = _parts(sample, content)
    reason = choices[0].get("stop_reason")
    usage = output.get("usage") or {}
    return LoggedAnswer(
        item,
        subject,
        int(sample["epoch"]) - 1,
        {},
        gold=target if isinstance(target, str) else ", ".join(map(str, target)),
        text=text,
        reasoning=reasoning,
        finish_reason=None if reason is None else _FINISHED.get(reason, str(reason)),
        prompt_tokens=usage.get("input_tokens"),
        completion_tokens=usage.get("output_tokens"),
        seconds=sample.get("total_time"),
    )


def _parts(sample: Mapping[str, Any], content: Any) -> tuple[str | None, str | None]:
    """Return text and reasoning of a message's content, which is a text or a list of parts."""
    if content is None or isinstance(content, str):
        return (None if content is None else _resolved(sample, content)), None
    texts = [_resolved(sample, part["text"]) for part in content if part.get("type") == "text"]
    thoughts = [str(part["reasoning"]) for part in content if part.get("type") == "reasoning"]
    return "\n".join(texts), "\n".join(thoughts) or None


def _error(sample: Mapping[str, Any]) -> str | None:
    error = sample.get("error")
    if not error:
        return None
    message = error.get("message") if isinstance(error, Mapping) else error
    return str(message) or "the sample failed"


def _verdict(score: Mapping[str, Any]) -> _Verdict:
    value, answer = score.get("value"), score.get("answer")
    reason = score.get("reason") or (score.get("metadata") or {}).get("reason")
    is_unreadable = value == _NO_ANSWER or reason == _UNREADABLE
    if isinstance(value, str):
        value = _VERDICTS.get(value, value)
    return value, str(answer) if answer else None, is_unreadable


def _value(verdict: _Verdict, has_answers: bool) -> Value:
    """Return a verdict; ``has_answers``: the scorer stores the answers that it extracts."""
    value, answer, is_unreadable = verdict
    return Value(value, answer, is_unreadable or (has_answers and answer is None))


def _subject(log: str, sample: Mapping[str, Any], field: str | None, benchmark: str) -> str:
    """Return the subject of a sample: a field of its metadata, or the benchmark."""
    if field is None:
        return benchmark.removeprefix(f"{PREFIX}_")
    metadata = sample.get("metadata") or {}
    value = metadata.get(field)
    if not isinstance(value, str | int | bool) or value == "":
        problem = "is no text or number" if field in metadata else "does not exist"
        raise ConfigError(
            f"{log}: sample {sample['id']}: metadata field {field!r} {problem}"
            f"{'' if field in metadata else suggestion(field, map(str, metadata))}"
        )
    return str(value)


def _options(sample: Mapping[str, Any], header: Mapping[str, Any]) -> int:
    """Return the number of options of which one is right; 0 for other samples."""
    steps = (header.get("plan") or {}).get("steps") or ()
    several = any((step.get("params") or {}).get("multiple_correct") for step in steps)
    return 0 if several else len(sample.get("choices") or ())


# Requests ----------------------------------------------------------------------------------


class _Requests:
    """Hash of the messages that each item's first answer was generated from.

    A sample that failed early may not have all of them, so it counts only if all epochs failed.
    """

    def __init__(self) -> None:
        self._whole = SetHash()
        self._failed: dict[str, Any] = {}

    def add(self, item: str, sample: Mapping[str, Any]) -> None:
        messages = _first_request(sample)
        if sample.get("error"):
            self._failed.setdefault(item, messages)
        else:
            self._whole.add(item, messages)

    def hexdigest(self) -> str:
        for item, messages in self._failed.items():
            self._whole.add(item, messages)  # without effect for an item that is there
        return self._whole.hexdigest()


def _first_request(sample: Mapping[str, Any]) -> str | list[Any]:
    """Return the messages before the first one that the model generated."""
    messages = []
    for message in sample.get("messages") or ():
        if message.get("role") == "assistant" and message.get("source") != "input":
            break
        messages.append(message)
    return _messages(sample, messages)


def _messages(sample: Mapping[str, Any], value: Any) -> str | list[Any]:
    """Return an input, a text or messages, without the random ids of messages."""
    if isinstance(value, str):
        return _resolved(sample, value)
    return [
        [message.get("role"), _content(sample, message.get("content"))] for message in value or ()
    ]


def _content(sample: Mapping[str, Any], content: Any) -> Any:
    if isinstance(content, str):
        return _resolved(sample, content)
    return [
        {
            key: _content(sample, entry) if isinstance(entry, str) else entry
            for key, entry in part.items()
        }
        for part in content or ()
    ]


def _resolved(sample: Mapping[str, Any], text: str) -> str:
    """Return a text that may be stored as an attachment of its sample."""
    if not text.startswith(_ATTACHMENT):
        return text
    return str((sample.get("attachments") or {}).get(text.removeprefix(_ATTACHMENT), text))


# Protocol ----------------------------------------------------------------------------------


def _model(log: str, spec: Mapping[str, Any], given: str | None) -> str:
    """Return the model's name; of ``hf//checkpoints/x`` and ``hf/local`` only the user knows it."""
    name = str(spec.get("model") or "")
    path = (spec.get("model_args") or {}).get("model_path")
    rest = name.partition("/")[2]
    return model_name(log, str(path or "") or (rest if is_path(rest) else name), given)


def _protocol(header: Mapping[str, Any], requests: _Requests) -> dict[str, Any]:
    spec = header["eval"]
    config, plan = spec.get("config") or {}, header.get("plan") or {}
    steps = [without(step, "params_passed") for step in plan.get("steps") or ()]
    roles = spec.get("model_roles") or {}
    return {
        "ask": "text",
        "chat": True,
        "task": spec["task"],
        "task_version": spec.get("task_version"),
        "task_args": cleaned(spec.get("task_args") or {}),
        "solvers": cleaned(steps),
        "generation": cleaned(
            without(
                {**(plan.get("config") or {}), **(spec.get("model_generate_config") or {})},
                *_OPERATIONAL,
            )
        ),
        "limits": {name: config[name] for name in _LIMITS if config.get(name) is not None},
        "model_roles": cleaned(
            {
                role: model.get("model") if isinstance(model, Mapping) else model
                for role, model in roles.items()
            }
        ),
        "requests": requests.hexdigest(),
    }


def _score_names(header: Mapping[str, Any], samples: Iterable[_LoggedSample]) -> list[str]:
    """Return the names of the scores; those of the configuration if every sample failed."""
    reported = [score["name"] for score in (header.get("results") or {}).get("scores", ())]
    logged = dict.fromkeys(name for sample in samples for name in sample.scores)
    names = [name for name in dict.fromkeys(reported) if name in logged]
    names += [name for name in logged if name not in names]
    return names or [scorer["name"] for scorer in _configured(header)]


def _scorer_options(header: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the options of the scorer that a score belongs to."""
    scores = (header.get("results") or {}).get("scores", ())
    scorer = next((score.get("scorer") for score in scores if score["name"] == name), name)
    options = next((s.get("options") for s in _configured(header) if s["name"] == scorer), None)
    return {"score": name, "scorer": scorer, "options": cleaned(options or {})}


def _configured(header: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for scorer in header["eval"].get("scorers") or ():
        if "name" in scorer:
            yield scorer
