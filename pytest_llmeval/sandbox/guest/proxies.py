"""The candidate's objects that are not plain data, as the checks see them.

They are equal only to themselves and have none of the candidate's arithmetic, order or hash, so
that every comparison is decided by plain data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from typing import Protocol
from typing import TypeVar

_T = TypeVar("_T")


class CandidateCalls(Protocol):
    """Calls that a proxy sends to the candidate."""

    def request(self, *message: Any) -> Any: ...

    def call(self, number: int, arguments: list[Any], named: dict[str, Any]) -> Any: ...

    def packed(self, value: Any) -> Any: ...


class Remote:
    """An object of the candidate's that is not plain data."""

    __slots__ = ("_number", "_peer")

    def __init__(self, peer: CandidateCalls, number: int) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_number", number)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._peer.call(self._number, list(arguments), named)

    def __getattr__(self, name: str) -> Any:
        return self._peer.request("get", self._number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.request("set", self._number, name, self._peer.packed(value))

    def __delattr__(self, name: str) -> None:
        self._peer.request("delete", self._number, name)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._do("iter")
        if not isinstance(iterator, Remote):
            raise TypeError("iter() returned no iterator")
        while values := self._peer.request("next", iterator._number):
            yield values[0]

    def __next__(self) -> Any:
        values = self._peer.request("next", self._number)
        if not values:
            raise StopIteration
        return values[0]

    def __len__(self) -> int:
        return _of(int, self._do("len"))

    def __bool__(self) -> bool:
        return _of(bool, self._do("bool"))

    def __str__(self) -> str:
        return _of(str, self._do("str"))

    def __repr__(self) -> str:
        return _of(str, self._do("repr"))

    def __format__(self, form: str) -> str:
        return _of(str, self._do("format", form))

    def __getitem__(self, key: Any) -> Any:
        return self._do("getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._do("setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        self._do("delitem", key)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Remote) and _of(bool, self._do("isinstance", value))

    def _do(self, what: str, *arguments: Any) -> Any:
        return self._peer.request("do", self._number, what, *map(self._peer.packed, arguments))


def _of(kind: type[_T], value: Any) -> _T:
    if type(value) is kind:
        return value
    raise TypeError(f"the candidate gave {type(value).__name__} where {kind.__name__} is due")
