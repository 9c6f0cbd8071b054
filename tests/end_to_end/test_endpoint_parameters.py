"""Options for requests to endpoints: system prompt, body fields, headers, and no secret on disk."""

from __future__ import annotations

import json

import pytest

from pytest_llmeval.core import ConfigError
from support.endpoint_server import serve

KEY = "sk-very-secret-4711"
VALUE = "team-secret-0815"
SYSTEM = "You are terse."


@pytest.fixture
def endpoint(project, monkeypatch):
    """The project without a model fixture, with a key and the value of a header in the environment."""
    pytest.importorskip("openai", reason="the extra openai is not installed")
    (project.path / "conftest.py").unlink()
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("TEAM_TOKEN", VALUE)
    return project


def run(project, server, *arguments):
    return project.run("--llm-model=openai:stand-in", f"--llm-base-url={server.url}", *arguments)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_fields_and_headers_are_sent_and_reported_and_no_artefact_has_a_secret(endpoint, workers):
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    (endpoint.path / "body.json").write_text('{"chat_template_kwargs": {"enable_thinking": false}}')
    endpoint.benchmark(
        """
        def test_body(answer, model):
            raise ValueError(model)

        test_body = pytest.mark.llmeval(Benchmark("other", load, BENCH.protocols))(test_body)
        """
    )
    with serve() as server:
        result = run(
            endpoint,
            server,
            *("--llm-extra-body=body.json", "--llm-header=X-Team=env:TEAM_TOKEN", "-n", workers),
            *("--showlocals", "-vv", "--junitxml=junit.xml", "--log-level=DEBUG", "-rA"),
            *("--log-file=log.txt", "--log-file-level=DEBUG", "--llm-cache=kept.sqlite"),
            "--llm-report=html,markdown,json",
        )
    assert len(server.bodies) == 18
    assert all(b["chat_template_kwargs"] == {"enable_thinking": False} for b in server.bodies)
    assert all(f"x-team: {VALUE}" in lines.lower() for lines in server.headers)
    assert server.keys == {KEY}
    output = result.stdout.str() + result.stderr.str()
    line = (
        "openai:stand-in: requests were sent with chat_template_kwargs="
        '{"enable_thinking": false}, header X-Team'
    )
    assert line in " ".join(output.split())
    assert endpoint.document("run.json")["additions"] == {
        "openai:stand-in": {
            "body": {"chat_template_kwargs": {"enable_thinking": False}},
            "headers": ["X-Team"],
        }
    }
    files = [file for file in endpoint.path.rglob("*") if file.is_file()]
    wanted = {"junit.xml", "log.txt", "records.jsonl", "run.json", "report.html", "kept.sqlite"}
    assert wanted <= {file.name for file in files}
    for secret in (KEY, VALUE):
        assert secret not in output
        assert [file.name for file in files if secret.encode() in file.read_bytes()] == []
    report = next(file for file in files if file.name == "report.html").read_text(encoding="utf-8")
    assert "enable_thinking" in report


def test_a_run_with_other_fields_is_not_compared(endpoint):
    with serve() as server:
        assert run(endpoint, server).ret == 0
        first = endpoint.run_folder
        result = run(
            endpoint,
            server,
            *(f"--llm-baseline={first}", '--llm-extra-body={"reasoning_effort":"low"}'),
        )
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*asked by 'chat' against 'chat, with {\"reasoning_effort\":\"low\"}'*"]
    )
    assert len(server.bodies) == 9


def test_a_run_with_other_fields_is_not_resumed(endpoint):
    """Its run.json would describe requests that it did not send."""
    low, high = (f"--llm-extra-body={json.dumps({'verbosity': word})}" for word in ("low", "high"))
    with serve() as server:
        assert run(endpoint, server, low).ret == 0
        first = endpoint.run_folder
        assert run(endpoint, server, low, "--llm-resume").ret == 0
        assert (endpoint.run_folder, len(server.bodies)) == (first, 9)
        result = run(endpoint, server, high, "--llm-resume")
    result.stdout.fnmatch_lines(
        [f"nothing to resume: {first.name} has other body fields or headers; a new run*"]
    )
    assert endpoint.run_folder != first
    assert [body["verbosity"] for body in server.bodies] == ["low"] * 9 + ["high"] * 9


