"""Results of lighteval with details."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.reading import read_log
from pytest_llmeval.runs import compare
from pytest_llmeval.runs.comparison import MismatchError
from support.foreign_logs import edit_json
from support.foreign_logs import sample_log
from support.foreign_tables import lighteval_log
from support.imported_runs import PLAIN
from support.imported_runs import counts
from support.imported_runs import imported
from support.imported_runs import refusal

pytest.importorskip("pyarrow", reason="details of lighteval are parquet files")


def test_recorded_numbers(tmp_path):
    run = imported(sample_log("lighteval"), tmp_path / "run")
    assert counts(run) == {"lighteval_acc": (7, 24, 0, 0)}
    (result,) = run.results()
    assert (result.name, result.chance) == ("lighteval_arc24[lighteval_acc]", 0.25)
    assert result.complete
    assert run.manifest["models"] == ["dummy"]
    assert run.manifest["started"].startswith("2026-11-30T21:12:36")


def test_parts_of_a_task_are_its_subjects(tmp_path):
    file = lighteval_log(tmp_path, {"mmlu:law|5": [1, 0], "mmlu:art|5": [1], "arc|0": [0]})
    first, second = read_log(file, PLAIN).benchmarks
    assert (first.name, second.name) == ("lighteval_mmlu", "lighteval_arc")
    assert first.sizes == {"law": 2, "art": 1}
    items = {answer.item: answer.scores["lighteval_acc"].outcome for answer in first.answers}
    assert items == {
        "law-0": Outcome.CORRECT,
        "law-1": Outcome.WRONG,
        "art-0": Outcome.CORRECT,
    }
    assert first.answers[0].gold == "yes"
    assert first.answers[0].logprobs == (-1.0, -2.0)
    assert "--name: the log has 2: mmlu, arc" in refusal(file, ImportOptions(name="x"))


def test_a_limited_log_without_the_size_of_the_whole(tmp_path):
    file = lighteval_log(tmp_path, {"arc|0": [1, 0]}, max_samples=2)
    assert "max_samples 2 selected the items, and the log has no size" in refusal(file)
    whole = read_log(file, ImportOptions(selection_is_benchmark=True))
    assert whole.benchmarks[0].sizes == {"arc": 2}


def test_a_limited_log_with_the_size_of_the_whole(tmp_path):
    file = lighteval_log(tmp_path, {"arc|0": [1, 0]}, max_samples=2)
    edit_json(
        file,
        lambda r: r["config_tasks"]["arc|0"].update(original_num_docs=50, effective_num_docs=2),
    )
    (result,) = imported(file, tmp_path / "run").results()
    assert (result.counts.missing, result.sampled) == (48, False)


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda r: r["config_tasks"]["arc|0"].update(num_fewshots=5), "shots"),
        (lambda r: r["config_tasks"]["arc|0"].update(version=1, stop_sequence=["x"]), "config"),
        (
            lambda r: r["config_general"].update(model_config={"system_prompt": "Be brief."}),
            "system_prompt",
        ),
    ],
)
def test_what_is_compared(edit, field, tmp_path):
    first = lighteval_log(tmp_path / "a", {"arc|0": [1, 0]})
    second = lighteval_log(tmp_path / "b", {"arc|0": [1, 0]})
    edit_json(second, edit)
    with pytest.raises(MismatchError, match=field):
        compare(imported(first, tmp_path / "x"), imported(second, tmp_path / "y"))


def test_addresses_and_folders_are_not_compared(tmp_path):
    first = lighteval_log(tmp_path / "a", {"arc|0": [1, 0]})
    second = lighteval_log(tmp_path / "b", {"arc|0": [0, 0]})

    def elsewhere(results):
        config = results["config_tasks"]["arc|0"]
        config["hf_repo"] = "/elsewhere/x/data"
        config["metrics"][0]["sample_level_fn"] = "<Acc object at 0x7f00000001>"

    edit_json(second, elsewhere)
    assert not compare(imported(first, tmp_path / "x"), imported(second, tmp_path / "y")).mismatches


def test_refusals(tmp_path):
    file = lighteval_log(tmp_path, {"arc|0": [1, 0]})
    assert "--subject: the subjects of lighteval" in refusal(file, ImportOptions(subject="x"))
    edit_json(file, lambda r: r["results"]["arc|0"].update(acc=0.9))
    assert "acc of task arc|0 has the mean 0.500000 over its answers, and 0.900000" in refusal(file)
    edit_json(file, lambda r: r["config_tasks"]["arc|0"].update(effective_num_docs=9))
    assert "task arc|0 has 2 of 9 answers: it is not the whole log" in refusal(file)
    (details,) = tmp_path.rglob("*.parquet")
    details.write_bytes(b"x")
    assert "cannot be read" in refusal(file)
    details.unlink()
    assert "no answers of task arc|0" in refusal(file)
    file.rename(file.with_name("results_new.json"))
    assert "its name has no date" in refusal(tmp_path)


def test_fractions_are_refused(tmp_path):
    file = lighteval_log(tmp_path, {"arc|0": [0.5, 0.25]})
    assert "lighteval_acc has values other than 0 and 1" in refusal(file)


def test_without_pyarrow(tmp_path, monkeypatch):
    file = lighteval_log(tmp_path, {"arc|0": [1, 0]})
    monkeypatch.setattr("pytest_llmeval.interop.lighteval.find_spec", lambda name: None)
    text = refusal(file)
    assert "its details are parquet files" in text
    assert "[hub]" in text
