"""The response cache: answers that were paid for once, for many runs and many processes at once.

One SQLite file in WAL mode. A process that is killed loses at most the answer it was writing; the
others go on. The file has to be on a disk of this machine: WAL does not work over a network.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import TypeVar

from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core import RunError
from pytest_llmeval.core import canonical_json

log = logging.getLogger("pytest_llmeval.storage.response_cache")

T = TypeVar("T")

_VERSION = 1
# Raised where the same reply is read otherwise, so that an earlier reading is not found any more.
_READING = 2
_BUSY_SECONDS = 60.0
_KEPT = ("text", "reasoning", "finish_reason", "prompt_tokens", "completion_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What a cache holds: responses by model fingerprint, bytes on disk, and the oldest's time.

    ``oldest`` is in seconds since 1970, None for an empty cache.
    """

    responses: dict[str, int]
    bytes: int
    oldest: float | None


def response_key(fingerprint: str, request: Request) -> bytes:
    """SHA-256 over everything that can change the answer to a request.

    ``fingerprint`` is the model's, which covers how it is asked. The item's id and the arm count
    where text is drawn at random, because the seed is made of them.
    """
    prompt, decoding = request.prompt, request.decoding
    drawn = request.ask == "text" and decoding.temperature > 0
    content = {
        "model": fingerprint,
        "prompt": [prompt.messages(), prompt.prefix] if request.chat else prompt.text,
        "chat": request.chat,
        "choices": [prompt.delimiter, *request.choices] if request.choices else [],
        **({"given": list(request.given)} if request.given else {}),
        "decoding": None
        if request.choices
        else [
            decoding.max_tokens,
            decoding.temperature,
            decoding.top_p,
            decoding.top_k,
            decoding.min_p,
            list(decoding.stop),
        ],
        "sample": request.sample,
        "seed": request.seed,
        "id": request.id if drawn else "",
        **({"arm": request.arm} if drawn and request.arm else {}),
        "reading": _READING,
    }
    return hashlib.sha256(canonical_json(content)).digest()


class ResponseCache:
    """Responses by everything that can change them. Any number of threads and processes.

    A cache is an aid: one that can no longer be read or written is left aside with a warning,
    and the run goes on without it.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises RunError where it is no cache or cannot be written."""
        self.path = path
        self._lock = threading.Lock()
        self._broken = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = _connect(path)
            version = self._within(_prepare)
        except (OSError, sqlite3.Error) as error:
            raise RunError(f"response cache {path}: {error}") from None
        if version != _VERSION:
            self._database.close()
            raise RunError(
                f"response cache {path} has version {version}, this is for version {_VERSION}:"
                " name another file"
            )

    def get(self, fingerprint: str, request: Request) -> Response | None:
        """The stored response to a request, as one of this request; None if there is none."""
        key = response_key(fingerprint, request)
        row = self._try(
            lambda database: database.execute(
                "SELECT value FROM responses WHERE key = ?", (key,)
            ).fetchone()
        )
        return None if row is None else _read(request, row[0])

    def put(self, fingerprint: str, answered: Sequence[tuple[Request, Response]]) -> None:
        """Store responses. They are in the file when this returns."""
        now = time.time()
        rows = [
            (response_key(fingerprint, request), fingerprint, now, _value(response))
            for request, response in answered
        ]
        if rows:
            self._try(
                lambda database: database.executemany(
                    "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?)", rows
                )
            )

    def info(self) -> CacheInfo:
        """What is in it. Raises RunError where the file cannot be read."""

        def read(database: sqlite3.Connection) -> CacheInfo:
            counts = database.execute("SELECT model, COUNT(*) FROM responses GROUP BY model")
            responses = dict(counts.fetchall())
            (oldest,) = database.execute("SELECT MIN(created) FROM responses").fetchone()
            return CacheInfo(responses, self._bytes(), oldest)

        return self._or_raise(read)

    def prune(self, *, older_than: float | None = None) -> int:
        """Delete the responses older than so many seconds, or all.

        Returns how many, and gives their space back to the disk. Raises RunError where the
        file cannot be written.
        """
        before = math.inf if older_than is None else time.time() - older_than

        def delete(database: sqlite3.Connection) -> int:
            deleted = database.execute(
                "DELETE FROM responses WHERE created < ?", (before,)
            ).rowcount
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return int(deleted)

        return self._or_raise(delete)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _bytes(self) -> int:
        files = (self.path.with_name(self.path.name + end) for end in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _within(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            return work(self._database)

    def _or_raise(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return self._within(work)
        except sqlite3.Error as error:
            raise RunError(f"response cache {self.path}: {error}") from None

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        if self._broken:
            return None
        try:
            return self._within(work)
        except sqlite3.Error as error:
            self._broken = True
            log.warning("going on without the response cache %s: %s", self.path, error)
            return None


def _connect(path: Path) -> sqlite3.Connection:
    # Every statement is a transaction of its own; the lock keeps threads apart.
    database = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    _use_wal(database)
    # Enough for a killed process; a machine that loses power loses the last answers, no more.
    database.execute("PRAGMA synchronous = NORMAL")
    return database


def _use_wal(database: sqlite3.Connection) -> None:
    # The change of mode is the one statement that SQLite refuses at once, whatever the timeout,
    # while another process does the same; every later one waits.
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorname.startswith("SQLITE_BUSY")
            if not busy or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _prepare(database: sqlite3.Connection) -> int:
    """Create the table where there is none; the version of what is there."""
    database.execute("BEGIN IMMEDIATE")
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if tables == 0:
            database.execute(
                "CREATE TABLE responses (key BLOB PRIMARY KEY, model TEXT NOT NULL,"
                " created REAL NOT NULL, value TEXT NOT NULL) WITHOUT ROWID"
            )
            database.execute(f"PRAGMA user_version = {_VERSION}")
            version = _VERSION
    finally:
        database.execute("COMMIT")
    return int(version)


def _value(response: Response) -> str:
    value: dict[str, Any] = {
        name: entry for name in _KEPT if (entry := getattr(response, name)) is not None
    }
    if response.logprobs:  # JSON has no infinity; an impossible choice is written as null
        value["logprobs"] = [None if x == -math.inf else x for x in response.logprobs]
    if response.dropped_shots:
        value["dropped_shots"] = response.dropped_shots
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _read(request: Request, text: str) -> Response:
    value = json.loads(text)
    logprobs = tuple(-math.inf if x is None else x for x in value.pop("logprobs", ()))
    return Response(request.id, logprobs=logprobs, sample=request.sample, arm=request.arm, **value)
