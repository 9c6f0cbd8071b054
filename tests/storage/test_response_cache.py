"""The response cache: keyed by all that matters, shared, and whole after a kill."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import fields
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core import RunError
from pytest_llmeval.storage.response_cache import ResponseCache
from pytest_llmeval.storage.response_cache import response_key

PROMPT = Prompt("Be brief.\n\n", (("1+1?", "2"),), "2+2?")
TEXT = Request("q", PROMPT, decoding=Decoding(temperature=0.5))
CHOICE = Request("q", PROMPT, choices=("A", "B"))


def test_a_response_comes_back_whole(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "sub" / "cache.sqlite")
    text = Response(
        "q",
        text="ok é \U0001f600",
        reasoning="so",
        finish_reason="stop",
        prompt_tokens=3,
        completion_tokens=2,
        seconds=0.5,
        sample=0,
        arm="",
    )
    choice = Response("q", logprobs=(-0.1, -math.inf), dropped_shots=1, sample=0, arm="")
    cache.put("m", [(TEXT, text), (CHOICE, choice)])
    again = ResponseCache(cache.path)
    assert again.get("m", TEXT) == text
    assert again.get("m", CHOICE) == choice


def test_an_answer_is_reused_for_the_same_request(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "cache")
    greedy = replace(TEXT, decoding=Decoding())
    cache.put("m", [(greedy, Response("q", text="4"))])
    cached = cache.get("m", replace(greedy, id="another"))
    assert cached is not None
    assert (cached.id, cached.text) == ("another", "4")


@pytest.mark.parametrize("request_", [TEXT, CHOICE], ids=["text", "choices"])
def test_everything_that_can_change_an_answer_is_in_the_key(request_: Request) -> None:
    prompts = {
        "description": "Be long.",
        "shots": (("1+1?", "3"),),
        "question": "2+3?",
        "delimiter": "\n",
        "separator": "\n",
        "prefix": "It is",
    }
    # What a chat's messages are made of does not matter to a plain text.
    of_chats = {"shots_as_text", "keep_description"}
    assert {*prompts, *of_chats} == {field.name for field in fields(Prompt)}
    prompt = replace(PROMPT, description="Be brief.\n\n")
    chat = replace(request_, chat=True, prompt=prompt)
    for name in of_chats:
        other = replace(chat, prompt=replace(prompt, **{name: True}))
        assert response_key("m", other) != response_key("m", chat)
    decodings = {
        "max_tokens": 9,
        "temperature": 0.9,
        "top_p": 0.9,
        "top_k": 9,
        "min_p": 0.9,
        "stop": ("x",),
    }
    assert decodings.keys() == {field.name for field in fields(Decoding)}
    requests = [request_, replace(request_, sample=1), replace(request_, seed=1)]
    requests += [replace(request_, prompt=replace(PROMPT, **{k: v})) for k, v in prompts.items()]
    if request_.ask == "text":
        old = request_.decoding
        requests += [
            replace(request_, decoding=replace(old, **{k: v})) for k, v in decodings.items()
        ]
        requests += [replace(request_, id="r"), replace(request_, choices=("A", "B"))]
        requests.append(replace(request_, arm="cyclic@1"))
    else:
        requests += [replace(request_, choices=("A", "C")), replace(request_, choices=("A",))]
        requests += [replace(request_, given=("it", "she")), replace(request_, given=("he", "she"))]
    requests.append(replace(request_, chat=True))
    keys = {response_key("m", request) for request in requests} | {response_key("n", request_)}
    assert len(keys) == len(requests) + 1
    assert {field.name for field in fields(Request)} == {
        "id",
        "prompt",
        "choices",
        "chat",
        "decoding",
        "sample",
        "seed",
        "given",
        "benchmark",  # what its cost is booked under: no answer depends on it
        "arm",  # of a text that is drawn; what else of it matters is in the prompt
    }


def test_a_prefix_is_in_the_key_of_a_chat() -> None:
    chat = replace(TEXT, chat=True)
    other = replace(chat, prompt=replace(PROMPT, prefix="It is"))
    assert response_key("m", chat) != response_key("m", other)


def test_info_and_prune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ResponseCache(tmp_path / "cache")
    assert cache.info().responses == {}
    assert cache.info().oldest is None
    now = time.time()
    for age, model in ((100, "m"), (10, "m"), (10, "n")):
        monkeypatch.setattr(time, "time", lambda age=age: now - age)
        request = replace(TEXT, id=str(age))
        cache.put(model, [(request, Response("q", text="x" * 100_000))])
    monkeypatch.setattr(time, "time", lambda: now)
    info = cache.info()
    assert info.responses == {"m": 2, "n": 1}
    assert info.oldest == pytest.approx(now - 100)
    assert info.bytes > 300_000
    assert cache.prune(older_than=50) == 1
    assert cache.info().responses == {"m": 1, "n": 1}
    assert cache.info().bytes < 300_000
    assert cache.prune() == 2


def test_a_file_that_is_no_cache_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    path.write_text("some text that is not a database " * 100)
    with pytest.raises(RunError, match="cache: file is not a database"):
        ResponseCache(path)
    with pytest.raises(RunError, match=r"response cache .*unable to open"):
        ResponseCache(tmp_path)


def test_a_cache_of_another_version_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE responses (something TEXT)")
    database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(RunError, match="version 7, expected 1"):
        ResponseCache(path)


def test_a_cache_that_breaks_costs_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ResponseCache(tmp_path / "cache")
    cache.close()
    cache.put("m", [(TEXT, Response("q", text="4"))])
    assert cache.get("m", TEXT) is None
    assert len(caplog.records) == 1
    assert "continuing without the response cache" in caplog.text


WRITER = """
import sys
from pathlib import Path
from pytest_llmeval.core import Prompt, Request, Response
from pytest_llmeval.storage.response_cache import ResponseCache

cache = ResponseCache(Path(sys.argv[1]))
number = 0
while sys.argv[3] == "forever" or number < int(sys.argv[3]):
    request = Request(f"{sys.argv[2]}-{number}", Prompt("", (), f"{sys.argv[2]}-{number}"))
    cache.put("m", [(request, Response(request.id, text="x" * 500))])
    print(request.id, flush=True)
    number += 1
"""


def writer(path: Path, name: str, count: str) -> subprocess.Popen[str]:
    code = textwrap.dedent(WRITER)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path), name, count], stdout=subprocess.PIPE, text=True
    )


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    writers = [writer(path, name, "100") for name in ("a", "b", "c")]
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    assert ResponseCache(path).info().responses == {"m": 300}


def test_a_cache_that_another_process_is_creating_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE other (x)")
    # SQLite itself does not wait here: without our own waiting this is "database is locked".
    release = threading.Timer(0.3, other.execute, ("ROLLBACK",))
    release.start()
    ResponseCache(path).close()
    release.join()
    other.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_answers_of_a_killed_process_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    process = writer(path, "a", "forever")
    assert process.stdout is not None
    names = [process.stdout.readline().strip() for _ in range(50)]
    os.kill(process.pid, signal.SIGKILL)
    names += process.stdout.read().split()
    process.wait()
    cache = ResponseCache(path)
    # A name that was torn by the kill is at the end, if at all.
    for name in names[:-1]:
        assert cache.get("m", Request(name, Prompt("", (), name))) is not None
    assert cache._database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
