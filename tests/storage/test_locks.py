"""Locks of files that several processes use, and of a run folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import lock_descriptor

from pytest_llmeval.core import RunError
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.line_writer import locked

HOLD = """
import os, sys
from pathlib import Path
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.line_writer import locked

path = Path(sys.argv[1])
if path.is_dir():
    folder = RunFolder(path)
    folder.claim()
    print("holds", flush=True)
    sys.stdin.read()
else:
    with locked(os.open(path, os.O_RDWR)):
        print("holds", flush=True)
        sys.stdin.read()
"""

APPEND = """
import sys
from pathlib import Path
from pytest_llmeval.storage.line_writer import LineWriter

writer = LineWriter(Path(sys.argv[1]))
for number in range(200):
    writer.write(f"{sys.argv[2]} {number} {'x' * 5000}\\n".encode() * 3)
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of a file or of a run folder until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "holds\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.touch()
    return path


def is_free(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR)
    try:
        return lock_descriptor(descriptor, blocking=False)
    finally:
        os.close(descriptor)


def test_the_lock_excludes_other_processes_until_it_is_released(file: Path) -> None:
    with holder(file) as process:
        assert not is_free(file)
        process.communicate()
        assert is_free(file)


def test_a_waiting_process_gets_the_lock_of_a_killed_one(file: Path) -> None:
    with holder(file) as process:
        assert not is_free(file)
        process.kill()
        with locked(os.open(file, os.O_RDWR)):
            assert not is_free(file)


def test_the_lock_is_released_after_an_exception(file: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(os.open(file, os.O_RDWR)):
        1 / 0  # noqa: B018
    assert is_free(file)


def test_the_lock_adds_no_file(file: Path) -> None:
    with locked(os.open(file, os.O_RDWR)):
        assert [path.name for path in file.parent.iterdir()] == ["file"]


def test_lines_of_several_processes_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    processes = [
        subprocess.Popen([sys.executable, "-c", APPEND, str(path), str(number)])
        for number in range(3)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    lines = path.read_text().splitlines()
    assert len(lines) == len(set(lines)) * 3 == 1800
    assert all(first == two == three for first, two, three in zip(*[iter(lines)] * 3, strict=True))


def test_a_second_session_on_a_run_folder_is_refused(tmp_path: Path) -> None:
    with holder(tmp_path):
        with pytest.raises(RunError) as error:
            RunFolder(tmp_path).claim()
        assert str(error.value) == f"run {tmp_path} is in use by another session"


def test_a_second_session_of_the_same_process_is_refused(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path), RunFolder(tmp_path)
    first.claim()
    with pytest.raises(RunError, match="in use by another session"):
        second.claim()
    first.release()
    second.claim()
    second.release()


def test_the_folder_of_a_killed_session_can_be_claimed(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.kill()
        process.wait()
        folder = RunFolder(tmp_path)
        folder.claim()
        folder.release()


def test_a_folder_that_cannot_be_locked_is_reported_in_one_line(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "missing")
    with pytest.raises(RunError, match=r"cannot lock run .*missing: No such file or directory$"):
        folder.claim()
