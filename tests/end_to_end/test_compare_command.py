"""Runs of real sessions compared, named, judged against a baseline and merged from shards."""

from __future__ import annotations

import json
import shutil

import pytest

# Loaded here because pytester would load it anew for every run, which numpy does not survive.
import scipy.stats  # noqa: F401

from pytest_llmeval import cli
from pytest_llmeval.prompts import HENDRYCKS
from pytest_llmeval.prompts import LMEVAL_MMLU

# Knows all but the first of each subject, and in law only the last.
WORSE_LAW = """
def respond(self, request):
    wrong = request.id.endswith("-0000") or request.id == "law-0001"
    scores = (-1.0, -2.0, -3.0, -4.0) if wrong else (-2.0, -1.0, -3.0, -4.0)
    return Response(request.id, logprobs=scores, seconds=0.01)
"""

# The two published formats of MMLU, over four questions with a pool of five shots.
PUBLISHED = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol
from pytest_llmeval.prompts import HENDRYCKS, LMEVAL_MMLU

def make(kind, row):
    return Item(f"art-{kind}-{row}", "art", f"{kind} {row}?", 1, ("one", "two", "three", "four"))

def load(data_dir):
    return Dataset(
        tuple(make("test", row) for row in range(4)),
        {"art": tuple(make("dev", row) for row in range(5))},
    )

MINI = Benchmark("mini", load, (Protocol("lmeval", LMEVAL_MMLU, scorer="letter", shots=5),
                                Protocol("hendrycks", HENDRYCKS, scorer="letter", shots=5)))

@pytest.mark.llmeval(MINI)
def test_mini(answer):
    assert answer.correct
