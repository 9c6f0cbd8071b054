"""Validation of user input, in Python and in TOML files: every mistake is one line.

Messages name the file and the key, and suggest the nearest valid name.
"""

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


def located_error(file: str, keys: Iterable[str], text: str) -> ConfigError:
    """Return a ConfigError with the message ``FILE: dotted.key: text``."""
    return ConfigError(located_message(file, keys, text))


def located_message(file: str, keys: Iterable[str], text: str) -> str:
    """Return ``FILE: dotted.key: text`` on one line; line breaks in names become blanks."""
    place = dotted_key(keys)
    parts = (file, place, text) if place else (file, text)
    return " ".join(": ".join(parts).splitlines())


def dotted_key(keys: Iterable[str]) -> str:
    """Return a dotted key in TOML's syntax, with quotes around names that need them."""
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key) for key in keys)


def _quoted(key: str) -> str:
    # JSON and TOML have the same escapes: the text has no line break or control character.
    return json.dumps(key, ensure_ascii=not key.isprintable())


def read_text(path: str | Path, what: str) -> str:
    """Return the text of a file; raise ConfigError if it is missing, unreadable or not UTF-8.

    ``what``: a noun for the file in the message.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        problem = f"no such {what}"
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte {error.start})"
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    raise located_error(str(path), (), problem)


def toml_problem(message: str, text: str) -> str:
    """Return a message of ``tomllib`` with line and column in front."""
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


def explain_validation_error(error: ErrorDetails) -> tuple[list[str], str]:
    """Return the keys that a pydantic error is about, and its meaning in TOML's terms."""
    keys = [str(key) for key in error["loc"]]
    context = error.get("ctx", {})
    if error["type"] == "gate":
        if context["key"] is not None:
            keys.append(context["key"])
        return keys, context["text"]
    value = error["input"]
    match error["type"]:
        case "dict_type" | "model_type":
            return keys, f"expected a table, got {toml_type(value)}"
        case "bool_type":
            return keys, f"expected true or false, got {toml_type(value)}"
        case "float_type" if isinstance(value, int) and not isinstance(value, bool):
            return keys, "too large a number"
        case "float_type":
            return keys, f"expected a number, got {toml_type(value)}"
        case "int_type":
            return keys, f"expected a whole number, got {toml_type(value)}"
        case "missing":
            return keys, "missing, and the table needs it"
        case "greater_than_equal":
            return keys, f"{value} is negative"
        case "too_short":
            return keys, EMPTY_TABLE
        case _:
            return keys, error["msg"]


def toml_type(value: object) -> str:
    """Return TOML's name of a value's type."""
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


def check_kind(owner: str, name: str, value: Any, kind: type) -> None:
    """Raise ConfigError unless ``value`` is of the class ``kind``."""
    if not isinstance(value, kind):
        raise ConfigError(f"{owner}: {name} is of type {type(value).__name__}, not {kind.__name__}")


def check_number(owner: str, name: str, value: Any, lowest: int) -> None:
    """Raise ConfigError unless ``value`` is a whole number of at least ``lowest``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{owner}: {name} = {value!r} is not a whole number")
    if value < lowest:
        raise ConfigError(f"{owner}: {name} = {value} is below {lowest}")


def check_several(owner: str, name: str, value: Any, kind: type) -> None:
    """Raise ConfigError unless ``value`` is a tuple (or list) of ``kind``."""
    if isinstance(value, kind):
        raise ConfigError(
            f"{owner}: {name} takes a tuple: write ({kind.__name__}, …), with the comma"
        )
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ConfigError(
            f"{owner}: {name} is of type {type(value).__name__}, not a tuple of {kind.__name__}"
        )
    for element in value:
        check_kind(owner, f"an element of {name}", element, kind)


def check_text(owner: str, name: str, value: Any) -> None:
    """Raise DataError unless ``value``, a field of an item, is text."""
    if not isinstance(value, str):
        raise DataError(f"{owner}: {name} is of type {type(value).__name__}, not text")


def read_json_object(text: str, source: str) -> dict[str, Any]:
    """Return the JSON object in a text; raise ConfigError, in one line, if it has none.

    Also refuses a key that an object has twice, and the numbers NaN and Infinity, which JSON does not
    have. ``source``: where the text is from, for the message.
    """
    value = parse_json(text, source)
    if not isinstance(value, dict):
        raise ConfigError(f'{source}: expected a JSON object, such as {{"top_k": -1}}')
    return value


def parse_json(text: str, source: str) -> Any:
    """Return the value of a JSON text; raise ConfigError, in one line, if it is malformed."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"key {name!r} is given twice")
        return dict(pairs)

    def no_number(name: str) -> Any:
        raise ValueError(f"{name} is not a number of JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_number)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}"
        raise ConfigError(f"{source}: malformed JSON: {error.msg} ({place})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: malformed JSON: {error}") from None
