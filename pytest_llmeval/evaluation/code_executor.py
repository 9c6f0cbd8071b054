"""Running the programs of responses beside the answering, each distinct program once."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import replace

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox import Sandbox

_MOST_REFERENCES = 32
# Of the reference solutions, whose failure says that the sandbox does not suit the benchmark.
_MOST_FAILING = 0.1


class Executor:
    """Runs programs in a sandbox that is opened by the first of them.

    Programs are given in by ``submit``, from one thread, and come back through ``finished``; they
    run meanwhile. Two programs with the same code, tests and limit are run once.
    """

    def __init__(self, open_sandbox: Callable[[], Sandbox], ended: Callable[[], None]) -> None:
        """``ended`` is called, in another thread, when ``finished`` has something new."""
        self._open = open_sandbox
        self._ended = ended
        self._waiting: queue.SimpleQueue[Program | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Execution | BaseException] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._sandbox: Sandbox | None = None
        #: By what is run: ids that wait for it, or how it ended.
        self._runs: dict[bytes, list[str] | Execution] = {}
        self._digests: dict[str, bytes] = {}
        self._again: list[Execution] = []
        self._failure: BaseException | None = None

    def check(self, references: Sequence[Program]) -> list[str]:
        """Open the sandbox and see that programs known to be right pass in it.

        At most 32 of them, spread evenly, which also tell how slow this machine is. Returns a line
        for every one that fails. Raises ConfigError where more than a tenth do: the sandbox does
        not suit the benchmark, and what it says would be no measurement.
        """
        self._sandbox = self._sandbox or self._open()
        step = max(1, len(references) // _MOST_REFERENCES)
        chosen = references[::step][:_MOST_REFERENCES]
        failed = [
            f"{one.id}: {one.status}" + (f", {one.detail}" if one.detail else "")
            for one in self._sandbox.calibrate(chosen)
            if one.status != "passed"
        ]
        if len(failed) > _MOST_FAILING * len(chosen):
            raise ConfigError(
                f"the sandbox fails {len(failed)} of {len(chosen)} reference solutions, which are"
                f" known to be right; the first: {failed[0]}"
            )
        return [f"reference solution {line} in this sandbox" for line in failed]

    def submit(self, program: Program) -> None:
        """Have a program run. Its id must not be in use by another."""
        digest = _digest(program)
        known = self._runs.get(digest)
        if isinstance(known, Execution):
            self._again.append(replace(known, id=program.id))
            self._ended()
        elif known is not None:
            known.append(program.id)
        else:
            self._runs[digest] = [program.id]
            self._digests[program.id] = digest
            self._start()
            self._waiting.put(program)

    def finished(self) -> list[Execution]:
        """The programs that have ended since. Raises what the sandbox raised, then always."""
        if self._failure is not None:
            raise self._failure
        found, self._again = self._again, []
        while not self._done.empty():
            one = self._done.get()
            if isinstance(one, BaseException):
                self._failure = one
                raise one
            found += self._for_all(one)
        return found

    def close(self) -> None:
        """Remove the sandbox. Programs that have not ended are given up."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()
        if self._thread is not None:
            self._waiting.put(None)
        if self._sandbox is not None:
            self._sandbox.close()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _for_all(self, one: Execution) -> Iterator[Execution]:
        digest = self._digests.pop(one.id)
        ids = self._runs[digest]
        assert isinstance(ids, list)
        # An error says nothing about the program: the same one later is run anew.
        if one.status == "error":
            del self._runs[digest]
        else:
            self._runs[digest] = one
        for name in ids:
            yield replace(one, id=name)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="llmeval-executor", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            if self._sandbox is None:
                self._sandbox = self._open()
            for execution in self._sandbox.run(self._programs()):
                self._done.put(execution)
                self._ended()
        except BaseException as error:
            self._done.put(error)
            self._ended()

    def _programs(self) -> Iterable[Program]:
        while (program := self._waiting.get()) is not None:
            yield program


def _digest(program: Program) -> bytes:
    parts = (program.source, program.context, program.tests, program.entry_point or "")
    text = "\0".join(f"{len(part)}:{part}" for part in (*parts, repr(program.timeout)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
