"""Endpoints end to end: which scorer, what a dead endpoint costs, and no key in any artefact."""

from __future__ import annotations

import json

import pytest

from support.endpoint_bodies import right_letter
from support.endpoint_server import Script
from support.endpoint_server import serve

KEY = "sk-very-secret-4711"


@pytest.fixture
def endpoint(project, monkeypatch):
    """The project without a model fixture, and a key in the environment."""
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
    items = [name for name in names if int(name[-2]) < sizes[name[:3]]]
    assert len(items) == 9
    return sum(right_letter(name) == "B" for name in items)


@pytest.mark.parametrize(("query", "scorer"), [("", "choice"), ("&choices=top_logprobs", "letter")])
def test_the_name_of_the_scorer_shows_how_letters_were_obtained(endpoint, query, scorer):
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
    result.stdout.fnmatch_lines(["*20 consecutive requests failed in the same way*401*"])
    assert len(server.arrivals) < 60


@pytest.mark.parametrize("accepted", [KEY, "another"])
def test_no_artefact_holds_the_key(endpoint, accepted):
    pytest.importorskip("jinja2", reason="the extra report is not installed")
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
            *("--llm-cache=kept.sqlite", "--llm-report=html,markdown,json"),
        )
    assert server.keys == {KEY}
    assert result.ret == 1
    assert KEY not in result.stdout.str() + result.stderr.str()
    files = [file for file in endpoint.path.rglob("*") if file.is_file()]
    wanted = {"junit.xml", "log.txt", "records.jsonl", "run.json", "report.html", "kept.sqlite"}
    assert wanted <= {file.name for file in files}
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


def usage(project) -> dict:
    ((model, benchmark, counts),) = project.document("run.json")["usage"]
    assert (model, benchmark) == ("openai:stand-in", project.metrics()["benchmark"])
    return counts


@pytest.mark.parametrize("workers", ["0", "2"])
def test_usage_is_reported_with_any_number_of_workers(endpoint, workers):
    with serve() as server:
        result = endpoint.run(
            "--llm-model=openai:stand-in", f"--llm-base-url={server.url}", "-n", workers
        )
    assert result.ret == 0
    used = usage(endpoint)
    assert used["requests"] == len(server.arrivals) == 9
    assert used["prompt_tokens"] > 0
    result.stdout.fnmatch_lines(["openai:stand-in: 9 requests (0 retries)*"])


def test_a_warm_cache_needs_no_request(endpoint):
    arguments = ("--llm-model=openai:stand-in", "--llm-cache=kept/responses.sqlite")
    with serve() as server:
        url = f"--llm-base-url={server.url}"
        assert endpoint.run(*arguments, url).ret == 0
        first = endpoint.metrics()
        assert endpoint.run(*arguments, url, "-n", "2").ret == 0
        assert len(server.arrivals) == 9
    assert endpoint.metrics() == first
    assert usage(endpoint)["from_cache"] == 9


def test_the_next_chunks_are_begun_before_this_one_has_ended(endpoint):
    """Three subjects are three chunks; all nine requests are in flight at once."""
    with serve(Script(latency=0.3)) as server:
        result = endpoint.run(
            "--llm-model=openai:stand-in",
            f"--llm-base-url={server.url}",
            "--llm-max-concurrency=9",
        )
    assert result.ret == 0
    assert server.most_at_once > 4  # more than the largest chunk has


def test_workers_share_the_limit_of_requests_in_flight(endpoint):
    endpoint.benchmark(art=40, law=40)
    with serve(Script(latency=0.05)) as server:
        result = endpoint.run(
            "--llm-model=openai:stand-in",
            f"--llm-base-url={server.url}",
            "--llm-max-concurrency=3",
            *("-n", "2"),
        )
    assert result.ret == 0
    assert server.most_at_once <= 3


def test_faults_change_no_outcome_and_resuming_requests_only_the_rest(endpoint):
    endpoint.benchmark(art=150)
    with serve() as server:
        assert run(endpoint, server, "", "--llm-runs=first").ret == 0
    (folder,) = (endpoint.path / "first").glob("*/")
    (undisturbed,) = json.loads((folder / "metrics.json").read_text())["results"]
    faults = {"429": 0.05, "429 after": 0.05, "500": 0.05, "reset": 0.02, "garbage": 0.01}
    with serve(Script(faults=faults, retry_after="0.05")) as server:
        url = f"--llm-base-url={server.url}"
        assert endpoint.run("--llm-model=openai:stand-in", url, "-x").ret == 0
        assert usage(endpoint)["retries"] > 0
        disturbed = endpoint.metrics()
        requested = len(server.arrivals)
        assert endpoint.run("--llm-model=openai:stand-in", url, "--llm-resume").ret == 0
        assert len(server.arrivals) == requested
    for metrics in (undisturbed, disturbed):
        metrics.pop("model")
    assert disturbed == undisturbed


