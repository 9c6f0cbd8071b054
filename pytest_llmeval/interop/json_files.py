"""JSON documents of logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError


def read_json(file: Path) -> Mapping[str, Any]:
    """Return a JSON object. Raises ConfigError, in one line, for anything else."""
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such log") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not a log: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: not a log: it holds no JSON object")
    return content
