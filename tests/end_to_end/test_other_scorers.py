"""One generation under several scorers: as many results, one item test, one response on disk."""

from __future__ import annotations

import json

import pytest

TEXT = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

def load(data_dir):
    return Dataset(tuple(
        Item(f"tea-{row:04d}", "tea", f"question {row}?", 1, ("one", "two", "three"))
        for row in range(4)
    ))

TEMPLATE = Template("plain", lambda subject: "", lambda item: item.question, lambda item: "ABC")
BENCH = Benchmark("bench", load, (
    Protocol("p", TEMPLATE, scorer="exact_match", also=("choice",), ask="text"),
))

@pytest.mark.llmeval(BENCH)
def test_bench(answer):
    assert answer.correct
"""

# exact_match reads B only where it is all there is; choice reads more; neither reads "hm".
MODEL = """
import pytest
from pytest_llmeval import Response

TEXTS = ("B", "The answer is (B).", "The answer is (A).", "hm")

class Talking:
    name = "talking"
    asks = frozenset({"text"})
    fingerprint = "1"

    def answer(self, requests):
        for request in requests:
            with open("asked.txt", "a") as file:
                file.write(f"- {request.id}\\n")
            yield self.respond(request)

    def respond(self, request):
        return Response(request.id, text=TEXTS[int(request.id[-1])], finish_reason="length")

@pytest.fixture(scope="session")
def model():
    return Talking()
