"""Configurations of lm-evaluation-harness: what is supported, why the rest is not, and its protocol.

Pure functions of a configuration as ``sources.lm_eval_index.read_config`` returns it, so that a task
is refused at collection, without running its code. The rules are those of lm-eval 0.4.13
(``api/task.py``, ``config/task.py``, ``models/utils.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import TypeVar

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Decoding
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.sources.item_ids import safe_id
from pytest_llmeval.sources.lm_eval_index import function_identity
from pytest_llmeval.sources.lm_eval_index import is_function

Config = Mapping[str, Any]

Value = TypeVar("Value", Decoding, str)

CHOICE_METRICS = ("acc", "acc_norm", "acc_bytes")
TEXT_METRICS = ("exact_match",)
DEFAULT_METRICS = {"multiple_choice": ("acc", "acc_norm"), "generate_until": ("exact_match",)}

_TOKEN_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""Keys of the largest number of tokens, in lm-eval's order of precedence."""

_GENERATION_KEYS = {"until", "do_sample", "temperature", "top_p", "top_k", "min_p", *_TOKEN_LIMITS}

_MEDIA = {"doc_to_image": "images", "doc_to_audio": "audio"}

# Keys that do not change a result, or hold what differs between machines. The content of a data
# set is in the benchmark's content hash.
_NOT_COMPARED = (
    "task",
    "task_alias",
    "tag",
    "group",
    "group_alias",
    "task_list",
    "include",
    "metadata",
    "dataset_kwargs",
    "should_decontaminate",
    "doc_to_decontamination_query",
)


@dataclass(frozen=True, order=True)
class MetricName:
    """A metric of lm-eval after one of the filters of its task."""

    metric: str
    filter: str = "none"

    def __str__(self) -> str:
        """lm-eval's name in tables of results: ``exact_match,strict-match``."""
        return f"{self.metric},{self.filter}"

    @property
    def scorer(self) -> str:
        """The name of the scorer: ``lmeval_exact_match_strict-match``, ``lmeval_acc``."""
        suffix = "" if self.filter == "none" else f"_{self.filter}"
        return safe_id(f"lmeval_{self.metric}{suffix}")


def output_type(config: Config) -> str:
    """Return the kind of output, ``generate_until`` by default."""
    return str(config.get("output_type") or "generate_until")


def refusal(config: Config) -> str | None:
    """Return the reason why a task cannot be evaluated here; None if it can."""
    reason = _refused_data(config) or _refused_output(config)
    if reason is not None:
        return reason
    if not supported_metrics(config):
        reasons = dict.fromkeys(unsupported_metrics(config).values())
        return f"none of its metrics can be computed here: {'; '.join(reasons)}"
    return None


def _refused_data(config: Config) -> str | None:
    if "class" in config:
        return "it is a Python class, whose prompts and metrics are only known to its code"
    if config.get("unsafe_code"):
        return "it runs code that models wrote, without a sandbox (unsafe_code)"
    for key, kind in _MEDIA.items():
        if config.get(key):
            return f"its documents have {kind} ({key})"
    if config.get("custom_dataset"):
        return "its documents are made by code that depends on the model (custom_dataset)"
    if config.get("use_prompt"):
        return "its prompts come from promptsource (use_prompt)"
    if int(config.get("repeats") or 1) > 1:
        return f"it takes {config['repeats']} answers per document together (repeats)"
    sampler = (config.get("fewshot_config") or {}).get("sampler", "default")
    if sampler not in ("default", "first_n"):
        return f"its shots are selected by code (fewshot_config.sampler {_shown(sampler)})"
    return None


