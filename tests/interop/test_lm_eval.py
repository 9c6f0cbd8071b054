"""Logs of lm-evaluation-harness: names, outcomes, fingerprints, and what is refused."""

from __future__ import annotations

import json

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.reading import read_log
from pytest_llmeval.runs import compare
from pytest_llmeval.runs.comparison import MismatchError
from support.foreign_logs import edit_json
from support.foreign_logs import edit_lines
from support.foreign_logs import lm_eval_log
from support.foreign_logs import results_of
from support.foreign_logs import samples_of
from support.imported_runs import PLAIN
from support.imported_runs import counts
from support.imported_runs import imported
from support.imported_runs import outcomes
from support.imported_runs import refusal


def test_names_and_outcomes(tmp_path):
    log = read_log(lm_eval_log(tmp_path / "log", {"arc": [1.0, 0.0, 1]}), PLAIN)
    (benchmark,) = log.benchmarks
    assert (log.harness, log.version, log.model) == ("lm-eval", "0.4.13", "org/model")
    assert benchmark.name == "lmeval_arc"
    assert list(benchmark.scorers) == ["lmeval_acc"]
    assert [answer.item for answer in benchmark.answers] == ["arc-0000", "arc-0001", "arc-0002"]
    assert outcomes(log, "lmeval_acc") == [Outcome.CORRECT, Outcome.WRONG, Outcome.CORRECT]
    assert benchmark.answers[0].logprobs == (-1.5, -2.5, -3.5, -4.5)
    assert benchmark.chance == 0.25


def test_the_fallback_of_a_filter_is_unparsed(tmp_path):
    folder = lm_eval_log(
        tmp_path / "log",
        {"sums": [1, 0, 0]},
        metric="exact_match",
        filters=("strict", "last"),
        text=True,
        unparsed=[2],
    )
    log = read_log(folder, PLAIN)
    expected = [Outcome.CORRECT, Outcome.WRONG, Outcome.UNPARSED]
    assert outcomes(log, "lmeval_exact_match_strict") == expected
    (benchmark,) = log.benchmarks
    assert benchmark.answers[0].text == "so it is 7"
    assert benchmark.answers[0].scores["lmeval_exact_match_last"].answer == "7"


def test_another_fallback(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"sums": [0]}, metric="em", filters=("f",), text=True)
    edit_json(
        results_of(folder),
        lambda r: r["configs"]["sums"]["filter_list"][0]["filter"][0].update(fallback="7"),
    )
    assert outcomes(read_log(folder, PLAIN), "lmeval_em_f") == [Outcome.UNPARSED]


def test_a_missing_verdict_is_an_error(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"arc": [1, 0, 1]}, aggregation="other")
    edit_lines(samples_of(folder), lambda lines: lines[1].pop("acc"))
    log = read_log(folder, PLAIN)
    assert outcomes(log, "lmeval_acc") == [Outcome.CORRECT, Outcome.ERROR, Outcome.CORRECT]
    run = imported(folder, tmp_path / "run")
    assert counts(run) == {"lmeval_acc": (2, 2, 0, 1)}


def test_a_log_likelihood_that_is_not_a_number_is_an_error(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"arc": [1, 0]})
    edit_lines(
        samples_of(folder), lambda lines: lines[0]["resps"].__setitem__(0, [["nan", "False"]])
    )
    assert outcomes(read_log(folder, PLAIN), "lmeval_acc") == [Outcome.ERROR, Outcome.WRONG]


def test_equal_log_likelihoods_are_no_measurement(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"arc": [1, 0]})
    edit_lines(
        samples_of(folder),
        lambda lines: [line.update(resps=[[["-1.0", "False"]]] * 4) for line in lines],
    )
    (result,) = imported(folder, tmp_path / "run").results()
    assert not result.is_measurement


def test_fractions_are_left_out_or_refused(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"qa": [1, 0.25, 0]}, metric="f1", aggregation="other")
    text = refusal(folder)
    assert "no scorer with verdicts of 0 and 1: lmeval_f1 has values other than 0 and 1" in text
    assert "0.25 for item qa-0001" in text

    def add(lines):
        for line in lines:
            line["metrics"].append("exact")
            line["exact"] = 1

    edit_lines(samples_of(folder), add)
    edit_json(results_of(folder), lambda r: r["results"]["qa"].update({"exact,none": 1.0}))
    log = read_log(folder, PLAIN)
    assert list(log.benchmarks[0].scorers) == ["lmeval_exact"]
    assert any("lmeval_f1 is left out" in note for note in log.notes)
    assert "lmeval_f1 has values other" in refusal(folder, ImportOptions(scorers=("f1",)))
    assert "no scorer 'exat'; did you mean 'exact'?" in refusal(
        folder, ImportOptions(scorers=("exat",))
    )
    assert list(read_log(folder, ImportOptions(scorers=("exact",))).benchmarks[0].scorers) == [
        "lmeval_exact"
    ]


