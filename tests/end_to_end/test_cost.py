"""The cost of a run on endpoints: estimated before, reported after, and never above the limit."""

from __future__ import annotations

import json

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.prices import load_prices
from support.endpoint_server import Script
from support.endpoint_server import serve

PRICES = """
version = 1
currency = "EUR"

[models."openai:stand-in"]
input = 1000.0
cached_input = 500.0
output = 10000.0
"""


@pytest.fixture
def endpoint(project, monkeypatch):
    pytest.importorskip("openai", reason="the extra openai is not installed")
    (project.path / "conftest.py").unlink()
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    (project.path / "prices.toml").write_text(PRICES)
    return project


def run(project, server, *arguments):
    return project.run(
        "--llm-model=openai:stand-in",
        f"--llm-base-url={server.url}",
        "--llm-prices=prices.toml",
        *arguments,
    )


def spent(project) -> float:
    """The cost of all tokens that the server counted, over all sessions of the run."""
    ((_, _, used),) = project.document("run.json")["usage"]
    fresh = used["prompt_tokens"] - used["cached_tokens"]
    return (fresh * 1000 + used["cached_tokens"] * 500 + used["completion_tokens"] * 10000) / 1e6


def test_the_cost_is_printed(endpoint):
    with serve() as server:
        result = run(endpoint, server)
    assert result.ret == 0
    assert spent(endpoint) > 0
    result.stdout.fnmatch_lines(["openai:stand-in: 9 requests*", f"*; {spent(endpoint):.4f} EUR"])
    assert endpoint.document("run.json")["seconds"] > 0


def test_the_cost_is_in_the_reports(endpoint):
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    with serve() as server:
        assert run(endpoint, server, "--llm-report=html,markdown").ret == 0
        money = f"{spent(endpoint):.4f} EUR"
        prices = endpoint.document("run.json")["prices"]
        assert prices["models"]["openai:stand-in"]["cached_input"] == 500.0
        folder = endpoint.run_folder
        assert f" {money} |" in (folder / "report.md").read_text()
        assert f'<td class="num">{money}</td><td>for the answers</td>' in (
            folder / "report.html"
        ).read_text(encoding="utf-8")


def test_several_benchmarks_are_distinguished(endpoint):
    endpoint.benchmark(
        """
        @pytest.mark.llmeval(Benchmark("second", load, BENCH.protocols))
        def test_second(answer):
            assert answer.correct
        """
    )
    with serve() as server:
        result = run(endpoint, server)
    result.stdout.fnmatch_lines(
        ["openai:stand-in: 18 requests*", "  bench: 9 requests*", "  second: 9 requests*"]
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_stops_before_it_costs_more_and_goes_on_later(endpoint, workers):
    endpoint.benchmark(art=60, law=60)
    with serve(Script(latency=0.02)) as server:
        result = run(endpoint, server, "--llm-max-cost=1.0", "-n", workers)
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*--llm-max-cost 1 is used up*continue with --llm-resume*"])
        assert endpoint.document("run.json")["status"] == "interrupted"
        assert 0.5 < spent(endpoint) <= 1.0
        # What was paid for is on disk, also of chunks that were begun ahead.
        records = (endpoint.run_folder / "records.jsonl").read_text().splitlines()
        answered = {record["item"] for record in map(json.loads, records) if "text" in record}
        if workers == "0":
            assert json.loads(records[0])["item"] == "art-0000"  # what is needed first goes first
        paid = len(server.arrivals)
        assert len(answered) == paid < 120
        assert run(endpoint, server, "--llm-resume", "-n", workers).ret == 0
        assert len(server.arrivals) == 120
    assert endpoint.metrics()["errors"] == 0
    assert len(list((endpoint.path / "runs").glob("*/"))) == 1


def test_a_limit_without_a_price_is_refused(endpoint):
    (endpoint.path / "prices.toml").write_text(
        'version = 1\n[models."openai:other"]\ninput=1\noutput=1'
    )
    with serve() as server:
        result = run(endpoint, server, "--llm-max-cost=1.0")
        assert result.ret == 4
        assert len(server.arrivals) == 0
    (line,) = [line for line in result.errlines if line]
    assert "openai:stand-in: --llm-max-cost needs its price" in line


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_dry_run_reports_the_cost_without_requests(endpoint, workers):
    with serve() as server:
        result = run(endpoint, server, "--llm-dry-run", "-n", workers, "--llm-samples=3")
        assert len(server.arrivals) == 0
    assert result.ret == 0
    assert not (endpoint.path / "runs").exists()
    result.stdout.fnmatch_lines(
        [
            "first prompt of bench?choice?, art-0000:",
            "art question 0?",
            # 27 prompts of 15 characters, 16 tokens of answer each
            "model openai:stand-in",
            "bench?choice?*9*27*~122*<=432*<=4.4420 EUR*",
            "total: at most about 4.4420 EUR*",
            "dry run: no request was sent*",
        ]
    )


def test_a_dry_run_needs_no_model(project):
    (project.path / "conftest.py").unlink()
    result = project.run("--llm-dry-run")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["model model", "bench?letter?*9*9*~41*<=0*-*"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "version: *"),
        ("version = 2\nmodels = {}", "version: *"),
        ('version = 1\n[models."m"]\ninput = 1', "models.m.output: *"),
        ('version = 1\n[models."m"]\ninput = -1\noutput = 1', "models.m.input: -1 is negative*"),
        (
            'version = 1\n[models."m"]\ninput = 1\noutput = 1\ninputt = 1',
            "models.m.inputt: unknown key*'input'*",
        ),
        ("version = 1\ncurency = 'EUR'\n[models]", "curency: unknown key*'currency'*"),
        ('version = 1\n[models."openai:m?api=chat"]\ninput = 1\noutput = 1', "*'?'*"),
        ("version = ", "line 1*"),
    ],
)
def test_a_mistake_in_the_price_table_is_one_line(tmp_path, text, message):
    from fnmatch import fnmatch

    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_prices(file)
    assert "\n" not in str(caught.value)
    assert fnmatch(str(caught.value), f"{file}: {message}"), str(caught.value)


def test_a_missing_price_table_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.toml: no such price table$"):
        load_prices(tmp_path / "nowhere.toml")
