"""Command-line options and their ini twins, read into one frozen `Settings`."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from typing import NamedTuple

import pytest

from pytest_llmeval.bias.debiasing import AVERAGING
from pytest_llmeval.bias.debiasing import METHODS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.settings import ReplicaSettings
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.plugin import ini
from pytest_llmeval.plugin.project_fixtures import project_fixture


class _Option(NamedTuple):
    flag: str
    kind: str  # "text", "path", "list", "count", "amount", "flag", or choices joined by "|"
    default: Any
    help: str
    metavar: str | None = None

    @property
    def ini(self) -> str:
        return f"llm_{self.flag.replace('-', '_')}"


_OPTIONS = (
    _Option(
        "model",
        "list",
        [],
        "model: demo, hf:NAME_OR_FOLDER, openai:NAME, replay:FILE; repeatable",
        "SPEC",
    ),
    _Option("base-url", "text", None, "base URL of the openai: endpoints, ending in /v1", "URL"),
    _Option("max-concurrency", "count", None, "most requests in flight, over all workers", "N"),
    _Option("requests-per-minute", "count", None, "most requests per minute to an endpoint", "N"),
    _Option("tokens-per-minute", "count", None, "most tokens per minute to an endpoint", "N"),
    _Option(
        "timeout", "amount", None, "seconds after which a request fails (default: 300)", "SECONDS"
    ),
    _Option(
        "ray",
        "text",
        None,
        "run models with weights as replicas on Ray: local, or the head node",
        "local|HOST:PORT",
    ),
    _Option("replicas", "count", None, "number of replicas on Ray (default: as many as fit)", "N"),
    _Option(
        "gpus-per-replica",
        "amount",
        None,
        "GPUs of a replica (default: 1 on a cluster with GPUs); 0.5: two share one",
        "G",
    ),
    _Option("prices", "path", None, "TOML file with the token prices of endpoints", "FILE"),
    _Option("max-cost", "amount", None, "stop the run before it costs more than AMOUNT", "AMOUNT"),
    _Option("dry-run", "flag", False, "show requests, tokens and cost; send no request"),
    _Option("cache", "path", None, "file in which the responses of endpoints are cached", "FILE"),
    _Option("data", "path", None, "folder with a subfolder per benchmark (or LLMEVAL_DATA)", "DIR"),
    _Option("protocol", "text", None, "protocol, e.g. hendrycks, lmeval+chat, +generate", "NAME"),
    _Option("shots", "count", None, "number of few-shot examples (default: the protocol's)", "N"),
    _Option("temperature", "amount", None, "sampling temperature of generated text", "T"),
    _Option("max-tokens", "count", None, "maximum length of a generated answer in tokens", "N"),
    _Option("samples", "count", 1, "answers per item, for protocols that generate text", "N"),
    _Option(
        "permutations",
        "text",
        None,
        "also evaluate choice items with reordered options: cyclic, full, attack or N orders",
        "KIND",
    ),
    _Option(
        "debias",
        "text",
        None,
        "correct position bias: cyclic, pride, contextual, batch",
        "METHOD[,…]",
    ),
    _Option("hybrid", "text", None, "weighted mean of several scorers", "SCORER=WEIGHT,…"),
    _Option("seed", "count", 0, "seed of all random choices", "N"),
    _Option("limit", "count", None, "evaluate only N random items of every subject", "N"),
    _Option("shard", "text", None, "run part I of N, to be joined by `llmeval merge`", "I/N"),
    _Option("thresholds", "path", None, "gates (default: thresholds.toml in the rootdir)", "FILE"),
    _Option(
        "baseline",
        "text",
        None,
        "run to compare with: a folder, file or name; none for a first run",
        "RUN",
    ),
    _Option(
        "allow-mismatch", "flag", False, "compare runs that are not comparable, without a verdict"
    ),
    _Option("runs", "path", "runs", "folder in which the run folders are created", "DIR"),
    _Option("resume", "flag", False, "continue the newest run of the same plan"),
    _Option(
        "sequential",
        "flag",
        False,
        "request items in random order, and stop a benchmark when its gates are decided",
    ),
    _Option("sandbox", "docker|bubblewrap|none", "docker", "sandbox for generated code"),
    _Option(
        "trials",
        "text",
        None,
        "containers of SWE-bench: workers=N, timeout=SECONDS, network=yes, pull=no, images=…",
        "LIMIT=VALUE,…",
    ),
    _Option(
        "report",
        "text",
        None,
        "reports to write into the run folder: html, markdown, codequality, json, parquet",
        "FORMAT,…",
    ),
    _Option(
        "junit", "items|subjects", "items", "test cases of --junitxml: one per item or subject"
    ),
    _Option("skip", "flag", False, "skip all tests marked llmeval"),
    _Option("wrong", "record|fail", "record", "record a wrong answer, or fail its test"),
    _Option("allow-undecided", "flag", False, "do not fail the session because of undecided gates"),
)


TRUST = "llm-i-trust-this-code"

_ENDPOINT_OPTIONS = (
    *("base-url", "max-concurrency", "requests-per-minute", "tokens-per-minute"),
    *("timeout", "max-cost"),
)


def add_options(parser: pytest.Parser) -> None:
    """Register every option of the group ``llmeval`` with its ini twin (``llm_model = …``).

    ``--llm-i-trust-this-code`` has no ini twin: the user has to give it for every session.
    """
    group = parser.getgroup("llmeval", "evaluation of language models")
    group.addoption(
        f"--{TRUST}",
        action="store_true",
        help="allow --llm-sandbox none to run code on this machine",
    )
    for option in _OPTIONS:
        flag, ini = f"--llm-{option.flag}", option.ini
        if option.kind == "flag":
            group.addoption(flag, action="store_true", default=None, help=option.help)
            parser.addini(ini, option.help, type="bool", default=option.default)
        elif option.kind == "list":
            group.addoption(
                flag, action="append", default=None, metavar=option.metavar, help=option.help
            )
            parser.addini(ini, option.help, type="args", default=option.default)
        else:
            choices = option.kind.split("|") if "|" in option.kind else None
            group.addoption(
                flag, default=None, metavar=option.metavar, help=option.help, choices=choices
            )
            parser.addini(ini, option.help, default=option.default)


def read_settings(config: pytest.Config) -> Settings:
    """Read the options; the command line takes precedence over the ini file.

    Paths on the command line are relative to the working folder, others to the project's.
    Raises ConfigError for an invalid value.
    """
    from pytest_llmeval.core.prices import Prices
    from pytest_llmeval.core.prices import load_prices
    from pytest_llmeval.reports.registry import read_formats

    ini.refuse_misspelt(config, [option.ini for option in _OPTIONS])
    value = {option.flag: _read(config, option) for option in _OPTIONS}
    environment = os.environ.get("LLMEVAL_DATA")
    if value["data"] is not None and not os.path.isdir(value["data"]):
        raise ConfigError(f"--llm-data {value['data']}: no such folder")
    if value["sandbox"] == "none" and not config.getoption(f"--{TRUST}"):
        raise ConfigError(
            "--llm-sandbox none runs code written by models on this machine, as your user: give"
            f" --{TRUST} on the command line, or use another sandbox"
        )
    # A dangling link is not a missing file: reading it raises an error.
    default_thresholds = _project(config) / "thresholds.toml"
    prices = Prices() if value["prices"] is None else load_prices(value["prices"])
    return Settings(
        models=tuple(dict.fromkeys(value["model"])),
        endpoint={**_set_options(value, _ENDPOINT_OPTIONS), "prices": prices.models},
        replicas=_replicas(config, value),
        prices=prices,
        dry_run=value["dry-run"],
        cache=value["cache"],
        data=value["data"] or (Path(environment) if environment else None),
        protocol=value["protocol"],
        shots=value["shots"],
        samples=value["samples"],
        decoding=_set_options(value, ("temperature", "max-tokens")),
        permutations=value["permutations"],
        hybrid=_hybrid(value["hybrid"]),
        debias=_debias(value["debias"], value["permutations"]),
        seed=value["seed"],
        limit=value["limit"],
        shard=_shard(value["shard"]),
        thresholds=value["thresholds"]
        or (default_thresholds if os.path.lexists(default_thresholds) else None),
        baseline=value["baseline"],
        baselines=_project(config) / "baselines",
        allow_mismatch=value["allow-mismatch"],
        sandbox=value["sandbox"],
        trials=_trials(value["trials"]),
        runs=value["runs"],
        resume=value["resume"],
        sequential=value["sequential"],
        reports=read_formats(value["report"]),
        junit=value["junit"],
        wrong_fails=value["wrong"] == "fail",
        allow_undecided=value["allow-undecided"],
    )


def _replicas(config: pytest.Config, value: Mapping[str, Any]) -> ReplicaSettings | None:
    """Return the settings of replicas; None without ``--llm-ray``."""
    address, replicas, gpus = value["ray"], value["replicas"], value["gpus-per-replica"]
    if address is None:
        for name in ("replicas", "gpus-per-replica"):
            if value[name] is not None:
                raise ConfigError(f"--llm-{name} needs --llm-ray local, or --llm-ray HOST:PORT")
        return None
    if hasattr(config, "workerinput"):
        raise ConfigError(
            f"--llm-ray {address} and -n: every worker of -n would start replicas of its own: leave"
            " out -n, and set their number with --llm-replicas"
        )
    if gpus is not None and gpus > 1 and gpus != int(gpus):
        raise ConfigError(f"--llm-gpus-per-replica {gpus:g}: above 1, only whole GPUs")
    return ReplicaSettings(address, replicas, gpus, allow_mixed=value["allow-mismatch"])


def _set_options(value: Mapping[str, Any], flags: Iterable[str]) -> dict[str, Any]:
    """Return the options that are set, by parameter name."""
    return {flag.replace("-", "_"): value[flag] for flag in flags if value[flag] is not None}


def is_dry_run(config: pytest.Config) -> bool:
    """Return whether this is a dry run; can be called before the collection."""
    return bool(config.getoption("--llm-dry-run") or ini.read_value(config, "llm_dry_run"))


def skip_reason(node: pytest.Item) -> str | None:
    """Return why a marked test is skipped (``--llm-skip``, no model); None if it is evaluated."""
    config = node.config
    if has_skip_option(config):
        return "--llm-skip"
    named = has_model_option(config) or is_dry_run(config)
    return None if named or project_fixture(node, "model") is not None else NO_MODEL


def has_skip_option(config: pytest.Config) -> bool:
    """Return True if all marked tests are skipped (``--llm-skip``)."""
    return bool(config.getoption("--llm-skip") or ini.read_value(config, "llm_skip"))


def has_model_option(config: pytest.Config) -> bool:
    """Return True if an option names a model; can be called before the collection."""
    return bool(config.getoption("--llm-model") or ini.read_value(config, "llm_model"))


NO_MODEL = (
    "no model to evaluate: give --llm-model SPEC (for example --llm-model demo), or override the"
    " `model` fixture in a conftest.py"
)


def _project(config: pytest.Config) -> Path:
    """Return the folder of thresholds, baselines and runs: pytest's rootdir if it is configured.

    Otherwise it is the working folder. Without an ini file, a ``setup.py`` or ``--rootdir`` pytest
    takes the common ancestor of all arguments as rootdir, and the values of options count as
    arguments: ``--llm-data /data`` makes it ``/``.
    """
    return config.rootpath if _has_rootdir(config) else config.invocation_params.dir


def _has_rootdir(config: pytest.Config) -> bool:
    """Return whether pytest's rootdir is configured, rather than derived from arguments."""
    named = config.inipath or config.getoption("rootdir")
    return bool(named) or (config.rootpath / "setup.py").is_file()


