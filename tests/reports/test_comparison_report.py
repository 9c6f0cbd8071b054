"""A comparison is readable at 80 columns, whole as JSON, and harmless as Markdown."""

from __future__ import annotations

import json
import re

import pytest
from rich.console import Console
from rich.text import Text

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import RunError
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import aggregate
from pytest_llmeval.metrics import compare_items
from pytest_llmeval.reports.terminal.comparison import comparison_markdown
from pytest_llmeval.reports.terminal.comparison import comparison_parts
from pytest_llmeval.reports.terminal.leaderboard import leaderboard_json
from pytest_llmeval.reports.terminal.leaderboard import leaderboard_markdown
from pytest_llmeval.reports.terminal.leaderboard import leaderboard_parts
from pytest_llmeval.runs.comparison import ABSENT
from pytest_llmeval.runs.comparison import Mismatch
from pytest_llmeval.runs.comparison import RunComparison
from pytest_llmeval.runs.leaderboard import Leaderboard
from pytest_llmeval.runs.leaderboard import LeaderboardRow

LETTERS = {"c": Outcome.CORRECT, "w": Outcome.WRONG, "e": Outcome.ERROR}
LONGEST = "high_school_government_and_politics"


def outcomes(answers: dict[str, str]) -> dict[str, ItemOutcomes]:
    """Item id → its outcome, from subject → one letter per item."""
    return {
        f"{subject}-{row:04d}": ItemOutcomes(subject, (LETTERS[letter],))
        for subject, letters in answers.items()
        for row, letter in enumerate(letters)
        if letter != "-"
    }


def compared(baseline, candidate, **more):
    return compare_items(
        outcomes(baseline),
        outcomes(candidate),
        benchmark=more.pop("benchmark", "mmlu"),
        scorer="letter",
        baseline_model=more.pop("old", "demo"),
        candidate_model=more.pop("new", "demo"),
        sizes={subject: len(letters) for subject, letters in baseline.items()},
    )


def subjects(count: int, wrong: int) -> dict[str, str]:
    return {f"subject_{n:02d}": "w" * wrong + "c" * (100 - wrong) for n in range(count)}


def rendered(parts) -> list[str]:
    console = Console(width=80, file=None, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text))
    return [line.rstrip() for line in capture.get().splitlines()]


BEFORE = {**subjects(57, 20), LONGEST: "c" * 100}
AFTER = {**subjects(57, 20), LONGEST: "w" * 30 + "c" * 70}


def test_the_table_shows_worse_subjects_in_eighty_columns():
    run_comparison = RunComparison("runs/a", "runs/b", (compared(BEFORE, AFTER),))
    lines = rendered(comparison_parts(run_comparison))
    assert lines[0] == "mmlu[letter]: runs/a (demo) → runs/b (demo)"
    table = lines[1:6]
    assert max(map(len, table)) <= 80
    assert table[0].split() == ["n", "baseline", "candidate", "drop", "p"]
    assert table[2].split() == [
        "all", "58", "subjects", "5,800", "0.8034", "0.7983", "+0.0052", "<0.0001", "*",
    ]  # fmt: skip
    assert table[3].split() == [LONGEST, "100", "1.0000", "0.7000", "+0.3000", "<0.0001", "*"]
    assert table[4] == (
        "* significant at 0.05; subjects: largest drops first, p Holm-adjusted over 58"
    )
    assert lines[6].startswith("drop +0.0052, 95 % interval [")
    assert lines[6].endswith("]; 30 newly wrong, 0 newly right")
    assert lines[7] == "newly wrong (10 of 30): " + " ".join(
        f"{LONGEST}-{n:04d}" for n in range(10)
    )
    assert len(lines) == 8


def test_the_requested_number_of_flips():
    run_comparison = RunComparison("a", "b", (compared({"s": "cccw"}, {"s": "wwcc"}),))
    lines = rendered(comparison_parts(run_comparison, flips=1))
    assert "newly wrong (1 of 2): s-0000" in lines
    assert "newly right: s-0003" in lines
    assert not [
        line for line in rendered(comparison_parts(run_comparison, flips=0)) if "s-0000" in line
    ]
    assert "s-0000" not in comparison_markdown(run_comparison, flips=0)
    assert "newly wrong in <code>mmlu[letter]</code> (1 of 2)" in comparison_markdown(
        run_comparison, flips=1
    )


