"""Interrupted runs: what was received is on disk and is paid for once, whatever ends a session."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from pytest_llmeval.runs import load_run
from pytest_llmeval.storage.records import latest_records
from pytest_llmeval.storage.usage_log import read_usage
from support.code_benchmark import BENCHMARK as CODE
from support.endpoint_server import Script
from support.endpoint_server import serve
from support.interrupting import start
from support.interrupting import wait_until
from support.interrupting import written

SIZES = {"art": 20, "law": 20, "zoo": 20}
PRICES = 'version = 1\n[models."openai:stand-in"]\ninput = 1000.0\noutput = 10000.0\n'


@pytest.fixture
def alternating(project):
    """Sixty items in three subjects, one of each after the other, as a shuffled file has them."""
    project.benchmark(**SIZES)
    file = project.path / "test_bench.py"
    text = file.read_text()
    rows = "        for subject, size in SIZES.items()\n        for row in range(size)\n"
    assert rows in text
    file.write_text(
        text.replace(
            rows, "        for row in range(max(SIZES.values()))\n        for subject in SIZES\n"
        )
    )
    return project


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


def kill(process) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def prompts(server) -> list[str]:
    """The items that the server was asked for, in order."""
    asked = (re.search(r"(\w+) question (\d+)\?", json.dumps(body)) for body in server.bodies)
    return [f"{match[1]}-{int(match[2]):04d}" for match in asked if match is not None]


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
def test_a_killed_run_tells_what_it_cost_and_resuming_adds_to_it(endpoint, workers):
    with serve(Script(latency=0.01)) as server:
        process = start(endpoint, *options(server, "-n", workers))
        wait_until(endpoint, lambda: written(endpoint) >= 20)
        kill(process)
        killed = load_run(endpoint.run_folder).manifest
        answers = list(load_run(endpoint.run_folder).records)
        ((_, _, counts),) = killed["usage"]
        # The last answer may have been written just before its usage.
        assert counts["prompt_tokens"] >= sum(one.prompt_tokens for one in answers[:-2])
        assert killed["prices"]["models"]["openai:stand-in"]["input"] == 1000.0
        result = endpoint.run(*options(server, "--llm-resume", "-n", workers))
        assert result.ret == 0
        ((_, _, total),) = endpoint.document("run.json")["usage"]
        result.stdout.fnmatch_lines([f"openai:stand-in (all sessions): {total['requests']} *"])
    assert total["requests"] >= 60
    tokens = sum(one.prompt_tokens for one in load_run(endpoint.run_folder).records)
    assert total["prompt_tokens"] >= tokens


def test_the_most_that_may_be_spent_is_of_all_sessions(endpoint):
    with serve(Script(latency=0.01)) as server:
        assert endpoint.run(*options(server, "--llm-max-cost=1.0")).ret == 1
        paid = len(server.arrivals)
        assert 0 < paid < 60
        result = endpoint.run(*options(server, "--llm-max-cost=1.0", "--llm-resume"))
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*--llm-max-cost 1 is used up*with a higher limit*"])
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
def test_what_a_model_has_computed_is_on_disk_before_it_goes_on(alternating, given):
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
    before = len(alternating.asked)
    assert alternating.run("--llm-resume").ret == 0
    assert not received & set(alternating.asked[before:])
    assert len(received) + len(alternating.asked[before:]) == 60


# SIGTERM ------------------------------------------------------------------------------------

SLOW = """
def one(self, request):
    import time
    time.sleep(0.02)
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0), seconds=0.02)
"""


def alone(process) -> bool:
    """Whether nothing is left of the session that a process was the leader of."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
