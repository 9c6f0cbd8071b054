"""Values of options that are more than a text: numbers, lists and pairs.

Every function raises ConfigError for a value that cannot be used.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.bias.debiasing import AVERAGING
from pytest_llmeval.bias.debiasing import METHODS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.plan import ORDER_TESTS
from pytest_llmeval.core.validation import read_json_object
from pytest_llmeval.core.validation import read_text

# A single word with a suffix, such as prompts/system.txt, names a file.
_FILE_NAME = re.compile(r"\S+\.[A-Za-z]{1,8}")


def read_count(text: str, source: str, lowest: int) -> int:
    """Return the text as a whole number of at least ``lowest``; ``source``: the option."""
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{source}: {text!r} is not a whole number") from None
    if value < lowest:
        raise ConfigError(f"{source}: {value} is below {lowest}")
    return value


def read_amount(text: str, source: str, zero: bool) -> float:
    """Return the text as a finite number above 0, or of at least 0 if ``zero``."""
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{source}: {text!r} is not a number") from None
    if not (0.0 if zero else sys.float_info.min) <= value < math.inf:
        least = "of at least 0" if zero else "above 0"
        raise ConfigError(f"{source}: {value:g} is not a finite number {least}")
    return value


def read_hybrid(text: str | None) -> dict[str, float]:
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


def read_debias(text: str | None, permutations: str | None) -> tuple[str, ...]:
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


def read_contamination(text: str | None, sequential: bool) -> tuple[str, ...]:
    """Return the order tests by their names in thresholds files."""
    if text is None:
        return ()
    names = {name.replace("_", "-"): name for name in ORDER_TESTS}
    written = tuple(dict.fromkeys(text.split(",")))
    for name in written:
        if name not in names:
            raise ConfigError(
                f"--llm-contamination {text}: unknown {name!r}{suggestion(name, names)}"
            )
    if sequential:
        raise ConfigError(f"--llm-contamination {text} needs all items: leave out --llm-sequential")
    return tuple(names[name] for name in written)


def read_trials(text: str | None) -> dict[str, Any]:
    """Return the limits of the containers in which patches are tested."""
    if text is None:
        return {}
    from pytest_llmeval.evaluation.jobs import read_trial_limits

    return read_trial_limits(text, "--llm-trials")


def read_shard(text: str | None) -> tuple[int, int] | None:
    """Return ``I/N`` as (I, N)."""
    if text is None:
        return None
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ConfigError(f"--llm-shard {text}: expected I/N with 1 <= I <= N, for example 1/4")
    return int(part), int(parts)


def read_object(text: str, source: str, start: Path) -> Mapping[str, Any]:
    """Return a JSON object that is the text, or the content of the file that it names.

    ``start``: folder of relative paths. Raises ConfigError.
    """
    if text.lstrip().startswith(("{", "[", '"')):
        return read_json_object(text, source)
    return read_json_object(read_text(start / text, "file"), f"{source}: {text}")


def read_prose(text: str, source: str, start: Path) -> str:
    """Return the text, or the content of the file that it names, without white space around it.

    ``start``: folder of relative paths. Raises ConfigError for a missing or empty file.
    """
    path = start / text
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a long text is not the name of a file
        is_file = False
    if is_file or _FILE_NAME.fullmatch(text):
        text, source = read_text(path, "file"), f"{source}: {text}"
    if not text.strip():
        raise ConfigError(f"{source}: no text")
    return text.strip()


def read_headers(values: list[str], source: str) -> Mapping[str, str]:
    """Return header name → environment variable with its value. Raises ConfigError.

    No message repeats a value, which may be a credential.
    """
    variables: dict[str, str] = {}
    for text in values:
        name, _, value = text.partition("=")
        name, variable = name.strip(), value.strip().removeprefix("env:")
        example = f"write {name or 'NAME'}=env:VARIABLE"
        if not value.strip():
            raise ConfigError(f"{source} {name}: no value; {example}")
        if variable == value.strip() or not variable:
            raise ConfigError(
                f"{source} {name}: the value has to come from an environment variable, because the"
                f" command line is stored in run.json; {example}"
            )
        if name.lower() in map(str.lower, variables):
            raise ConfigError(f"{source} {name}: the header is given twice")
        variables[name] = variable
    return variables
