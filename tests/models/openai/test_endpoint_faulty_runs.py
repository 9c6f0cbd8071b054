"""Whole runs against a server with every fault: no answer lost, doubled or invented."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import ModelError
from pytest_llmeval.storage.response_cache import ResponseCache
from support.endpoint_bodies import LETTERS
from support.endpoint_server import HANG
from support.endpoint_server import Script
from support.endpoint_server import serve

CHOICES = tuple(LETTERS)
FAULTS = {
    "429": 0.05,
    "429 after": 0.05,
    "500": 0.05,
    "reset": 0.02,
    "hang": 0.02,
    "garbage": 0.02,
    "torn": 0.02,
}


def answers(model: Any, requests: list[Any]) -> dict[Any, Any]:
    responses = list(model.answer(requests))
    assert len(responses) == len(requests)
    return {
        (response.id, response.sample): (
            response.text,
            response.logprobs,
            response.finish_reason,
            response.error,
        )
        for response in responses
    }


@pytest.mark.parametrize(
    ("query", "choices"),
    [("", ()), ("?choices=top_logprobs", CHOICES), ("?choices=echo", CHOICES)],
)
def test_a_run_with_faults_ends_like_one_without(
    query: str, choices: tuple[str, ...], opened: Any, make: Any
) -> None:
    requests = make(300, choices=choices)
    answered = 301 if "echo" in query else 300  # with the probe
    with serve() as server:
        right = answers(opened(server, query), requests)
    with serve(Script(faults=FAULTS, retry_after="0.05")) as server:
        model = opened(server, query, max_concurrency=64, timeout=2.0)
        assert answers(model, requests) == right
        assert server.answered == answered
        assert set(server.sent_faults) == set(FAULTS)
    faults = sum(server.sent_faults.values())
    assert model.usage.retries == faults == model.usage.requests - answered
    assert not any(error for _, _, _, error in right.values())


def test_a_run_repeated_from_the_cache_makes_no_requests(
    opened: Any, make: Any, tmp_path: Path
) -> None:
    cache = ResponseCache(tmp_path / "cache")
    requests = make(50) + make(50, choices=CHOICES)
    with serve() as server:
        query = "?choices=top_logprobs"
        first = answers(opened(server, query, cache=cache), requests)
        requested = len(server.arrivals)
        again = opened(server, query, cache=ResponseCache(tmp_path / "cache"))
        assert answers(again, requests) == first
        assert len(server.arrivals) == requested
        assert again.usage.from_cache == 100
        # Another method is another model.
        answers(opened(server, "", cache=cache), make(50))
        assert len(server.arrivals) == requested + 50


@pytest.mark.parametrize(
    "reply",
    [
        [404, {"error": {"message": "gone"}}],
        {"choices": []},
        {"choices": [{"message": {"content": "I can't"}, "finish_reason": "content_filter"}]},
        {"choices": [{"message": {"content": None}, "finish_reason": "length"}]},
        {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
    ],
)
def test_temporary_answers_are_not_cached(
    reply: Any, opened: Any, make: Any, tmp_path: Path
) -> None:
    cache = ResponseCache(tmp_path / "cache")
    with serve(Script(replies={"question": [reply]})) as server:
        for _ in range(2):
            answers(opened(server, cache=cache), make(1))
        assert len(server.arrivals) == 2
    assert cache.info().responses == {}


def test_an_empty_answer_that_took_tokens_is_cached(opened: Any, make: Any, tmp_path: Path) -> None:
    choice = {"message": {"content": "\n\nMore"}, "finish_reason": "length"}
    reply = {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 16}}
    cache = ResponseCache(tmp_path / "cache")
    with serve(Script(replies={"question": [reply]})) as server:
        requests = make(1, decoding=Decoding(max_tokens=16, stop=("\n\nMore",)))
        first = answers(opened(server, cache=cache), requests)
        assert answers(opened(server, cache=cache), requests) == first
        assert len(server.arrivals) == 1
    assert [text for text, *_ in first.values()] == [""]


def test_a_sample_missing_in_the_cache_is_requested_alone(
    opened: Any, make: Any, tmp_path: Path
) -> None:
    cache = ResponseCache(tmp_path / "cache")
    drawn = Decoding(max_tokens=16, temperature=0.8)
    with serve() as server:
        answers(opened(server, cache=cache), make(4, samples=2, decoding=drawn))
        answers(opened(server, cache=cache), make(4, samples=3, decoding=drawn))
    assert [body.get("n") for body in server.bodies] == [2, 2, 2, 2, None, None, None, None]


WORKER = """
import sys
from pathlib import Path
from pytest_llmeval.core import Prompt, Request
from pytest_llmeval.models import load_model
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import ModelError
from pytest_llmeval.storage.response_cache import ResponseCache

