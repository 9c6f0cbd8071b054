"""Shares of the options and confidence in the report, by the values that are compared."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_llmeval.core import Response
from pytest_llmeval.evaluation.planner import variants
from pytest_llmeval.reports.html import html_report
from pytest_llmeval.reports.html.data import report_data
from pytest_llmeval.scorers.likelihood import cloze
from support.report_runs import PROTOCOL
from support.report_runs import compared
from support.report_runs import only_result
from support.report_runs import planned
from support.report_runs import prompt_of
from support.report_runs import question
from support.report_runs import run_of
from support.report_runs import sources

CLOZE = replace(
    PROTOCOL,
    name="cloze",
    scorer="cloze",
    template=replace(PROTOCOL.template, choices=lambda item: item.options),
)


def cloze_run(tmp_path, options, *logprobs):
    """Items with these options, each with the answer that the scorer gives to its values."""
    records, prompts = [], {}
    fingerprint = variants(CLOZE)[0].fingerprint
    for number, values in enumerate(logprobs):
        item = replace(question(f"art-{number}"), options=options)
        score = cloze(item, Response(item.id, logprobs=values))
        prompt = prompt_of(item, CLOZE)
        records.append(
            replace(
                compared(item, True),
                scorer="cloze",
                protocol=fingerprint,
                outcome=score.outcome,
                answer=score.answer,
                logprobs=values,
                prompt_sha256=prompt.prompt.sha256,
            )
        )
        prompts["mmlu", fingerprint, item.id] = prompt
    run = run_of(tmp_path, [planned({"art": len(records)}, CLOZE)], records)
    return run, prompts


def test_shares_and_confidence_are_those_of_the_values_that_are_compared(tmp_path):
    """A short option has the highest log-likelihood, a long one the highest per character."""
    run, prompts = cloze_run(tmp_path, ("no", "certainly not"), (-4.0, -13.0))
    (result,) = report_data(sources(run, prompts=prompts))["results"]
    ((shown,),) = result["details"]
    (sample,) = shown["samples"]
    assert sample["answer"] == "B"
    assert sample["logprobs"] == [-4.0, -13.0]
    assert sample["scored"] == [-2.0, -1.0]
    share = 1 / (1 + math.exp(-1))
    assert result["calibration"]["confidence"] == pytest.approx(share)
    assert "log-likelihoods per character" in html_report(sources(run, prompts=prompts))


def test_without_the_texts_of_the_options_there_are_no_shares(tmp_path):
    run, _ = cloze_run(tmp_path, ("no", "certainly not"), (-4.0, -13.0))
    (result,) = report_data(sources(run))["results"]
    assert result["details"][0][0]["samples"][0]["scored"] == []
    assert result["calibration"] is None


def test_a_scorer_that_compares_something_else_has_no_shares(tmp_path):
    record = replace(compared(question("art-0"), True), answer="C")
    run = run_of(tmp_path, [planned({"art": 1})], [record])
    result = only_result(run)
    assert result["calibration"] is None
    assert result["details"][0][0]["samples"][0]["scored"] == []


def test_letters_are_compared_as_they_are(tmp_path):
    run = run_of(tmp_path, [planned({"art": 1})], [compared(question("art-0"), True)])
    result = only_result(run)
    assert result["calibration"]["confidence"] == pytest.approx(0.6)
    assert "scored" not in result["details"][0][0]["samples"][0]
