"""Checks of what a user writes, in Python and in TOML files: each mistake is one line with the nearest valid name."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

from pytest_llmeval.core.errors import ConfigError
from pytest_llmeval.core.errors import DataError

EMPTY_TABLE = "empty table: it gates nothing"


def mistake(file: str, keys: Iterable[str], text: str) -> ConfigError:
    """``FILE: dotted.key: text`` as an error to raise."""
    return ConfigError(located(file, keys, text))


def located(file: str, keys: Iterable[str], text: str) -> str:
    """``FILE: dotted.key: text``, on one line whatever the names hold."""
    place = dotted(keys)
    parts = (file, place, text) if place else (file, text)
    return " ".join(": ".join(parts).splitlines())


def dotted(keys: Iterable[str]) -> str:
    """A dotted key as TOML writes it, with quotes where a name needs them."""
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key) for key in keys)


def _quoted(key: str) -> str:
    # JSON's escapes are TOML's: no line break or control character survives.
    return json.dumps(key, ensure_ascii=not key.isprintable())


def read_text(path: str | Path, what: str) -> str:
    """The text of a file; ConfigError for one that is missing, unreadable or not UTF-8."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        problem = f"no such {what}"
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte {error.start})"
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    raise mistake(str(path), (), problem)


def toml_problem(message: str, text: str) -> str:
    """Tomllib's message with the line in front."""
    at = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if at:
        line = text.split("\n")[int(at[1]) - 1]
        quotes = re.match(r"[^\"'#=]*\b(pass[@^]\w*)", line)
        hint = f'; the key {quotes[1]} needs quotes: "{quotes[1]}"' if quotes else ""
        return f"line {at[1]}, column {at[2]}: {message[: at.start()]}{hint}"
    end = " (at end of document)"
    if message.endswith(end):
        return f"line {len(text.splitlines())}, at the end: {message.removesuffix(end)}"
    return f"not valid TOML: {message}"


def explain(error: ErrorDetails) -> tuple[list[str], str]:
    """Where a pydantic error is and what it means in the words of the file."""
    keys = [str(key) for key in error["loc"]]
    context = error.get("ctx", {})
    if error["type"] == "gate":
        if context["key"] is not None:
            keys.append(context["key"])
        return keys, context["text"]
    value = error["input"]
    match error["type"]:
        case "dict_type" | "model_type":
            return keys, f"expected a table, got {kind(value)}"
        case "bool_type":
            return keys, f"expected true or false, got {kind(value)}"
        case "float_type" if isinstance(value, int) and not isinstance(value, bool):
            return keys, "too large a number"
        case "float_type":
            return keys, f"expected a number, got {kind(value)}"
        case "int_type":
            return keys, f"expected a whole number, got {kind(value)}"
        case "greater_than_equal":
            return keys, f"{value} is negative"
        case "too_short":
            return keys, EMPTY_TABLE
        case _:
            return keys, error["msg"]


def kind(value: object) -> str:
    """What TOML calls the type of a value."""
    names: dict[type, str] = {
        bool: "a boolean",
        int: "a whole number",
        float: "a number with a fraction",
        str: "a string",
        list: "an array",
        dict: "a table",
    }
    if isinstance(value, datetime.date | datetime.time):
        return "a date or time"
    return names.get(type(value), type(value).__name__)


def check_kind(about: str, name: str, value: Any, kind: type) -> None:
    """Raise ConfigError unless ``value`` is of the class ``kind``."""
    if not isinstance(value, kind):
        given = type(value).__name__
        raise ConfigError(f"{about}: {name} is of type {given}, not {kind.__name__}")


def check_number(about: str, name: str, value: Any, lowest: int) -> None:
    """Raise ConfigError unless ``value`` is a whole number of at least ``lowest``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{about}: {name} = {value!r} is not a whole number")
    if value < lowest:
        raise ConfigError(f"{about}: {name} = {value} is below {lowest}")


def check_several(about: str, name: str, value: Any, kind: type) -> None:
    """Raise ConfigError unless ``value`` is a tuple (or list) of ``kind``."""
    if isinstance(value, kind):
        raise ConfigError(f"{about}: {name} takes a tuple: ({kind.__name__}, …), with its comma")
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ConfigError(
            f"{about}: {name} is of type {type(value).__name__}, not a tuple of {kind.__name__}"
        )
    for one in value:
        check_kind(about, f"one of {name}", one, kind)


def check_text(about: str, name: str, value: Any) -> None:
    """Raise DataError unless ``value``, a part of an item, is text."""
    if not isinstance(value, str):
        raise DataError(f"{about}: {name} is of type {type(value).__name__}, not text")
