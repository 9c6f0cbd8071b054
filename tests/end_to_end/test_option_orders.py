"""``--llm-permutations`` end to end: planted models, mapped answers, gates, resume, workers."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec

import numpy
import pytest

from pytest_llmeval.core import ModelError
from support.lettered_templates import TEMPLATE

# Forty items; the gold's position and text differ from item to item, so that content can be known.
BENCHMARK = (
    """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

def make(prefix, number):
    options = tuple(f"{prefix}{number} option {n}" for n in range(4))
    return Item(f"{prefix}-{number:02d}", "all", f"{prefix} {number}?", number % 4, options)

def load(data_dir):
    return Dataset(tuple(make("item", n) for n in range(40)),
                   {"all": tuple(make("shot", n) for n in range(2))})
"""
    + TEMPLATE
    + """
BENCH = Benchmark("planted", load, (Protocol("letters", TEMPLATE, scorer="letter", shots=2),))

@pytest.mark.llmeval(BENCH)
def test_planted(answer):
    assert answer.correct
"""
)

MODEL = """
import re
import pytest
from pytest_llmeval import Response

class Planted:
    name = "planted"
    fingerprint = "weights-1"
    asks = frozenset({"choices"})

    def answer(self, requests):
        for request in requests:
            with open("asked.txt", "a") as file:
                file.write(f"main {request.id}\\n")
            options = re.findall(r"(?m)^[A-D]\\. (.*)$", request.prompt.question)
            gold = [o.endswith(f"option {int(request.id[-2:]) % 4}") for o in options].index(True)
            shot = "ABCD".index(request.prompt.shots[-1][1])
            chosen = self.choose(gold, shot)
            scores = tuple(-1.0 if n == chosen else -2.0 for n in range(4))
            yield Response(request.id, logprobs=scores, sample=request.sample)

    def choose(self, gold, shot):
        return RULE

@pytest.fixture(scope="session")
def model():
    return Planted()
