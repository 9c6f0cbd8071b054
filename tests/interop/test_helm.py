"""Run folders of HELM: splits, perturbations, trials, metrics, and what is refused."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.reading import read_log
from pytest_llmeval.runs import compare
from pytest_llmeval.runs.comparison import MismatchError
from support.foreign_logs import edit_json
from support.foreign_logs import helm_log
from support.foreign_logs import sample_log
from support.imported_runs import imported
from support.imported_runs import outcomes
from support.imported_runs import refusal

EXACT = ImportOptions(scorers=("exact_match",))
STATE, STATS = "scenario_state.json", "per_instance_stats.json"


def test_recorded_numbers(tmp_path):
    """One of nine on the split test; the tenth instance is of another split."""
    folder = sample_log("helm_mmlu_gpt2")
    options = ImportOptions(scorers=("exact_match",), selection_is_benchmark=True)
    run = imported(folder, tmp_path / "run", options)
    (result,) = run.results()
    assert result.name == "helm_mmlu[helm_exact_match]"
    assert (result.counts.correct, result.counts.answered) == (1, 9)
    assert result.accuracy == pytest.approx(0.1111, abs=1e-4)
    assert set(result.subjects) == {"philosophy"}
    assert result.chance == 0.25
    assert run.manifest["models"] == ["openai/gpt2"]
    assert "left out: 1 of the answers, of splits other than test" in run.manifest["notes"]


def test_the_recorded_log_was_limited():
    text = refusal(sample_log("helm_mmlu_gpt2"), EXACT)
    assert "max_eval_instances 10 selected the items, and the log has no size of the whole" in text


def test_names_and_outcomes(tmp_path):
    log = read_log(helm_log(tmp_path / "run", [1, 0, "error"]), EXACT)
    (benchmark,) = log.benchmarks
    assert (log.harness, log.version, log.model) == ("helm", "", "org/model")
    assert benchmark.name == "helm_mmlu"
    assert benchmark.protocol["shots"] == 5
    assert outcomes(log, "helm_exact_match") == [Outcome.CORRECT, Outcome.WRONG, Outcome.ERROR]
    assert benchmark.answers[0].gold == "yes"
    assert benchmark.answers[2].scores["helm_exact_match"].error == "out of quota"


def test_a_text_that_is_no_option_is_unparsed(tmp_path):
    folder = helm_log(tmp_path / "run", [0])
    edit_json(
        folder / STATE,
        lambda s: s["request_states"][0]["result"].update(completions=[{"text": " I"}]),
    )
    assert outcomes(read_log(folder, EXACT), "helm_exact_match") == [Outcome.UNPARSED]


def test_an_instance_without_statistics_is_an_error(tmp_path):
    folder = helm_log(tmp_path / "run", [1, 0])
    edit_json(folder / STATS, list.pop)
    (folder / "stats.json").unlink()
    assert outcomes(read_log(folder, EXACT), "helm_exact_match") == [Outcome.CORRECT, Outcome.ERROR]


def test_other_splits_and_perturbations_are_left_out(tmp_path):
    folder = helm_log(tmp_path / "run", [1, 0, 1, 1])

    def change(state):
        state["request_states"][2]["instance"]["split"] = "valid"
        state["request_states"][3]["instance"]["perturbation"] = {"name": "typos"}

    edit_json(folder / STATE, change)
    (folder / "stats.json").unlink()
    log = read_log(folder, EXACT)
    assert len(log.benchmarks[0].answers) == 2
    assert len(log.notes) == 2


def test_trials_are_samples(tmp_path):
    log = read_log(helm_log(tmp_path / "run", [1, 0], trials=3), EXACT)
    assert log.benchmarks[0].samples == 3


def test_the_user_chooses_the_metric(tmp_path):
    folder = helm_log(tmp_path / "run", [1, 0])
    assert "has 2 metrics: choose with --scorer (exact_match)" in refusal(folder, ImportOptions())
    assert "helm_num_references has values other than 0 and 1" in refusal(
        folder, ImportOptions(scorers=("num_references",))
    )


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (("run_spec", lambda s: s["adapter_spec"].update(max_train_instances=0)), "shots"),
        (("run_spec", lambda s: s["adapter_spec"].update(temperature=1.0)), "adapter.temperature"),
        (
            (
                "scenario_state",
                lambda s: s["request_states"][0]["request"].update(prompt="Other"),
            ),
            "requests",
        ),
        (
            (
                "scenario_state",
                lambda s: s["request_states"][0]["instance"]["references"][0].update(tags=[]),
            ),
            "data",
        ),
    ],
)
def test_what_is_compared(edit, field, tmp_path):
    name, change = edit
    folders = [helm_log(tmp_path / side, [1, 0]) for side in ("a", "b")]
    edit_json(folders[1] / f"{name}.json", change)
    with pytest.raises(MismatchError) as error:
        compare(*(imported(folder, tmp_path / f"run-{folder.name}", EXACT) for folder in folders))
    assert f"{field} " in str(error.value)


def test_refusals(tmp_path):
    folder = helm_log(tmp_path / "run", [1, 0])
    assert "--subject: the subject is the one of HELM's scenario" in refusal(
        folder, ImportOptions(subject="x")
    )
    edit_json(folder / STATS, lambda s: s[0]["stats"][0].update(sum=0))
    assert "exact_match has the mean 0.000000, and 0.500000 in stats.json" in refusal(folder, EXACT)
    (folder / STATS).unlink()
    assert "has no per_instance_stats.json: it is not a whole run of HELM" in refusal(folder, EXACT)
