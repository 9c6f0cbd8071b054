"""The command line and its ini twins, read into one frozen Settings."""

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
        "model", "list", [], "model: demo, hf:NAME_OR_FOLDER, openai:NAME, replay:FILE", "SPEC"
    ),
    _Option("base-url", "text", None, "address of the openai: endpoints, ending in /v1", "URL"),
    _Option("max-concurrency", "count", None, "requests in flight, all workers together", "N"),
    _Option("requests-per-minute", "count", None, "most requests sent to an endpoint", "N"),
    _Option("tokens-per-minute", "count", None, "most tokens sent to an endpoint", "N"),
    _Option("timeout", "amount", None, "seconds that one request may take (300)", "SECONDS"),
    _Option("prices", "path", None, "what tokens of endpoints cost: a TOML file", "FILE"),
    _Option("max-cost", "amount", None, "stop before more than this is spent", "AMOUNT"),
    _Option("dry-run", "flag", False, "tell requests, tokens and cost; ask no model"),
    _Option("cache", "path", None, "file that keeps the responses of endpoints", "FILE"),
    _Option("data", "path", None, "folder with one folder per benchmark (or LLMEVAL_DATA)", "DIR"),
    _Option("protocol", "text", None, "protocol, e.g. hendrycks, lmeval+chat, +generate", "NAME"),
    _Option("shots", "count", None, "number of few-shot examples instead of the protocol's", "N"),
    _Option("temperature", "amount", None, "temperature of generated text", "T"),
    _Option("max-tokens", "count", None, "most tokens of a generated answer", "N"),
    _Option("samples", "count", 1, "answers to ask for per item, where text is generated", "N"),
    _Option(
        "permutations",
        "text",
        None,
        "ask choice items in other orders of their options, too: cyclic, full, attack or N",
        "KIND",
    ),
    _Option(
        "debias",
        "text",
        None,
        "take position bias out: cyclic, pride, contextual, batch",
        "HOW[,…]",
    ),
    _Option("hybrid", "text", None, "weighted scorers as one number", "SCORER=WEIGHT,…"),
    _Option("seed", "count", 0, "seed of everything that is drawn", "N"),
    _Option("limit", "count", None, "evaluate only N items of every subject, drawn by seed", "N"),
    _Option("shard", "text", None, "run only part I of N, to be joined by `llmeval merge`", "I/N"),
    _Option("thresholds", "path", None, "gates (default: thresholds.toml in the rootdir)", "FILE"),
    _Option(
        "baseline",
        "text",
        None,
        "run to compare with: a folder, a file, a name; none: first run",
        "RUN",
    ),
    _Option("allow-mismatch", "flag", False, "compare even what differs; without a verdict"),
    _Option("runs", "path", "runs", "folder that holds the run folders", "DIR"),
    _Option("resume", "flag", False, "continue the newest run of the same plan"),
    _Option("sandbox", "docker|bubblewrap|none", "docker", "where code of models is run"),
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
        "files to leave in the run folder: html, markdown, codequality, json, parquet",
        "FORMAT,…",
    ),
    _Option(
        "junit", "items|subjects", "items", "test cases of --junitxml: one an item or a subject"
    ),
    _Option("skip", "flag", False, "skip all llmeval tests"),
    _Option("wrong", "record|fail", "record", "what a wrong answer is: a measurement or a failure"),
    _Option("allow-undecided", "flag", False, "do not turn red for gates that stay undecided"),
)


TRUST = "llm-i-trust-this-code"

_OF_ENDPOINTS = (
    *("base-url", "max-concurrency", "requests-per-minute", "tokens-per-minute"),
    *("timeout", "max-cost"),
)