@pytest.mark.parametrize("source", ["text", "file", "ini"])
def test_a_system_prompt_is_part_of_the_protocol(endpoint, source):
    (endpoint.path / "terse.txt").write_text(f"{SYSTEM}\n")
    option = f"--llm-system={SYSTEM if source == 'text' else 'terse.txt'}"
    if source == "ini":
        (endpoint.path / "pytest.ini").write_text("[pytest]\nllm_system = terse.txt\n")
    protocols = []
    with serve() as server:
        for system in ([] if source == "ini" else [option], ["--llm-system="]):
            assert run(endpoint, server, "--llm-protocol=+chat+generate", *system).ret == 0
            protocols += endpoint.document("run.json")["results"][0]["ways"]
    message = {"role": "system", "content": SYSTEM}
    assert all(body["messages"][0] == message for body in server.bodies[:9])
    assert all(message not in body["messages"] for body in server.bodies[9:])
    first, second = protocols
    assert (first["protocol"]["system"], second["protocol"].get("system")) == (SYSTEM, None)
    assert first["fingerprint"] != second["fingerprint"]


def test_a_system_prompt_without_a_chat_is_refused(endpoint):
    with serve() as server:
        result = run(endpoint, server, f"--llm-system={SYSTEM}")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*--llm-system: no protocol of this run is a chat: add --llm-protocol +chat"]
    )
    assert server.bodies == []


def test_a_protocol_that_is_not_a_chat_is_named(endpoint):
    endpoint.benchmark(
        """
        @pytest.mark.llmeval(Benchmark("talk", load, BENCH.protocols), protocol="other+chat")
        def test_talk(answer):
            assert answer.correct
        """
    )
    with serve() as server:
        result = run(endpoint, server, f"--llm-system={SYSTEM}")
    assert result.ret == 0
    text = " ".join(result.stdout.str().split())
    assert "--llm-system: no effect on protocol 'plain' of bench, which is not a chat" in text
    assert sum(body["messages"][0]["role"] == "system" for body in server.bodies) == 9


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("extra-body={a", "--llm-extra-body: malformed JSON: Expecting property name"),
        ("extra-body=[1]", "--llm-extra-body: expected a JSON object"),
        ("extra-body=none.json", "none.json: no such file"),
        ("extra-body=torn.json", "torn.json: malformed JSON: *(line 2)"),
        ('extra-body={"n":2}', "extra-body: 'n' is not a field to add: use --llm-samples"),
        ("header=X-Team", "--llm-header X-Team: no value; write X-Team=env:VARIABLE"),
        ("header=X-Team=", "--llm-header X-Team: no value; write X-Team=env:VARIABLE"),
        ("header=X-Team=env:", "--llm-header X-Team: the value has to come from an environment"),
        (f"header=X-Team={VALUE}", "--llm-header X-Team: the value has to come from an env"),
        ("header=X-Team=env:UNSET_1", "header X-Team: no value: set the environment variable UNS"),
        ("system=none.txt", "none.txt: no such file"),
        ("system=empty.txt", "--llm-system: empty.txt: no text"),
    ],
)
def test_mistakes_are_one_line(endpoint, option, message):
    (endpoint.path / "torn.json").write_text('{"a": 1,\n"b"')
    (endpoint.path / "empty.txt").write_text(" \n")
    with serve() as server:
        result = run(endpoint, server, f"--llm-{option}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{message.replace('[', '[[]')}*"])
    assert VALUE not in result.stdout.str() + result.stderr.str()
    assert server.bodies == []
    assert not (endpoint.path / "runs").exists()


def test_options_for_endpoints_without_one_are_named(project):
    result = project.run('--llm-extra-body={"a":1}', "--llm-header=X-A=env:HOME")
    assert result.ret == 0
    for option in ("--llm-extra-body", "--llm-header"):
        result.stdout.fnmatch_lines([f"*{option}: no effect, because no model of this run is an*"])


def test_two_headers_of_one_name_are_refused():
    from pytest_llmeval.plugin.option_values import read_headers

    assert read_headers(["A=env:B", "C = env:D"], "x") == {"A": "B", "C": "D"}
    with pytest.raises(ConfigError, match="x a: the header is given twice"):
        read_headers(["A=env:B", "a=env:C"], "x")