"""


def llmeval(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    capsys.readouterr()
    code = cli.main([str(argument) for argument in arguments])
    output, errors = capsys.readouterr()
    return code, output, errors


@pytest.fixture
def two_runs(project):
    """``old`` and ``new``: the candidate is worse in one item of law."""
    project.run("--llm-runs=all")
    project.model(respond=WORSE_LAW)
    project.run("--llm-runs=all")
    old, new = sorted((project.path / "all").glob("*/"), key=lambda path: path.stat().st_mtime)
    old.rename(project.path / "old")
    new.rename(project.path / "new")
    return project


def test_two_runs_in_every_format(two_runs, capsys):
    code, output, _ = llmeval(capsys, "compare", "old", "new")
    assert code == 0
    assert "bench[letter]: old (scripted) → new (scripted)" in output
    assert "newly wrong: law-0001\n" in output

    code, output, _ = llmeval(capsys, "compare", "old", "new", "--format=json")
    (comparison,) = json.loads(output)["comparisons"]
    assert comparison["newly_wrong"] == ["law-0001"]
    assert comparison["overall"]["drop"] == pytest.approx(1 / 9)
    assert comparison["subjects"]["law"]["drop"] == pytest.approx(1 / 3)
    assert comparison["comparable"] is True

    code, output, _ = llmeval(capsys, "compare", "old", "new", "--format=markdown", "--flips=0")
    assert output.startswith("### `old` → `new`\n")
    assert "law-0001" not in output


def test_the_installed_command(two_runs):
    result = two_runs.pytester.run("llmeval", "compare", "old", "new")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["newly wrong: law-0001"])


def test_three_runs_make_a_leaderboard(two_runs, capsys):
    shutil.copytree(two_runs.path / "old", two_runs.path / "again")
    code, output, _ = llmeval(capsys, "compare", "new", "old", "again", "--format=json")
    assert code == 0
    (table,) = json.loads(output)["tables"]
    assert [row["run"] for row in table["standings"]] == ["old", "again", "new"]
    assert table["standings"][2]["against_best"]["newly_wrong"] == 1
    for form in ("terminal", "markdown"):
        code, output, _ = llmeval(capsys, "compare", "new", "old", "again", f"--format={form}")
        assert code == 0
        assert output.index("old") < output.index("again") < output.index("new")


def test_a_named_baseline_does_what_its_run_does(two_runs, capsys):
    _, expected, _ = llmeval(capsys, "compare", "old", "new", "--format=json")
    code, output, _ = llmeval(capsys, "baseline", "old", "release-1")
    assert code == 0
    assert output.startswith("saved baselines/release-1.json (")
    assert output.endswith("bench[letter] 9 items\n")
    shutil.rmtree(two_runs.path / "old")
    code, output, _ = llmeval(capsys, "compare", "release-1", "new", "--format=json")
    assert code == 0
    assert json.loads(output)["comparisons"] == json.loads(expected)["comparisons"]
    _, output, _ = llmeval(capsys, "baseline", "new", "release-1")
    assert output.startswith("replaced ")
    code, output, errors = llmeval(capsys, "compare", "relaese-1", "new")
    assert code == 4
    assert "did you mean 'release-1'?" in errors
    code, _, errors = llmeval(capsys, "baseline", "new", "../x")
    assert (code, errors.count("\n")) == (4, 1)


GATES = """
[benchmarks.bench.regression]
max_drop = {drop}
"""


def test_a_stored_run_is_judged_against_a_baseline(two_runs, capsys):
    llmeval(capsys, "baseline", "old", "release")
    two_runs.thresholds("[benchmarks.bench]\naccuracy = 0.5" + GATES.format(drop=0.2))
    code, output, _ = llmeval(capsys, "gate", "new", "--baseline", "release")
    assert code == 0
    assert "PASS bench::regression::max_drop" in output
    assert "newly wrong: law-0001\n" in output
    code, output, _ = llmeval(capsys, "gate", "new")
    assert code == 1
    assert "UNDECIDED bench::regression:\n     no baseline to compare with" in output


def test_a_drop_within_the_noise_is_a_warning(two_runs, capsys):
    two_runs.thresholds("[benchmarks.bench]\naccuracy = 0.5" + GATES.format(drop=0.05))
    code, output, _ = llmeval(capsys, "gate", "new", "--baseline", "old")
    assert code == 0
    assert "WARN bench::regression::max_drop: 0.1111" in output
    assert "thresholds.toml" in output  # nine items cannot show a drop of 0.05


def test_a_significant_drop_turns_the_build_red(project, capsys):
    project.benchmark(art=40)
    project.run("--llm-runs=old")
    project.model(respond=WORSE_LAW.replace('request.id == "law-0001"', 'request.id < "art-0012"'))
    project.run("--llm-runs=new")
    (old,), (new,) = ((project.path / name).glob("*/") for name in ("old", "new"))
    project.thresholds(GATES.format(drop=0.1))
    code, output, _ = llmeval(capsys, "gate", new, "--baseline", old)
    assert code == 1
    assert "FAIL bench::regression::max_drop: 0.275" in output


# Refusal ----------------------------------------------------------------------------------


@pytest.fixture
def published(project):
    """Runs of the same four questions: 5 shots, none, and the other published format."""
    (project.path / "test_bench.py").write_text(PUBLISHED)
    for name, arguments in {
        "five": ("--llm-protocol=lmeval",),
        "none": ("--llm-protocol=lmeval", "--llm-shots=0"),
        "hendrycks": ("--llm-protocol=hendrycks",),
    }.items():
        assert project.run(f"--llm-runs=of-{name}", *arguments).ret == 0
        (folder,) = (project.path / f"of-{name}").glob("*/")
        folder.rename(project.path / name)
    return project


def test_other_protocols_exit_4_and_name_the_fields(published, capsys):
    code, output, errors = llmeval(capsys, "compare", "five", "none")
    assert (code, output) == (4, "")
    assert errors.startswith("llmeval: five and none cannot be compared: mini[letter]: shots 5 ag")
    assert errors.count("\n") == 1

    code, output, errors = llmeval(capsys, "compare", "five", "hendrycks")
    assert (code, output) == (4, "")
    assert "name 'lmeval' against 'hendrycks'" in errors
    assert f"template.name {LMEVAL_MMLU.name!r} against {HENDRYCKS.name!r}" in errors
    assert errors.count("\n") == 1


def test_several_runs_make_a_table_for_every_comparable_group(published, capsys):
    names = ("five", "five", "none", "hendrycks")
    code, output, _ = llmeval(capsys, "compare", *names)
    assert code == 0
    assert output.splitlines().count("mini[letter]") == 3
    assert "not comparable with five: shots 5 against 0" in output
    _, output, _ = llmeval(capsys, "compare", *names, "--format=json")
    tables = json.loads(output)["tables"]
    assert [len(table["standings"]) for table in tables] == [2, 1, 1]
    assert [table["apart"] is None for table in tables] == [True, False, False]
    _, output, _ = llmeval(capsys, "compare", *names, "--format=markdown")
    assert output.count("**not comparable with five: ") == 2


def test_allowed_mismatch_shows_numbers_and_no_verdict(published, capsys):
    code, output, _ = llmeval(capsys, "compare", "five", "none", "--allow-mismatch")
    assert code == 0
    assert "protocols or data differ: no verdict: shots 5 against 0" in output
    published.thresholds("[benchmarks.mini.regression]\nmax_drop = 0.5")
    arguments = ("gate", "none", "--baseline", "five")
    code, _, errors = llmeval(capsys, *arguments)
    assert code == 4
    assert "shots 5 against 0" in errors
    code, output, _ = llmeval(capsys, *arguments, "--allow-mismatch")
    assert code == 1
    assert "UNDECIDED mini::regression" in output


def test_a_session_refuses_such_a_baseline_before_any_request(published):
    requested = len(published.requested)
    result = published.run("--llm-baseline=five", "--llm-protocol=hendrycks")
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line]
    assert "'lmeval' against 'hendrycks'" in line
    assert len(published.requested) == requested


def test_show_prints_a_protocol_in_full(published, capsys):
    code, output, _ = llmeval(capsys, "show", "five", "--protocol")
    assert code == 0
    head, _, text = output.partition("\n")
    assert head.startswith("mini[letter], protocol ")
    shown = json.loads(text)
    assert shown["protocol"]["shots"] == 5
    assert shown["shots_of_the_first_item"] == {"art": [f"art-dev-{row}" for row in range(5)]}
    assert shown["models"] == {"scripted": "weights-1"}
    assert "{" not in shown["protocol"]["template"]["question"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare",),
        ("baseline",),
        ("compare", "old", "new", "--flips=-1"),
        ("compare", "old", "new", "--format=html"),
        ("merge", "old"),
        ("nonsense",),
        (),
    ],
)
def test_mistakes_in_the_command_line_exit_4(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(list(arguments))
    assert caught.value.code == 4
    assert "llmeval" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("torn", '{"format": 2, "kind": "basel', "cannot be read"),
        ("foreign", '{"dependencies": {}}', "not a document of format"),
        ("empty", "", "cannot be read"),
    ],
)
def test_damaged_baselines_exit_4_with_one_line(project, capsys, name, text, reason):
    project.run()
    (project.path / "baselines").mkdir()
    (project.path / "baselines" / f"{name}.json").write_text(text)
    code, _, errors = llmeval(capsys, "compare", name, project.run_folder)
    assert code == 4
    assert reason in errors
    assert errors.count("\n") == 1


# Shards -----------------------------------------------------------------------------------

SHARDED = {"art": 7, "law": 11, "zoo": 5}


def shards(project, parts: int, *arguments: str) -> list:
    for part in range(1, parts + 1):
        project.run(f"--llm-shard={part}/{parts}", f"--llm-runs=part-{part}", *arguments)
    return [next((project.path / f"part-{n}").glob("*/")) for n in range(1, parts + 1)]


@pytest.mark.parametrize("arguments", [(), ("--llm-limit=4", "--llm-seed=7")])
def test_four_shards_are_one_run_byte_for_byte(project, capsys, arguments):
    project.benchmark(**SHARDED)
    project.run("--llm-runs=whole", *arguments)
    (whole,) = (project.path / "whole").glob("*/")
    folders = shards(project, 4, *arguments)
    code, output, _ = llmeval(capsys, "merge", *folders, "--out", "merged")
    assert code == 0
    assert output.startswith("merged 4 shards into merged: bench[letter] ")
    merged = (project.path / "merged" / "metrics.json").read_bytes()
    assert merged == (whole / "metrics.json").read_bytes()
    assert merged != (folders[0] / "metrics.json").read_bytes()
    code, output, _ = llmeval(capsys, "compare", whole, "merged", "--format=json")
    (comparison,) = json.loads(output)["comparisons"]
    assert (comparison["newly_wrong"], comparison["newly_right"]) == ([], [])
    assert comparison["complete"] == (not arguments)


FUNCTION = """
import pytest