def same_after(edit, tmp_path) -> None:
    first = lm_eval_log(tmp_path / "first", {"arc": [1, 0, 1]})
    second = lm_eval_log(tmp_path / "second", {"arc": [1, 0, 1]})
    edit(second)
    comparison = compare(imported(first, tmp_path / "a"), imported(second, tmp_path / "b"))
    assert not comparison.mismatches


@pytest.mark.parametrize(
    "edit",
    [
        lambda r: r["configs"]["arc"]["fewshot_config"].update(
            sampler="<function shots at 0x7fffeedd00>"
        ),
        lambda r: r["configs"]["arc"]["metadata"].update(pretrained="other", config_source="/x/y"),
        lambda r: r["configs"]["arc"]["dataset_kwargs"]["data_files"].update(
            test="/elsewhere/arc/test.jsonl"
        ),
        lambda r: r.update(model_name="other/model", date=1.0),
        lambda r: r["config"].update(model="vllm", batch_size="64"),
    ],
    ids=["address", "metadata", "path", "model", "backend"],
)
def test_machine_and_model_are_not_part_of_the_protocol(edit, tmp_path):
    same_after(lambda folder: edit_json(results_of(folder), edit), tmp_path)


def test_the_order_of_lines_does_not_matter(tmp_path):
    same_after(lambda folder: edit_lines(samples_of(folder), list.reverse), tmp_path)


def test_under_a_chat_template_prompts_are_not_compared(tmp_path):
    folders = [lm_eval_log(tmp_path / name, {"arc": [1, 0]}) for name in "ab"]
    for folder, mark in zip(folders, ("<|a|>", "<|b|>"), strict=True):
        edit_json(results_of(folder), lambda r, m=mark: r.update(chat_template=f"{m}template"))
        edit_lines(
            samples_of(folder),
            lambda lines, m=mark: [
                argument.update(arg_0=f"{m}{argument['arg_0']}")
                for line in lines
                for argument in line["arguments"].values()
            ],
        )
    log = read_log(folders[0], PLAIN)
    assert any("model's chat template" in note for note in log.notes)
    runs = [imported(folder, tmp_path / f"run-{folder.name}") for folder in folders]
    assert not compare(*runs).mismatches


def test_the_same_text_under_another_template_is_compared(tmp_path):
    """The template of the question is in the configuration, with and without a chat template."""
    folders = [lm_eval_log(tmp_path / name, {"arc": [1, 0]}) for name in "ab"]
    for folder in folders:
        edit_json(results_of(folder), lambda r: r.update(chat_template="t"))
    edit_json(results_of(folders[1]), lambda r: r["configs"]["arc"].update(doc_to_text="Q: {{q}}"))
    runs = [imported(folder, tmp_path / f"run-{folder.name}") for folder in folders]
    with pytest.raises(MismatchError, match=r"config\.doc_to_text"):
        compare(*runs)


# Groups --------------------------------------------------------------------------------------


def test_nested_groups_are_one_benchmark(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"a": [1], "b": [0], "c": [1]}, original=9)
    edit_json(
        results_of(folder),
        lambda r: r.update(group_subtasks={"all": ["left", "c"], "left": ["a", "b"]}),
    )
    (benchmark,) = read_log(folder, PLAIN).benchmarks
    assert benchmark.name == "lmeval_all"
    assert benchmark.sizes == {"a": 9, "b": 9, "c": 9}
    assert "description" in benchmark.protocol["subtasks"]["a"]
    assert benchmark.protocol["config"]["doc_to_text"].startswith("Question")


def test_a_group_of_unlike_tasks_is_not_one_benchmark(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"a": [1], "b": [0], "c": [1]})
    edit_json(
        results_of(folder),
        lambda r: r.update(group_subtasks={"all": ["left", "c"], "left": ["a", "b"]}),
    )
    edit_json(results_of(folder), lambda r: r["configs"]["c"].update(output_type="generate_until"))
    log = read_log(folder, PLAIN)
    assert [benchmark.name for benchmark in log.benchmarks] == ["lmeval_left", "lmeval_c"]
    assert "--name: the log has 2: left, c" in refusal(folder, ImportOptions(name="x"))