def _refused_output(config: Config) -> str | None:
    kind = output_type(config)
    if kind == "loglikelihood_rolling":
        return "it measures perplexity, which is no share of right answers (loglikelihood_rolling)"
    if kind == "loglikelihood":
        return "its accuracy is whether a text is the greedy one, which models do not report here"
    if kind not in DEFAULT_METRICS:
        return f"its output_type {kind!r} is unknown"
    if kind == "multiple_choice" and config.get("filter_list"):
        return "it filters log-likelihoods (filter_list with multiple_choice)"
    if kind == "generate_until":
        unknown = sorted((config.get("generation_kwargs") or {}).keys() - _GENERATION_KEYS)
        if unknown:
            return f"its decoding has {', '.join(unknown)} (generation_kwargs)"
    return None


def supported_metrics(config: Config) -> tuple[MetricName, ...]:
    """Return the metrics that are 0 or 1 for a document, in the order of the configuration."""
    refused = unsupported_metrics(config)
    return tuple(
        MetricName(metric, filter_name)
        for filter_name in _filters(config)
        for metric in _metrics(config)
        if metric not in refused
    )


def unsupported_metrics(config: Config) -> dict[str, str]:
    """Return the other metrics, each with the reason."""
    return {
        metric: reason
        for metric, entry in _metrics(config).items()
        if (reason := _refused_metric(config, metric, entry)) is not None
    }


def _refused_metric(config: Config, metric: str, entry: Mapping[str, Any]) -> str | None:
    choices = output_type(config) == "multiple_choice"
    valid: Sequence[str] = CHOICE_METRICS if choices else TEXT_METRICS
    if config.get("process_results"):
        # Code computes the values; the first one that is neither 0 nor 1 ends the run.
        valid = (*CHOICE_METRICS, *TEXT_METRICS)
    if metric not in valid:
        name = _shown(metric)
        return f"{name} is not 0 or 1 for a document, or aggregated over all of them"
    if entry.get("aggregation", "mean") != "mean":
        return f"the aggregation of {metric} is not the mean ({_shown(entry['aggregation'])})"
    if entry.get("hf_evaluate"):
        return f"{metric} is loaded from the hub (hf_evaluate)"
    return None


def _metrics(config: Config) -> dict[str, Mapping[str, Any]]:
    """Return metric → its entry in the configuration."""
    entries = config.get("metric_list")
    if entries is None:
        return {metric: {} for metric in DEFAULT_METRICS.get(output_type(config), ())}
    return {str(entry.get("metric")): entry for entry in entries}


def _filters(config: Config) -> tuple[str, ...]:
    filters = config.get("filter_list")
    return tuple(str(entry["name"]) for entry in filters) if filters else ("none",)


def _shown(value: Any) -> str:
    """Return a value for a message: of a function, the name."""
    return str(value).rpartition("/")[2] if is_function(value) else str(value)


def select_metrics(
    name: str, config: Config, wanted: Sequence[str] | None
) -> tuple[MetricName, ...]:
    """Return the metrics to compute: those that are ``wanted``, or all that are supported.

    ``wanted``: names such as ``acc_norm``, ``exact_match`` (after every filter), or
    ``exact_match,strict-match``. Raises ConfigError for others, with the reason or the nearest name.
    """
    supported = supported_metrics(config)
    if wanted is None:
        return supported
    selected: dict[MetricName, None] = {}
    refused = unsupported_metrics(config)
    for text in wanted:
        matches = [metric for metric in supported if text in (metric.metric, str(metric))]
        if not matches:
            valid = {label for metric in supported for label in (metric.metric, str(metric))}
            reason = refused.get(text.partition(",")[0])
            raise ConfigError(
                f"lm-eval task {name!r}: metric {text!r} cannot be computed here: {reason}"
                if reason
                else f"lm-eval task {name!r} has no metric {text!r}{suggestion(text, valid)}"
            )
        selected.update(dict.fromkeys(matches))
    if not selected:
        raise ConfigError(f"lm-eval task {name!r}: metrics is empty")
    return tuple(selected)