def add_options(parser: pytest.Parser) -> None:
    """Register every option of the group ``llmeval`` with its ini twin (``llm_model = …``).

    The one by which a person takes the responsibility for what runs has none.
    """
    group = parser.getgroup("llmeval", "evaluation of language models")
    group.addoption(
        f"--{TRUST}", action="store_true", help="let --llm-sandbox none run code on this machine"
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
    """Read the options; the command line wins over the ini file.

    Paths on the command line start from the working folder, others from the project's.
    Raises ConfigError for a value that is not what the option takes.
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
            "--llm-sandbox none runs code that models wrote on this machine, as you: it needs"
            f" --{TRUST} on the command line"
        )
    # A link to nowhere is no missing file: it is told when it is read.
    standing = _project(config) / "thresholds.toml"
    prices = Prices() if value["prices"] is None else load_prices(value["prices"])
    return Settings(
        models=tuple(dict.fromkeys(value["model"])),
        endpoint={**_given(value, _OF_ENDPOINTS), "prices": prices.models},
        prices=prices,
        dry_run=value["dry-run"],
        cache=value["cache"],
        data=value["data"] or (Path(environment) if environment else None),
        protocol=value["protocol"],
        shots=value["shots"],
        samples=value["samples"],
        decoding=_given(value, ("temperature", "max-tokens")),
        permutations=value["permutations"],
        hybrid=_hybrid(value["hybrid"]),
        debias=_debias(value["debias"], value["permutations"]),
        seed=value["seed"],
        limit=value["limit"],
        shard=_shard(value["shard"]),
        thresholds=value["thresholds"] or (standing if os.path.lexists(standing) else None),
        baseline=value["baseline"],
        baselines=_project(config) / "baselines",
        allow_mismatch=value["allow-mismatch"],
        sandbox=value["sandbox"],
        trials=_trials(value["trials"]),
        runs=value["runs"],
        resume=value["resume"],
        reports=read_formats(value["report"]),
        junit=value["junit"],
        wrong_fails=value["wrong"] == "fail",
        allow_undecided=value["allow-undecided"],
    )


def _given(value: Mapping[str, Any], flags: Iterable[str]) -> dict[str, Any]:
    """Those of the options that were given, by the names of parameters."""
    return {flag.replace("-", "_"): value[flag] for flag in flags if value[flag] is not None}


def is_dry_run(config: pytest.Config) -> bool:
    """Whether nothing is to be asked; known before anything is collected."""
    return bool(config.getoption("--llm-dry-run") or ini.read(config, "llm_dry_run"))


def why_skipped(node: pytest.Item) -> str | None:
    """Why a marked test is not to be evaluated, or None: `--llm-skip`, or no model to evaluate."""
    config = node.config
    if skips_all(config):
        return "--llm-skip"
    named = names_model(config) or is_dry_run(config)
    return None if named or project_fixture(node, "model") is not None else NO_MODEL


def skips_all(config: pytest.Config) -> bool:
    """True if no marked test is to be evaluated (``--llm-skip``)."""
    return bool(config.getoption("--llm-skip") or ini.read(config, "llm_skip"))


def names_model(config: pytest.Config) -> bool:
    """True if an option names a model to evaluate; known before anything is collected."""
    return bool(config.getoption("--llm-model") or ini.read(config, "llm_model"))


NO_MODEL = (
    "no model to evaluate: give --llm-model SPEC (for example --llm-model demo), or override the"
    " `model` fixture in a conftest.py"
)


def _project(config: pytest.Config) -> Path:
    """The folder of thresholds, baselines and runs: pytest's rootdir where the project names it.

    Without an ini file, a ``setup.py`` or ``--rootdir`` pytest makes one up, the folder that all
    arguments share, and takes the values of options for arguments: ``--llm-data /data`` makes it
    ``/``.
    """
    return config.rootpath if _has_rootdir(config) else config.invocation_params.dir


def _has_rootdir(config: pytest.Config) -> bool:
    """Whether the project names its rootdir."""
    named = config.inipath or config.getoption("rootdir")
    return bool(named) or (config.rootpath / "setup.py").is_file()


def moved_rootdir(config: pytest.Config) -> str | None:
    """A warning where the value of one of our options has moved pytest's rootdir.

    pytest derives it before it knows the options of plugins: with ``--llm-data /data`` it takes
    ``/data`` for a test path.
    """
    here, root = config.invocation_params.dir, config.rootpath
    arguments = [str(argument) for argument in config.invocation_params.args]
    tests = [here / argument.partition("::")[0] for argument in config.args]
    folders = [path if path.is_dir() else path.parent for path in tests] or [here]
    # A rootdir in or below the working folder is as good as the one of the tests.
    moved = root != Path(os.path.commonpath(folders)) and not root.is_relative_to(here)
    if _has_rootdir(config) or not moved:
        return None
    for option, value in pairwise(arguments):
        path = here / value
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
        value, source = ini.read(config, option.ini), ini.place(config, option.ini)
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
        return _amount(value, source, zero=option.flag == "temperature")
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
    """A number above 0, or 0 where that is one."""
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{source}: {text!r} is not a number") from None
    if not (0.0 if zero else sys.float_info.min) <= value < math.inf:
        least = "from 0 on" if zero else "above 0"
        raise ConfigError(f"{source}: {value:g} is not an amount {least}")
    return value


def _hybrid(text: str | None) -> dict[str, float]:
    """Scorer → weight; the weights are positive and sum to 1."""
    if text is None:
        return {}
    from pytest_llmeval.runs.bias import DEBIASED
    from pytest_llmeval.scorers import SCORERS

    weights: dict[str, float] = {}
    for part in text.split(","):
        scorer, equals, weight = part.strip().rpartition("=")
        try:
            weights[scorer] = float(weight)
        except ValueError:
            equals = ""
        if not equals or not scorer or not weights[scorer] > 0:
            raise ConfigError(
                f"--llm-hybrid {text}: SCORER=WEIGHT,… was expected, such as matched=0.7,choice=0.3"
            )
        # One with options, such as exact_match+case, is known by what stands before them.
        if scorer not in DEBIASED and scorer.partition("+")[0] not in SCORERS:
            known = {*SCORERS, *DEBIASED}
            raise ConfigError(
                f"--llm-hybrid {text}: unknown scorer {scorer!r}{suggestion(scorer, known)}"
            )
    if not math.isclose(math.fsum(weights.values()), 1.0, rel_tol=1e-9):
        raise ConfigError(
            f"--llm-hybrid {text}: the weights sum to {sum(weights.values()):g}, not 1"
        )
    return weights


def _debias(text: str | None, permutations: str | None) -> tuple[str, ...]:
    """The ways of debiasing that are named, which may need the rotations of every item."""
    if text is None:
        return ()
    found = tuple(dict.fromkeys(text.split(",")))
    for name in found:
        if name not in METHODS:
            raise ConfigError(f"--llm-debias {text}: unknown {name!r}{suggestion(name, METHODS)}")
        if name in AVERAGING and permutations not in ("cyclic", "full"):
            raise ConfigError(
                f"--llm-debias {name} averages over orders of the options: add"
                " --llm-permutations cyclic"
            )
    return found


def _trials(text: str | None) -> dict[str, Any]:
    """Limits of the containers in which patches are tried."""
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