def rootdir_warning(config: pytest.Config) -> str | None:
    """Return a warning if the value of one of the plugin's options has moved pytest's rootdir.

    pytest derives it before it knows the options of plugins: with ``--llm-data /data``, ``/data``
    counts as a test path.
    """
    working_folder, root = config.invocation_params.dir, config.rootpath
    arguments = [str(argument) for argument in config.invocation_params.args]
    tests = [working_folder / argument.partition("::")[0] for argument in config.args]
    folders = [path if path.is_dir() else path.parent for path in tests] or [working_folder]
    # A rootdir in or below the working folder is as suitable as the one of the tests.
    moved = root != Path(os.path.commonpath(folders)) and not root.is_relative_to(working_folder)
    if _has_rootdir(config) or not moved:
        return None
    for option, value in pairwise(arguments):
        path = working_folder / value
        if option.startswith("--llm-") and path.exists() and path.is_relative_to(root):
            return (
                f"rootdir is {root}, because pytest takes the value of {option} for a test path:"
                f" write {option}={value}, or add a pytest.ini"
            )
    return None


def _read(config: pytest.Config, option: _Option) -> Any:
    value = config.getoption(f"--llm-{option.flag}")
    source, start = f"--llm-{option.flag}", config.invocation_params.dir
    if value is None:
        start = _project(config)
        value, source = ini.read_value(config, option.ini), ini.setting_source(config, option.ini)
    if "|" in option.kind and value not in option.kind.split("|"):
        raise ConfigError(f"{source}: {value!r} is not one of {option.kind.replace('|', ', ')}")
    if value in (None, ""):
        default = option.default
        return start / default if option.kind == "path" and default else default
    if option.kind == "path":
        return start / value
    if option.kind == "count":
        return _count(value, source, lowest=0 if option.flag in ("seed", "shots") else 1)
    if option.kind == "amount":
        return _amount(value, source, zero=option.flag in ("temperature", "gpus-per-replica"))
    if option.flag == "baseline" and os.path.exists(start / value):
        return str(start / value)
    return value


