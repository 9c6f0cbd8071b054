"""The response cache: responses shared by runs, and by processes that run at the same time.

One SQLite file in WAL mode. A killed process loses at most the response that it was writing, and
does not affect other processes. The file has to be on a local disk: WAL does not work over a
network.
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
# Incremented when replies are parsed differently, so that earlier entries no longer match.
_PARSER_VERSION = 2
_BUSY_SECONDS = 60.0
_STORED_FIELDS = (
    "text",
    "reasoning",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "seconds",
)


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """Content of a cache."""

    #: Model fingerprint → number of responses.
    responses: dict[str, int]
    #: Size on disk.
    bytes: int
    #: Time of the oldest response in seconds since 1970; None for an empty cache.
    oldest: float | None


def response_key(fingerprint: str, request: Request) -> bytes:
    """Return the SHA-256 digest of everything that can change the response to a request.

    ``fingerprint`` is the model's, which covers how requests are sent. The item's id and the arm
    are included if text is sampled, because the seed depends on them.
    """
    prompt, decoding = request.prompt, request.decoding
    is_sampled = request.ask == "text" and decoding.temperature > 0
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
        "id": request.id if is_sampled else "",
        **({"arm": request.arm} if is_sampled and request.arm else {}),
        "reading": _PARSER_VERSION,
    }
    return hashlib.sha256(canonical_json(content)).digest()


class ResponseCache:
    """Persistent cache of responses by ``response_key``, for any number of threads and processes.

    If the file can no longer be read or written, a warning is logged and the run continues without
    the cache.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises RunError if it is not a cache or cannot be written."""
        self.path = path
        self._lock = threading.Lock()
        self._broken = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = _connect(path)
            version = self._locked(_prepare)
        except (OSError, sqlite3.Error) as error:
            raise RunError(f"response cache {path}: {error}") from None
        if version != _VERSION:
            self._database.close()
            raise RunError(
                f"response cache {path} has version {version}, expected {_VERSION}:"
                " use another file"
            )

    def get(self, fingerprint: str, request: Request) -> Response | None:
        """Return the stored response with the id, arm and sample of this request; None if none is stored."""
        key = response_key(fingerprint, request)
        row = self._run_or_disable(
            lambda database: database.execute(
                "SELECT value FROM responses WHERE key = ?", (key,)
            ).fetchone()
        )
        return None if row is None else _from_json(request, row[0])

    def put(self, fingerprint: str, responses: Sequence[tuple[Request, Response]]) -> None:
        """Store responses; they are in the file when this returns."""
        now = time.time()
        rows = [
            (response_key(fingerprint, request), fingerprint, now, _to_json(response))
            for request, response in responses
        ]
        if rows:
            self._run_or_disable(
                lambda database: database.executemany(
                    "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?)", rows
                )
            )

    def info(self) -> CacheInfo:
        """Return the content in numbers. Raises RunError if the file cannot be read."""

        def read(database: sqlite3.Connection) -> CacheInfo:
            counts = database.execute("SELECT model, COUNT(*) FROM responses GROUP BY model")
            responses = dict(counts.fetchall())
            (oldest,) = database.execute("SELECT MIN(created) FROM responses").fetchone()
            return CacheInfo(responses, self._bytes(), oldest)

        return self._or_raise(read)

    def prune(self, *, older_than: float | None = None) -> int:
        """Delete responses older than ``older_than`` seconds, or all, and shrink the file.

        Returns the number of deleted responses. Raises RunError if the file cannot be written.
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

    def _locked(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            return work(self._database)

    def _or_raise(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return self._locked(work)
        except sqlite3.Error as error:
            raise RunError(f"response cache {self.path}: {error}") from None

    def _run_or_disable(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        if self._broken:
            return None
        try:
            return self._locked(work)
        except sqlite3.Error as error:
            self._broken = True
            log.warning("continuing without the response cache %s: %s", self.path, error)
            return None


def _connect(path: Path) -> sqlite3.Connection:
    # Every statement is its own transaction; `ResponseCache` holds a lock for its threads.
    database = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    _use_wal(database)
    # Safe if a process is killed; a power failure loses the last responses only.
    database.execute("PRAGMA synchronous = NORMAL")
    return database


def _use_wal(database: sqlite3.Connection) -> None:
    # Unlike every later statement, the change of mode fails immediately, whatever the timeout, while
    # another process makes the same change.
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
    """Create the table if the file is empty; return the version of the file."""
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


def _to_json(response: Response) -> str:
    value: dict[str, Any] = {
        name: entry for name in _STORED_FIELDS if (entry := getattr(response, name)) is not None
    }
    if response.logprobs:  # JSON has no infinity; an impossible choice is written as null
        value["logprobs"] = [None if x == -math.inf else x for x in response.logprobs]
    if response.dropped_shots:
        value["dropped_shots"] = response.dropped_shots
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _from_json(request: Request, text: str) -> Response:
    value = json.loads(text)
    logprobs = tuple(-math.inf if x is None else x for x in value.pop("logprobs", ()))
    return Response(request.id, logprobs=logprobs, sample=request.sample, arm=request.arm, **value)
