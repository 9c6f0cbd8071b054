"""Plain values as JSON and back: the encoding of all values between a candidate and its checks.

JSON's own null, booleans, integers of any size, floats (with NaN and infinities), strings (with
lone surrogates) and arrays represent themselves; everything else is an object with one key, the
tag. A subclass is sent as the plain type that it extends, so no method of a candidate's class
runs on the other side. An object that is not plain is *lent*: the other side gets a number.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

MESSAGE_BYTES = 16_000_000
"""Size of one message at most: a result beyond it is not compared."""
DEPTH = 150
"""Containers inside one another at most."""

Lend = Callable[[Any], dict[str, Any]]
Resolve = Callable[[str, Any], Any]

_SCALARS = frozenset({int, str, float, bool, type(None)})
_NUMPY_KINDS = "biufc"
_NONE: type = type(None)
_NAMED_TYPES: tuple[type, ...] = (
    *(bool, bytearray, bytes, complex, dict, float, frozenset, int, list, object, range),
    *(set, str, tuple, type, _NONE, Decimal, Fraction),
)
TYPES = {kind.__name__: kind for kind in _NAMED_TYPES}


class BadValueError(ValueError):
    """Data that is not a value in this encoding, or exceeds its limits."""


def dumps(value: Any) -> bytes:
    """Return the packed `value` as bytes."""
    with _EveryDigit():
        text = json.dumps(value, ensure_ascii=False, check_circular=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def loads(data: bytes, resolve: Resolve) -> Any:
    """Return the value in `data`; `resolve` maps other tags and their content to values."""

    def unpacked(tagged: dict[str, Any]) -> Any:
        if len(tagged) != 1:
            raise BadValueError("not one tag")
        ((tag, content),) = tagged.items()
        unpack = _UNPACK.get(tag)
        return resolve(tag, content) if unpack is None else unpack(content)

    try:
        with _EveryDigit():
            return json.loads(data.decode("utf-8", "surrogatepass"), object_hook=unpacked)
    except BadValueError:
        raise
    except RecursionError:
        raise BadValueError("nested too deeply") from None
    except MemoryError:
        raise
    except Exception as error:
        raise BadValueError(f"{type(error).__name__}: {error}") from None


class _EveryDigit:
    """Context without Python's limit on the digits of integers in text."""

    def __enter__(self) -> None:
        self.before = sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else 0
        if self.before:
            sys.set_int_max_str_digits(0)

    def __exit__(self, *error: object) -> None:
        if self.before:
            sys.set_int_max_str_digits(self.before)