@pytest.mark.parametrize(("workers", "to"), [("0", "process"), ("2", "process"), ("2", "group")])
def test_a_signal_ends_a_run_with_all_it_knows(alternating, workers, to, number):
    """A shell sends Ctrl-C to the group, `kill` and containers SIGTERM to the first process."""
    alternating.benchmark(art=100, law=100)
    alternating.model(one=SLOW)
    process = start(alternating, "-n", workers)
    wait_until(alternating, lambda: written(alternating) >= 20)
    (os.kill if to == "process" else os.killpg)(process.pid, number)
    assert process.wait(timeout=30) == 2
    wait_until(alternating, lambda: alone(process))
    output = (alternating.path / "killed.txt").read_text()
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output
    assert output.count("\n") < 40
    assert alternating.document("run.json")["status"] == "interrupted"
    # The records are those that run.json counts: no worker wrote after the run was summed up.
    answered = [one for one in load_run(alternating.run_folder).records if one.logprobs]
    assert 20 <= len(answered) < 200
    before = len(alternating.asked)
    assert alternating.run("--llm-resume").ret == 0
    assert not {one.item for one in answered} & set(alternating.asked[before:])
    assert alternating.metrics()["answered"] == 200


def test_sigterm_ends_a_test_that_catches_everything(project):
    project.benchmark(
        """
        import time

        @pytest.mark.parametrize("n", range(100))
        def test_stubborn(n):
            try:
                time.sleep(0.2)
            except BaseException:
                pass
        """
    )
    process = start(project)
    wait_until(project, lambda: written(project) >= 9)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=15) == 2


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_resumed_run_that_is_interrupted_at_once_counts_every_session(endpoint, workers):
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
    assert len(run.records) == len({one.item for one in run.records}) == 60
    assert endpoint.metrics()["answered"] == 60
    ((_, _, total),) = run.manifest["usage"]
    assert 60 <= total["requests"] <= 60 + 3 * 32
    # Every answer that is there was paid for, and few were paid for that are not.
    assert total["completion_tokens"] >= sum(one.completion_tokens for one in run.records)
    assert run.manifest["seconds"] > 0


# While tests are collected ------------------------------------------------------------------


SLOW_TO_COLLECT = """
import os, time
with open("collecting.txt", "a") as file:
    file.write(os.environ.get("PYTEST_XDIST_WORKER", "main") + "\\n")
if os.environ.get("PYTEST_XDIST_WORKER") != {quick!r}:
    time.sleep(60)
def test_ordinary(): pass
"""


def collecting(project) -> int:
    """The number of processes that have begun to collect the slow file."""
    file = project.path / "collecting.txt"
    return file.read_text().count("\n") if file.exists() else 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
@pytest.mark.parametrize(
    ("workers", "to", "slow"),
    [
        ("0", "process", "test_a.py"),  # before a marked test is known of, and after it
        ("0", "process", "test_z.py"),
        ("2", "process", "test_z.py"),
        ("2", "group", "test_a.py"),
        ("2", "group", "test_z.py"),
    ],
)
def test_a_signal_ends_the_collection_and_leaves_nothing(
    project, workers, to, slow, number, monkeypatch
):
    (project.path / slow).write_text(SLOW_TO_COLLECT.format(quick=""))
    (project.path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project.path / "tmp"))
    process = start(project, "-n", workers)
    wait_until(project, lambda: collecting(project) == (int(workers) or 1))
    (os.kill if to == "process" else os.killpg)(process.pid, number)
    assert process.wait(timeout=30) == 2
    wait_until(project, lambda: alone(process))
    output = (project.path / "killed.txt").read_text()
    assert "!!! KeyboardInterrupt" in output
    assert "no tests ran" in output
    assert "Traceback" not in output
    assert "llmeval ===" not in output
    assert not (project.path / "runs").exists()
    assert list((project.path / "tmp").glob("llmeval-*")) == []