"""


@pytest.fixture
def planted(project):
    def write(rule: str):
        (project.path / "test_bench.py").write_text(BENCHMARK)
        (project.path / "conftest.py").write_text(MODEL.replace("RULE", rule))
        return project

    return write


def audit(project) -> dict:
    return project.metrics()["audit"]


def accuracies(project) -> dict[str, float]:
    return {arm["name"]: arm["accuracy"] for arm in audit(project)["arms"]}


def test_one_that_knows_is_right_in_every_order(planted):
    project = planted("gold")
    result = project.run("--llm-permutations=cyclic")
    assert result.ret == 0
    assert accuracies(project) == dict.fromkeys(
        ["original", "cyclic@1", "cyclic@2", "cyclic@3"], 1.0
    )
    (family,) = audit(project)["families"]
    assert (family["consistency"], family["range"], family["recall_std"]) == (1.0, 0.0, 0.0)
    assert len(project.asked) == 160
    result.stdout.fnmatch_lines(["*no preference for a position*"])


def test_one_that_always_says_a(planted):
    project = planted("0")
    result = project.run("--llm-permutations=attack")
    assert result.ret == 0
    found = accuracies(project)
    assert found["original"] == 0.25
    for family in ("test", "both"):
        assert [found[f"{family}@{label}"] for label in "ABCD"] == [1.0, 0.0, 0.0, 0.0]
    assert [found[f"shots@{label}"] for label in "ABCD"] == [0.25] * 4
    families = {family["name"]: family for family in audit(project)["families"]}
    assert families["test"]["recall_std"] == pytest.approx((3 / 16) ** 0.5)
    result.stdout.fnmatch_lines(["*planted?letter?: the model *A*"])


def test_one_that_copies_the_last_shot(planted):
    project = planted("shot")
    result = project.run("--llm-permutations=attack")
    found = accuracies(project)
    assert found["original"] == 0.25
    assert [found[f"both@{label}"] for label in "ABCD"] == [1.0] * 4
    assert [found[f"shots@{label}"] for label in "ABCD"] == [0.25] * 4
    result.stdout.fnmatch_lines(["*copies the position of the shots' answers*"])


def test_one_that_knows_all_but_what_stands_third(planted):
    project = planted("gold if gold != 2 else 3")
    result = project.run("--llm-permutations=attack")
    found = accuracies(project)
    assert found["original"] == 0.75
    assert [found[f"test@{label}"] for label in "ABCD"] == [1.0, 1.0, 0.0, 1.0]
    families = {family["name"]: family for family in audit(project)["families"]}
    # Of four orders with the answer at A, B, C, D one disagrees with the others: 3 of 6 pairs.
    assert families["test"]["consistency"] == 0.5
    assert families["test"]["recall_std"] == pytest.approx((3 / 16) ** 0.5)
    assert families["test"]["worst_case"] == 0.0
    result.stdout.fnmatch_lines(["*planted?letter?: the model * C*"])


def test_one_that_always_says_the_last(planted):
    project = planted("3")
    result = project.run("--llm-permutations=cyclic")
    assert set(accuracies(project).values()) == {0.25}
    (family,) = audit(project)["families"]
    assert (family["consistency"], family["majority"]) == (0.0, 0.25)
    result.stdout.fnmatch_lines(["*planted?letter?: the model *D*"])


def test_one_that_answers_at_random_shows_no_preference(planted):
    project = planted("__import__('zlib').crc32(f'{gold} {shot} {self.n()}'.encode()) % 4")
    text = (project.path / "conftest.py").read_text()
    counter = "    def n(self):\n        self.asked = getattr(self, 'asked', 0) + 1\n"
    counter += "        return self.asked\n\n    def choose"
    (project.path / "conftest.py").write_text(text.replace("    def choose", counter, 1))
    result = project.run("--llm-permutations=cyclic")
    assert all(0.05 < value < 0.5 for value in accuracies(project).values())
    result.stdout.fnmatch_lines(["*no preference for a position*"])


def test_answers_are_mapped_back_to_the_original_options(planted):
    project = planted("gold")
    project.run("--llm-permutations=cyclic")
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    moved = [record for record in map(json.loads, lines) if record.get("order")]
    assert len(moved) == 120
    assert {record["order"] for record in moved} == {"BCDA", "CDAB", "DABC"}
    assert all(record["answer"] == record["gold"] for record in moved)


def test_the_result_itself_is_that_of_a_plain_run(planted):
    project = planted("0")
    project.run()
    plain = project.metrics()
    project.run("--llm-permutations=cyclic", "--llm-runs=audited")
    (folder,) = (project.path / "audited").glob("*/")
    (audited,) = json.loads((folder / "metrics.json").read_text())["results"]
    assert audited.pop("audit")
    assert audited == plain


@pytest.mark.parametrize(("kind", "workers"), [("cyclic", "0"), ("cyclic", "2"), ("attack", "0")])
def test_gates_of_an_audit(planted, kind, workers):
    project = planted("0")
    project.thresholds(
        "[benchmarks.planted]\nposition_range = 0.5\nconsistency = 0.9\nrecall_std = 0.1"
    )
    result = project.run(f"--llm-permutations={kind}", "-n", workers)
    assert result.ret == 1
    gates = {one["metric"]: one for one in project.document("gates.json")["gates"]}
    # All rotations have the same accuracy; what stands at A is always found, elsewhere never.
    assert (gates["position_range"]["status"], gates["position_range"]["measured"]) == ("fail", 1.0)
    # Rotations bring four options to A; of the swaps three leave the same one there, or all four
    # another one where that is the right one: 3 of 6 pairs, or none.
    consistency = {"cyclic": 0.0, "attack": (3 * 0.5 + 0.0) / 4}[kind]
    assert (gates["consistency"]["status"], gates["consistency"]["measured"]) == (
        "fail",
        consistency,
    )
    assert gates["recall_std"]["status"] == "fail"


def test_gates_without_an_audit_are_undecided(planted):
    project = planted("gold")
    project.thresholds("[benchmarks.planted]\nconsistency = 0.9")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["UNDECIDED*no permutation audit: run it with --llm-permutations*"])


def test_a_resumed_audit_and_a_stored_one_tell_the_same(planted):
    project = planted("shot")
    assert project.run("--llm-permutations=attack").ret == 0
    before, asked = project.metrics(), len(project.asked)
    file = project.run_folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]))
    assert project.run("--llm-permutations=attack", "--llm-resume").ret == 0
    assert project.metrics() == before
    assert len(project.asked) == asked + len(lines) - len(lines) // 2
    gate = project.pytester.run("llmeval", "show", str(project.run_folder))
    gate.stdout.fnmatch_lines(["*copies the position of the shots' answers*"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--llm-permutations=cylic"], "*unknown permutations 'cylic'*'cyclic'*"),
        (["--llm-permutations=1"], "*permutations: 1 of 4 options*"),
    ],
)
def test_mistakes(planted, arguments, message):
    project = planted("gold")
    result = project.run(*arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])


BIASED = """
scores = [0.0] * 4
            scores[gold] += 1.0
            scores[0] += 1.5
            yield Response(request.id, logprobs=tuple(s - 5.0 for s in scores), sample=request.sample)