def test_ten_subjects_are_shown_and_no_significant_one_is_left_out():
    before, after = {}, {}
    for n in range(11):  # small and much worse, but too small to be significant
        before[f"small_{n:02d}"], after[f"small_{n:02d}"] = "ccc", "wcc"
    before["large"], after["large"] = "c" * 1000, "w" * 50 + "c" * 950
    run_comparison = RunComparison("a", "b", (compared(before, after),))
    lines = rendered(comparison_parts(run_comparison))
    assert sum(line.startswith("small_") for line in lines) == 10
    assert "also significantly worse: large (+0.0500, p <0.0001)" in lines
    assert "**also significantly worse: large (+0.0500, p \\<0.0001)**" in comparison_markdown(
        run_comparison
    )


def test_improvements_are_no_worst_subjects():
    lines = rendered(
        comparison_parts(
            RunComparison("a", "b", (compared({"s": "wc", "t": "cc"}, {"s": "cc", "t": "cc"}),))
        )
    )
    assert lines[3].startswith("all 2 subjects")
    assert lines[4].startswith("* significant")
    assert any(line.startswith("drop -0.2500") for line in lines)


def test_unpaired_items_are_reported():
    before = {"s": "cccc-e"}
    after = {"s": "ccc-ce"}
    run_comparison = RunComparison(
        "a", "b", (compared(before, after),), (), ("arc[letter]",), ("x[y]", "z[y]")
    )
    lines = rendered(comparison_parts(run_comparison))
    assert lines[-3:] == [
        "not paired: 1 item only in the baseline (s-0003); 1 item only in the candidate (s-0004);"
        " 1 item with an error in the baseline; 1 item with an error in the candidate",
        "only in a: arc[letter]",
        "only in b: x[y], z[y]",
    ]
    markdown = comparison_markdown(run_comparison)
    assert "Not paired in `mmlu[letter]`: 1 item only in the baseline (s-0003); " in markdown
    assert "only in a: arc\\[letter\\]" in markdown


def test_items_that_neither_run_has():
    run_comparison = RunComparison("a", "b", (compared({"s": "cc--"}, {"s": "cc--"}),))
    lines = rendered(comparison_parts(run_comparison))
    assert "not paired: 2 items of the benchmark are in neither run" in lines


def test_nothing_paired():
    run_comparison = RunComparison("a", "b", (compared({"s": "c-"}, {"s": "-c"}),))
    lines = rendered(comparison_parts(run_comparison))
    assert "no item is in both runs" in lines
    assert lines[3].split() == ["all", "items", "0", "-", "-", "-", "-"]
    assert "| `mmlu[letter]` | 0 | - | - | - | - | 0 | 0 | - |" in comparison_markdown(
        run_comparison
    )


MISMATCH = Mismatch("mmlu[letter]", "shots", 5, 0)


def test_no_verdict_across_protocols():
    comparison = compared(BEFORE, AFTER)
    run_comparison = RunComparison("a", "b", (comparison,), (MISMATCH,))
    text = "\n".join(rendered(comparison_parts(run_comparison)))
    assert "protocols or data differ: no verdict: shots 5 against 0" in text
    assert "*" not in text
    assert "0.0001" not in text
    markdown = comparison_markdown(run_comparison)
    assert "**protocols or data differ: no verdict** for `mmlu[letter]`: `shots 5 against 0`" in (
        markdown
    )
    assert "0.0001" not in markdown
    value = run_comparison.as_json()
    assert value["comparisons"][0]["comparable"] is False
    assert value["mismatches"] == [
        {"result": "mmlu[letter]", "field": "shots", "baseline": 5, "candidate": 0}
    ]