def test_options_of_endpoints_do_not_hinder_other_models(endpoint):
    (endpoint.path / "answers.jsonl").write_text('{"item": "art-0000", "text": "B"}\n')
    with serve() as server:
        result = endpoint.run(
            "--llm-model=openai:stand-in",
            "--llm-model=replay:answers.jsonl",
            f"--llm-base-url={server.url}",
        )
    assert result.ret == 1  # the recording has one answer
    assert len(server.arrivals) == 9


def test_an_endpoint_that_does_not_echo_ends_the_run_before_anything_is_scored(endpoint):
    endpoint.benchmark(art=400)
    with serve(Script(echo="llama_cpp")) as server:
        result = run(endpoint, server, "&choices=echo")
    assert result.ret == 1
    reason = "choices=echo cannot be used: the server returned 1 token in place of the prompt's"
    result.stdout.fnmatch_lines([f"! model stand-in: {reason}: ','; use choices=top_logprobs, *"])
    result.assert_outcomes(errors=1)
    assert len(server.arrivals) == 1


def test_top_logprobs_and_echoes_are_not_compared(endpoint):
    with serve() as server:
        url = f"--llm-base-url={server.url}"
        spec = "--llm-model=openai:stand-in?choices={}".format
        assert endpoint.run(spec("top_logprobs"), url, "--llm-runs=old").ret == 0
        (baseline,) = (endpoint.path / "old").glob("*/")
        requested = len(server.arrivals)
        against = f"--llm-baseline={baseline}"
        result = endpoint.run(spec("echo"), url, against)
        assert result.ret == 4
        (line,) = [line for line in result.errlines if line]
        assert "asked by 'chat, top_logprobs' against 'completions, echo'" in line
        assert len(server.arrivals) == requested
        assert endpoint.run(spec("top_logprobs"), url, against).ret == 0


def test_the_cache_can_be_looked_at_and_emptied(endpoint):
    with serve() as server:
        endpoint.run(
            "--llm-model=openai:stand-in", f"--llm-base-url={server.url}", "--llm-cache=kept.sqlite"
        )
    llmeval = endpoint.pytester.run
    llmeval("llmeval", "cache", "info", "kept.sqlite").stdout.fnmatch_lines(
        ["kept.sqlite: 9 responses, *", "  model *: 9"]
    )
    pruned = llmeval("llmeval", "cache", "prune", "kept.sqlite")
    pruned.stdout.fnmatch_lines(["removed 9 responses*"])
    missing = llmeval("llmeval", "cache", "info", "nowhere")
    assert missing.ret == 4
    missing.stderr.fnmatch_lines(["llmeval: nowhere: no such response cache"])


def test_the_letters_of_an_endpoint_are_calibrated(endpoint):
    """By closed form: the stand-in's letter has 0.6 of 0.9, in what has no question, too."""
    with serve() as server:
        assert run(endpoint, server, "&choices=top_logprobs", "--llm-debias=contextual").ret == 0
        # The template shows no options, so that all subjects have the same three prompts.
        assert len(server.arrivals) == 9 + 3 * 3
    results = {result["scorer"]: result for result in endpoint.document("metrics.json")["results"]}
    assert results["letter"]["correct"] == right(endpoint)
    free = [right_letter(text) for text in ("N/A", "[MASK]", "")]

    def weight(letter, chosen_letter):
        priors = [0.6 if letter == letter_of_prompt else 0.1 for letter_of_prompt in free]
        return (0.6 if letter == chosen_letter else 0.1) / sum(priors)

    sizes = {"art": 2, "law": 3, "zoo": 4}
    names = [f"{subject} question {row}?" for subject, n in sizes.items() for row in range(n)]
    chosen = [max("ABCD", key=lambda x, n=name: weight(x, right_letter(n))) for name in names]
    assert results["letter+contextual"]["correct"] == chosen.count("B")
    assert results["letter+contextual"]["errors"] == 0


