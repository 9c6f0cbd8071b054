"""The data of the HTML report: the same as in every other report."""

from __future__ import annotations

from dataclasses import asdict
from dataclasses import replace

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.metrics import summarize
from pytest_llmeval.reports.html import html_report
from pytest_llmeval.reports.html import load_sources
from pytest_llmeval.reports.html.data import report_data
from pytest_llmeval.runs import compare
from support.report_runs import PROTOCOL
from support.report_runs import compared
from support.report_runs import graded
from support.report_runs import only_result
from support.report_runs import planned
from support.report_runs import prompt_of
from support.report_runs import question
from support.report_runs import run_of
from support.report_runs import sources
from support.report_runs import store
from support.report_runs import written

TOKENS = {"requests": 2, "prompt_tokens": 10**6, "completion_tokens": 10**5, "cached_tokens": 0}


def test_numbers_are_those_of_metrics_json_and_items_add_up_to_them(tmp_path):
    records = [compared(question(f"art-{n}"), n % 3 == 0) for n in range(30)]
    records[1] = replace(records[1], outcome=Outcome.ERROR, error="no answer", logprobs=())
    records[2] = replace(records[2], outcome=Outcome.UNPARSED, answer=None)
    run = run_of(tmp_path, [planned({"art": 40})], records)
    result = only_result(run)
    assert result["numbers"] == summarize(run.results()[0])
    outcomes = result["items"]["outcome"]
    numbers = result["numbers"]
    assert {letter: outcomes.count(letter) for letter in "cwue"} == {
        "c": numbers["correct"],
        "w": numbers["wrong"],
        "u": numbers["unparsed"],
        "e": numbers["errors"],
    }
    assert result["outcomes"]["errors"] == [{"count": 1, "reason": "no answer", "example": "art-1"}]


def test_items_left_out_are_not_shown(tmp_path):
    records = [compared(question(f"art-{n}"), True) for n in range(3)]
    records[0] = replace(records[0], left_out=True)
    assert only_result(run_of(tmp_path, [planned({"art": 3})], records))["items"]["ids"] == [
        "art-1",
        "art-2",
    ]


def test_a_prompt_is_shown_as_it_was_sent_or_not_at_all(tmp_path):
    items = [question(f"art-{n}") for n in range(3)]
    records = [
        compared(items[0], True),
        compared(items[1], True, dropped_shots=1),
        compared(items[2], True, prompt_sha256="another prompt's"),
    ]
    key = records[0].protocol
    prompts = {("mmlu", key, item.id): prompt_of(item) for item in items}
    data = report_data(sources(run_of(tmp_path, [planned({"art": 3})], records), prompts=prompts))
    whole, short, other = (entry["prompt"] for entry in data["results"][0]["details"][0])
    shots = data["shots"]

    def text(prompt):
        examples = "".join(
            question + prompt["delimiter"] + answer + prompt["separator"]
            for question, answer in (shots[n] for n in prompt["shots"])
        )
        return prompt["description"] + examples + prompt["question"]

    assert text(whole) == prompt_of(items[0]).prompt.text
    assert text(short) == prompt_of(items[1]).prompt.without_last_shot().text
    assert other is None
    assert whole["choices"] == []


def test_gates_have_their_margins(tmp_path):
    run = graded(tmp_path, {"art": "c" * 8 + "w" * 2, "law": "w" * 6 + "c" * 4})
    thresholds = parse_thresholds(
        """
        version = 1
        [benchmarks.mmlu]
        accuracy = 0.55
        macro_accuracy = { max = 0.5 }
        max_errors = 2
        [benchmarks.mmlu.subjects.law]
        accuracy = { chance = true, confidence = 0.95 }
        [benchmarks.absent]
        accuracy = 0.5
        """
    )
    verdicts = judge(thresholds, run.results(), ["demo"], ["mmlu"])
    document = {
        "thresholds": "thresholds.toml",
        "verdict": "fail",
        "gates": [asdict(verdict) for verdict in verdicts],
    }
    data = report_data(sources(run, gates=document))
    margins = {gate["id"]: gate["margin"] for gate in data["gates"]}
    assert margins["mmlu::accuracy"] == pytest.approx(0.05)
    assert margins["mmlu::macro_accuracy"] == pytest.approx(-0.1)
    assert margins["mmlu::max_errors"] == 2
    assert margins["mmlu::subjects.law::accuracy"] is None  # two-sided
    assert margins["absent"] is None
    assert data["gates"][0]["id"] == "mmlu::macro_accuracy"  # what failed comes first
    assert data["verdict_words"] == "1 of 4 gates failed, 3 passed, 1 not run"


def test_a_run_without_gates_is_marked(tmp_path):
    data = report_data(sources(graded(tmp_path, {"art": "cw"})))
    assert (data["verdict"], data["verdict_words"]) == ("not gated", "No gate was judged")