"""


@pytest.fixture
def biased(planted):
    """A model that knows the answer and likes A: 25 % as it is, all right without the bias."""

    def write(backwards: bool = False):
        project = planted("gold")
        head, _, tail = MODEL.partition("            chosen = ")
        _, _, tail = tail.partition("sample=request.sample)\n")
        text = head + "            " + BIASED.strip() + "\n" + tail
        if backwards:
            text = text.replace("in requests:", "in reversed(list(requests)):")
            text = text.replace("request.sample)", "request.sample, arm=request.arm)")
        (project.path / "conftest.py").write_text(text)
        return project

    return write


DEBIASED = ("--llm-permutations=cyclic", "--llm-debias=cyclic,pride,batch")


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_preference_is_taken_out_where_that_is_asked_for(biased, workers, backwards):
    """In whatever order the answers come."""
    project = biased(backwards)
    assert project.run(*DEBIASED, "-n", workers).ret == 0
    results = {one["scorer"]: one for one in project.document("metrics.json")["results"]}
    found = {scorer: one["accuracy"] for scorer, one in results.items()}
    assert found == {
        "letter": 0.25,
        "letter+cyclic": 1.0,
        "letter+pride": 1.0,
        "letter+batch": 1.0,
    }
    fingerprints = {one["protocol_fingerprint"] for one in results.values()}
    assert len(fingerprints) == 4
    again = project.pytester.run("llmeval", "show", str(project.run_folder))
    again.stdout.fnmatch_lines(["planted?letter+pri* 40 * 1.0000 *"])


def test_a_batch_is_of_the_answers_in_the_original_order(biased):
    """An attack shows some orders again with other shots."""
    project = biased(backwards=True)
    assert project.run("--llm-permutations=attack", "--llm-debias=batch").ret == 0
    results = {one["scorer"]: one for one in project.document("metrics.json")["results"]}
    assert results["letter+batch"]["accuracy"] == 1.0


def test_a_debiased_result_is_reported_and_may_be_a_baseline(biased):
    project = biased()
    assert project.run(*DEBIASED, "--llm-report=html,json").ret == 0
    assert (project.run_folder / "report.html").read_text().count("letter+pride") > 0
    run = str(project.run_folder)
    assert project.pytester.run("llmeval", "baseline", run, "last").ret == 0
    compared = project.pytester.run("llmeval", "compare", "last", run, "--format=json")
    (pride,) = (
        one
        for one in json.loads(compared.stdout.str())["comparisons"]
        if one["scorer"] == "letter+pride"
    )
    assert (pride["overall"]["items"], pride["overall"]["baseline"]) == (40, 1.0)
    project.thresholds("[benchmarks.planted.scorers.'letter+pride'.regression]\nmax_drop = 0.01")
    assert project.run(*DEBIASED, "--llm-baseline=last").ret == 0


def test_items_with_other_numbers_of_options_stay_as_they_are_and_that_is_told(biased):
    project = biased()
    text = (project.path / "test_bench.py").read_text()
    sizes = "range({7: 5, 8: 3}.get(number, 4))"
    text = text.replace("range(4))\n    return", f"{sizes})\n    return", 1)
    text = text.replace("number % 4, options)", "number % 3, options)")
    (project.path / "test_bench.py").write_text(text)
    text = (project.path / "conftest.py").read_text()
    text = text.replace("[A-D]", "[A-E]").replace("% 4}", "% 3}").replace("% 4)", "% 3)")
    (project.path / "conftest.py").write_text(text.replace("[0.0] * 4", "[0.0] * len(options)"))
    result = project.run(*DEBIASED)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["planted?letter+pride?: 1 of 40 items stay as they are*"])
    results = {one["scorer"]: one for one in project.document("metrics.json")["results"]}
    # Item 7, of five options in four orders, is left with its bias: its answer stands at B.
    assert results["letter+pride"]["accuracy"] == 39 / 40
    assert project.run("--llm-permutations=full", "--llm-debias=pride").ret == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--llm-debias=prid"], "*unknown 'prid'*'pride'*"),
        (["--llm-debias=pride"], "*add --llm-permutations cyclic*"),
    ],
)
def test_mistakes_about_debiasing(planted, arguments, message):
    result = planted("gold").run(*arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])


# A function does not say to which request its answer is, and sees the prompt alone.
FUNCTION = """
import re
import pytest