def test_json_is_plain_and_whole():
    run_comparison = RunComparison(
        "a", "b", (compared(BEFORE, AFTER),), (Mismatch("x[y]", "z", ABSENT, (1,)),), ("u[v]",)
    )
    value = run_comparison.as_json()
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    (comparison,) = value["comparisons"]
    assert comparison["comparable"] is True
    assert len(comparison["subjects"]) == 58
    assert len(comparison["newly_wrong"]) == 30
    assert value["mismatches"][0]["baseline"] == "(absent)"
    assert value["only_baseline"] == ["u[v]"]


def test_several_models_are_distinguished():
    pairs = (compared({"s": "c"}, {"s": "c"}), compared({"s": "c"}, {"s": "c"}, new="other"))
    markdown = comparison_markdown(RunComparison("a", "b", pairs))
    assert "| `mmlu[letter] demo` |" in markdown
    assert "| `mmlu[letter] demo → other` |" in markdown


# Names that are markup --------------------------------------------------------------------


def cells(row: str) -> list[str]:
    """The cells of a row of a GitHub table: bars with a backslash before them do not end one."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


@pytest.mark.parametrize("name", ["a|b", "a`b", "`", "<b>x</b>", "[red]x[/red]", "@team", "a*b_c"])
def test_markup_in_names_is_shown_as_it_is(name):
    before, after = {name: "cc", "t": "cc"}, {name: "wc", "t": "cc"}
    comparison = compared(before, after, benchmark="x")
    run_comparison = RunComparison(name, f"runs/{name}", (comparison,), (), (name,))
    lines = rendered(comparison_parts(run_comparison))
    assert any(line.startswith(f"{name} ") and "+0.5000" in line for line in lines)
    assert lines[0] == f"x[letter]: {name} (demo) → runs/{name} (demo)"
    markdown = comparison_markdown(run_comparison)
    (row,) = [
        line for line in markdown.splitlines() if line.startswith("| `") and "+0.5000" in line
    ]
    assert len(cells(row)) == 6
    (code,) = re.fullmatch(r"(?P<fence>`+) ?(.*?) ?(?P=fence)", cells(row)[0]).groups()[1:]
    assert code.replace("\\|", "|") == name
    (line,) = [line for line in markdown.splitlines() if line.startswith("only in ")]
    assert re.sub(r"\\(.)", r"\1", line) == f"only in {name}: {name}"
    assert not re.search(r"(?<!\\)[`*_\[\]<>|@]", line)


def test_every_row_of_a_table_has_the_same_cells():
    run_comparison = RunComparison("a", "b", (compared(BEFORE, AFTER),))
    for block in comparison_markdown(run_comparison).split("\n\n"):
        if block.startswith("| "):
            assert len({len(cells(row)) for row in block.splitlines()}) == 1


# Leaderboard -----------------------------------------------------------------------------------


def standing(run: str, letters: str, best: str | None, model: str = "demo") -> LeaderboardRow:
    result = aggregate(
        outcomes({"s": letters}).values(),
        model=model,
        benchmark="mmlu",
        scorer="letter",
        protocol="p",
        chance=0.25,
        sizes={"s": len(letters)},
    )
    against = compared({"s": best}, {"s": letters}).overall if best else None
    return LeaderboardRow(run, model, result, against)


BEST = "c" * 100
TABLE = Leaderboard(
    "mmlu",
    "letter",
    (
        standing("runs/20261129-210843-a-model-with-a-long-name", BEST, None),
        standing("runs/b", "w" + "c" * 99, BEST),
        standing("runs/c", "w" * 50 + "c" * 50, BEST, "m1"),
        standing("runs/c", "w" * 60 + "c" * 39 + "e", BEST, "m2"),
    ),
)


def test_a_leaderboard_at_eighty_columns():
    lines = rendered(leaderboard_parts([TABLE]))
    assert max(map(len, lines[:7])) <= 80
    assert lines[0] == "mmlu[letter]"
    assert lines[3].split() == [
        "1", "100", "1.0000", "[0.9630,", "1.0000]", "1.0000", "+1.0000",
    ]  # fmt: skip
    assert lines[4].split()[-2:] == ["+0.0100", "1.0000"]
    assert lines[5].split()[-3:] == ["+0.5000", "<0.0001", "*"]
    assert lines[6].split()[:6] == ["4", "100", "-", "-", "-", "-"]
    assert lines[7] == " 1 runs/20261129-210843-a-model-with-a-long-name (demo)"
    assert lines[10] == " 4 runs/c (m2)"
    assert lines[11].startswith("* significant at 0.05; drop against the first row")


def test_a_leaderboard_as_markdown_and_json():
    markdown = leaderboard_markdown([TABLE])
    rows = [cells(line) for line in markdown.splitlines() if line.startswith("|")]
    assert [row[0] for row in rows[2:]] == [
        "`runs/20261129-210843-a-model-with-a-long-name`", "`runs/b`", "`runs/c m1`", "`runs/c m2`",
    ]  # fmt: skip
    assert len(set(map(len, rows))) == 1
    value = leaderboard_json([TABLE])
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    standings = value["tables"][0]["standings"]
    assert standings[0]["against_best"] is None
    assert standings[2]["against_best"]["drop"] == 0.5
    assert standings[3]["metrics"]["errors"] == 1


def test_a_leaderboard_across_protocols_has_no_p_values():
    leaderboard = Leaderboard("mmlu", "letter", TABLE.standings, (MISMATCH,))
    lines = rendered(leaderboard_parts([leaderboard]))
    assert lines[-1] == "protocols or data differ: no verdict: shots 5 against 0"
    assert "*" not in "".join(lines)
    assert "0.0001" not in leaderboard_markdown([leaderboard])
    assert leaderboard_json([leaderboard])["tables"][0]["comparable"] is False


def test_accuracies_over_other_items_are_marked():
    leaderboard = Leaderboard("mmlu", "letter", TABLE.standings, same_items=False)
    note = "accuracies are over different items; drops are over the same items"
    assert rendered(leaderboard_parts([leaderboard]))[-1] == note
    assert f"**{note}**" in leaderboard_markdown([leaderboard])
    assert note not in leaderboard_markdown([TABLE])
    assert leaderboard_json([leaderboard])["tables"][0]["same_items"] is False


def test_a_leaderboard_without_a_best_or_without_others():
    broken = (standing("a", "ce", None), standing("b", "ec", None))
    assert rendered(leaderboard_parts([Leaderboard("x", "y", broken)]))[-1] == (
        "every run is incomplete, so there is no best run"
    )
    assert rendered(leaderboard_parts([Leaderboard("x", "y", TABLE.standings[:1])]))[-1] == (
        "no other run has a comparable result"
    )


def test_a_stored_comparison_is_read_back_as_it_was():
    run_comparison = RunComparison(
        "old",
        "new",
        (compared({"art": "cccwe", "law": "cc"}, {"art": "cwccc", "law": "cc"}),),
        (Mismatch("mmlu[letter]", "shots", 5, 0, ("demo", "demo")),),
        ("arc[letter]",),
    )
    assert (
        RunComparison.from_json(json.loads(json.dumps(run_comparison.as_json()))) == run_comparison
    )


def test_a_stored_comparison_of_another_version_is_one_line():
    document = RunComparison("old", "new", (compared({"a": "c"}, {"a": "w"}),)).as_json()
    del document["comparisons"][0]["sizes"]
    with pytest.raises(
        RunError, match=r"^comparison.json: damaged, or of another version: 'sizes'"
    ):
        RunComparison.from_json(document)


def test_subjects_that_did_not_run_are_not_counted():
    before = dict.fromkeys(("a", "b", "c", "d"), "c" * 10)
    after = {"a": "w" * 10, "b": "c" * 10, "c": "-" * 10, "d": "-" * 10}
    run_comparison = RunComparison("old", "new", (compared(before, after),))
    assert any(
        line.startswith("2 of 4 subjects ") for line in rendered(comparison_parts(run_comparison))
    )
    assert "(1 of 2):" in comparison_markdown(run_comparison)