def test_flips_and_the_baselines_answers(tmp_path):
    before = graded(tmp_path / "before", {"art": "ccw"})
    after = graded(tmp_path / "after", {"art": "wcc"})
    comparison = compare(before, after).as_json()
    items = only_result(after, comparison=comparison, baseline=before)["items"]
    assert items["flip"] == "w-r"
    assert (items["before"], items["before_outcome"]) == (["B", "B", "C"], "ccw")
    # A baseline file has outcomes only, or is not at hand any more.
    items = only_result(after, comparison=comparison)["items"]
    assert (items["flip"], items["before"], items["before_outcome"]) == ("w-r", [], "")
    assert only_result(after)["items"]["flip"] == ""


def test_differences_are_shown_where_a_comparison_has_no_verdict(tmp_path):
    before = graded(tmp_path / "before", {"art": "cc"})
    after = graded(tmp_path / "after", {"art": "wc"})
    after.manifest["results"][0]["data_hash"] = "other"
    run_comparison = compare(before, after, allow_mismatch=True)
    result = only_result(after, comparison=run_comparison.as_json())
    assert result["comparison"]["comparable"] is False
    assert result["comparison"]["differences"] == ["data: 0123abcd against other"]


def test_confidence_of_planted_answers(tmp_path):
    """Ten answers, each 0.9 sure, six right."""
    records = [compared(question(f"art-{n}"), n < 6, 0.9) for n in range(10)]
    curve = only_result(run_of(tmp_path, [planned({"art": 10})], records))["calibration"]
    assert curve["ece"] == pytest.approx(0.3)
    assert curve["items"] == 10


def test_generated_answers_have_no_calibration_but_endings_and_time(tmp_path):
    protocol = replace(PROTOCOL.with_generation(), scorer="choice")
    records = [
        written(question(f"art-{n}"), "B", True, protocol, finish_reason=reason, seconds=0.5)
        for n, reason in enumerate(["stop", "length", "stop"])
    ]
    result = only_result(run_of(tmp_path, [planned({"art": 3}, protocol)], records))
    assert result["calibration"] is None
    assert result["outcomes"]["finish_reasons"] == [["stop", 2], ["length", 1]]
    assert (result["used"]["seconds"], result["used"]["timed"]) == (1.5, 3)
    assert result["used"]["cost"] is None


def test_costs_are_shown_by_result_and_benchmark(tmp_path):
    run = graded(
        tmp_path,
        {"art": "cw"},
        usage=[["demo", "mmlu", TOKENS], ["demo", "other", TOKENS], ["free", "other", TOKENS]],
        prices={"currency": "EUR", "models": {"demo": {"input": 1.0, "output": 10.0}}},
        seconds=59.97,
    )
    data = report_data(sources(run))
    (result,) = data["results"]
    assert (result["used"]["cost"], result["used"]["together"]) == ("2.0000 EUR", [])
    assert [row["cost"] for row in data["usage"]] == ["2.0000 EUR", "2.0000 EUR", "–"]
    assert ["cost", "4.0000 EUR"] in data["facts"]
    assert ["took", "1 min 0 s"] in data["facts"]


def test_without_prices_there_is_no_cost(tmp_path):
    data = report_data(sources(graded(tmp_path, {"art": "cw"}, usage=[["demo", "mmlu", TOKENS]])))
    assert [row["cost"] for row in data["usage"]] == [None]
    assert "cost" not in dict(data["facts"])


def test_unparsed_answers_are_counted_by_reason(tmp_path):
    protocol = replace(PROTOCOL.with_generation(), scorer="choice")
    texts = [("Well, the", "length"), (" \n", "stop"), ("I cannot say.", "stop"), ("B", "stop")]
    records = [
        written(question(f"art-{n}"), text, False, protocol, finish_reason=reason)
        for n, (text, reason) in enumerate(texts)
    ]
    unread = [replace(record, outcome=Outcome.UNPARSED, answer=None) for record in records[:3]]
    run = run_of(tmp_path, [planned({"art": 4}, protocol)], [*unread, records[3]])
    assert only_result(run)["outcomes"]["unparsed"] == [
        ["cut off at the token limit", 1],
        ["nothing was written", 1],
        ["no answer in the text", 1],
    ]


def test_models_are_described_in_words(tmp_path):
    specs = ("hf:./checkpoint", "openai:m?api=chat", "replay:a.jsonl", "demo", "other")
    records = [compared(question("art-0"), True, model=spec) for spec in specs]
    run = run_of(tmp_path, [planned({"art": 1})], records)
    words = {model["name"]: model["words"] for model in report_data(sources(run))["models"]}
    assert words.pop("other") == ""
    assert len(set(words.values())) == 4
    assert all(words.values())
    mine = run_of(tmp_path, [planned({"art": 1})], records[:1], own_model=True)
    (model,) = report_data(sources(mine))["models"]
    assert model["words"].startswith("a custom model")


