"""Logs of Inspect: archives and JSON, epochs, errors, subjects, fingerprints, refusals."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.reading import read_log
from pytest_llmeval.runs import compare
from pytest_llmeval.runs.comparison import MismatchError
from support.foreign_logs import edit_json
from support.foreign_logs import inspect_archive
from support.foreign_logs import inspect_log
from support.foreign_logs import sample_log
from support.imported_runs import PLAIN
from support.imported_runs import counts
from support.imported_runs import imported
from support.imported_runs import outcomes
from support.imported_runs import refusal

CATEGORY = ImportOptions(subject="category")


def mean_by_inspects_rule(file: Path, scorer: str) -> float:
    """Mean over items of the mean over epochs that did not fail."""
    (benchmark,) = read_log(file, PLAIN).benchmarks
    items: dict[str, list[bool]] = {}
    for answer in benchmark.answers:
        outcome = answer.scores[scorer].outcome
        if outcome is not Outcome.ERROR:
            items.setdefault(answer.item, []).append(outcome is Outcome.CORRECT)
    return sum(sum(own) / len(own) for own in items.values()) / len(items)


# Recorded logs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "subject", "expected", "accuracy"),
    [
        ("sums.eval", "category", (15, 23, 6, 1), 0.6666666667),
        ("letters.eval", "subject", (8, 12, 2, 0), 8 / 12),
        ("sums_limit6.json", None, (14, 17, 1, 1), 0.8333333333),
        ("letters_limit6.json", None, (5, 6, 0, 0), 5 / 6),
    ],
)
def test_recorded_numbers(name, subject, expected, accuracy, tmp_path):
    file = sample_log("inspect", name)
    if name.endswith(".eval"):
        pytest.importorskip("zipfile_zstd", reason="the recorded archives are compressed with zstd")
    run = imported(file, tmp_path / "run", ImportOptions(subject=subject))
    tallies = counts(run)
    assert set(tallies.values()) == {expected}
    for scorer in tallies:
        assert mean_by_inspects_rule(file, scorer) == pytest.approx(accuracy)


def test_recorded_subjects(tmp_path):
    pytest.importorskip("zipfile_zstd", reason="the recorded archives are compressed with zstd")
    run = imported(sample_log("inspect", "sums.eval"), tmp_path / "run", CATEGORY)
    result = run.results()[0]
    assert result.benchmark == "inspect_sums"
    assert result.samples == 3
    assert {name: s.total for name, s in result.subjects.items()} == {"small": 12, "large": 12}
    assert result.accuracy is None  # incomplete: the failed epoch is not left out


def test_the_same_evaluation_as_archive_and_as_json(tmp_path):
    """Both containers of one evaluation; the model's answers differ."""
    pytest.importorskip("zipfile_zstd", reason="the recorded archives are compressed with zstd")
    whole = read_log(sample_log("inspect", "letters.eval"), PLAIN).benchmarks[0]
    part = read_log(sample_log("inspect", "letters_limit6.json"), PLAIN).benchmarks[0]
    assert whole.protocol["solvers"] == part.protocol["solvers"]
    assert {a.item: a.gold for a in part.answers}.items() <= {
        a.item: a.gold for a in whole.answers
    }.items()


@pytest.mark.parametrize(
    ("name", "expected", "size"),
    [
        ("data_arc_qwen.json", (1, 3, 0, 0), 2376),
        ("data_pubmedqa_gpt4o_mini.json", (2, 2, 0, 0), 500),
    ],
)
def test_published_logs(name, expected, size, tmp_path):
    run = imported(sample_log("inspect_eee", name), tmp_path / "run")
    assert counts(run) == {"inspect_choice": expected}
    (result,) = run.results()
    assert result.counts.total == size
    assert not result.sampled


def test_zstd_without_its_library_is_one_line(monkeypatch):
    monkeypatch.setattr("pytest_llmeval.interop.inspect_files.find_spec", lambda name: None)
    monkeypatch.setattr("sys.version_info", (3, 13))
    text = refusal(sample_log("inspect", "sums.eval"))
    assert "is compressed with zstd" in text
    assert "[inspect]" in text
    assert "`inspect log convert --to json`" in text


