"""Data sets of the Hugging Face hub at a pinned revision, read with ``datasets``.

Without a network, access to the hub fails quickly. huggingface_hub repeats each request five
times, with pauses of 23 s in all and up to 10 s for each connection, and transformers requests
several files, so a missing network would cost a minute. Here a single request decides whether
only the local cache is read.
"""

from __future__ import annotations

import importlib
import os
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import contextmanager
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core.installation import install_hint

TIMEOUT = 4.0
"""Time limit for the answer of the hub, in seconds."""

_ENDPOINT = "https://huggingface.co"


@contextmanager
def hub_access() -> Iterator[str | None]:
    """Switch the hub's libraries to their local cache within the context if it is unreachable.

    Yields the reason as text, or None if the hub can be reached. For use around calls of
    huggingface_hub, datasets, transformers and sentence-transformers, after their import.
    """
    reason = unreachable(os.environ.get("HF_ENDPOINT", _ENDPOINT).rstrip("/"))
    with ExitStack() as stack:
        for module in ("huggingface_hub.constants", "datasets.config") if reason else ():
            # Only of a library that is in use; huggingface_hub imports its modules lazily.
            if module.partition(".")[0] in sys.modules:
                library: Any = importlib.import_module(module)
                stack.callback(setattr, library, "HF_HUB_OFFLINE", library.HF_HUB_OFFLINE)
                library.HF_HUB_OFFLINE = True
        yield reason


@cache
def unreachable(endpoint: str, timeout: float = TIMEOUT) -> str | None:
    """Return the reason why the hub cannot be reached; None if it answers, with any status.

    Determined once per process, through the proxies of the environment. None also if the
    environment sets offline mode, which the libraries observe themselves.
    """
    if os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE"):
        return None
    answers: list[str | None] = []
    # In a thread, because the timeout of a request does not include name resolution.
    thread = threading.Thread(
        target=lambda: answers.append(_probe(endpoint, timeout)), name="llmeval-hub", daemon=True
    )
    thread.start()
    thread.join(timeout + 0.5)
    return answers[0] if answers else f"{endpoint} did not answer within {timeout:g} s"


def _probe(endpoint: str, timeout: float) -> str | None:
    import urllib.error  # with TLS, it takes as long to import as the rest of the plugin
    import urllib.request

    request = urllib.request.Request(endpoint, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=timeout):
            return None
    except urllib.error.HTTPError:
        return None
    except ssl.SSLError:
        return None  # the hub answered; the libraries may have other certificates
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLError):
            return None
        return f"{endpoint} cannot be reached: {error.reason}"
    except (OSError, ValueError) as error:
        return f"{endpoint} cannot be reached: {error or type(error).__name__}"


def load_rows(path: str, config: str | None, split: str, revision: str) -> list[dict[str, Any]]:
    """Return all rows of one split as dicts, in the data set's order.

    ``path`` is a hub name or a local folder with the layout of a hub repository, for which
    ``revision`` is ignored. Raises ConfigError if ``datasets`` is not installed, and DataError if
    the data cannot be loaded.
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
            # datasets, huggingface_hub and their HTTP library have exceptions without a common
            # base class; the user gets one line for all of them.
            where = (
                f"folder {path}" if local else f"hub data set {path!r} at revision {revision[:12]}"
            )
            reason = _reason(error, unreachable)
            raise DataError(f"{where} cannot be loaded ({reason})") from error


def download(path: str, file: str, revision: str) -> Path:
    """Return the path of one file of a hub data set, in the hub's cache.

    For data sets without rows that ``datasets`` can load. Raises ConfigError if
    ``huggingface_hub`` is not installed, and DataError if the file cannot be loaded.
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
    """Return the reason why the hub's data cannot be loaded, in at most 200 characters."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if unreachable is not None:
        # The libraries' messages about offline mode would mislead, since it was set here.
        is_offline_error = isinstance(error, ConnectionError | FileNotFoundError)
        reason = unreachable if is_offline_error else f"{unreachable}; {reason}"
    return reason[:200]


def _missing() -> str:
    return f"the extra 'hub' is not installed: {install_hint('hub')}"
