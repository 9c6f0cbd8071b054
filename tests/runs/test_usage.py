"""What a run took and cost: summed over sessions and shards, shared where it is counted together."""

from __future__ import annotations

from dataclasses import asdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import RunError
from pytest_llmeval.core.prices import Prices
from pytest_llmeval.core.usage import Price
from pytest_llmeval.core.usage import Usage
from pytest_llmeval.runs import merge
from pytest_llmeval.runs.usage import Cost
from pytest_llmeval.runs.usage import costs
from pytest_llmeval.runs.usage import resource_use
from pytest_llmeval.runs.usage import total_cost
from pytest_llmeval.storage.usage_log import UsageLog
from pytest_llmeval.storage.usage_log import merged_usage
from pytest_llmeval.storage.usage_log import read_usage
from pytest_llmeval.storage.usage_log import stored_prices
from pytest_llmeval.storage.usage_log import usage_rows
from pytest_llmeval.storage.usage_log import with_usage
from support.stored_runs import PLAIN
from support.stored_runs import planned
from support.stored_runs import records_of

EUR = Prices("EUR", {"openai:m": Price(1.0, 10.0, 0.5)})
USD = Prices("USD", {"openai:m": Price(2.0, 20.0)})
USED = asdict(Usage(requests=2, prompt_tokens=1_000_000, completion_tokens=100_000))
ITEMS = {"art-0": "c", "art-1": "w"}


def run_json(*protocols, **more):
    """The results of a run of one benchmark under these protocols, the rest reading the first's."""
    results = [planned(ITEMS, protocol).as_json() for protocol in protocols]
    return {"results": results, **more}


def test_the_last_prices_hold():
    first = with_usage({}, {("openai:m?api=chat", "mmlu"): USED}, EUR)
    assert total_cost(first) == pytest.approx(2.0)
    assert total_cost(first, USD) == pytest.approx(4.0)
    second = with_usage(first, {("openai:m?api=chat", "mmlu"): USED}, USD)
    assert stored_prices(second) == USD
    assert total_cost(second) == pytest.approx(4.0)
    # A session without prices, or that used nothing, takes none away.
    assert stored_prices(with_usage(second, {}, Prices())) == USD


def test_processes_and_sessions_add_up(tmp_path):
    path = tmp_path / "usage.jsonl"
    log, two = UsageLog(path), UsageLog(path)
    log.note([("openai:m", "mmlu", USED)])
    two.note([("openai:m", "mmlu", USED), ("openai:m", "gsm8k", asdict(Usage()))])
    log.note([("openai:m", "mmlu", {**USED, "requests": 3})])
    assert path.read_bytes().count(b"\n") == 4
    log.note([("openai:m", "mmlu", {**USED, "requests": 3})])  # nothing new, nothing written
    assert path.read_bytes().count(b"\n") == 4
    with path.open("ab") as file:
        file.write(b'["openai:m", "mmlu", {"requ')  # killed within a line
    rows = read_usage(path)
    assert rows["openai:m", "mmlu"]["requests"] == 5
    assert rows["openai:m", "mmlu"]["prompt_tokens"] == 2 * USED["prompt_tokens"]
    assert rows["openai:m", "gsm8k"] == asdict(Usage())
    two.note([("openai:m", "gsm8k", asdict(Usage(requests=1)))])
    assert read_usage(path)["openai:m", "gsm8k"]["requests"] == 1


@pytest.mark.parametrize(
    "line",
    ["{}", "[]", "nonsense", '["m", "b", 1]', '["m", "b", {"requests": "1"}]', "[" * 100_000],
)
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "usage.jsonl"
    path.write_text('["m", "b", {"requests": 1}]\n' + line + "\n")
    with pytest.raises(RunError, match=r"usage\.jsonl, line 2: damaged usage \("):
        read_usage(path)


def test_prices_of_other_models_are_not_kept():
    assert "prices" not in with_usage({}, {("openai:other", "mmlu"): USED}, EUR)
    assert "usage" not in with_usage({}, {}, EUR)
    assert total_cost({}) is None


def test_shards_have_a_price_only_in_one_money():
    euros, two = (with_usage({}, {("openai:m", "mmlu"): USED}, prices) for prices in (EUR, USD))
    assert total_cost(merged_usage([euros, euros, euros])) == pytest.approx(6.0)
    both = merged_usage([euros, two])
    assert total_cost(both) is None
    assert usage_rows(both)["openai:m", "mmlu"]["requests"] == 4


def test_a_merged_run_used_what_its_shards_used(make_run, tmp_path):
    shards = []
    for number, item in enumerate(ITEMS, 1):
        more = with_usage({"seconds": 1.5}, {("demo", "mmlu"): USED}, EUR)
        shard = make_run(f"s{number}", {item: "c"}, shard=[number, 2], selected=1, **more)
        (result,) = shard.manifest["results"]
        result |= {"subjects": {"art": 2}, "asked": 1}
        shards.append(shard)
    manifest = merge(shards, tmp_path / "m").read("run.json")
    assert usage_rows(manifest)["demo", "mmlu"]["requests"] == 4
    assert manifest["seconds"] == 3.0


def test_a_benchmark_under_one_protocol_has_its_cost():
    used = with_usage(run_json(PLAIN), {("openai:m", "mmlu"): USED}, EUR)
    key = ("openai:m", "mmlu", "letter")
    assert costs(used, [key, ("openai:other", "mmlu", "letter")]) == {key: Cost(2.0, ("letter",))}


def test_protocols_of_one_benchmark_share_its_cost():
    used = with_usage(
        run_json(PLAIN, replace(PLAIN, scorer="cloze")), {("openai:m", "mmlu"): USED}, EUR
    )
    keys = [("openai:m", "mmlu", scorer) for scorer in ("letter", "cloze")]
    assert costs(used, keys) == dict.fromkeys(keys, Cost(2.0, ("letter", "cloze")))


def test_another_scorer_of_the_same_answers_costs_nothing():
    manifest = run_json(PLAIN, replace(PLAIN, scorer="contains"))
    manifest["results"][1]["responses_of"] = 0
    used = with_usage(manifest, {("openai:m", "mmlu"): USED}, EUR)
    keys = [("openai:m", "mmlu", scorer) for scorer in ("letter", "contains")]
    assert costs(used, keys) == {keys[0]: Cost(2.0, ("letter",))}


def test_time_and_tokens_are_of_the_answers_that_have_them():
    first, second = records_of(planned(ITEMS), "demo", ITEMS)
    measured = replace(first, seconds=1.5, prompt_tokens=10, completion_tokens=2)
    other = replace(measured, scorer="contains", response_of="letter")
    used = resource_use([measured, second, other, replace(measured, item="art-2", left_out=True)])
    assert set(used) == {("demo", "mmlu", "letter")}
    assert asdict(used["demo", "mmlu", "letter"]) == {
        "seconds": 1.5,
        "timed": 1,
        "prompt_tokens": 10,
        "completion_tokens": 2,
    }
    assert resource_use([second])["demo", "mmlu", "letter"].seconds is None


@given(st.floats(1e-12, 1e9))
def test_an_amount_is_shown_with_two_digits_that_count(amount):
    shown = EUR.format_amount(amount).removesuffix(" EUR").replace(",", "")
    assert float(shown) == pytest.approx(amount, rel=0.06)


def test_amounts():
    shown = [EUR.format_amount(amount) for amount in (0, 0.0000123, 0.0123, 1.5, 1234.5)]
    assert shown == ["0.00 EUR", "0.000012 EUR", "0.0123 EUR", "1.5000 EUR", "1,234.50 EUR"]
