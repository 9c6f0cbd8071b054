"""Proxies and certificates of the environment, with a proxy that logs what it forwards."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from support.endpoint_server import serve
from support.logging_proxy import serve_proxy

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
LOGIN = "team:proxy-secret-0815"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the machine has no effect."""
    for name in (*PROXY_VARIABLES, *map(str.lower, PROXY_VARIABLES)):
        monkeypatch.delenv(name, raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    file = tmp_path_factory.mktemp("tls") / "authority.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=stand-in", "-out", file, "-keyout", file),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    return file


@pytest.fixture
def tls(authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    return context


def errors(model, requests):
    return [response.error for response in model.answer(requests)]


@pytest.mark.parametrize("login", ["", LOGIN], ids=["open", "login"])
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_requests_go_through_the_proxy_of_the_environment(
    opened, make, monkeypatch, authority, tls, secure, login
):
    with serve(tls=tls if secure else None) as server, serve_proxy(login) as proxy:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        address = proxy.url.replace("//", f"//{login}@") if login else proxy.url
        monkeypatch.setenv("HTTPS_PROXY" if secure else "HTTP_PROXY", address)
        assert errors(opened(server), make(3)) == [None] * 3
        place = server.url.removeprefix("https://").removesuffix("/v1")
        target = f"CONNECT {place}" if secure else f"POST {server.url}/chat/completions"
        assert set(proxy.log) == {target}
        assert len(server.bodies) == 3
        # A proxy for the other scheme, and one for other hosts, are not used.
        other = "HTTP_PROXY" if secure else "HTTPS_PROXY"
        for changes in ({"NO_PROXY": "127.0.0.1"}, {"NO_PROXY": "", other: address}):
            monkeypatch.setenv("HTTPS_PROXY" if secure else "HTTP_PROXY", "")
            for name, value in changes.items():
                monkeypatch.setenv(name, value)
            before = len(proxy.log)
            assert errors(opened(server), make(1)) == [None]
            assert len(proxy.log) == before


def test_no_proxy_excludes_a_host(opened, make, monkeypatch):
    with serve() as server, serve_proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
        assert errors(opened(server), make(2)) == [None] * 2
        assert proxy.log == []
        monkeypatch.setenv("NO_PROXY", "example.org")
        assert errors(opened(server), make(1)) == [None]
        assert len(proxy.log) == 1


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_the_password_of_a_proxy_is_in_no_message(opened, make, monkeypatch, tls, secure):
    with serve(tls=tls if secure else None) as server, serve_proxy("team:another") as proxy:
        address = proxy.url.replace("//", f"//{LOGIN}@")
        monkeypatch.setenv("HTTPS_PROXY" if secure else "HTTP_PROXY", address)
        (error,) = errors(opened(server, max_retries=0), make(1))
    assert "the proxy needs a login" in error
    assert "set HTTPS_PROXY" in error
    assert "proxy-secret" not in error
    assert server.bodies == []


def test_a_certificate_of_an_unknown_authority_is_refused(opened, make, tls):
    with serve(tls=tls) as server:
        (error,) = errors(opened(server, max_retries=0), make(1))
    assert "certificate" in error.lower()
    assert "SSL_CERT_FILE" in error
    assert server.bodies == []


def test_ssl_cert_file_names_the_authority(opened, make, monkeypatch, authority, tls):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with serve(tls=tls) as server:
        assert errors(opened(server), make(2)) == [None] * 2
