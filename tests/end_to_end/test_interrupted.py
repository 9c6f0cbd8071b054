"""Interrupted runs: what was received is on disk and is paid for once, whatever ends a session."""

from __future__ import annotations

import json
import re
import signal

import pytest

from pytest_llmeval.runs import load_run
from pytest_llmeval.storage.records import latest_records
from pytest_llmeval.storage.usage_log import read_usage
from support.endpoint_server import Script
from support.endpoint_server import serve
from support.interrupting import kill
from support.interrupting import start
from support.interrupting import wait_until
from support.interrupting import written

PRICES = 'version = 1\n[models."openai:stand-in"]\ninput = 1000.0\noutput = 10000.0\n'


@pytest.fixture
def endpoint(alternating, monkeypatch):
    """The same on a priced endpoint, each test of which writes to a file that its body ran."""
    pytest.importorskip("openai", reason="the extra openai is not installed")
    (alternating.path / "conftest.py").unlink()
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    (alternating.path / "prices.toml").write_text(PRICES)
    return alternating


def options(server, *more: str) -> tuple[str, ...]:
    return (
        "--llm-model=openai:stand-in",
        f"--llm-base-url={server.url}",
        "--llm-prices=prices.toml",
        *more,
    )


def prompts(server) -> list[str]:
    """The items that were requested from the server, in order."""
    matches = (re.search(r"(\w+) question (\d+)\?", json.dumps(body)) for body in server.bodies)
    return [f"{match[1]}-{int(match[2]):04d}" for match in matches if match is not None]


def test_one_stuck_request_keeps_no_other_answer_from_the_disk(endpoint):
    """Nor from being requested: the rest of the window goes round the one that hangs."""
    with serve(Script(replies={"law question 0?": ["hang"]})) as server:
        process = start(endpoint, *options(server))
        wait_until(endpoint, lambda: written(endpoint) == 59)
        kill(process)
        assert server.answered == 59
        spent = read_usage(endpoint.run_folder / "usage.jsonl")["openai:stand-in", "bench"]
        assert spent["prompt_tokens"] > 0
        server.script = Script()
        assert endpoint.run(*options(server, "--llm-resume")).ret == 0
        assert prompts(server)[60:] == ["law-0000"]
    assert endpoint.metrics()["answered"] == 60
    records = latest_records(endpoint.run_folder / "records.jsonl")
    assert len(records) == len({record.item for record in records}) == 60
    ((_, _, total),) = endpoint.document("run.json")["usage"]
    assert total["prompt_tokens"] > spent["prompt_tokens"]
    assert total["requests"] == 61  # the one that hung was sent twice


def test_answers_are_saved_while_the_body_of_a_test_runs(endpoint):
    """A body that takes its time (another model judges, say) is no time to lose answers in."""
    file = endpoint.path / "test_bench.py"
    body = "    assert answer.correct\n"
    file.write_text(file.read_text().replace(body, "    import time; time.sleep(600)\n"))
    # The first request goes alone: no other has been answered when its test's body begins.
    with serve(Script(latency=0.2)) as server:
        process = start(endpoint, *options(server, "--llm-max-concurrency=100"))
        wait_until(endpoint, lambda: written(endpoint) == 60)
        kill(process)
        file.write_text(file.read_text().replace("    import time; time.sleep(600)\n", body))
        assert endpoint.run(*options(server, "--llm-resume")).ret == 0
        assert len(server.arrivals) == 60
    assert endpoint.metrics()["answered"] == 60


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_killed_run_has_its_cost_and_resuming_adds_to_it(endpoint, workers):
    with serve(Script(latency=0.01)) as server:
        process = start(endpoint, *options(server, "-n", workers))
        wait_until(endpoint, lambda: written(endpoint) >= 20)
        kill(process)
        killed = load_run(endpoint.run_folder).manifest
        answers = list(load_run(endpoint.run_folder).records)
        ((_, _, counts),) = killed["usage"]
        # The last answers of each worker may have been written just before their usage.
        assert counts["prompt_tokens"] >= sum(answer.prompt_tokens for answer in answers[:-4])
        assert killed["prices"]["models"]["openai:stand-in"]["input"] == 1000.0
        result = endpoint.run(*options(server, "--llm-resume", "-n", workers))
        assert result.ret == 0
        ((_, _, total),) = endpoint.document("run.json")["usage"]
        result.stdout.fnmatch_lines([f"openai:stand-in (all sessions): {total['requests']} *"])
    assert total["requests"] >= 60
    tokens = sum(record.prompt_tokens for record in load_run(endpoint.run_folder).records)
    assert total["prompt_tokens"] >= tokens