def answer(prompt):
    row = int(prompt.partition(" question ")[2].partition("?")[0])
    if row == 3:
        raise RuntimeError("endpoint is down")
    return "The answer is (B)." if row % 2 else "no idea"

@pytest.fixture(scope="session")
def model():
    return answer
"""


def test_shards_of_samples_of_a_function_with_errors(project, capsys):
    project.benchmark(**SHARDED)
    project.model(FUNCTION)
    arguments = ("--llm-samples=3",)
    project.run("--llm-runs=whole", *arguments)
    (whole,) = (project.path / "whole").glob("*/")
    code, output, _ = llmeval(capsys, "merge", *shards(project, 3, *arguments), "--out", "merged")
    assert code == 0
    assert output.endswith("bench[choice] 23 items, 9 errors\n")
    merged = (project.path / "merged" / "metrics.json").read_bytes()
    assert merged == (whole / "metrics.json").read_bytes()
    (result,) = json.loads(merged)["results"]
    assert (result["errors"], result["samples"]) == (9, 3)


def test_overlaps_and_gaps_exit_4(project, capsys):
    project.benchmark(**SHARDED)
    first, two, three = shards(project, 3)
    code, _, errors = llmeval(capsys, "merge", first, three, "--out", "merged")
    assert (code, errors) == (4, "llmeval: gap: shard 2/3 is missing\n")
    code, _, errors = llmeval(capsys, "merge", first, two, two, three, "--out", "merged")
    assert code == 4
    assert "are both shard 2/3" in errors
    project.run("--llm-runs=whole")
    (whole,) = (project.path / "whole").glob("*/")
    code, _, errors = llmeval(capsys, "merge", first, two, whole, "--out", "merged")
    assert code == 4
    assert "is not a shard" in errors
    assert not (project.path / "merged").exists()
