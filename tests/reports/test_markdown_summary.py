"""The summary for a pull request: short whatever the run, and harmless whatever its names."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_llmeval.reports.markdown import run_markdown
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.runs.usage import ResourceUse
from support.judged_runs import REGRESSION
from support.judged_runs import THRESHOLDS
from support.judged_runs import judged
from support.judged_runs import stored
from support.judged_runs import write_documents

GOOD, WORSE = "c" * 80 + "w" * 20, "c" * 40 + "w" * 60


def cells(text: str, header: str) -> list[list[str]]:
    """The rows of the table whose header begins so."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {header}"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


SIDE = {
    "scorer": "matched",
    "protocol": "matched",
    "accuracy": 0.5,
    "mean": 0.4,
    "variance": 0.01,
    "consistency": None,
    "recall_std": 0.1,
    "seconds": None,
    "prompt_tokens": 70,
    "completion_tokens": None,
}
PAIR = {
    "model": "demo",
    "benchmark": "mmlu",
    "items": 57,
    "arms": ["cyclic@1", "cyclic@2", "cyclic@3"],
    "texts": SIDE,
    "letters": {**SIDE, "scorer": "letter", "variance": 0.04},
    "variance_ratio": 0.25,
}


def test_everything_bad_of_57_subjects_is_under_60_lines(tmp_path):
    before = {f"subject_{n:02d}": GOOD for n in range(57)}
    after = {f"subject_{n:02d}": WORSE + "e" for n in range(57)}
    before = {name: letters + "c" for name, letters in before.items()}
    run = judged(tmp_path, after, before, THRESHOLDS + REGRESSION, status="interrupted")
    run = replace(run, results=[*run.results] * 12, pairs=[PAIR] * 3)
    text = run_markdown(run, "https://example.org/job/1")
    assert len(text.splitlines()) < 60
    assert "; 2 more in `metrics.json`" in text
    assert sum(verdict.status == "fail" for verdict in run.verdicts) > 57
    assert [row[0] for row in cells(text, "gate")] == [
        f"FAIL `{verdict.id}`" for verdict in run.failed
    ]
    assert "57 subjects, such as subject\\_00: incomplete: " in text
    assert "57 subjects significantly worse" in text
    assert "and 49 more subjects in `comparison.json`" in text
    assert "684 answers ended in errors" in text
    assert "The run is not finished" in text
    assert "[job](https://example.org/job/1)" in text


def test_a_green_run_shows_no_gates_but_how_many_passed(tmp_path):
    text = run_markdown(judged(tmp_path, {"art": GOOD, "law": GOOD}))
    assert text.startswith("### llmeval: PASS — `demo`\n")
    assert "**All 4 gates passed** (`thresholds.toml`)." in text
    assert "| gate" not in text
    assert "worse" not in text


def test_failed_gates_come_with_their_margin_worst_first(tmp_path):
    text = run_markdown(judged(tmp_path, {"art": WORSE, "law": "c" * 20 + "w" * 80}))
    rows = cells(text, "gate")
    assert [row[0] for row in rows] == [
        "FAIL `mmlu::every_subject::law::accuracy`",
        "FAIL `mmlu::accuracy`",
        "FAIL `mmlu::every_subject::art::accuracy`",
    ]
    assert [row[1:4] for row in rows] == [
        ["0.2000", "`>= 0.5`", "-0.3000"],
        ["0.3000", "`>= 0.5`", "-0.2000"],
        ["0.4000", "`>= 0.5`", "-0.1000"],
    ]


def test_only_significantly_worse_subjects_are_listed(tmp_path):
    before = {"art": GOOD, "law": GOOD, "zoo": GOOD}
    after = {"art": WORSE, "law": "c" * 79 + "w" * 21, "zoo": "c" * 100}
    run = judged(tmp_path, after, before, None)
    assert cells(run_markdown(run), "subject") == [
        ["`art`", "100", "0.8000", "0.4000", "+0.4000", "<0.0001"]
    ]
    assert "**No gate was judged**." in run_markdown(run)


def test_time_and_cost_are_shown_with_the_results(tmp_path):
    tokens = {"prompt_tokens": 10**6, "completion_tokens": 10**5, "cached_tokens": 0}
    run = judged(
        tmp_path,
        {"art": GOOD},
        seconds=75.2,
        usage=[["demo", "mmlu", tokens]],
        prices={"currency": "a|b", "models": {"demo": {"input": 1.0, "output": 10.0}}},
    )
    text = run_markdown(run, used={("demo", "mmlu", "letter"): ResourceUse(32.04, 100)})
    (row,) = cells(text, "result")
    assert row[-2:] == ["32.0 s", "2.0000 a\\|b"]
    assert text.endswith("run`, took 1 min 15 s, cost 2.0000 a\\|b\n")
    plain = run_markdown(judged(tmp_path, {"art": GOOD}, name="plain"))
    assert "| errors |\n" in plain