def system(prompt):
    return f"The answer is ({re.findall(r'Answer: ([A-D])', prompt)[-1]})."

@pytest.fixture(scope="session")
def model():
    return system
"""


def test_a_function_that_copies_the_last_shot(planted):
    project = planted("gold")
    (project.path / "conftest.py").write_text(FUNCTION)
    assert project.run("--llm-permutations=attack").ret == 0
    found = accuracies(project)
    assert [found[f"both@{label}"] for label in "ABCD"] == [1.0] * 4
    assert [found[f"shots@{label}"] for label in "ABCD"] == [0.25] * 4
    assert [found[f"test@{label}"] for label in "ABCD"] == [0.0, 1.0, 0.0, 0.0]
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    stored = list(map(json.loads, lines))
    assert len({(one["item"], one.get("arm")) for one in stored}) == 40 * 13
    assert not any("sample" in one for one in stored)


# The right text stands twice, so every answer is drawn from the two.
TWICE = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol
from pytest_llmeval.prompts.uniform_labels import DASHED

def load(data_dir):
    return Dataset(tuple(Item(f"item-{n:02d}", "all", f"{n}?", 1, ("red", "blue", "blue", "green"))
                         for n in range(20)))

BENCH = Benchmark("twice", load, (Protocol("matched", DASHED, scorer="matched", ask="text"),))

@pytest.mark.llmeval(BENCH)
def test_twice(answer):
    assert answer.correct
"""

BLUE = """
import pytest
from pytest_llmeval import Response

class Blue:
    fingerprint = "weights-1"
    asks = frozenset({"text"})

    def answer(self, requests):
        for request in requests:
            with open("asked.txt", "a") as file:
                file.write(f"main {request.id}\\n")
            yield Response(request.id, text="blue", sample=request.sample)

@pytest.fixture(scope="session")
def model():
    return Blue()
"""


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra bias")
@pytest.mark.parametrize("arguments", [["--llm-samples=4"], ["--llm-permutations=cyclic"]])
def test_what_is_drawn_for_a_text_is_drawn_again_when_resumed(project, arguments):
    (project.path / "test_bench.py").write_text(TWICE)
    (project.path / "conftest.py").write_text(BLUE)
    assert project.run(*arguments).ret == 0
    before = project.metrics()
    file = project.run_folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    answers = [json.loads(line)["answer"] for line in lines]
    assert {answers.count("B"), answers.count("C")} != {0, len(answers)}
    file.write_text("".join(lines[:-1]))
    assert project.run(*arguments, "--llm-resume").ret == 0
    assert project.metrics() == before


