"""Rows of a data set on the Hugging Face hub, through ``datasets``, at a pinned revision."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.sources.hub_access import hub_access


def load_rows(path: str, config: str | None, split: str, revision: str) -> list[dict[str, Any]]:
    """All rows of one split as dicts, in the data set's order.

    ``path`` is a hub name or a local folder laid out like a hub repository (which has no
    revision). Raises ConfigError where ``datasets`` is not installed, DataError in one line
    where the data cannot be had.
    """
    try:
        datasets: Any = importlib.import_module("datasets")  # an extra, and slow to import
    except ImportError:
        raise ConfigError(f"hub data set {path!r} cannot be read, {_missing()}") from None
    local = Path(path).is_dir()
    with nullcontext() if local else hub_access() as unreachable:
        try:
            rows = datasets.load_dataset(
                path, config, split=split, revision=None if local else revision
            )
            return [dict(row) for row in rows]
        except Exception as error:
            # datasets, huggingface_hub and the HTTP library below them each have a family of
            # errors with no common base; whichever it is, the user needs one line.
            where = (
                f"folder {path}" if local else f"hub data set {path!r} at revision {revision[:12]}"
            )
            reason = _reason(error, unreachable)
            raise DataError(f"{where} cannot be loaded ({reason})") from error


def download(path: str, file: str, revision: str) -> Path:
    """One file of a hub data set, from the hub's cache or the hub.

    For data sets that are no rows to the hub. Raises ConfigError where ``huggingface_hub`` is not
    installed, DataError in one line where the file cannot be had.
    """
    try:
        library: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise ConfigError(f"hub data set {path!r} cannot be read, {_missing()}") from None
    with hub_access() as unreachable:
        try:
            return Path(library.hf_hub_download(path, file, repo_type="dataset", revision=revision))
        except Exception as error:  # see above
            reason = _reason(error, unreachable)
            raise DataError(
                f"{file} of hub data set {path!r} at revision {revision[:12]} cannot be loaded"
                f" ({reason})"
            ) from error


def _reason(error: Exception, unreachable: str | None) -> str:
    """Why something of the hub cannot be had, on one line of limited length."""
    told = " ".join(str(error).split()) or type(error).__name__
    if unreachable is not None:
        # What the libraries say of a mode that they were put into would mislead.
        of_mode = isinstance(error, ConnectionError | FileNotFoundError)
        told = unreachable if of_mode else f"{unreachable}; {told}"
    return told[:200]


def _missing() -> str:
    return f"the extra 'hub' is not installed: {install_hint('hub')}"
