"""The process that runs the checks, and calls the candidate from them."""

from __future__ import annotations

import builtins
import importlib
import random
import sys
from collections.abc import Iterator
from typing import Any

from pytest_llmeval.sandbox.guest.channel import ClosedError
from pytest_llmeval.sandbox.guest.channel import Connection
from pytest_llmeval.sandbox.guest.proxies import Remote
from pytest_llmeval.sandbox.guest.serialization import BadValueError
from pytest_llmeval.sandbox.guest.serialization import pack

_CHECKS = "<checks>"
_NAMED = "candidate_error"
"""Attribute of an exception that came from the candidate: its own class name and message."""


class LostError(BaseException):
    """The candidate no longer answers. Not an Exception, so that no check catches it."""


class UnsendableError(Exception):
    """A check passes a value to the candidate that cannot be serialized."""


class Peer:
    """Proxy of the candidate for the checks."""

    def __init__(self, descriptor: int) -> None:
        self._connection = Connection(descriptor, self._resolve)
        self._connection.answer = self._answer
        self._remotes: dict[int, Remote] = {}
        self._callbacks: list[Any] = []
        self.lost: str | None = None

    def request(self, *message: Any) -> Any:
        return self._request(list(message))[1]

    def call(self, number: int, arguments: list[Any], named: dict[str, Any]) -> Any:
        packed = [[self.packed(argument) for argument in arguments], self.packed(named)]
        answer = self._request(["call", number, *packed])
        if len(answer) > 2:
            _update([arguments, named], answer[2])
        return answer[1]

    def packed(self, value: Any) -> Any:
        return pack(value, self._lend)

    def name(self, name: str) -> Any:
        """Return the candidate's global `name`; raise `KeyError` where there is none."""
        values = self.request("name", name)
        if not values:
            raise KeyError(name)
        value = values[0]
        if isinstance(value, _Module):
            # A check that uses `math` by the candidate's import gets the real module.
            same = value.module_name == name and name in sys.stdlib_module_names
            return importlib.import_module(name) if same else value
        return value

    def _request(self, message: list[Any]) -> list[Any]:
        if self.lost is not None:
            raise LostError(self.lost)
        try:
            answer = self._connection.request(message)
            sign, value = answer[:2]
            if sign == "!":
                raised = _exception(value)
        except (ClosedError, BadValueError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, UnsendableError):
                raise
            self.lost = "" if isinstance(error, ClosedError) else f"bad answer: {error}"
            raise LostError(self.lost) from None
        if sign == "!":
            raise raised
        return answer

    def _lend(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Remote):
            return {"lent": value._number}
        if callable(value):
            self._callbacks.append(value)
            return {"call": len(self._callbacks) - 1}
        if isinstance(value, Iterator):
            return {"iterator": [self.packed(element) for element in value]}
        raise UnsendableError(f"a check gives the candidate a {type(value).__name__}")

    def _resolve(self, tag: str, content: Any) -> Any:
        if tag == "module":
            number, name = content
            return self._remote(number, _Module, str(name))
        if tag == "lent":
            return self._remote(content, Remote)
        raise BadValueError("unknown tag")

    def _remote(self, number: Any, kind: type[Remote], *more: str) -> Remote:
        """Return the handle of the candidate's object `number`; there is one per object."""
        if type(number) is not int:
            raise BadValueError("not the number of an object")
        remote = self._remotes.get(number)
        if remote is None:
            remote = self._remotes[number] = kind(self, number, *more)
        return remote

    def _answer(self, message: list[Any]) -> list[Any]:
        """Call a function of the checks' for the candidate that was given it."""
        verb, number, arguments = message
        if verb != "back" or type(arguments) is not list:
            raise BadValueError("not a request for the checks")
        called = self._callbacks[number]
        try:
            return ["=", self.packed(called(*arguments))]
        except Exception as error:
            return ["!", [[type(error).__name__], str(error)]]


class _Module(Remote):
    """A module that the candidate imported."""

    __slots__ = ("module_name",)

    def __init__(self, peer: Peer, number: int, name: str) -> None:
        super().__init__(peer, number)
        object.__setattr__(self, "module_name", name)


def _update(old: Any, new: Any) -> None:
    """Make the containers in `old` hold what those in `new` do, in place as far as they match."""
    if type(old) is not type(new):
        return
    if isinstance(old, list):
        for place, (ours, theirs) in enumerate(zip(old, new, strict=False)):
            new[place] = _merge_value(ours, theirs)
        old[:] = new
    elif isinstance(old, dict):
        fresh = {key: _merge_value(old.get(key), value) for key, value in new.items()}
        old.clear()
        old.update(fresh)
    elif isinstance(old, tuple):
        for ours, theirs in zip(old, new, strict=False):
            _merge_value(ours, theirs)
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray):
        old[:] = new


def _merge_value(old: Any, new: Any) -> Any:
    if type(old) is type(new) and isinstance(old, (list, dict, set, bytearray, tuple)):
        _update(old, new)
        return old
    return new


def _exception(content: Any) -> BaseException:
    """Return the builtin exception closest to the one that the candidate raised."""
    names, message = content
    own = str(names[0])
    for name in names:
        kind = getattr(builtins, str(name), None)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            try:
                error = kind(str(message))
            except TypeError:
                continue  # It wants more than a message, as UnicodeDecodeError does.
            setattr(error, _NAMED, (own, str(message)))
            return error
    raise BadValueError("not an exception")


class _Builtins(dict[str, Any]):
    """Python's builtins, and behind them the candidate's globals."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(builtins.__dict__)
        self._peer = peer

    def __missing__(self, name: str) -> Any:
        return self._peer.name(name)


def check(descriptor: int, program: dict[str, Any]) -> dict[str, str]:
    """Run `program` and its checks; return the status and its detail."""
    random.seed(0)  # Checks draw numbers: the same for every candidate.
    peer = Peer(descriptor)
    try:
        peer.request("run", program["source"])
        _run_checks(peer, program)
    except LostError as error:
        return {"status": "lost", "detail": str(error)}
    except MemoryError:
        return {"status": "memory", "detail": "MemoryError"}
    except UnsendableError as error:
        return {"status": "error", "detail": str(error)}
    except BaseException as error:
        return {"status": "failed", "detail": _describe(error, program["tests"])}
    if peer.lost is not None:
        return {"status": "lost", "detail": peer.lost}
    return {"status": "passed", "detail": ""}


def _run_checks(peer: Peer, program: dict[str, Any]) -> None:
    names: dict[str, Any] = {"__name__": "checks", "__builtins__": _Builtins(peer)}
    exec(compile(program["context"], "<context>", "exec"), names)
    entry_point = program["entry_point"]
    if entry_point is not None:
        names.pop(entry_point, None)
        try:
            names[entry_point] = peer.name(entry_point)
        except KeyError:
            raise NameError(f"name {entry_point!r} is not defined") from None
    exec(compile(program["tests"], _CHECKS, "exec"), names)


def _describe(error: BaseException, tests: str) -> str:
    name, message = getattr(error, _NAMED, (type(error).__name__, str(error)))
    if isinstance(error, SystemExit):
        return f"{name}: exited before the checks finished"
    if isinstance(error, AssertionError) and not message:
        message = _failed_line(error, tests)
    return f"{name}: {message}" if message else name


def _failed_line(error: BaseException, tests: str) -> str:
    """Return the line of the checks in which `error` was raised."""
    number = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _CHECKS:
            number = trace.tb_lineno
        trace = trace.tb_next
    return "" if number is None else tests.splitlines()[number - 1].strip()
