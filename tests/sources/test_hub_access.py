"""Without a network a single request is sent to the hub, and only its cache is read."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer

import pytest

from pytest_llmeval.core import DataError
from pytest_llmeval.core import ModelError
from pytest_llmeval.sources import hub as access
from pytest_llmeval.sources.hub import download
from pytest_llmeval.sources.hub import hub_access
from pytest_llmeval.sources.hub import load_rows
from pytest_llmeval.sources.hub import unreachable


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """An environment that does not forbid the hub, with an empty cache."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("huggingface_hub.constants", "datasets.config"):
        if name in sys.modules:  # which read the environment when they were imported
            monkeypatch.setattr(sys.modules[name], "HF_HUB_OFFLINE", False)
    unreachable.cache_clear()


class Silent:
    """A listening socket that answers nothing, and how many connections it was offered."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                self.connections.append(self.socket.accept()[0])
        except OSError:
            return


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    """The hub behind a network that loses everything."""
    made = Silent()
    monkeypatch.setenv("HF_ENDPOINT", made.address)
    constants = sys.modules.get("huggingface_hub.constants")
    if constants is not None:
        monkeypatch.setattr(constants, "ENDPOINT", made.address)
    quick = access.unreachable
    monkeypatch.setattr(access, "unreachable", lambda endpoint: quick(endpoint, 0.3))
    yield made
    made.socket.close()
    for connection in made.connections:
        connection.close()


@pytest.mark.parametrize("status", [200, 401, 404, 503])
def test_a_hub_that_answers_is_reached_whatever_it_answers(status):
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    assert unreachable(f"http://127.0.0.1:{server.server_port}") is None
    server.shutdown()
    server.server_close()


def test_a_refused_connection():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    assert "cannot be reached: [Errno" in unreachable(address)


def test_no_answer_in_time(silent):
    assert "timed out" in unreachable(silent.address, 0.2)


def test_a_name_that_takes_long_to_resolve(monkeypatch):
    waiting = threading.Event()
    monkeypatch.setattr(access, "_probe", lambda endpoint, timeout: waiting.wait(30))
    assert unreachable("http://slow.invalid", 0.1) == (
        "http://slow.invalid did not answer within 0.1 s"
    )
    waiting.set()


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_no_request_is_made_where_the_hub_is_forbidden(silent, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert unreachable(silent.address, 0.2) is None
    assert not silent.connections


def test_the_libraries_are_offline_within_the_context_alone(silent):
    constants = pytest.importorskip("huggingface_hub.constants")
    with hub_access() as reason:
        assert "timed out" in reason
        assert constants.HF_HUB_OFFLINE
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.parametrize("module", ["datasets", "huggingface_hub"])
def test_data_fail_after_one_request(silent, module):
    pytest.importorskip(module)
    load = partial(download, "llmeval/no-such-set", "data.tar", "abc")
    if module == "datasets":
        load = partial(load_rows, "llmeval/no-such-set", None, "test", "abc")
    with pytest.raises(DataError, match=r"loaded \(http://127.0.0.1:\d+ cannot be reached: timed"):
        load()
    with pytest.raises(DataError):
        download("llmeval/another", "data.tar", "abc")
    assert len(silent.connections) == 1


def test_weights_fail_after_one_request(silent):
    pytest.importorskip("transformers")
    from pytest_llmeval.models.hf.loading import load
    from pytest_llmeval.models.hf.spec import parse_spec

    with pytest.raises(ModelError, match=r"not in the hub's cache, and http://127\.0") as caught:
        load(parse_spec("llmeval/no-such-model"))
    assert "\n" not in str(caught.value)
    assert len(silent.connections) == 1