def test_a_signal_while_another_worker_collects_leaves_no_run(project, monkeypatch):
    (project.path / "test_z.py").write_text(SLOW_TO_COLLECT.format(quick="gw0"))
    (project.path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project.path / "tmp"))
    process = start(project, "-n", "2")
    # The controller has opened a run for the worker that is ready.
    wait_until(project, lambda: any((project.path / "tmp").glob("llmeval-*/run")))
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=30) == 2
    wait_until(project, lambda: alone(process))
    output = (project.path / "killed.txt").read_text()
    assert "no answer was received: the run folder was removed" in output
    assert "--llm-resume" not in output
    assert list((project.path / "runs").glob("*/")) == []
    assert list((project.path / "tmp").glob("llmeval-*")) == []


def test_ctrl_c_is_no_mistake_of_the_command_line(project):
    """Before a marked test is collected there is none, which is a mistake in a whole collection."""
    (project.path / "conftest.py").unlink()
    (project.path / "test_a.py").write_text(SLOW_TO_COLLECT.format(quick=""))
    process = start(project, "--llm-model=demo")
    wait_until(project, lambda: collecting(project) == 1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 2
    assert "ERROR" not in (project.path / "killed.txt").read_text()


def test_a_test_that_does_not_exist_is_what_is_reported(project):
    (project.path / "conftest.py").unlink()
    result = project.run("test_bench.py::test_bnech", "--llm-model=demo")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: not found: *test_bnech*"])
    result.stderr.no_fnmatch_line("*--llm-model*")


ENDLESS = """
import pytest
from pytest_llmeval.testing import FakeModel

@pytest.fixture(scope="session")
def model():
    return FakeModel(lambda request: "    while True: pass")
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_sigterm_removes_sandboxes(project, workers, monkeypatch):
    (project.path / "test_bench.py").write_text(CODE)
    (project.path / "conftest.py").write_text(ENDLESS)
    (project.path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project.path / "tmp"))
    process = start(
        project, "--llm-sandbox=none", "--llm-i-trust-this-code", "-n", workers, "-p", "xdist"
    )
    # The response is there, and its program runs.
    wait_until(project, lambda: written(project) >= 1 and bool(running_below(project.path / "tmp")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 2
    wait_until(project, lambda: alone(process) and not running_below(project.path / "tmp"))
    assert list((project.path / "tmp").glob("llmeval-*")) == []


def running_below(folder) -> list[str]:
    """The processes that work in a folder, as candidates do in a sandbox's."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where = os.readlink(link)
        except OSError:
            continue  # it has ended
        if where.startswith(f"{folder}/"):
            found.append(link.parent.name)
    return found


def test_a_handler_of_the_program_stays(project):
    project.benchmark(
        """
        import signal

        def test_handler():
            assert signal.getsignal(signal.SIGTERM).__name__ == "mine"
        """
    )
    conftest = project.path / "conftest.py"
    own = "import signal\ndef mine(number, frame): pass\nsignal.signal(signal.SIGTERM, mine)\n"
    conftest.write_text(own + conftest.read_text())
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert project.run().ret == 0
        assert signal.getsignal(signal.SIGTERM).__name__ == "mine"
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_sigterm_is_handled_for_items_alone(project, workers):
    """Without any, and after the session, it does what it did."""
    handled = """
        import signal

        def test_handler():
            assert (signal.getsignal(signal.SIGTERM) is signal.SIG_DFL) is {}
        """
    project.benchmark(handled.format(False))
    assert project.run("-n", workers).ret == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    project.benchmark(handled.format(True))
    assert project.run("-n", workers, "-k", "handler").ret == 0


@pytest.mark.parametrize("option", ["llm_model = 'demo'", "llm_skip = true\nllm_model = 'demo'"])
def test_sigterm_during_the_collection_by_the_ini_file(project, option):
    """With ``llm_skip`` nothing is to be evaluated: SIGTERM does what it did."""
    (project.path / "conftest.py").unlink()
    (project.path / "pytest.ini").write_text("[pytest]\n" + option.replace("'", "") + "\n")
    (project.path / "test_a.py").write_text(SLOW_TO_COLLECT.format(quick=""))
    process = start(project)
    wait_until(project, lambda: collecting(project) == 1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == (-signal.SIGTERM if "skip" in option else 2)
