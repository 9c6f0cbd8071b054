"""Who asked to be told is told; what goes wrong with it is a sentence and nothing else."""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer

import pytest

from pytest_llmeval.reports.ci.webhooks import notify
from pytest_llmeval.reports.ci.webhooks import payload
from support.judged_runs import REGRESSION
from support.judged_runs import THRESHOLDS
from support.judged_runs import judged

BEFORE = {"art": "c" * 100}
AFTER = {"art": "c" * 40 + "w" * 60}
SECRET = "T0KEN"


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


@pytest.fixture
def server():
    """A server that keeps what is posted to it and answers the status in the path."""
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.headers["Content-Type"], json.loads(body)))
            status = int(self.path.rpartition("/")[2])
            self.send_response(status)
            if status in range(300, 400):
                self.send_header("Location", "/hook/200")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *arguments):
            pass

    made = HTTPServer(("127.0.0.1", 0), Handler)
    made.posted = posted
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_the_payload_names_what_failed_and_what_got_worse(tmp_path):
    run = judged(tmp_path, AFTER, BEFORE, THRESHOLDS + REGRESSION)
    value = json.loads(json.dumps(payload(run, "https://example.org/1"), allow_nan=False))
    assert (value["schema"], value["version"]) == ("pytest-llmeval/notification", 2)
    assert value["verdict"] == "fail"
    assert value["link"] == "https://example.org/1"
    assert [gate["id"] for gate in value["failed_gates"]] == [one.id for one in run.failed]
    margins = [gate["margin"] for gate in value["failed_gates"]]
    assert margins == sorted(margins)
    assert pytest.approx(-0.1) in margins
    assert [one["subject"] for one in value["regressed_subjects"]] == ["art"]
    assert value["gates"]["failed"] == len(run.failed)
    assert value["results"][0]["accuracy"] == 0.4
    assert "\n" not in value["text"]


def test_a_run_without_gates_or_baseline_has_a_payload(tmp_path):
    value = payload(judged(tmp_path, AFTER, thresholds=None))
    assert value["verdict"] == "not gated"
    assert value["failed_gates"] == value["regressed_subjects"] == []
    assert value["baseline"] is None


def test_a_command_reads_json(tmp_path):
    file = tmp_path / "told it.json"
    code = f"import sys; open({str(file)!r}, 'w').write(sys.stdin.read())"
    assert notify(python(code), {"verdict": "fail"}) is None
    assert json.loads(file.read_text()) == {"verdict": "fail"}


def test_no_shell_reads_the_command(tmp_path):
    file = tmp_path / "made"
    notify(f"echo x > {file}", {})
    notify(f"true ; touch {file}", {})
    assert not file.exists()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("no-such-command-here --x", "no-such-command-here: No such file or directory"),
        ("'", "the command cannot be split"),
        ("   ", "the command is empty"),
        (python("import sys; print('not\\ntoday'); sys.exit(3)"), "exit code 3: not today"),
        (python("import sys; sys.exit(1)"), "exit code 1"),
    ],
)
def test_a_command_that_fails_is_one_line(command, told):
    problem = notify(command, {})
    assert told in problem
    assert problem.startswith("--llm-notify failed: ")
    assert "\n" not in problem


def test_a_command_that_does_not_read_is_told_all_the_same():
    assert notify("true", {"text": "x" * 1_000_000}) is None


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    """The child keeps standard output open, so to wait for its end would be to hang."""
    file = tmp_path / "pid"
    code = (
        "import subprocess, sys, time;"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        f"open({str(file)!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    problem = notify(python(code), {}, timeout=5)
    assert "did not end within 5 s" in problem
    stat = f"/proc/{file.read_text()}/stat"
    for _ in range(100):
        try:
            with open(stat) as lines:
                if lines.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.1)
    pytest.fail("the grandchild lives")


def test_an_address_is_posted_to(server):
    address = f"http://127.0.0.1:{server.server_port}/hook/204"
    assert notify(address, {"verdict": "pass"}) is None
    assert server.posted == [("application/json", {"verdict": "pass"})]


def test_an_address_that_refuses_is_one_line_without_the_address(server):
    address = f"http://127.0.0.1:{server.server_port}/{SECRET}/500"
    problem = notify(address, {})
    assert "answered 500" in problem
    assert SECRET not in problem


@pytest.mark.parametrize(
    "address",
    [f"http://127.0.0.1:1/{SECRET}", f"http://[::bad/{SECRET}", f"https://127.0.0.1:x/{SECRET}"],
)
def test_an_address_that_cannot_be_reached_is_one_line_without_it(address):
    problem = notify(address, {}, timeout=5)
    assert problem.startswith("--llm-notify failed: the address cannot be reached")
    assert SECRET not in problem


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_moved_address_was_not_told(server, status):
    """Followed, the message would be lost on the way and the answer a good one."""
    problem = notify(
        f"http://127.0.0.1:{server.server_port}/{SECRET}/{status}", {"verdict": "pass"}
    )
    assert f"the address answered {status}" in problem
    assert SECRET not in problem
    assert len(server.posted) == 1


def test_an_address_that_drips_is_given_up():
    stop = threading.Event()

    def drip(listening):
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not stop.wait(0.1):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        problem = notify(f"http://127.0.0.1:{listening.getsockname()[1]}/", {}, timeout=1)
        stop.set()
        thread.join()
    assert problem == "--llm-notify failed: the address did not answer within 1 s"


def test_the_scheme_of_an_address_may_be_written_anyhow():
    problem = notify(f"HTTP://127.0.0.1:9/{SECRET}", {}, timeout=5)
    assert problem.startswith("--llm-notify failed: the address cannot be reached")
    assert SECRET not in problem
