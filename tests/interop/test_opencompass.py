"""Results of OpenCompass, with and without details."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.reading import read_log
from pytest_llmeval.runs import compare
from pytest_llmeval.runs.comparison import MismatchError
from support.foreign_logs import edit_json
from support.foreign_logs import sample_log
from support.foreign_tables import opencompass_log
from support.imported_runs import PLAIN
from support.imported_runs import imported
from support.imported_runs import outcomes
from support.imported_runs import refusal


def test_published_predictions_have_no_verdicts():
    text = refusal(sample_log("opencompass_lawbench", "1-2.json"))
    assert "holds predictions without verdicts" in text
    assert "replay" in text


@pytest.mark.parametrize("as_list", [False, True])
def test_names_and_outcomes(as_list, tmp_path):
    file = opencompass_log(tmp_path, [True, False, True], as_list=as_list)
    log = read_log(file, PLAIN)
    (benchmark,) = log.benchmarks
    assert (log.harness, log.model) == ("opencompass", "my-model")
    assert benchmark.name == "opencompass_law"
    assert outcomes(log, "opencompass_correct") == [
        Outcome.CORRECT,
        Outcome.WRONG,
        Outcome.CORRECT,
    ]
    answer = benchmark.answers[1]
    assert (answer.item, answer.gold, answer.text) == ("0001", "A", "It is A.")
    assert answer.scores["opencompass_correct"].answer == "A"
    assert any("no configuration" in note for note in log.notes)


def test_prompts_of_the_predictions_are_compared(tmp_path):
    files = [opencompass_log(tmp_path / side, [True, False]) for side in "ab"]
    for file in files:  # as written by evaluators with details of their own
        edit_json(file, lambda r: [r["details"][key].pop("prompt") for key in "01"])
    predictions = tmp_path / "b" / "predictions" / "my-model" / "law.json"
    edit_json(predictions, lambda p: p["1"].update(origin_prompt="Another?"))
    runs = [imported(file, tmp_path / f"run{number}") for number, file in enumerate(files)]
    with pytest.raises(MismatchError, match="requests"):
        compare(*runs)


def test_predictions_in_parts(tmp_path):
    file = opencompass_log(tmp_path, [True, False])
    whole = tmp_path / "predictions" / "my-model" / "law.json"
    whole.rename(whole.with_name("law_0.json"))
    edit_json(file, lambda r: [r["details"][key].pop("prompt") for key in "01"])
    with_parts = read_log(file, PLAIN).benchmarks[0].protocol["requests"]
    whole.with_name("law_0.json").unlink()
    assert with_parts != read_log(file, PLAIN).benchmarks[0].protocol["requests"]
    assert "no prompts" in " ".join(read_log(file, PLAIN).notes)


def test_an_answer_without_a_verdict_is_an_error(tmp_path):
    file = opencompass_log(tmp_path, [True, False])
    edit_json(file, lambda r: r["details"]["1"].pop("correct"))
    edit_json(file, lambda r: r.pop("accuracy"))
    assert outcomes(read_log(file, PLAIN), "opencompass_correct") == [
        Outcome.CORRECT,
        Outcome.ERROR,
    ]


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (
            lambda r: r.update(accuracy=90.0),
            "an accuracy of 50.0000 %, and the file reports 90.0000",
        ),
        (lambda r: r["details"].pop("1"), "details of 1 of the 2 predictions: it is not the whole"),
        (
            lambda r: [r["details"][key].pop("correct") for key in "01"],
            "opencompass_correct has no value for any item",
        ),
        (lambda r: r.pop("details"), "not a log that can be imported"),
    ],
)
def test_refusals(edit, line, tmp_path):
    file = opencompass_log(tmp_path, [True, False])
    edit_json(file, edit)
    assert line in refusal(file)


def test_facts_that_the_log_lacks(tmp_path):
    file = opencompass_log(tmp_path, [True, False])
    assert "--subject: answers of OpenCompass" in refusal(file, ImportOptions(subject="x"))
    moved = file.rename(tmp_path / "law.json")
    assert "does not name its model: add --model NAME" in refusal(moved)
    assert read_log(moved, ImportOptions(model="m")).model == "m"
