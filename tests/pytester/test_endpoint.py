"""Endpoints end to end: which scorer, what a dead endpoint costs, and no key in any artefact."""

from __future__ import annotations

import json

import pytest
from endpoint_server import Script
from endpoint_server import right_letter
from endpoint_server import serve

KEY = "sk-very-secret-4711"


@pytest.fixture
def endpoint(project, monkeypatch):
    """The project without a model of its own, and a key in the environment."""
    pytest.importorskip("openai", reason="the extra openai is not installed")
    (project.path / "conftest.py").unlink()
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return project


def run(project, server, query="", *arguments):
    spec = f"openai:stand-in?base_url={server.url}{query}"
    return project.run("--llm-model", spec, *arguments)


def right(project):
    """How many of the nine the stand-in answers with B, the gold letter."""
    names = [f"{subject} question {row}?" for subject in ("art", "law", "zoo") for row in range(4)]
    sizes = {"art": 2, "law": 3, "zoo": 4}
    asked = [name for name in names if int(name[-2]) < sizes[name[:3]]]
    assert len(asked) == 9
    return sum(right_letter(name) == "B" for name in asked)


@pytest.mark.parametrize(("query", "scorer"), [("", "choice"), ("&choices=top_logprobs", "letter")])
def test_how_the_endpoint_is_asked_shows_in_the_scorer(endpoint, query, scorer):
    with serve() as server:
        assert run(endpoint, server, query).ret == 0
    metrics = endpoint.metrics()
    assert (metrics["scorer"], metrics["correct"], metrics["errors"]) == (
        scorer,
        right(endpoint),
        0,
    )
    assert len(server.arrivals) == 9


def test_an_endpoint_that_refuses_everything_ends_the_run_soon(endpoint):
    endpoint.benchmark(art=400)
    with serve(Script(key="another")) as server:
        result = run(endpoint, server)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*20 requests in a row failed in the same way*401*"])
    assert len(server.arrivals) < 60


@pytest.mark.parametrize("accepted", [KEY, "another"])
def test_no_artefact_holds_the_key(endpoint, accepted):
    endpoint.benchmark(
        """
        def test_body(answer, model):
            raise ValueError(model)

        test_body = pytest.mark.llmeval(Benchmark("other", load, BENCH.protocols))(test_body)
        """,
        art=30,
    )
    with serve(Script(key=accepted)) as server:
        result = run(
            endpoint,
            server,
            "",
            *("--showlocals", "-vv", "--junitxml=junit.xml", "--log-level=DEBUG"),
            *("--log-file=log.txt", "--log-file-level=DEBUG", "-rA"),
        )
    assert server.keys == {KEY}
    assert result.ret == 1
    assert KEY not in result.stdout.str() + result.stderr.str()
    files = [file for file in endpoint.path.rglob("*") if file.is_file()]
    assert {"junit.xml", "log.txt", "records.jsonl", "run.json"} <= {file.name for file in files}
    assert [file.name for file in files if KEY.encode() in file.read_bytes()] == []
    if accepted != KEY:
        assert "Incorrect API key provided: ***" in result.stdout.str()


def test_a_truncated_answer_and_a_lone_surrogate_reach_the_disk(endpoint):
    nothing = {"message": {"content": None, "reasoning_content": "so B"}, "finish_reason": "length"}
    torn = {"message": {"content": "B \ud83d"}, "finish_reason": "stop"}
    replies = {"art question 0": [{"choices": [nothing]}], "art question 1": [{"choices": [torn]}]}
    with serve(Script(replies=replies)) as server:
        assert run(endpoint, server).ret == 0
    lines = (endpoint.run_folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = {record["item"]: record for record in map(json.loads, lines)}
    empty, odd = records["art-0000"], records["art-0001"]
    assert (empty["outcome"], empty["text"], empty["finish_reason"]) == ("unparsed", "", "length")
    assert (odd["outcome"], odd["text"]) == ("unparsed", "B ?")
    assert len(records) == 9
