"""Verdicts in the run folder: shared by processes, whole after a kill."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import RunError
from pytest_llmeval.core import Score
from pytest_llmeval.storage.verdict_log import VerdictLog

WRONG = Score(Outcome.WRONG, answer="x", detail="d", log="é\n\ud800\0")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "verdicts.jsonl"


def test_a_score_is_read_as_it_was_written(path):
    log = VerdictLog(path)
    assert log.get("a") is None
    log.put("a", WRONG)
    assert VerdictLog(path).get("a") == log.get("a") == WRONG


def test_what_another_process_writes_is_seen(path):
    reading, writing = VerdictLog(path), VerdictLog(path)
    for name in "abc":
        assert reading.get(name) is None
        writing.put(name, WRONG)
        assert reading.get(name) == WRONG


def test_a_torn_last_line_is_left_out_until_it_is_whole(path):
    VerdictLog(path).put("a", WRONG)
    line = path.read_bytes()
    path.write_bytes(line + line.replace(b'"a"', b'"b"')[:-9])
    log = VerdictLog(path)
    assert (log.get("a"), log.get("b")) == (WRONG, None)
    VerdictLog(path).put("b", WRONG)  # which cuts the torn tail off
    assert log.get("b") == WRONG


@pytest.mark.parametrize("line", ["{}", "nothing", '{"job": "a", "outcome": "odd"}', "[]"])
def test_a_damaged_file_is_one_line(path, line):
    path.write_text(f"{line}\n")
    with pytest.raises(RunError, match=r"verdicts.jsonl cannot be read: "):
        VerdictLog(path).get("a")


def test_only_one_process_is_alone(path):
    script = (
        "import sys; from pathlib import Path;"
        "from pytest_llmeval.storage.verdict_log import VerdictLog\n"
        "with VerdictLog(Path(sys.argv[1])).alone(): print('in', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        entered = threading.Event()

        def enter():
            with VerdictLog(path).alone():
                entered.set()

        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.7)
        other.kill()  # the lock ends with the process
        assert entered.wait(10)
        thread.join()
