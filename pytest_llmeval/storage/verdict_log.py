"""Scores of jobs that take minutes, stored in the run folder so that no job is run twice.

All processes of a session read and append to one file. Errors are not stored: a job that failed
because of a missing image, for example, is run again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import lock_descriptor
from filelock import unlock_descriptor

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import RunError
from pytest_llmeval.core import Score
from pytest_llmeval.storage.line_writer import LineWriter

_POLL_SECONDS = 0.5


class VerdictLog:
    """Log of scores by the digest of the job."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = LineWriter(path)
        self._scores: dict[str, Score] = {}
        self._read_to = 0

    def get(self, digest: str) -> Score | None:
        """Return the score of a job, from any process; None if the job has not been run."""
        if digest not in self._scores:
            self._read_on()
        return self._scores.get(digest)

    def put(self, digest: str, score: Score) -> None:
        """Store a score. Raises RunError if it cannot be written."""
        self._scores[digest] = score
        line = {
            "job": digest,
            "outcome": score.outcome,
            "answer": score.answer,
            "detail": score.detail,
            "log": score.log,
            "node": score.node,
        }
        self._writer.write(json.dumps(line).encode("ascii") + b"\n")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make other processes wait while this one runs jobs that all of them need.

        Raises RunError if the file system has no locks.
        """
        try:
            handle = os.open(self._path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise RunError(f"cannot lock {self._path}: {error.strerror or error}") from error
        try:
            lock_descriptor(handle, poll_interval=_POLL_SECONDS)
            try:
                yield
            finally:
                unlock_descriptor(handle)
        finally:
            os.close(handle)

    def close(self) -> None:
        self._writer.close()

    def _read_on(self) -> None:
        """Read the lines appended since the last call, except a torn last line."""
        try:
            with self._path.open("rb") as lines:
                lines.seek(self._read_to)
                for line in lines:
                    if not line.endswith(b"\n"):
                        return
                    self._read_to += len(line)
                    value = json.loads(line)
                    score = Score(
                        Outcome(value["outcome"]),
                        value["answer"],
                        detail=value["detail"],
                        log=value["log"],
                        node=value.get("node", ""),
                    )
                    self._scores[value["job"]] = score
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{self._path} cannot be read: {error}") from None