"""


@pytest.fixture
def scored(project):
    (project.path / "test_bench.py").write_text(TEXT)
    project.model(MODEL)
    return project


def results(project):
    both = project.document("metrics.json")["results"]
    assert [result["scorer"] for result in both] == ["exact_match", "choice"]
    return both


@pytest.mark.parametrize("workers", ["0", "2"])
def test_every_scorer_is_a_result(scored, workers):
    scored.thresholds(
        """
        [benchmarks.bench.scorers.exact_match]
        accuracy = 0.25
        [benchmarks.bench.scorers.choice]
        accuracy = 0.5
        unparsed_rate = 0.25
        truncated_rate = 1
        """
    )
    run = scored.run("-n", workers)
    assert run.ret == 0
    exact, choice = results(scored)
    assert (exact["correct"], exact["unparsed"]) == (1, 3)
    assert (choice["correct"], choice["wrong"], choice["unparsed"]) == (2, 1, 1)
    assert exact["truncated"] == choice["truncated"] == 4
    assert exact["protocol_fingerprint"] != choice["protocol_fingerprint"]
    run.stdout.fnmatch_lines(
        [
            "bench?exact_match? *4 *",
            "bench?choice? *4 *",
            "bench: of 4 answers choice counts 1 as right that exact_match does not, and 0 *",
            "*1 passed, 3 unparsed*4 gates passed*",
        ]
    )
    assert len(scored.requested) == 4
    lines = (scored.run_folder / "records.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 8
    assert all(("text" in record) != ("response_of" in record) for record in records)


def test_a_stored_run_has_the_same_results(scored):
    scored.run()
    first = scored.document("metrics.json")
    folder = scored.run_folder
    shown = scored.pytester.run("llmeval", "show", folder)
    shown.stdout.fnmatch_lines(["bench?choice? *", "bench: of 4 answers choice counts 1 *"])
    (scored.path / "thresholds.toml").write_text(
        "version = 1\n[benchmarks.bench.scorers.choice]\naccuracy = 0.5\n"
    )
    assert scored.pytester.run("llmeval", "gate", folder).ret == 0
    assert scored.pytester.run("llmeval", "baseline", folder, "first").ret == 0
    # A run under the other scorer alone has the same protocol as the other scorer's result.
    (scored.path / "test_bench.py").write_text(
        TEXT.replace('scorer="exact_match", also=("choice",)', 'scorer="choice"')
    )
    run = scored.run("--llm-baseline=first")
    assert run.ret == 0
    (alone,) = scored.document("metrics.json")["results"]
    assert alone == first["results"][1]
    run.stdout.fnmatch_lines(["*0.5000*0.5000*"])


def test_resume_scores_again_without_asking(scored):
    scored.run()
    first = scored.document("metrics.json")
    (scored.path / "asked.txt").unlink()
    scored.run("--llm-resume")
    assert scored.requested == []
    assert scored.document("metrics.json") == first


def test_a_replayed_run_has_the_same_results(scored):
    scored.run()
    first = results(scored)
    records = scored.run_folder / "records.jsonl"
    (scored.path / "conftest.py").unlink()
    assert scored.run(f"--llm-model=replay:{records}").ret == 0
    for before, after in zip(first, results(scored), strict=True):
        assert {**after, "model": before["model"]} == before


def test_errors_are_errors_of_every_scorer(scored):
    scored.model(MODEL.replace("text=TEXTS[int(request.id[-1])]", 'error="down"'))
    assert scored.run().ret == 1
    assert [result["errors"] for result in results(scored)] == [4, 4]
    scored.model(MODEL.replace("yield self.respond(request)", "import os; os._exit(1)"))
    assert scored.run("-n", "2").ret == 1
    assert [result["errors"] for result in results(scored)] == [4, 4]


def test_the_assertion_of_a_body_is_about_the_first_scorer(scored):
    text = TEXT.replace("assert answer.correct", "pytest.skip('no')")
    (scored.path / "test_bench.py").write_text(text)
    scored.run()
    entries = scored.document("metrics.json")["results"]
    assert [result["answered"] for result in entries] == [0]
    text = TEXT.replace("assert answer.correct", "assert 'B' in answer.text")
    (scored.path / "test_bench.py").write_text(text)
    scored.run()
    exact, choice = results(scored)
    assert (exact["correct"], choice["correct"]) == (2, 2)
    text = TEXT.replace("assert answer.correct", "raise RuntimeError('no')")
    (scored.path / "test_bench.py").write_text(text)
    assert scored.run().ret == 1
    assert [result["errors"] for result in results(scored)] == [4, 4]


def test_two_tests_cannot_give_the_same_result(scored):
    more = TEXT + (
        "\nOTHER = Benchmark('bench', load, (Protocol('q', TEMPLATE, scorer='choice', ask='text'),))"
        "\n@pytest.mark.llmeval(OTHER)\ndef test_other(answer): assert answer.correct\n"
    )
    (scored.path / "test_bench.py").write_text(more)
    run = scored.run()
    assert run.ret == 4
    run.stderr.fnmatch_lines(["*both give the result (bench, choice)*"])


def test_shards_with_several_scorers_are_merged(scored):
    scored.run("--llm-runs=whole")
    (whole,) = (scored.path / "whole").glob("*/")
    for part in (1, 2):
        scored.run(f"--llm-shard={part}/2", "--llm-runs=parts")
    parts = sorted((scored.path / "parts").glob("*/"))
    assert scored.pytester.run("llmeval", "merge", *parts, "--out", "joined").ret == 0
    joined = scored.path / "joined" / "metrics.json"
    assert joined.read_bytes() == (whole / "metrics.json").read_bytes()


def test_a_hybrid_score_is_a_named_number_of_its_own(scored):
    run = scored.run("--llm-hybrid=choice=0.75,exact_match=0.25")
    assert run.ret == 0
    (hybrid,) = scored.document("metrics.json")["hybrids"]
    assert hybrid["name"] == "0.75*choice+0.25*exact_match"
    assert hybrid["value"] == pytest.approx(0.75 * 0.5 + 0.25 * 0.25)
    run.stdout.fnmatch_lines(["bench: 0.75*choice+0.25*exact_match = 0.4375, between *"])
    run = scored.run("--llm-hybrid=choice=0.5,number=0.5")
    run.stdout.fnmatch_lines(["no benchmark ran under choice and number"])


HYBRID_GATE = """
[benchmarks.bench.hybrids]
"0.75*choice + 0.25*exact_match" = {bound}
"""


@pytest.mark.parametrize(("bound", "status"), [(0.4375, "PASS"), (0.44, "FAIL")])
def test_a_gate_computes_the_hybrid_that_it_names(scored, bound, status):
    scored.thresholds(HYBRID_GATE.format(bound=bound))
    run = scored.run()
    assert run.ret == (status == "FAIL")
    line = f"{status} bench::hybrids.0.75[*]choice+0.25[*]exact_match: 0.4375 (bound >= {bound})*"
    run.stdout.fnmatch_lines([line])
    again = scored.pytester.run("llmeval", "gate", str(scored.run_folder))
    assert again.ret == run.ret
    again.stdout.fnmatch_lines([line])
    assert "hybrids" not in scored.document("metrics.json")  # --llm-hybrid did not ask


def test_a_hybrid_of_shards_and_of_a_stored_run(scored):
    option = "--llm-hybrid=choice=0.75,exact_match=0.25"
    scored.run(option, "--llm-runs=whole")
    (whole,) = (scored.path / "whole").glob("*/")
    for part in (1, 2):
        scored.run(option, f"--llm-shard={part}/2", "--llm-runs=parts")
    parts = sorted((scored.path / "parts").glob("*/"))
    assert scored.pytester.run("llmeval", "merge", *parts, "--out", "joined").ret == 0
    joined = scored.path / "joined" / "metrics.json"
    assert joined.read_bytes() == (whole / "metrics.json").read_bytes()
    shown = scored.pytester.run("llmeval", "show", "joined")
    shown.stdout.fnmatch_lines(["bench: 0.75*choice+0.25*exact_match = 0.4375, between *"])


def test_a_part_of_the_items_leaves_a_hybrid_undecided(scored):
    scored.thresholds(HYBRID_GATE.format(bound=0.1))
    run = scored.run("-k", "0001")
    assert run.ret == 1
    run.stdout.fnmatch_lines(["UNDECIDED bench::hybrids*", "*only * items were run*"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("choice", "*expected SCORER=WEIGHT,…*"),
        ("choice=0.5,letter=x", "*expected SCORER=WEIGHT,…*"),
        ("choice=0.5,letter=0.4", "*the weights sum to 0.9, not 1*"),
    ],
)
def test_mistakes_about_hybrids(scored, text, message):
    result = scored.run(f"--llm-hybrid={text}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])


def test_a_disagreement_names_its_model(scored):
    (scored.path / "conftest.py").unlink()
    for name in ("one", "two"):
        lines = [
            json.dumps({"item": f"tea-{row:04d}", "text": "The answer is (B)."}) for row in range(4)
        ]
        (scored.path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    result = scored.run("--llm-model=replay:one.jsonl", "--llm-model=replay:two.jsonl")
    for name in ("one", "two"):
        result.stdout.fnmatch_lines([f"replay:{name}.jsonl bench: of 4 answers choice counts 4 *"])
