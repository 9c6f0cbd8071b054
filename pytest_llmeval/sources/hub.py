"""Rows of a data set on the Hugging Face hub, through ``datasets``, at a pinned revision.

Access to the Hugging Face hub that does not wait long for a network that is not there.

huggingface_hub repeats each request five times, with pauses of 23 s in all and up to 10 s for each
connection, and transformers asks for several files: a missing network costs a minute. Here a single
request decides, and then only the local cache is read.
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
"""Seconds within which the hub has to answer."""

_ENDPOINT = "https://huggingface.co"


@contextmanager
def hub_access() -> Iterator[str | None]:
    """Within the context the libraries of the hub read its cache alone where it cannot be reached.

    Gives the reason then, in words, and None where it can be reached. For use around calls of
    huggingface_hub, datasets, transformers and sentence-transformers, after their import.
    """
    reason = unreachable(os.environ.get("HF_ENDPOINT", _ENDPOINT).rstrip("/"))
    with ExitStack() as stack:
        for module in ("huggingface_hub.constants", "datasets.config") if reason else ():
            # Of a library that is in use; the hub's loads its modules when they are needed.
            if module.partition(".")[0] in sys.modules:
                library: Any = importlib.import_module(module)
                stack.callback(setattr, library, "HF_HUB_OFFLINE", library.HF_HUB_OFFLINE)
                library.HF_HUB_OFFLINE = True
        yield reason


@cache
def unreachable(endpoint: str, timeout: float = TIMEOUT) -> str | None:
    """Why the hub cannot be reached, in words; None where it answers, whatever it answers.

    Asked once in a process, through the proxies of the environment. None also where the environment
    forbids to ask, which the libraries themselves know.
    """
    if os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE"):
        return None
    answers: list[str | None] = []
    # In a thread: the timeout of a request does not count the time that its name takes to resolve.
    thread = threading.Thread(
        target=lambda: answers.append(_ask(endpoint, timeout)), name="llmeval-hub", daemon=True
    )
    thread.start()
    thread.join(timeout + 0.5)
    return answers[0] if answers else f"{endpoint} did not answer within {timeout:g} s"


def _ask(endpoint: str, timeout: float) -> str | None:
    import urllib.error  # as much as the rest of the plugin to load, with TLS
    import urllib.request

    request = urllib.request.Request(endpoint, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=timeout):
            return None
    except urllib.error.HTTPError:
        return None
    except ssl.SSLError:
        return None  # an answer; the libraries may know other certificates
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLError):
            return None
        return f"{endpoint} cannot be reached: {error.reason}"
    except (OSError, ValueError) as error:
        return f"{endpoint} cannot be reached: {error or type(error).__name__}"


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