# Logs of a few samples, written here ---------------------------------------------------------

VALUES = {
    "a": ["C", "I", "C"],
    "b": ["N", "C", "error"],
}


def test_epochs_are_samples_and_a_failed_one_is_an_error(tmp_path):
    log = read_log(inspect_log(tmp_path / "log.json", VALUES), PLAIN)
    (benchmark,) = log.benchmarks
    assert (log.harness, log.version, log.model) == ("inspect", "0.3.285", "mockllm/model")
    assert benchmark.name == "inspect_sums"
    assert benchmark.samples == 3
    assert sorted(outcomes(log, "inspect_match")) == sorted(
        [*[Outcome.CORRECT] * 3, Outcome.WRONG, Outcome.UNPARSED, Outcome.ERROR]
    )
    errors = [a.scores["inspect_match"].error for a in benchmark.answers]
    assert "the tool is away" in errors
    assert benchmark.sizes == {"sums": 2}
    assert benchmark.answers[0].text == "ANSWER: 8"


def test_an_archive_gives_the_same_run(tmp_path):
    whole = inspect_log(tmp_path / "log.json", VALUES)
    packed = inspect_archive(whole, tmp_path / "log.eval")
    first, second = imported(whole, tmp_path / "a"), imported(packed, tmp_path / "b")
    assert counts(first) == counts(second)
    assert not compare(first, second).mismatches
    assert first.planned[0].variants[0].fingerprint == second.planned[0].variants[0].fingerprint


def test_wrong_without_an_answer_is_unparsed_if_the_scorer_has_answers(tmp_path):
    file = inspect_log(tmp_path / "log.json", {"a": ["I"], "b": ["I"]})
    edit_json(file, lambda log: log["samples"][1]["scores"]["match"].update(answer=""))
    assert outcomes(read_log(file, PLAIN), "inspect_match") == [Outcome.WRONG, Outcome.UNPARSED]
    edit_json(file, lambda log: [s["scores"]["match"].pop("answer") for s in log["samples"]])
    assert outcomes(read_log(file, PLAIN), "inspect_match") == [Outcome.WRONG, Outcome.WRONG]


def test_an_invalid_response_is_unparsed(tmp_path):
    file = inspect_log(tmp_path / "log.json", {"a": ["I"]})
    edit_json(
        file,
        lambda log: log["samples"][0]["scores"]["match"].update(reason="invalid_response_format"),
    )
    assert outcomes(read_log(file, PLAIN), "inspect_match") == [Outcome.UNPARSED]


@pytest.mark.parametrize(
    ("value", "outcome"),
    [(1, Outcome.CORRECT), (0.0, Outcome.WRONG), (True, Outcome.CORRECT), (None, Outcome.ERROR)],
)
def test_numbers_as_verdicts(value, outcome, tmp_path):
    file = inspect_log(tmp_path / "log.json", {"a": ["C"]})
    edit_json(file, lambda log: log["samples"][0]["scores"]["match"].update(value=value))
    edit_json(file, lambda log: log["results"]["scores"][0].update(metrics={}))
    assert outcomes(read_log(file, PLAIN), "inspect_match") == [outcome]


@pytest.mark.parametrize("value", [0.5, "P", {"a": 1}, ["C"]])
def test_partial_credit_is_refused(value, tmp_path):
    file = inspect_log(tmp_path / "log.json", {"a": ["C"], "b": ["C"]})
    edit_json(file, lambda log: log["samples"][0]["scores"]["match"].update(value=value))
    assert "inspect_match has values other than 0 and 1" in refusal(file)


def test_a_log_in_which_every_sample_failed(tmp_path):
    """Inspect reports success, and no results."""
    file = inspect_log(tmp_path / "log.json", {"a": ["error"], "b": ["error"]})
    edit_json(file, lambda log: log.update(results=None))
    run = imported(file, tmp_path / "run")
    assert counts(run) == {"inspect_match": (0, 0, 0, 2)}


