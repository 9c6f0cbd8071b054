"""The process that runs untrusted code, and answers the checks about it.

This process is not protected: the code under test shares it and may change all of it. Its
answers arrive at the checks as plain data.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from pytest_llmeval.sandbox.guest.channel import ClosedError
from pytest_llmeval.sandbox.guest.channel import Connection
from pytest_llmeval.sandbox.guest.serialization import BadValueError
from pytest_llmeval.sandbox.guest.serialization import dumps
from pytest_llmeval.sandbox.guest.serialization import pack

_MESSAGE_LENGTH = 1_000
_MUTABLE = (list, dict, set, bytearray)


class CandidateServer:
    """Server of one program over `descriptor`, until the peer closes it."""

    def __init__(self, descriptor: int) -> None:
        self._connection = Connection(descriptor, self._resolve)
        self._connection.answer = self._answer
        self._lent: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._module = types.ModuleType("candidate")
        sys.modules["candidate"] = self._module

    def serve(self) -> None:
        try:
            self._connection.serve()
        except ClosedError:
            return

    def _answer(self, message: list[Any]) -> list[Any]:
        try:
            verb, *parts = message
            return getattr(self, f"_{verb}")(*parts)  # type: ignore[no-any-return]
        except ClosedError:
            raise
        except MemoryError:
            pass  # Only when this block is left, the memory that the traceback holds is free again.
        except BaseException as error:
            return ["!", _describe(error)]
        return ["!", [["MemoryError"], ""]]

    def _value(self, value: Any) -> list[Any]:
        return ["=", pack(value, self._lend)]

    def _run(self, source: str) -> list[Any]:
        exec(compile(source, "<candidate>", "exec"), self._module.__dict__)
        return ["=", None]

    def _name(self, name: str) -> list[Any]:
        """Return a global of the program as a list of one value, or an empty list."""
        names = self._module.__dict__
        return ["=", [pack(names[name], self._lend)] if name in names else []]

    def _call(self, number: int, arguments: list[Any], named: dict[str, Any]) -> list[Any]:
        mutable = any(isinstance(value, _MUTABLE) for value in (*arguments, *named.values()))
        before = self._serialized(arguments, named) if mutable else b""
        answer = self._value(self._lent[number](*arguments, **named))
        if mutable and self._serialized(arguments, named) != before:
            # A check may look at its own argument again, as at a list that was sorted.
            answer.append(pack([arguments, named], self._lend))
        return answer

    def _serialized(self, arguments: list[Any], named: dict[str, Any]) -> bytes:
        return dumps(pack([arguments, named], self._lend))

    def _get(self, number: int, name: str) -> list[Any]:
        return self._value(getattr(self._lent[number], name))

    def _set(self, number: int, name: str, value: Any) -> list[Any]:
        setattr(self._lent[number], name, value)
        return ["=", None]

    def _delete(self, number: int, name: str) -> list[Any]:
        delattr(self._lent[number], name)
        return ["=", None]

    def _do(self, number: int, what: str, *arguments: Any) -> list[Any]:
        return self._value(_OPERATIONS[what](self._lent[number], *arguments))

    def _next(self, number: int) -> list[Any]:
        """Return the next value of an iterator as a list of one, or an empty list."""
        for value in self._lent[number]:
            return ["=", [pack(value, self._lend)]]
        return ["=", []]

    def _lend(self, value: Any) -> dict[str, Any]:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._lent)
            self._lent.append(value)
        if type(value) is types.ModuleType:
            return {"module": [number, value.__name__]}
        return {"lent": number}

    def _resolve(self, tag: str, content: Any) -> Any:
        if tag == "lent":
            return self._lent[content]
        if tag == "iterator":
            return iter(content)
        if tag == "call":
            return self._callback(content)
        raise BadValueError(f"unknown tag {tag!r}")

    def _callback(self, number: int) -> Any:
        def call(*arguments: Any) -> Any:
            sign, value, *_ = self._connection.request(
                ["back", number, [pack(argument, self._lend) for argument in arguments]]
            )
            if sign == "!":
                raise RuntimeError(f"{value[0][0]}: {value[1]}")
            return value

        return call


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "len": len,
    "str": str,
    "repr": repr,
    "bool": bool,
    "iter": iter,
    "format": format,
    "isinstance": lambda kind, value: isinstance(value, kind),
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
}


def _describe(error: BaseException) -> list[Any]:
    """Return the names of an exception's classes, most specific first, and its message."""
    try:
        message = str.__str__(str(error))[:_MESSAGE_LENGTH]
    except BaseException:
        message = ""
    return [[kind.__name__ for kind in type(error).__mro__], message]