def test_the_chance_level_has_no_margin(tmp_path):
    gate = "[benchmarks.mmlu]\naccuracy = { chance = true }\n"
    run = judged(tmp_path, {"art": GOOD}, thresholds=gate)
    (row,) = cells(run_markdown(run), "gate")
    assert row[0] == "FAIL `mmlu::accuracy`"
    assert row[3] == "-"


def test_a_warning_is_shown(tmp_path):
    before, after = {"art": GOOD}, {"art": "c" * 78 + "w" * 22}
    run = judged(tmp_path, after, before, REGRESSION)
    (row,) = cells(run_markdown(run), "gate")
    assert row[0].startswith("WARN")
    assert run.verdict == "pass"


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "a|b",
        "`x`",
        "@someone",
        "\x1b[31mred\x00",
        "a\u202eb",
        "x" * 5000,
    ],
)
def test_names_are_shown_as_text(tmp_path, name):
    before, after = {name: GOOD}, {name: WORSE}
    text = run_markdown(judged(tmp_path, after, before, REGRESSION))
    (row,) = cells(text, "subject")
    assert len(row[0]) < 300
    assert re.fullmatch(r"(`+).*\1", row[0])
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", text)
    outside = re.sub(r"(`+).*?\1", "", text)
    assert "<script>" not in outside
    assert "@someone" not in outside


def test_the_documents_of_a_folder_give_the_same_summary(tmp_path):
    before, after = {"art": GOOD}, {"art": WORSE}
    run = judged(tmp_path, after, before, THRESHOLDS + REGRESSION)
    stored(tmp_path, after)
    write_documents(run)
    assert run_markdown(read_judged_run(run.path)) == run_markdown(run)


def test_a_run_without_documents_is_measured_from_its_records(tmp_path):
    run = judged(tmp_path, {"art": GOOD}, thresholds=None)
    assert read_judged_run(stored(tmp_path, {"art": GOOD})).results == run.results


def test_texts_against_letters(tmp_path):
    run = replace(judged(tmp_path, {"art": GOOD}), pairs=[PAIR])
    text = run_markdown(run)
    assert "mmlu, texts against letters: 57 items, as they are and in 3 orders of 'cyclic'" in text
    assert "texts over letters: 0.25: the texts are the steadier\n" in text
    assert cells(text, "answers") == [
        ["`matched`", "0.5000", "0.4000", "0.01000", "-", "0.1000", "-", "70"],
        ["`letter`", "0.5000", "0.4000", "0.04000", "-", "0.1000", "-", "70"],
    ]


def test_causes_of_lost_answers_are_shown_with_the_option_that_helps(tmp_path):
    run = judged(tmp_path, {"art": "c" * 90 + "e" * 10})
    failures = [{"count": 10, "reason": "503 <b>", "example": "art-0090"}]
    more = {"truncated": 9, "truncated_rate": 0.1, "lacked_modules": {"pandas": 3}}
    (result,) = run.results
    lines = run_markdown(
        replace(run, results=[result | more | {"failures": failures}])
    ).splitlines()
    assert [line for line in lines if line.startswith("- ")] == [
        r"- mmlu\[letter\]: 10 errors, such as art-0090: 503 \<b\>",
        r"- mmlu\[letter\]: 9 answers (10.0%) were cut off at the token limit: raise it with"
        " --llm-max-tokens",
        r"- mmlu\[letter\]: 3 programs ended because the sandbox lacks a module: pandas (3);"
        r" \`llmeval sandbox build --base IMAGE\` builds one from an image that has them",
    ]


def test_warned_gates_are_counted_apart(tmp_path):
    run = judged(tmp_path, {"art": "c" * 78 + "w" * 22}, {"art": GOOD}, REGRESSION)
    text = run_markdown(run)
    assert [verdict.state for verdict in run.verdicts] == ["warned", "passed"]
    assert "**All 2 gates passed, 1 with a warning** (`thresholds.toml`)." in text


def test_undecided_gates_name_the_next_step(tmp_path):
    run = judged(tmp_path, {"art": "cw" * 50})
    verdicts = [replace(verdict, status="undecided", measured=None) for verdict in run.verdicts]
    text = run_markdown(replace(run, verdict="fail", verdicts=verdicts))
    assert "3 of 3 gates undecided** (`thresholds.toml`). 3 undecided gates fail the build" in text
    assert "--llm-allow-undecided" in text
