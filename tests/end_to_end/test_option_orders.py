"""``--llm-permutations`` end to end: planted models, mapped answers, gates, resume, workers."""

from __future__ import annotations

import json

import pytest

from support.planted_project import FUNCTION
from support.planted_project import PLANTED_BENCHMARK
from support.planted_project import PLANTED_MODEL
from support.planted_project import accuracies
from support.planted_project import audit


def test_a_model_that_knows_is_right_in_every_order(planted):
    project = planted("gold")
    result = project.run("--llm-permutations=cyclic")
    assert result.ret == 0
    assert accuracies(project) == dict.fromkeys(
        ["original", "cyclic@1", "cyclic@2", "cyclic@3"], 1.0
    )
    (family,) = audit(project)["families"]
    assert (family["consistency"], family["range"], family["recall_std"]) == (1.0, 0.0, 0.0)
    assert len(project.requested) == 160
    result.stdout.fnmatch_lines(["*no position preference found*"])


def test_a_model_that_always_answers_a(planted):
    project = planted("0")
    result = project.run("--llm-permutations=attack")
    assert result.ret == 0
    by_arm = accuracies(project)
    assert by_arm["original"] == 0.25
    for family in ("test", "both"):
        assert [by_arm[f"{family}@{label}"] for label in "ABCD"] == [1.0, 0.0, 0.0, 0.0]
    assert [by_arm[f"shots@{label}"] for label in "ABCD"] == [0.25] * 4
    families = {family["name"]: family for family in audit(project)["families"]}
    assert families["test"]["recall_std"] == pytest.approx((3 / 16) ** 0.5)
    result.stdout.fnmatch_lines(["*planted?letter?: the model *A*"])


def test_a_model_that_copies_the_last_shot(planted):
    project = planted("shot")
    result = project.run("--llm-permutations=attack")
    by_arm = accuracies(project)
    assert by_arm["original"] == 0.25
    assert [by_arm[f"both@{label}"] for label in "ABCD"] == [1.0] * 4
    assert [by_arm[f"shots@{label}"] for label in "ABCD"] == [0.25] * 4
    result.stdout.fnmatch_lines(["*copies the position of the shots' answers*"])


def test_a_model_that_is_wrong_when_the_answer_is_third(planted):
    project = planted("gold if gold != 2 else 3")
    result = project.run("--llm-permutations=attack")
    by_arm = accuracies(project)
    assert by_arm["original"] == 0.75
    assert [by_arm[f"test@{label}"] for label in "ABCD"] == [1.0, 1.0, 0.0, 1.0]
    families = {family["name"]: family for family in audit(project)["families"]}
    # Of four orders with the answer at A, B, C, D one disagrees with the others: 3 of 6 pairs.
    assert families["test"]["consistency"] == 0.5
    assert families["test"]["recall_std"] == pytest.approx((3 / 16) ** 0.5)
    assert families["test"]["worst_case"] == 0.0
    result.stdout.fnmatch_lines(["*planted?letter?: the model * C*"])


def test_a_model_that_always_answers_the_last_option(planted):
    project = planted("3")
    result = project.run("--llm-permutations=cyclic")
    assert set(accuracies(project).values()) == {0.25}
    (family,) = audit(project)["families"]
    assert (family["consistency"], family["majority"]) == (0.0, 0.25)
    result.stdout.fnmatch_lines(["*planted?letter?: the model *D*"])


def test_a_model_that_answers_at_random_shows_no_preference(planted):
    project = planted("__import__('zlib').crc32(f'{gold} {shot} {self.n()}'.encode()) % 4")
    text = (project.path / "conftest.py").read_text()
    counter = "    def n(self):\n        self.asked = getattr(self, 'asked', 0) + 1\n"
    counter += "        return self.asked\n\n    def choose"
    (project.path / "conftest.py").write_text(text.replace("    def choose", counter, 1))
    result = project.run("--llm-permutations=cyclic")
    assert all(0.05 < value < 0.5 for value in accuracies(project).values())
    result.stdout.fnmatch_lines(["*no position preference found*"])


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
    gates = {gate["metric"]: gate for gate in project.document("gates.json")["gates"]}
    # All rotations have the same accuracy; an answer at A is always found, elsewhere never.
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
    result.stdout.fnmatch_lines(
        ["UNDECIDED*", "*no permutation audit: run it with --llm-permutations*"]
    )


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