def test_a_group_that_contains_itself_is_refused(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"a": [1]})
    edit_json(results_of(folder), lambda r: r.update(group_subtasks={"g": ["g", "a"]}))
    assert "group g contains itself" in refusal(folder)


# Refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda lines: lines.pop(), "has 2 of the 3 documents that were evaluated"),
        (
            lambda lines: lines.append(lines[0]),
            "line 4: document 0 occurs twice under filter 'none'",
        ),
        (
            lambda lines: lines.append({**lines[0], "filter": "x", "target": "1"}),
            "line 4: document 0 has two different contents",
        ),
        (lambda lines: lines[0].pop("arguments"), "line 1: not a sample of lm-eval"),
        (
            lambda lines: lines[0].update(acc=0.0),
            "acc under filter none has the mean 0.333333, and",
        ),
    ],
    ids=["missing", "repeated", "contradictory", "damaged", "verdict"],
)
def test_doctored_samples(edit, line, tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"arc": [1, 0, 1]})
    edit_lines(samples_of(folder), edit)
    assert line in refusal(folder)


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda r: r.pop("n-samples"), "a version of lm-eval before 0.4.4"),
        (lambda r: r.update(model_name="/checkpoints/9000"), "add --model NAME"),
        (lambda r: r.update(model_name="C:\\models\\x"), "add --model NAME"),
        (lambda r: r.update(model_name=""), "does not name its model: add --model NAME"),
        (lambda r: r.pop("configs"), "not a log that can be imported"),
        (
            lambda r: r["configs"].pop("arc"),
            "damaged, or of another version of its format: no 'arc'",
        ),
        (
            lambda r: r.update(results={"arc": {"bypass,none": 999}}),
            "task arc was not scored (--predict_only)",
        ),
    ],
)
def test_refused_results(edit, line, tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"arc": [1, 0, 1]})
    edit_json(results_of(folder), edit)
    assert line in refusal(folder)


def test_answers_that_a_filter_joins_are_left_out(tmp_path):
    folder = lm_eval_log(
        tmp_path / "log", {"sums": [1, 0]}, metric="em", filters=("first", "vote"), text=True
    )

    def vote(results):
        results["configs"]["sums"]["repeats"] = 3
        results["configs"]["sums"]["filter_list"][1]["filter"][1]["function"] = "majority_vote"

    edit_json(results_of(folder), vote)
    log = read_log(folder, PLAIN)
    assert list(log.benchmarks[0].scorers) == ["lmeval_em_first"]
    assert any("joins the 3 answers" in note for note in log.notes)


def test_other_files(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"arc": [1, 0, 1]})
    assert "name the results_*.json next to it" in refusal(samples_of(folder))
    assert "no such log" in refusal(tmp_path / "nothing.json")
    assert "--subject: the subjects of lm-eval" in refusal(folder, ImportOptions(subject="x"))
    (tmp_path / "empty").mkdir()
    assert "has no log" in refusal(tmp_path / "empty")
    lm_eval_log(tmp_path / "log" / "other", {"arc": [1]})
    assert "has 2 logs" in refusal(folder)
    samples_of(folder).unlink()
    assert "no answers of task arc" in refusal(results_of(folder))
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert "not a log" in refusal(broken)
    broken.write_text(json.dumps([1]))
    assert "it holds no JSON object" in refusal(broken)


# Size ------------------------------------------------------------------------------------------


def test_a_limited_log_is_incomplete_and_no_sample(tmp_path):
    folder = lm_eval_log(tmp_path / "log", {"arc": [1, 0, 1]}, original=100)
    (result,) = imported(folder, tmp_path / "run").results()
    assert result.counts.missing == 97
    assert not result.sampled
    whole = imported(folder, tmp_path / "whole", ImportOptions(selection_is_benchmark=True))
    assert whole.results()[0].complete


def test_large_samples_are_read_line_by_line(tmp_path):
    """Memory is that of the answers: prompts are not kept."""
    import tracemalloc

    folder = lm_eval_log(tmp_path / "log", {"arc": [1.0, 0.0] * 400})
    long = "x" * 20_000

    def lengthen(lines):
        for line in lines:
            for argument in line["arguments"].values():
                argument["arg_0"] = f"{long}{argument['arg_0']}"

    edit_lines(samples_of(folder), lengthen)
    size = samples_of(folder).stat().st_size
    assert size > 60_000_000
    tracemalloc.start()
    log = read_log(folder, PLAIN)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert log.benchmarks[0].items == 800
    assert peak < size / 10