def chat(content, finish="stop", **more):
    return {"choices": [{"message": {"content": content, **more}, "finish_reason": finish}]}


def records_of(project):
    text = (project.run_folder / "records.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_filtered_and_refused_items_are_unparsed_and_counted(endpoint):
    """Twenty of them in a row, by status 400 or 200, end no run."""
    endpoint.benchmark(art=30, law=2)
    flagged = {"error": {"message": "The prompt was flagged", "code": "content_filter"}}
    refusal = chat(None, refusal="I can't say that it is B.")
    replies = {"art question": [[400, flagged]], "law question 1": [refusal]}
    endpoint.thresholds("[benchmarks.bench]\nrefused_rate = 0.5\nsubjects.law.refused_rate = 0.5")
    with serve(Script(replies=replies)) as server:
        result = run(endpoint, server)
    assert result.ret == 1
    metrics = endpoint.metrics()
    assert (metrics["unparsed"], metrics["errors"]) == (31, 0)
    assert (metrics["refused"], metrics["refused_rate"]) == (31, 31 / 32)
    gates = {gate["id"]: gate for gate in endpoint.document("gates.json")["gates"]}
    failed, passed = gates["bench::refused_rate"], gates["bench::subjects.law::refused_rate"]
    assert (failed["status"], failed["reason"]) == ("fail", "31 of 32 answers refused")
    assert (passed["status"], passed["measured"]) == ("pass", 0.5)
    by_reason = {}
    for record in records_of(endpoint):
        by_reason.setdefault(record["finish_reason"], []).append(record)
    assert len(by_reason["content_filter"]) == 30
    (refused,) = by_reason["refusal"]
    assert (refused["outcome"], refused["text"]) == ("unparsed", "I can't say that it is B.")
    result.stdout.fnmatch_lines(
        [
            "*[[]choice]: 30 of 32 replies were withheld by a content filter",
            "*[[]choice]: the model refused to answer in 1 of 32 replies",
        ]
    )


@pytest.mark.parametrize(
    ("finish", "advice"), [("stop", "--reasoning-parser"), ("length", "--llm-max-tokens")]
)
def test_reasoning_without_answers_is_explained_once(endpoint, finish, advice):
    thought = chat(None, finish, reasoning_content="The options are B or C; B it is.")
    with serve(Script(replies={"question": [thought]})) as server:
        result = run(endpoint, server)
    assert endpoint.metrics()["unparsed"] == 9
    shown = endpoint.pytester.run("llmeval", "show", str(endpoint.run_folder))
    for lines in (result.outlines, shown.outlines):
        text = " ".join(" ".join(lines).split())  # lines are wrapped
        assert text.count("all 9 replies have reasoning and no answer") == 1
        assert advice in text


def test_letters_behind_blank_lines_are_read(endpoint):
    """By a server that ends thoughts and answers at stop strings."""
    with serve(Script(reasoning="Both look right.\n\nBut")) as server:
        assert run(endpoint, server).ret == 0
    metrics = endpoint.metrics()
    assert (metrics["unparsed"], metrics["correct"]) == (0, right(endpoint))
    assert all(record["reasoning"] == "Both look right.\n\nBut" for record in records_of(endpoint))


def test_a_refused_temperature_names_the_option(endpoint):
    endpoint.benchmark(art=40)
    message = "Unsupported value: 'temperature' does not support 0 with this model."
    refused = {"error": {"message": message, "param": "temperature", "code": "unsupported_value"}}
    script = Script(refuses={"temperature": (400, refused)}, accepts={"temperature": 1.0})
    with serve(script) as server:
        result = run(endpoint, server)
        assert result.ret == 1
        assert len(server.arrivals) < 60
        result.stdout.fnmatch_lines(["*unsupported_value*; use --llm-temperature 1*"])
        assert run(endpoint, server, "", "--llm-temperature=1").ret == 0
    assert endpoint.metrics()["errors"] == 0


def test_replies_of_several_models_are_reported_at_the_end(endpoint):
    other = {**chat("B"), "model": "a-smaller-one"}
    with serve(Script(replies={"art question 0": [other]})) as server:
        result = run(endpoint, server)
    result.stdout.fnmatch_lines(["*replies came from several models (a-smaller-one, stand-in)*"])