def test_weighted_scores_are_in_the_notes(tmp_path):
    run = graded(tmp_path / "run", {"art": "cw"})
    hybrid = {"benchmark": "mmlu", "name": "hybrid(a=0.5,b=0.5)", "value": 0.25, "interval": [0, 1]}
    folder = store(run, metrics={**run.metrics(), "hybrids": [hybrid]})
    assert report_data(load_sources(folder))["notes"] == [
        "mmlu: hybrid(a=0.5,b=0.5) = 0.2500, between 0.0000 and 1.0000 (95 %)"
    ]


def test_another_scorer_points_to_the_responses_it_scored(tmp_path):
    protocol = replace(PROTOCOL.with_generation(), scorer="choice")
    other = replace(protocol, scorer="simple_evals")
    items = [question(f"art-{n}") for n in range(3)]
    first = [written(item, f"It is B ({item.id})", True, protocol) for item in items]
    second = [written(item, "", False, other, response_of="choice", answer="D") for item in items]
    second = [replace(record, text=None) for record in second]
    results = [planned({"art": 3}, protocol), planned({"art": 3}, other, responses_of=0)]
    first_result, another = report_data(sources(run_of(tmp_path, results, [*first, *second])))[
        "results"
    ]
    assert (first_result["details_of"], another["details_of"]) == (0, 0)
    assert another["details"] is None
    (sample,) = first_result["details"][0][1]["samples"]
    assert sample["text"] == "It is B (art-1)"
    assert sample["also"] == {"simple_evals": ["wrong", "D"]}


def test_samples_are_counted_item_by_item(tmp_path):
    protocol = replace(PROTOCOL.with_generation(), scorer="choice", samples=3)
    records = [
        written(question(f"art-{n}"), "B", sample < n, protocol, sample=sample)
        for n in range(4)
        for sample in range(3)
    ]
    result = only_result(run_of(tmp_path, [planned({"art": 4}, protocol)], records))
    items = result["items"]
    assert (items["right"], items["samples"], items["outcome"]) == ([0, 1, 2, 3], [3] * 4, "wccc")
    assert [len(entry["samples"]) for entry in result["details"][0]] == [3] * 4


def test_a_lost_item_is_shown_with_the_protocol_of_the_others(tmp_path):
    """The model gives only text; the lost item is booked as if choices had been compared."""
    result = planned({"art": 2})
    text = replace(PROTOCOL.with_generation(), scorer="choice")
    lost = compared(question("art-0"), False, outcome=Outcome.ERROR, error="crashed", logprobs=())
    run = run_of(tmp_path, [result], [lost, written(question("art-1"), "B", True, text)])
    shown = only_result(run)
    assert shown["name"] == "mmlu[choice]"
    assert (shown["items"]["ids"], shown["items"]["outcome"]) == (["art-0", "art-1"], "ec")
    assert shown["outcomes"]["errors"] == [{"count": 1, "reason": "crashed", "example": "art-0"}]


def test_models_keep_their_items_apart(tmp_path):
    records = [
        compared(question(f"art-{n}"), right, model=model)
        for model, right in (("one", True), ("two", False))
        for n in range(2)
    ]
    data = report_data(sources(run_of(tmp_path, [planned({"art": 2})], records)))
    assert [
        (result["numbers"]["model"], result["items"]["outcome"]) for result in data["results"]
    ] == [
        ("one", "cc"),
        ("two", "ww"),
    ]
    assert [result["details_of"] for result in data["results"]] == [0, 1]


def test_other_measurements_are_taken_from_metrics_json(tmp_path):
    """An audit is not computed from records here."""
    run = graded(tmp_path / "run", {"art": "cw"})
    (metrics,) = run.metrics()["results"]
    audit = {"items": 2, "arms": [], "families": []}
    folder = store(run, metrics={"results": [metrics | {"audit": audit}]})
    (result,) = report_data(load_sources(folder))["results"]
    assert result["audit"] == audit


def test_an_unfinished_run_names_the_next_step(tmp_path):
    run = replace_status(graded(tmp_path, {"art": "cw"}), "interrupted")
    page = html_report(sources(run))
    assert "not finished (interrupted): the same command with --llm-resume continues it" in page


def replace_status(run, status):
    return replace(run, manifest={**run.manifest, "status": status})


def test_truncated_answers_come_with_the_option_that_helps(tmp_path):
    protocol = replace(PROTOCOL.with_generation(), scorer="choice")
    records = [
        written(question(f"art-{n}"), "B", True, protocol, finish_reason=reason)
        for n, reason in enumerate(["stop", "length", "stop"])
    ]
    page = html_report(sources(run_of(tmp_path, [planned({"art": 3}, protocol)], records)))
    assert "1 answer (33.3%) was cut off at the token limit: raise it with --llm-max-tokens" in page