def test_subjects_come_from_metadata(tmp_path):
    file = inspect_log(tmp_path / "log.json", {"a": ["C"], "b": ["I"]})
    run = imported(file, tmp_path / "run", CATEGORY)
    assert set(run.results()[0].subjects) == {"even", "odd"}
    text = refusal(file, ImportOptions(subject="categories"))
    assert "metadata field 'categories' does not exist; did you mean 'category'?" in text
    edit_json(file, lambda log: log["samples"][0]["metadata"].update(category=["x"]))
    assert "metadata field 'category' is no text or number" in refusal(file, CATEGORY)


def test_a_limited_log(tmp_path):
    """The sizes of subjects are unknown, unless the selection is the benchmark."""
    file = inspect_log(tmp_path / "log.json", {"a": ["C"], "b": ["I"]})
    edit_json(file, lambda log: log["eval"]["dataset"].update(samples=8))
    edit_json(file, lambda log: log["eval"]["config"].update(limit=2))
    (result,) = imported(file, tmp_path / "a").results()
    assert (result.counts.missing, result.sampled) == (6, False)
    text = refusal(file, CATEGORY)
    assert "has 2 of 8 items, so the sizes of its subjects are unknown" in text
    options = ImportOptions(subject="category", selection_is_benchmark=True)
    assert imported(file, tmp_path / "b", options).results()[0].complete


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda log: log["eval"].update(task_version=3), "task_version"),
        (lambda log: log["eval"].update(task_args={"n": 3}), "task_args.n"),
        (lambda log: log["plan"]["steps"].append({"solver": "critic", "params": {}}), "solvers"),
        (
            lambda log: log["eval"].update(model_generate_config={"temperature": 1.0}),
            "generation.temperature",
        ),
        (lambda log: log["eval"]["packages"].update(inspect_ai="0.4.0"), "harness_version"),
        (lambda log: log["eval"]["scorers"][0]["options"].update(x=1), "scorer_options.options.x"),
        (
            lambda log: log["samples"][0]["messages"][0].update(content="Other words"),
            "requests",
        ),
        (lambda log: [s.update(target="9") for s in log["samples"]], "data"),
    ],
)
def test_what_is_compared(edit, field, tmp_path):
    first = inspect_log(tmp_path / "a.json", VALUES)
    second = inspect_log(tmp_path / "b.json", VALUES)
    edit_json(second, edit)
    with pytest.raises(MismatchError) as error:
        compare(imported(first, tmp_path / "a"), imported(second, tmp_path / "b"))
    assert f"{field} " in str(error.value)


@pytest.mark.parametrize(
    "edit",
    [
        lambda log: log["eval"].update(model="openai/other", model_args={"x": 1}),
        lambda log: log["eval"].update(revision={"commit": "abc"}, run_id="x", eval_id="y"),
        lambda log: log["eval"].update(model_generate_config={"max_connections": 5}),
        lambda log: [m.update(id="z") for s in log["samples"] for m in s["messages"]],
        lambda log: log["samples"][-1].update(messages=[]),  # of the epoch that failed
        lambda log: log["samples"].reverse(),
    ],
)
def test_what_is_not_compared(edit, tmp_path):
    first = inspect_log(tmp_path / "a.json", VALUES)
    second = inspect_log(tmp_path / "b.json", VALUES)
    edit_json(second, edit)
    assert not compare(imported(first, tmp_path / "a"), imported(second, tmp_path / "b")).mismatches


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda log: log.update(version=1), "has version 1 of Inspect's format; version 2 is read"),
        (lambda log: log.update(status="cancelled"), "has status 'cancelled': only a finished log"),
        (lambda log: log.update(invalidated=True), "was marked as invalid"),
        (lambda log: log.update(samples=[]), "has no samples (written with log_samples=False?)"),
        (lambda log: log["eval"]["config"].update(log_samples=False), "log_samples=False"),
        (lambda log: log["samples"].pop(), "has 5 of the 6 answers that were requested"),
        (
            lambda log: log["samples"].__setitem__(5, log["samples"][0]),
            "item a occurs twice",
        ),
        (
            lambda log: log["samples"][1]["scores"]["match"].update(value="C"),
            "the answers give match an accuracy of",
        ),
        (lambda log: log["eval"].update(model="hf//checkpoints/9"), "add --model NAME"),
        (
            lambda log: log["eval"].update(model="hf/local", model_args={"model_path": "/x/y"}),
            "names its model by a path (/x/y): add --model NAME",
        ),
        (lambda log: log["eval"].pop("task"), "another version of its format: no 'task'"),
        (
            lambda log: log["samples"][1].update(target="other"),
            "item a has two different contents",
        ),
    ],
)
def test_refusals(edit, line, tmp_path):
    file = inspect_log(tmp_path / "log.json", VALUES)
    edit_json(file, edit)
    assert line in refusal(file)


