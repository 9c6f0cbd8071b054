"""Plain values arrive as they were; nothing else arrives as anything."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections import OrderedDict
from collections import defaultdict
from collections import deque
from collections import namedtuple
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.sandbox.guest.serialization import DEPTH
from pytest_llmeval.sandbox.guest.serialization import BadValueError
from pytest_llmeval.sandbox.guest.serialization import dumps
from pytest_llmeval.sandbox.guest.serialization import loads
from pytest_llmeval.sandbox.guest.serialization import pack


def _not_lent(value: Any) -> dict[str, Any]:
    raise AssertionError(f"{value!r} is plain")


def _unknown(tag: str, content: Any) -> Any:
    raise BadValueError(tag)


def travelled(value: Any) -> Any:
    return loads(dumps(pack(value, _not_lent)), _unknown)


_hashable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9)),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4),
    max_leaves=8,
)
_values = st.recursive(
    _hashable,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_hashable, inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(_hashable, max_size=4)
        | st.lists(inner, max_size=3).map(deque)
    ),
    max_leaves=12,
)


@given(_values)
def test_plain_values_arrive_equal_and_of_their_type(value: Any) -> None:
    arrived = travelled(value)
    assert arrived == value
    assert type(arrived) is type(value)


@given(st.lists(st.tuples(st.text(), st.integers())))
def test_the_order_of_a_dict_stays(pairs: list[tuple[str, int]]) -> None:
    assert list(travelled(dict(pairs)).items()) == list(dict(pairs).items())


@given(st.text(st.characters(codec=None)))
def test_any_string_arrives_also_with_surrogates(text: str) -> None:
    assert travelled(text) == text
    assert travelled(["\ud83d", "\ude00", "\ud83d\ude00"]) == ["\ud83d", "\ude00", "\ud83d\ude00"]


def test_odd_numbers_arrive() -> None:
    assert math.isnan(travelled(math.nan))
    assert travelled([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert math.copysign(1, travelled(-0.0)) == -1
    assert travelled(7**9000) == 7**9000
    assert travelled(Decimal("1.10")).as_tuple() == Decimal("1.10").as_tuple()


class _Point(namedtuple("_Point", "x y")):  # noqa: PYI024  (as a candidate would write it)
    pass


class _Color(IntEnum):
    RED = 1


class _Equal(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__

    def __int__(self) -> int:
        return 9

    def __index__(self) -> int:
        return 9


class _Text(str):
    def __str__(self) -> str:
        return "forged"


class _Ways(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter(["forged"])


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(int, a=1), {"a": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (_Point(1, 2), (1, 2)),
        (_Color.RED, 1),
        (_Equal(5), 5),
        (_Text("true"), "true"),
        (_Ways([1]), [1]),
    ],
)
def test_a_subclass_arrives_as_what_it_extends(value: Any, plain: Any) -> None:
    arrived = travelled(value)
    assert type(arrived) is type(plain)
    assert arrived == plain


@pytest.mark.parametrize(
    "value",
    [numpy.float64(1.5), numpy.int32(7), numpy.bool_(True), numpy.arange(6).reshape(2, 3)],
)
def test_numbers_of_numpy_stay_so(value: Any) -> None:
    arrived = travelled(value)
    assert type(arrived) is type(value)
    assert arrived.dtype == value.dtype
    assert (arrived == value).all()


def test_views_of_a_dict_stay_comparable() -> None:
    assert travelled({"a": 1}.keys()) == {"a"}
    assert travelled({"a": 1}.items()) == {("a", 1)}


def test_types_arrive_by_name() -> None:
    assert travelled([int, type(None)]) == [int, type(None)]


@pytest.mark.parametrize("value", [object(), lambda: 1, iter([]), type("int", (), {}), Exception()])
def test_the_rest_is_lent(value: Any) -> None:
    assert pack([value], lambda lent: {"lent": 7 if lent is value else 0}) == [{"lent": 7}]


def test_too_deeply_nested_values_are_refused() -> None:
    value: list[Any] = []
    for _ in range(DEPTH + 2):
        value = [value]
    with pytest.raises(BadValueError, match="nested"):
        travelled(value)
    with pytest.raises(BadValueError, match="nested"):
        loads(b"[" * 100_000 + b"]" * 100_000, _unknown)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{}",
        b'{"t": [], "s": []}',
        b'{"lent": 1}',
        b'{"s": [[]]}',
        b'{"d": [1]}',
        b'{"d": [[[], 1]]}',
        b'{"R": [1, 2, 0]}',
        b'{"F": [1, 0]}',
        b'{"D": "text"}',
        b'{"np": ["O", [1], "00"]}',
        b'{"np": ["<i8", [9], "00"]}',
        b'{"type": "Popen"}',
        b'{"b": 5}',
        b"\xff",
        b"[1, ]",
        b"c__builtin__\neval\n.",
    ],
)
def test_invalid_values_are_refused(message: bytes) -> None:
    with pytest.raises(BadValueError):
        loads(message, _unknown)


@given(
    st.binary(max_size=60)
    | st.recursive(st.integers(), lambda x: st.lists(x)).map(repr).map(str.encode)
)
def test_bytes_of_any_kind_are_a_value_or_refused(data: bytes) -> None:
    try:
        value = loads(data, _unknown)
    except BadValueError:
        return
    assert json.loads(data.decode("utf-8", "surrogatepass")) is not None or value is None