def test_a_dry_run_counts_every_order(planted):
    result = planted("gold").run("--llm-permutations=attack", "--llm-dry-run")
    result.stdout.fnmatch_lines(["planted?letter? * 40 * 520 *"])


def test_shards_of_different_audits_are_not_joined(planted):
    project = planted("gold")
    assert project.run("--llm-shard=1/2", "--llm-permutations=cyclic").ret == 0
    assert project.run("--llm-shard=2/2").ret == 0
    runs = sorted(str(folder) for folder in (project.path / "runs").glob("*/"))
    joined = project.pytester.run("llmeval", "merge", *runs, "--out", "whole")
    assert joined.ret != 0
    joined.stderr.fnmatch_lines(["*are not shards of one run: *orders*"])


def test_joined_shards_of_an_audit_are_the_audit(planted):
    project = planted("__import__('zlib').crc32(bytes([gold, shot])) % 4")
    arguments = ("--llm-permutations=attack", "--llm-debias=batch")
    for part in ("1/2", "2/2"):
        assert project.run(f"--llm-shard={part}", *arguments).ret == 0
    runs = sorted(str(folder) for folder in (project.path / "runs").glob("*/"))
    assert project.pytester.run("llmeval", "merge", *runs, "--out", "whole").ret == 0
    assert project.run(*arguments, "--llm-runs=undivided").ret == 0
    (undivided,) = (project.path / "undivided").glob("*/")
    made, wanted = (
        json.loads((folder / "metrics.json").read_text())["results"]
        for folder in (project.path / "whole", undivided)
    )
    assert made == wanted


def test_an_item_without_a_verdict_counts_in_no_order(planted):
    project = planted("gold")
    body = "    if answer.item.id == 'item-03':\n        pytest.skip('not this one')\n    assert"
    (project.path / "test_bench.py").write_text(BENCHMARK.replace("    assert", body))
    assert project.run("--llm-permutations=cyclic", "--llm-report=json").ret == 0
    assert audit(project)["items"] == 39
    answers = project.document("export.json")["answers"]
    assert {one["protocol"] for one in answers} == {"letters"}
    left = [one["order"] for one in answers if not one["counted"]]
    assert sorted(left, key=str) == ["BCDA", "CDAB", "DABC", None]
    assert sum(one["order"] is None for one in answers) == 40


def test_items_that_were_not_reached_count_in_no_order(biased):
    project = biased(backwards=True)  # all answers are on disk with the first
    body = "    if answer.item.id == 'item-03':\n        raise RuntimeError\n    assert"
    (project.path / "test_bench.py").write_text(BENCHMARK.replace("    assert", body))
    assert project.run("--llm-permutations=cyclic", "-x").ret == 1
    assert audit(project)["items"] == 3
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    last = {(one["item"], one.get("arm")): one for one in map(json.loads, lines)}
    assert len(last) == 160
    assert sum(not one.get("left_out") for one in last.values()) == 4 * 4


def test_answers_that_were_broken_off_are_errors_of_their_own_orders(planted):
    project = planted("gold")
    file = project.path / "conftest.py"
    file.write_text(
        file.read_text().replace(
            "            options =",
            "            if request.id == 'item-03': pytest.fail('hangs')\n            options =",
        )
    )
    assert project.run("--llm-permutations=cyclic").ret == 1
    assert project.metrics()["errors"] == 37
    assert audit(project)["items"] == 3
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    stored = list(map(json.loads, lines))
    assert len({(one.get("arm"), one["protocol"]) for one in stored}) == 4
    assert not any("sample" in one for one in stored)


def test_answers_in_any_order_have_to_name_their_arm(biased):
    """Item and sample do not distinguish them, and no number comes from a guess."""
    project = biased(backwards=True)
    file = project.path / "conftest.py"
    file.write_text(file.read_text().replace(", arm=request.arm", ""))
    result = project.run("--llm-permutations=cyclic")
    assert result.ret == 1
    assert project.metrics()["errors"] == 40
    result.stdout.fnmatch_lines(["*come in another order than the requests: give each its arm, *"])
    # Without other orders the item says enough.
    assert project.run("--llm-runs=plain").ret == 0


