"""Recognize the format of a log and read it."""

from __future__ import annotations

from pathlib import Path

from pytest_llmeval.core import ConfigError
from pytest_llmeval.interop import inspect_files
from pytest_llmeval.interop import lighteval
from pytest_llmeval.interop import lm_eval
from pytest_llmeval.interop import opencompass
from pytest_llmeval.interop import promptfoo
from pytest_llmeval.interop.helm import SPEC
from pytest_llmeval.interop.helm import read_helm
from pytest_llmeval.interop.inspect_logs import read_inspect
from pytest_llmeval.interop.json_files import read_json
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.log import Log

FORMATS = (
    "results_*.json of lm-eval, .eval or .json of Inspect, JSON of promptfoo, run folder of HELM"
)
"""Formats that are read, for messages and help."""


def read_log(path: Path, options: ImportOptions) -> Log:
    """Read a log of any of ``FORMATS``, a file or the folder that holds it.

    Raises ConfigError, in one line, if there is none, and for a log that cannot be imported.
    """
    if path.is_dir() and not (path / SPEC).is_file():
        path = _log_in(path)
    if path.name.startswith("samples_") and path.suffix == ".jsonl":
        raise ConfigError(f"{path} holds samples: name the results_*.json next to it")
    try:
        return _read(path, options)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(
            f"{path}: damaged, or of another version of its format: {reason[:200]}"
        ) from error


def _read(path: Path, options: ImportOptions) -> Log:
    if path.is_dir():  # a folder is a log of HELM only
        return read_helm(path, options)
    if inspect_files.is_archive(path):
        return read_inspect(inspect_files.open_archive(path), options)
    content = read_json(path)
    if lm_eval.is_results(content):
        return lm_eval.read_lm_eval(path, content, options)
    if inspect_files.is_inspect(content):
        return read_inspect(inspect_files.open_json(path, content), options)
    if promptfoo.is_promptfoo(content):
        return promptfoo.read_promptfoo(path, content, options)
    if lighteval.is_lighteval(content):
        return lighteval.read_lighteval(path, content, options)
    if opencompass.is_opencompass(content):
        return opencompass.read_opencompass(path, content, options)
    raise ConfigError(f"{path}: not a log that can be imported ({FORMATS})")


def _log_in(folder: Path) -> Path:
    """Return the only log in a folder. Raises ConfigError if there are none or several."""
    patterns = ("results_*.json", "*.eval", "*.json")
    logs = next((files for pattern in patterns if (files := sorted(folder.rglob(pattern)))), [])
    if len(logs) != 1:
        has = f"{len(logs)} logs, the last of them {logs[-1]}" if logs else f"no log ({FORMATS})"
        raise ConfigError(f"{folder} has {has}: name one")
    return logs[0]