def decoding_of(config: Config) -> Decoding:
    """Return the decoding of ``generation_kwargs`` with lm-eval's defaults.

    Raises ConfigError for a value that cannot be used.
    """
    options = dict(config.get("generation_kwargs") or {})
    delimiter = config.get("fewshot_delimiter")
    until = options.get("until", "\n\n" if delimiter is None else delimiter)
    stops = [until] if isinstance(until, str) else list(until or ())
    limit = next((options[key] for key in _TOKEN_LIMITS if options.get(key) is not None), 256)
    temperature = float(options.get("temperature") or 0.0)
    sampled = options.get("do_sample", temperature > 0)
    if sampled and not temperature:
        # transformers samples at 1 where do_sample has no temperature.
        if "temperature" in options:
            raise ConfigError("do_sample is true and temperature is 0 (generation_kwargs)")
        temperature = 1.0
    return Decoding(
        max_tokens=int(limit),
        temperature=temperature if sampled else 0.0,
        top_p=float(options.get("top_p") or 1.0) if sampled else 1.0,
        top_k=int(options.get("top_k") or 0) if sampled else 0,
        min_p=float(options.get("min_p") or 0.0) if sampled else 0.0,
        stop=tuple(str(stop) for stop in stops if stop),
    )


def shots_of(config: Config, num_fewshot: int | None) -> int:
    """Return the number of shots: a configured 0 cannot be overridden, as in lm-eval."""
    configured = config.get("num_fewshot")
    if configured == 0 or num_fewshot is None:
        return int(configured or 0)
    return num_fewshot


def cleaned(config: Config, num_fewshot: int | None = None) -> dict[str, Any]:
    """Return what can change a result, without what differs between machines, models and sessions.

    Functions are represented by their name and a hash of their module's file.
    """
    result = {
        key: _plain(value)
        for key, value in sorted(config.items())
        if key not in _NOT_COMPARED and value is not None
    }
    for key in ("dataset_path", "dataset_name"):
        if str(result.get(key, "")).startswith(("/", ".", "~")):
            del result[key]  # a path; the data is in the content hash
    metadata = config.get("metadata")
    if isinstance(metadata, Mapping) and "version" in metadata:
        result["version"] = str(metadata["version"])
    return {**result, "num_fewshot": shots_of(config, num_fewshot)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(content) for content in value]
    if is_function(value):
        return function_identity(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def common_decoding(configs: Mapping[str, Config]) -> Decoding:
    """Return the decoding of all tasks of a benchmark. Raises ConfigError if they differ."""
    return _common("decoding (generation_kwargs)", configs, decoding_of)


def common_output(configs: Mapping[str, Config]) -> str:
    """Return the kind of output of all tasks of a benchmark. Raises ConfigError if they differ."""
    return _common("output_type", configs, output_type)


def common_metrics(
    configs: Mapping[str, Config], wanted: Sequence[str] | None
) -> tuple[MetricName, ...]:
    """Return the metrics that all tasks of a benchmark have, in the order of the first.

    Raises ConfigError if there is none, or if a task lacks one that is ``wanted``.
    """
    selections = {name: select_metrics(name, config, wanted) for name, config in configs.items()}
    first, *others = selections.values()
    common = tuple(metric for metric in first if all(metric in other for other in others))
    if not common or (wanted is not None and any(set(first) != set(other) for other in others)):
        raise ConfigError(f"its tasks have different metrics: {_listed(selections.items())}")
    return common


def _common(what: str, configs: Mapping[str, Config], of: Callable[[Config], Value]) -> Value:
    values: dict[Value, str] = {}
    for name, config in configs.items():
        values.setdefault(of(config), name)
    if len(values) > 1:
        (value, name), (other, second), *_ = values.items()
        raise ConfigError(
            f"its tasks differ in {what}: {name} has {value!r}, {second} has {other!r}"
        )
    return next(iter(values))


def _listed(selections: Iterable[tuple[str, tuple[MetricName, ...]]]) -> str:
    distinct: dict[tuple[MetricName, ...], str] = {}
    for name, metrics in selections:
        distinct.setdefault(metrics, name)
    parts = [f"{name} has {', '.join(map(str, metrics))}" for metrics, name in distinct.items()]
    return "; ".join(parts[:3])
