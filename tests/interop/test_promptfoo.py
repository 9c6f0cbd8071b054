"""Results of promptfoo: prompts, providers, repetitions, errors, and what is refused."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.reading import read_log
from pytest_llmeval.runs import compare
from pytest_llmeval.runs.comparison import MismatchError
from support.foreign_logs import edit_json
from support.foreign_logs import promptfoo_log
from support.foreign_logs import sample_log
from support.imported_runs import PLAIN
from support.imported_runs import imported
from support.imported_runs import outcomes
from support.imported_runs import refusal

TESTS = {"sum": ["pass", "fail"], "river": ["pass", "error"]}


def test_recorded_numbers(tmp_path):
    """Two prompts, two repetitions: of ten answers two are errors, and six of eight pass."""
    file = sample_log("promptfoo", "results.json")
    run = imported(file, tmp_path / "run", ImportOptions(subject="category"))
    results = run.results()
    assert [result.name for result in results] == [
        "promptfoo_interop_sample-prompt1[promptfoo_success]",
        "promptfoo_interop_sample-prompt2[promptfoo_success]",
    ]
    for result in results:
        counts = result.counts
        assert (counts.correct, counts.answered, counts.error) == (6, 8, 2)
        assert result.samples == 2
        assert {name: s.total for name, s in result.subjects.items()} == {
            "geography": 4,
            "arithmetic": 6,
        }
    notes = run.manifest["notes"]
    assert "scorer promptfoo_exact is left out: not every test has an assertion for it" in notes


def test_tests_are_items_and_repetitions_are_samples(tmp_path):
    log = read_log(promptfoo_log(tmp_path / "r.json", TESTS), PLAIN)
    (benchmark,) = log.benchmarks
    assert (log.harness, log.version, log.model) == ("promptfoo", "0.123.1", "parrot")
    assert benchmark.name == "promptfoo_quiz"
    assert list(benchmark.scorers) == ["promptfoo_success", "promptfoo_exact"]
    assert [(a.item, a.sample) for a in benchmark.answers] == [
        ("sum", 0),
        ("sum", 1),
        ("river", 0),
        ("river", 1),
    ]
    expected = [Outcome.CORRECT, Outcome.WRONG, Outcome.CORRECT, Outcome.ERROR]
    assert outcomes(log, "promptfoo_success") == outcomes(log, "promptfoo_exact") == expected
    assert benchmark.answers[3].scores["promptfoo_success"].error == "HTTP 503"


def test_an_empty_output_is_an_error(tmp_path):
    """promptfoo reports no success and no failure of an assertion."""
    file = promptfoo_log(tmp_path / "r.json", {"sum": ["fail"]})
    edit_json(
        file,
        lambda log: log["results"]["results"][0].update(failureReason=0, error="No output"),
    )
    assert outcomes(read_log(file, PLAIN), "promptfoo_success") == [Outcome.ERROR]


def test_each_prompt_is_a_benchmark(tmp_path):
    file = promptfoo_log(tmp_path / "r.json", TESTS, prompts=("Q: {{question}}", "{{question}}!"))
    log = read_log(file, ImportOptions(name="mine"))
    assert [b.name for b in log.benchmarks] == ["promptfoo_mine-prompt1", "promptfoo_mine-prompt2"]
    assert log.benchmarks[0].protocol["prompt"] == "Q: {{question}}"


def test_one_of_several_providers_is_imported(tmp_path):
    file = promptfoo_log(tmp_path / "r.json", TESTS, providers=("parrot", "crow"))
    assert "has 2 providers (parrot, crow): choose one with --model" in refusal(file)
    assert "no provider 'crown'; did you mean 'crow'?" in refusal(
        file, ImportOptions(model="crown")
    )
    log = read_log(file, ImportOptions(model="crow"))
    assert log.model == "crow"
    assert len(log.benchmarks[0].answers) == 4


def test_ids_without_descriptions(tmp_path):
    file = promptfoo_log(tmp_path / "r.json", TESTS)
    edit_json(
        file, lambda log: [r["testCase"].pop("description") for r in log["results"]["results"]]
    )
    assert {a.item for a in read_log(file, PLAIN).benchmarks[0].answers} == {
        "test-0000",
        "test-0001",
    }


def test_fractions_of_a_named_metric_leave_it_out(tmp_path):
    file = promptfoo_log(tmp_path / "r.json", TESTS)
    edit_json(file, lambda log: log["results"]["results"][0]["namedScores"].update(exact=0.5))
    log = read_log(file, PLAIN)
    assert list(log.benchmarks[0].scorers) == ["promptfoo_success"]
    assert "0.5" in refusal(file, ImportOptions(scorers=("exact",)))


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda row: row["prompt"].update(label="Other: {{question}}"), "prompt"),
        (lambda row: row["prompt"].update(raw="Other"), "requests"),
        (lambda row: row["prompt"].update(config={"temperature": 1}), "prompt_config.temperature"),
        (lambda row: row["provider"].update(config={"top_p": 1}), "provider.top_p"),
        (lambda row: row["testCase"]["assert"][0].update(value="5"), "data"),
    ],
)
def test_what_is_compared(edit, field, tmp_path):
    first = promptfoo_log(tmp_path / "a.json", TESTS)
    second = promptfoo_log(tmp_path / "b.json", TESTS)
    edit_json(second, lambda log: [edit(row) for row in log["results"]["results"]])
    with pytest.raises(MismatchError) as error:
        compare(imported(first, tmp_path / "a"), imported(second, tmp_path / "b"))
    assert f"{field} " in str(error.value)


def test_keys_and_addresses_are_not_compared(tmp_path):
    first = promptfoo_log(tmp_path / "a.json", TESTS)
    second = promptfoo_log(tmp_path / "b.json", TESTS, providers=("crow",))

    def secret(log):
        for row in log["results"]["results"]:
            row["provider"]["config"] = {"apiKey": "k", "apiBaseUrl": "http://x"}

    edit_json(second, secret)
    assert not compare(imported(first, tmp_path / "a"), imported(second, tmp_path / "b")).mismatches


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda log: log["results"].update(version=2), "version 2 of promptfoo's results"),
        (lambda log: log["results"].update(results=[]), "has no results"),
        (lambda log: log["results"]["results"].pop(), "every item needs the same number"),
        (
            lambda log: log["results"]["results"].append(log["results"]["results"][0]),
            "item sum occurs twice",
        ),
        (
            lambda log: log["results"]["results"][0].update(vars={"question": "other"}),
            "item sum has two different contents",
        ),
        (
            lambda log: log["results"]["results"][1].update(success=True),
            "has 3 successes and reports 2: it is not the whole log",
        ),
        (
            lambda log: [
                r.update(provider={"id": "file://p.js"}) for r in log["results"]["results"]
            ],
            "names its model by a path (file://p.js): add --model NAME",
        ),
    ],
)
def test_refusals(edit, line, tmp_path):
    file = promptfoo_log(tmp_path / "r.json", TESTS)
    edit_json(file, edit)
    assert line in refusal(file)


def test_subjects(tmp_path):
    file = promptfoo_log(tmp_path / "r.json", TESTS)
    run = imported(file, tmp_path / "run", ImportOptions(subject="kind"))
    assert set(run.results()[0].subjects) == {"s", "r"}
    assert "metadata field 'kinds'; did you mean 'kind'?" in refusal(
        file, ImportOptions(subject="kinds")
    )