url, folder, name, count, options = sys.argv[1:]
model = load_model(
    "openai:stand-in",
    base_url=url,
    shared_limits=Path(folder) / "limits",
    cache=ResponseCache(Path(folder) / "cache"),
    **eval(options),
)
requests = [Request(f"{name}-{n}", Prompt("", (), f"{name} {n}")) for n in range(int(count))]
for response in model.answer(requests):
    assert response.error is None, response.error
    print(response.id, response.text, flush=True)
model.close()
"""


def worker(url: str, folder: Path, name: str, count: int, **options: Any) -> Any:
    code = textwrap.dedent(WORKER)
    return subprocess.Popen(
        [sys.executable, "-c", code, url, str(folder), name, str(count), repr(options)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_keep_one_rate(tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="the extra openai is not installed")
    # 600 a minute, 10 a second. Within 4 seconds two that do not know of each other send 80;
    # the rest of what is allowed here is for a machine that is busy with other things.
    with serve(Script(ban=(55, 4.0))) as server:
        workers = [
            worker(server.url, tmp_path, name, 35, requests_per_minute=600) for name in ("a", "b")
        ]
        for process in workers:
            process.communicate()
            assert process.returncode == 0
        assert not server.banned
        assert len(server.arrivals) == 70
        # Evenly spread: nearly the whole of the limit is used.
        assert server.arrivals[-1] - server.arrivals[0] < 70 / 10 * 1.5


def test_two_processes_keep_one_number_in_flight(tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="the extra openai is not installed")
    with serve(Script(latency=0.1)) as server:
        workers = [worker(server.url, tmp_path, name, 60, max_concurrency=6) for name in ("a", "b")]
        for process in workers:
            process.communicate()
            assert process.returncode == 0
    assert server.most_at_once == 6


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_repeats_only_what_was_in_flight(tmp_path: Path) -> None:
    pytest.importorskip("openai", reason="the extra openai is not installed")
    with serve(Script(latency=0.02)) as server:
        killed = worker(server.url, tmp_path, "a", 400, max_concurrency=16)
        for _ in range(100):
            killed.stdout.readline()
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        killed.stdout.close()
        process = worker(server.url, tmp_path, "a", 400, max_concurrency=16)
        output, _ = process.communicate()
    assert process.returncode == 0
    assert len(output.splitlines()) == len({line.split()[0] for line in output.splitlines()}) == 400
    assert 400 <= server.answered <= 400 + 16


# --- the key

KEY = "sk-very-secret-4711"


@pytest.mark.parametrize("accepted", [KEY, "another"])
@pytest.mark.parametrize("reply", [None, "500", HANG])
def test_the_key_is_sent_and_stored_nowhere(
    accepted: str,
    reply: str | None,
    opened: Any,
    make: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    caplog.set_level(0)
    monkeypatch.setenv("MY_KEY", KEY)
    replies = {"question": [reply]} if reply else {}
    cache = ResponseCache(tmp_path / "cache")
    shown: list[Any] = []
    with serve(Script(key=accepted, replies=replies)) as server:
        model = opened(
            server,
            "?key_env=MY_KEY",
            cache=cache,
            shared_limits=tmp_path / "limits",
            max_retries=0,
            timeout=0.3,
        )
        with contextlib.ExitStack() as stack:
            if accepted != KEY or reply is not None:
                raised = stack.enter_context(pytest.raises(ModelError))
            shown.extend(model.answer(make(40)))
        if accepted != KEY or reply is not None:
            # As pytest shows it with --showlocals; the first frame is this test's own.
            error = raised.value.with_traceback(raised.tb.tb_next)
            report = traceback.TracebackException.from_exception(error, capture_locals=True)
            shown += report.format()
            assert error.__context__ is None
        shown += [model, vars(model), vars(model._client), model.fingerprint]
        model.close()
        assert server.keys == {KEY}
    cache.close()
    out, err = capfd.readouterr()
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    everything = "\n".join([repr(shown), "\n".join(map(str, shown)), caplog.text, out, err])
    assert KEY not in everything
    assert KEY.encode() not in files
    if accepted != KEY:
        assert "Incorrect API key provided: ***" in everything


def test_figures_are_available_to_other_processes() -> None:
    import urllib.request

    with serve() as server, urllib.request.urlopen(server.url.replace("/v1", "/stats")) as reply:
        assert json.loads(reply.read())["requests"] == 0
