"""The two containers of Inspect's logs: ``.eval``, a zip archive, and ``.json``.

Inspect compresses archives with zstd (zip method 93) since 0.3.206, which ``zipfile`` reads from
Python 3.14 on. Samples of an archive are read one by one.
"""

from __future__ import annotations

import json
import sys
import zipfile
import zlib
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.installation import install_hint

VERSION = 2
"""Version of Inspect's log format."""

_ZSTD = 93
_HEADER = "header.json"


@dataclass(frozen=True)
class InspectFile:
    """A log: its header, and where its samples are."""

    path: Path
    #: The log without its samples.
    header: Mapping[str, Any]
    #: The samples of a JSON log; None for an archive.
    inline: tuple[Mapping[str, Any], ...] | None = None

    def samples(self) -> Iterator[Mapping[str, Any]]:
        """Yield the samples. Raises ConfigError for a damaged one."""
        if self.inline is not None:
            yield from self.inline
            return
        with _archive(self.path) as archive:
            for name in sorted(archive.namelist()):
                if name.startswith("samples/") and name.endswith(".json"):
                    yield _member(archive, self.path, name)


def is_archive(path: Path) -> bool:
    """Return whether a file is an ``.eval`` log, by its name."""
    return path.suffix == ".eval"


def is_inspect(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON document is a log of Inspect."""
    return "eval" in content and "plan" in content and "status" in content


def open_archive(path: Path) -> InspectFile:
    """Read the header of an ``.eval`` log. Raises ConfigError if it has none, or is no archive."""
    with _archive(path) as archive:
        if _HEADER not in archive.namelist():
            raise ConfigError(f"{path} has no {_HEADER}: the evaluation did not end")
        return InspectFile(path, _member(archive, path, _HEADER))


def open_json(path: Path, content: Mapping[str, Any]) -> InspectFile:
    """Return a JSON log. Raises ConfigError if it has no samples."""
    samples = content.get("samples")
    if not samples:
        raise ConfigError(f"{path} has no samples (written with log_samples=False?)")
    header = {key: value for key, value in content.items() if key != "samples"}
    return InspectFile(path, header, tuple(samples))


def _archive(path: Path) -> zipfile.ZipFile:
    """Open an archive, with zstd where its members need it."""
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such log") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if any(entry.compress_type == _ZSTD for entry in archive.infolist()):
        try:
            _support_zstd(path)
        except ConfigError:
            archive.close()
            raise
    return archive


def _support_zstd(path: Path) -> None:
    if sys.version_info >= (3, 14):
        return
    if find_spec("zipfile_zstd") is None:
        raise ConfigError(
            f"{path} is compressed with zstd: {install_hint('inspect')}, or"
            " `inspect log convert --to json`"
        )
    import zipfile_zstd  # noqa: F401  (optional; it extends zipfile)


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> Mapping[str, Any]:
    """Return a JSON object of an archive."""
    try:
        value = json.loads(archive.read(name))
    except (OSError, EOFError, ValueError, RecursionError, zipfile.BadZipFile, zlib.error) as error:
        raise ConfigError(f"{path}: {name} is damaged: {error}") from None
    except RuntimeError as error:  # zipfile's for encryption and for another compression
        raise ConfigError(f"{path}: {name} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {name} is damaged: it is no JSON object")
    return value