def pack(value: Any, lend: Lend, depth: int = 0) -> Any:
    """Return `value` as `json` can write it; `lend` tags an object that is not plain."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if depth > DEPTH:
        raise BadValueError(f"nested more than {DEPTH} deep")
    if kind is list:
        # The usual result, a list of numbers or strings, needs one check of its types.
        if _SCALARS.issuperset(map(type, value)):
            return value
        return [pack(element, lend, depth + 1) for element in value]
    if kind is tuple:
        return {"t": [pack(element, lend, depth + 1) for element in value]}
    if kind is dict:
        return {"d": _pairs(value, lend, depth)}
    if kind.__module__ == "numpy":
        packed = _pack_numpy(value)
        if packed is not None:
            return packed
    return _pack_other(value, lend, depth)


def _pairs(value: dict[Any, Any], lend: Lend, depth: int) -> list[list[Any]]:
    return [
        [pack(key, lend, depth + 1), pack(element, lend, depth + 1)]
        for key, element in dict.items(value)
    ]


def _pack_other(value: Any, lend: Lend, depth: int) -> Any:
    """Pack the rarer plain types, and subclasses as the type that they extend."""
    kind = type(value)
    if kind is type:
        name = value.__name__
        return {"type": name} if TYPES.get(name) is value else lend(value)
    for base, packed in _PACK:
        # Not isinstance(): it trusts an object's own `__class__`.
        if issubclass(kind, base):
            return packed(value, lend, depth)
    return lend(value)


def _each(tag: str, base: Any) -> Callable[[Any, Lend, int], Any]:
    def packed(value: Any, lend: Lend, depth: int) -> Any:
        return {tag: [pack(element, lend, depth + 1) for element in base.__iter__(value)]}

    return packed


_PACK: tuple[tuple[type, Callable[[Any, Lend, int], Any]], ...] = (
    (int, lambda value, lend, depth: int.__int__(value)),
    (float, lambda value, lend, depth: float.__float__(value)),
    (str, lambda value, lend, depth: str.__str__(value)),
    (
        list,
        lambda value, lend, depth: [
            pack(element, lend, depth + 1) for element in list.__iter__(value)
        ],
    ),
    (tuple, _each("t", tuple)),
    (dict, lambda value, lend, depth: {"d": _pairs(value, lend, depth)}),
    (set, _each("s", set)),
    (frozenset, _each("f", frozenset)),
    (bytes, lambda value, lend, depth: {"b": bytes.hex(value)}),
    (bytearray, lambda value, lend, depth: {"B": bytearray.hex(value)}),
    (complex, lambda value, lend, depth: {"j": [value.real, value.imag]}),
    (range, lambda value, lend, depth: {"R": [value.start, value.stop, value.step]}),
    (deque, _each("q", deque)),
    (Decimal, lambda value, lend, depth: {"D": Decimal.__str__(value)}),
    (Fraction, lambda value, lend, depth: {"F": [int(value.numerator), int(value.denominator)]}),
    (datetime.datetime, lambda value, lend, depth: {"at": datetime.datetime.isoformat(value)}),
    (datetime.date, lambda value, lend, depth: {"on": datetime.date.isoformat(value)}),
    (datetime.time, lambda value, lend, depth: {"o'clock": datetime.time.isoformat(value)}),
    (
        datetime.timedelta,
        lambda value, lend, depth: {"for": [value.days, value.seconds, value.microseconds]},
    ),
    (type({}.keys()), _each("keys", type({}.keys()))),
    (type({}.items()), _each("items", type({}.items()))),
)


def _pack_numpy(value: Any) -> dict[str, Any] | None:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.generic, numpy.ndarray)):
        return None
    if value.dtype.kind not in _NUMPY_KINDS:
        return None
    whole = numpy.ascontiguousarray(value)
    scalar = isinstance(value, numpy.generic)
    return {"np": [whole.dtype.str, None if scalar else list(value.shape), whole.tobytes().hex()]}


def _unpack_numpy(content: Any) -> Any:
    import numpy

    kind, shape, data = content
    dtype = numpy.dtype(str(kind))
    if dtype.kind not in _NUMPY_KINDS:
        raise BadValueError("a numpy type that does not travel")
    array = numpy.frombuffer(bytes.fromhex(data), dtype)
    return array[0] if shape is None else array.reshape([int(length) for length in shape]).copy()


def _type(name: Any) -> type:
    if name not in TYPES:
        raise BadValueError("a type that does not travel")
    return TYPES[name]


_UNPACK: dict[str, Callable[[Any], Any]] = {
    "t": tuple,
    "d": lambda pairs: {key: value for key, value in pairs},  # noqa: C416  (a pair is checked)
    "s": set,
    "f": frozenset,
    "b": bytes.fromhex,
    "B": bytearray.fromhex,
    "j": lambda parts: complex(float(parts[0]), float(parts[1])),
    "R": lambda parts: range(*parts),
    "q": deque,
    "D": lambda text: Decimal(str(text)),
    "F": lambda parts: Fraction(int(parts[0]), int(parts[1])),
    "at": datetime.datetime.fromisoformat,
    "on": datetime.date.fromisoformat,
    "o'clock": datetime.time.fromisoformat,
    "for": lambda parts: datetime.timedelta(*parts),
    "keys": lambda keys: dict.fromkeys(keys).keys(),
    "items": lambda pairs: dict(pairs).items(),
    "np": _unpack_numpy,
    "type": _type,
}
