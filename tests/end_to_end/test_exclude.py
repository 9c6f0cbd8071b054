"""``exclude=`` from the command line's side: plan, hash, reports, comparison, shots."""

from __future__ import annotations

import json

import pytest

HARD = ', exclude={"kind": ["hard"]})'


@pytest.fixture
def faq(project):
    """Own data with a column ``kind``; nine items, the gold answer always B."""
    rows = [
        {
            "subject": "art" if n < 4 else "law",
            "question": f"Question {n}?",
            "options": ["one", "two", "three", "four"],
            "answer": "B",
            "kind": "hard" if n in (0, 5) else "easy",
        }
        for n in range(9)
    ]
    (project.path / "faq.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_test(project, ")")
    return project


def write_test(project, end: str, protocol: str = "") -> None:
    text = f"""
import pytest
from pytest_llmeval import Benchmark, Protocol
from pytest_llmeval.prompts import LMEVAL_MMLU
from pytest_llmeval.sources import jsonl

FAQ = Benchmark(
    "faq",
    jsonl("faq.jsonl", shots="faq.jsonl"),
    (Protocol("letter", LMEVAL_MMLU, scorer="letter"{protocol}),){end}

@pytest.mark.llmeval(FAQ)
def test_faq(answer):
    assert answer.correct
"""
    (project.path / "test_bench.py").write_text(text)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_excluded_items_are_no_tests_and_all_reports_name_them(faq, workers):
    faq.run()
    before = faq.metrics()
    write_test(faq, HARD)
    faq.thresholds("[benchmarks.faq]\naccuracy = 0\n")
    result = faq.run("-n", workers, "--llm-report=html,markdown")
    assert result.ret == 0
    words = "faq: excluded 2 of 9 items: kind = hard"
    result.stdout.fnmatch_lines([words])
    numbers = faq.metrics()
    assert (numbers["n_total"], numbers["complete"]) == (7, True)
    assert numbers["data_hash"] != before["data_hash"]
    assert numbers["excluded"] == words.removeprefix("faq: ")
    assert "excluded" not in before
    assert "art-0000" not in faq.requested[9:]
    assert words in (faq.run_folder / "report.md").read_text().replace("\\", "")
    assert words in (faq.run_folder / "report.html").read_text()
    for command in ("show", "gate"):
        faq.pytester.run("llmeval", command, faq.run_folder).stdout.fnmatch_lines([words])
    from pytest_llmeval.runs import load_run

    assert json.loads(json.dumps(load_run(faq.run_folder).metrics()))["results"] == [numbers]


def test_runs_over_other_items_are_not_compared(faq):
    faq.run("--llm-runs=old")
    (baseline,) = (faq.path / "old").glob("*/")
    write_test(faq, HARD)
    result = faq.run(f"--llm-baseline={baseline}")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*cannot be compared: faq[[]letter[]]: data *"])


@pytest.mark.parametrize("draw", ["first", "lmeval"])
def test_the_shots_of_the_items_that_are_left_stay_the_same(faq, draw):
    """lm-eval draws an item's shots by its place among all items."""
    protocol = f', shots=2, draw="{draw}", allow_copies=True'
    prompts = []
    for end in (")", HARD):
        write_test(faq, end, protocol)
        faq.run()
        records = (faq.run_folder / "records.jsonl").read_text().splitlines()
        prompt_hashes = {
            record["item"]: record["prompt_sha256"] for record in map(json.loads, records)
        }
        prompts.append((prompt_hashes, faq.metrics()["protocol_fingerprint"]))
    (whole, before), (rest, after) = prompts
    assert len(rest) == 7
    assert rest.items() <= whole.items()
    assert before == after


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (', exclude=["art-0009"])', "*exclude: no item has id 'art-0009'; did you mean 'art-000*"),
        (', exclude={"kind": "hrad"})', "*no item has kind 'hrad'; did you mean 'hard'*"),
        (', exclude={"kid": "hard"})', "*no item has a field 'kid'; did you mean 'kind'*"),
        (', exclude={"kind": ["hard", "easy"]})', "*exclude leaves none of its 9 items*"),
        (", exclude=[len])", "*exclude takes ids, or fields with their values, not builtin*"),
    ],
)
def test_mistakes_end_the_session_in_one_line(faq, end, message):
    write_test(faq, end)
    result = faq.run()
    assert result.ret == 4
    (line,) = [line for line in result.stderr.lines if line]
    result.stderr.fnmatch_lines([message])
    assert line.startswith("ERROR: ")


def test_two_tests_may_not_disagree_about_a_benchmark(faq):
    write_test(faq, ")")
    test = faq.path / "test_bench.py"
    test.write_text(
        test.read_text()
        + """
from dataclasses import replace
LESS = replace(FAQ, exclude=["art-0000"],
               protocols=(Protocol("text", LMEVAL_MMLU, scorer="choice", ask="text"),))

@pytest.mark.llmeval(LESS)
def test_less(answer):
    assert answer.correct
"""
    )
    result = faq.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*call different data 'faq': a benchmark has one name"])


def test_a_doubtful_file_is_reported_once_and_a_faulty_one_is_refused(faq):
    file = faq.path / "faq.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[2]["options"] = ["two", "two", "three", "four"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = faq.run("-n", "2")
    warnings = [line for line in result.stdout.lines if "equal options" in line]
    # Before the first test, and in the summary.
    assert warnings == 2 * [
        "faq.jsonl: 1 item has equal options, in 1 of them the right one (art-0002 in line 3)"
    ]
    write_test(faq, ', exclude=["art-0002"])')
    assert "equal options" not in faq.run().stdout.str()
    rows[2]["options"][1] = ""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = faq.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *faq.jsonl, line 3: gold 'B' points to an empty option"])