def _count(text: str, source: str, lowest: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{source}: {text!r} is not a whole number") from None
    if value < lowest:
        raise ConfigError(f"{source}: {value} is below {lowest}")
    return value


def _amount(text: str, source: str, zero: bool) -> float:
    """Return the text as a finite number above 0, or of at least 0 if ``zero``."""
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{source}: {text!r} is not a number") from None
    if not (0.0 if zero else sys.float_info.min) <= value < math.inf:
        least = "of at least 0" if zero else "above 0"
        raise ConfigError(f"{source}: {value:g} is not a finite number {least}")
    return value


def _hybrid(text: str | None) -> dict[str, float]:
    """Return scorer → weight; the weights are positive and sum to 1."""
    if text is None:
        return {}
    from pytest_llmeval.runs.bias import DEBIASED
    from pytest_llmeval.scorers import scorer_names

    weights: dict[str, float] = {}
    for part in text.split(","):
        scorer, equals, weight = part.strip().rpartition("=")
        try:
            weights[scorer] = float(weight)
        except ValueError:
            equals = ""
        if not equals or not scorer or not weights[scorer] > 0:
            raise ConfigError(
                f"--llm-hybrid {text}: expected SCORER=WEIGHT,…, such as matched=0.7,choice=0.3"
            )
        # A scorer with options, such as exact_match+case, is looked up without them.
        scorers = {*scorer_names(), *DEBIASED}
        if scorer not in scorers and scorer.partition("+")[0] not in scorers:
            raise ConfigError(
                f"--llm-hybrid {text}: unknown scorer {scorer!r}{suggestion(scorer, scorers)}"
            )
    if not math.isclose(math.fsum(weights.values()), 1.0, rel_tol=1e-9):
        raise ConfigError(
            f"--llm-hybrid {text}: the weights sum to {sum(weights.values()):g}, not 1"
        )
    return weights


def _debias(text: str | None, permutations: str | None) -> tuple[str, ...]:
    """Return the debiasing methods; some need the rotations of every item."""
    if text is None:
        return ()
    methods = tuple(dict.fromkeys(text.split(",")))
    for name in methods:
        if name not in METHODS:
            raise ConfigError(f"--llm-debias {text}: unknown {name!r}{suggestion(name, METHODS)}")
        if name in AVERAGING and permutations not in ("cyclic", "full"):
            raise ConfigError(
                f"--llm-debias {name} averages over orders of the options: add"
                " --llm-permutations cyclic (or full)"
            )
    return methods


def _trials(text: str | None) -> dict[str, Any]:
    """Return the limits of the containers in which patches are tested."""
    if text is None:
        return {}
    from pytest_llmeval.evaluation.jobs import read_trial_limits

    return read_trial_limits(text, "--llm-trials")


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ConfigError(f"--llm-shard {text}: expected I/N with 1 <= I <= N, for example 1/4")
    return int(part), int(parts)