def test_equal_options_are_one_option(planted):
    """One that says "blue" in every order says the same, whichever blue it points at."""
    project = planted("0")
    text = BENCHMARK.replace(
        'tuple(f"{prefix}{number} option {n}" for n in range(4))', '("red", "blue", "blue", "red")'
    )
    (project.path / "test_bench.py").write_text(text)
    model = MODEL.replace("gold = [", "gold = options.index('blue')  # [").replace("RULE", "gold")
    (project.path / "conftest.py").write_text(model)
    assert project.run("--llm-permutations=cyclic").ret == 0
    (family,) = audit(project)["families"]
    assert family["consistency"] == 1.0
    shown = project.pytester.run("llmeval", "show", str(project.run_folder))
    shown.stdout.fnmatch_lines(["*consistency 1.0000*"])


def test_recorded_samples_are_no_answers_to_other_orders(planted):
    project = planted("gold")
    (project.path / "conftest.py").unlink()
    rows = [{"item": f"item-{n:02d}", "samples": ["(A)"] * 4} for n in range(40)]
    (project.path / "said.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert project.run("--llm-model=replay:said.jsonl").ret == 0
    result = project.run("--llm-model=replay:said.jsonl", "--llm-permutations=cyclic")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*3 of 4 prompts: no recorded answer for item-00, cyclic@1*"])


def test_a_recorded_audit_is_replayed(planted):
    project = planted("shot")
    assert project.run("--llm-permutations=attack").ret == 0
    wanted = audit(project)
    (project.run_folder / "records.jsonl").rename(project.path / "records.jsonl")
    (project.path / "conftest.py").unlink()
    model = "--llm-model=replay:records.jsonl"
    assert project.run(model, "--llm-permutations=attack", "--llm-runs=again").ret == 0
    (folder,) = (project.path / "again").glob("*/")
    (result,) = json.loads((folder / "metrics.json").read_text())["results"]
    assert result["audit"] == wanted


def test_without_shots_to_show_none_are_moved(planted):
    project = planted("gold")
    text = BENCHMARK.replace('{"all": tuple(make("shot", n) for n in range(2))}', "{}")
    (project.path / "test_bench.py").write_text(text)
    (project.path / "conftest.py").write_text(
        MODEL.replace('"ABCD".index(request.prompt.shots[-1][1])', "0").replace("RULE", "gold")
    )
    assert project.run("--llm-permutations=attack").ret == 0
    assert list(accuracies(project)) == ["original", "test@A", "test@B", "test@C", "test@D"]


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra bias")
def test_a_scorer_without_its_model_ends_the_run_and_keeps_the_answers(project, monkeypatch):
    (project.path / "test_bench.py").write_text(TWICE)
    (project.path / "conftest.py").write_text(BLUE.replace('"blue"', '"azure"'))

    def missing(name):
        raise ModelError(f"embeddings by {name}: no such thing")

    scorer = import_module("pytest_llmeval.scorers.matched")  # the package has its function there
    monkeypatch.setattr(scorer, "load_embedder", missing)
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*scorer matched: embeddings by Qwen/*: no such thing"])
    assert len(project.asked) == 1
    monkeypatch.setattr(
        scorer, "load_embedder", lambda _: lambda texts: numpy.ones((len(texts), 2))
    )
    assert project.run("--llm-resume").ret == 0
    assert project.metrics()["answered"] == 20
    assert len(project.asked) == 20


def test_what_cannot_be_debiased_is_told(planted):
    project = planted("gold")
    (project.path / "conftest.py").write_text(FUNCTION)
    result = project.run("--llm-debias=batch")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["planted?letter+batch? is not computed: *"])
    (project.path / "test_bench.py").write_text(
        BENCHMARK.replace("number % 4, options)", "options[0])")
        .replace('"letter"', '"contains"')
        .replace("shots=2", "ask='text'")
    )
    (project.path / "conftest.py").write_text(BLUE)
    result = project.run("--llm-permutations=cyclic")
    result.stdout.fnmatch_lines(["--llm-permutations: no benchmark of this run has options"])