def test_refused_archives(tmp_path):
    packed = inspect_archive(inspect_log(tmp_path / "log.json", VALUES), tmp_path / "log.eval")
    started = tmp_path / "started.eval"
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(started, "w") as new:
        for name in old.namelist():
            if name != "header.json":
                new.writestr(name, old.read(name))
    assert "has no header.json: the evaluation did not end" in refusal(started)
    broken = tmp_path / "broken.eval"
    broken.write_bytes(packed.read_bytes()[:200])
    assert "cannot be read" in refusal(broken)
    assert "no such log" in refusal(tmp_path / "none.eval")
    with zipfile.ZipFile(started, "w") as new:
        new.writestr("header.json", "[]")
    assert "header.json is damaged: it is no JSON object" in refusal(started)


def test_the_only_archive_in_a_folder(tmp_path):
    inspect_archive(inspect_log(tmp_path / "x.json", VALUES), tmp_path / "logs" / "log.eval")
    assert read_log(tmp_path / "logs", PLAIN).harness == "inspect"


def test_attachments_and_parts_of_messages(tmp_path):
    file = inspect_log(tmp_path / "log.json", {"a": ["C"]})
    plain = read_log(file, PLAIN).benchmarks[0]

    def attach(log):
        sample = log["samples"][0]
        sample["attachments"] = {"h1": sample["messages"][0]["content"]}
        sample["messages"][0]["content"] = "attachment://h1"
        sample["output"]["choices"][0]["message"]["content"] = [
            {"type": "reasoning", "reasoning": "1 + 7"},
            {"type": "text", "text": "ANSWER: 8"},
        ]
        sample["output"]["choices"][0]["stop_reason"] = "max_tokens"

    edit_json(file, attach)
    attached = read_log(file, PLAIN).benchmarks[0]
    assert attached.protocol["requests"] == plain.protocol["requests"]
    (answer,) = attached.answers
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("ANSWER: 8", "1 + 7", "length")


def test_chance_of_multiple_choice(tmp_path):
    file = inspect_log(tmp_path / "log.json", {"a": ["C"], "b": ["I"]})
    edit_json(file, lambda log: [s.update(choices=["x", "y"]) for s in log["samples"]])
    assert read_log(file, PLAIN).benchmarks[0].chance == 0.5
    edit_json(file, lambda log: log["plan"]["steps"][0]["params"].update(multiple_correct=True))
    assert read_log(file, PLAIN).benchmarks[0].chance is None


def test_an_encrypted_archive_is_one_line(tmp_path):
    file = inspect_archive(inspect_log(tmp_path / "log.json", VALUES), tmp_path / "log.eval")
    content = bytearray(file.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(signature)
        while place >= 0:
            content[place + flags] |= 1
            place = content.find(signature, place + 1)
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"log\.eval: header\.json cannot be read: .*encrypted"):
        imported(file, tmp_path / "run")