def test_the_most_that_may_be_spent_is_of_all_sessions(endpoint):
    with serve(Script(latency=0.01)) as server:
        assert endpoint.run(*options(server, "--llm-max-cost=1.0")).ret == 1
        paid = len(server.arrivals)
        assert 0 < paid < 60
        result = endpoint.run(*options(server, "--llm-max-cost=1.0", "--llm-resume"))
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*--llm-max-cost 1 is used up*", "*and a higher limit*"])
        assert len(server.arrivals) == paid
        assert endpoint.run(*options(server, "--llm-max-cost=9", "--llm-resume")).ret == 0
    assert len(server.arrivals) == 60


BATCHES = """
import pytest
from pytest_llmeval import Response

class Batches:
    name = "batches"
    fingerprint = "f"
    asks = frozenset({"choices"})

    def answer(self, requests):
        requests = list(requests)
        with open("asked.txt", "a") as file:
            file.writelines(f"main {request.id}\\n" for request in requests)
        answers = [Response(one.id, logprobs=(-2.0, -1.0, -3.0, -4.0)) for one in requests]
        RETURN

@pytest.fixture(scope="session")
def model():
    return Batches()
"""


@pytest.mark.parametrize("given", ["yield from answers", "return answers", "return iter(answers)"])
def test_answers_are_on_disk_before_the_model_continues(alternating, given):
    """As hf: does, it computes a batch and gives the answers one by one, or all at once."""
    alternating.model(BATCHES.replace("RETURN", given))
    file = alternating.path / "test_bench.py"
    stop = "    import os\n    if answer.item.id == 'law-0000': os.kill(os.getpid(), 9)\n    "
    body = "    assert answer.correct\n"
    whole = file.read_text()
    file.write_text(whole.replace(body, stop + body.lstrip()))
    assert start(alternating).wait(timeout=60) == -signal.SIGKILL
    received = {record.item for record in latest_records(alternating.run_folder / "records.jsonl")}
    assert {f"art-{row:04d}" for row in range(20)} < received
    if given == "return answers":
        assert len(received) == 40
    file.write_text(whole)
    before = len(alternating.requested)
    assert alternating.run("--llm-resume").ret == 0
    assert not received & set(alternating.requested[before:])
    assert len(received) + len(alternating.requested[before:]) == 60


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_interrupted_resumed_run_counts_every_session(endpoint, workers):
    with serve(Script(latency=0.02)) as server:
        for session in range(3):
            process = start(endpoint, *options(server, "--llm-resume", "-n", workers))
            # The first when some answers are there, the others as soon as they have begun.
            wait_until(
                endpoint,
                lambda session=session: (
                    written(endpoint) >= 15
                    and len(endpoint.document("run.json").get("resumed", ())) == session
                ),
            )
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 2
            assert "INTERNALERROR" not in (endpoint.path / "killed.txt").read_text()
        assert endpoint.run(*options(server, "--llm-resume", "-n", workers)).ret == 0
        assert server.answered >= 60
    assert len(list((endpoint.path / "runs").glob("*/"))) == 1
    run = load_run(endpoint.run_folder)
    assert len(run.records) == len({record.item for record in run.records}) == 60
    assert endpoint.metrics()["answered"] == 60
    ((_, _, total),) = run.manifest["usage"]
    assert 60 <= total["requests"] <= 60 + 3 * 32
    # Every answer that is there was paid for, and few were paid for that are not.
    assert total["completion_tokens"] >= sum(record.completion_tokens for record in run.records)
    assert run.manifest["seconds"] > 0