def test_a_function_that_copies_the_last_shot(planted):
    project = planted("gold")
    (project.path / "conftest.py").write_text(FUNCTION)
    assert project.run("--llm-permutations=attack").ret == 0
    by_arm = accuracies(project)
    assert [by_arm[f"both@{label}"] for label in "ABCD"] == [1.0] * 4
    assert [by_arm[f"shots@{label}"] for label in "ABCD"] == [0.25] * 4
    assert [by_arm[f"test@{label}"] for label in "ABCD"] == [0.0, 1.0, 0.0, 0.0]
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    stored = list(map(json.loads, lines))
    assert len({(record["item"], record.get("arm")) for record in stored}) == 40 * 13
    assert not any("sample" in record for record in stored)


def test_an_item_without_a_verdict_counts_in_no_order(planted):
    project = planted("gold")
    body = "    if answer.item.id == 'item-03':\n        pytest.skip('not this one')\n    assert"
    (project.path / "test_bench.py").write_text(PLANTED_BENCHMARK.replace("    assert", body))
    assert project.run("--llm-permutations=cyclic", "--llm-report=json").ret == 0
    assert audit(project)["items"] == 39
    answers = project.document("export.json")["answers"]
    assert {answer["protocol"] for answer in answers} == {"letters"}
    left = [answer["order"] for answer in answers if not answer["counted"]]
    assert sorted(left, key=str) == ["BCDA", "CDAB", "DABC", None]
    assert sum(answer["order"] is None for answer in answers) == 40


def test_answers_in_any_order_have_to_name_their_arm(biased):
    """Item and sample do not distinguish them, and no number comes from a guess."""
    project = biased(backwards=True)
    file = project.path / "conftest.py"
    file.write_text(file.read_text().replace(", arm=request.arm", ""))
    result = project.run("--llm-permutations=cyclic")
    assert result.ret == 1
    assert project.metrics()["errors"] == 40
    result.stdout.fnmatch_lines(["*do not follow the order of the*"])
    # Without other orders the item is enough.
    assert project.run("--llm-runs=plain").ret == 0


def test_equal_options_are_one_option(planted):
    """A model that answers "blue" in every order is consistent, whichever of the two it means."""
    project = planted("0")
    text = PLANTED_BENCHMARK.replace(
        'tuple(f"{prefix}{number} option {n}" for n in range(4))', '("red", "blue", "blue", "red")'
    )
    (project.path / "test_bench.py").write_text(text)
    model = PLANTED_MODEL.replace("gold = [", "gold = options.index('blue')  # [").replace(
        "RULE", "gold"
    )
    (project.path / "conftest.py").write_text(model)
    assert project.run("--llm-permutations=cyclic").ret == 0
    (family,) = audit(project)["families"]
    assert family["consistency"] == 1.0
    shown = project.pytester.run("llmeval", "show", str(project.run_folder))
    shown.stdout.fnmatch_lines(["*consistency 1.0000*"])


def test_without_shots_to_show_none_are_moved(planted):
    project = planted("gold")
    text = PLANTED_BENCHMARK.replace('{"all": tuple(make("shot", n) for n in range(2))}', "{}")
    (project.path / "test_bench.py").write_text(text)
    (project.path / "conftest.py").write_text(
        PLANTED_MODEL.replace('"ABCD".index(request.prompt.shots[-1][1])', "0").replace(
            "RULE", "gold"
        )
    )
    assert project.run("--llm-permutations=attack").ret == 0
    assert list(accuracies(project)) == ["original", "test@A", "test@B", "test@C", "test@D"]
