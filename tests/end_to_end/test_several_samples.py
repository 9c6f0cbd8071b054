"""Several samples of an item: from --llm-samples to records, metrics and gates."""

from __future__ import annotations

import json

import pytest

TEXT = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

def load(data_dir):
    sizes = {"art": 2, "law": 3}
    return Dataset(tuple(
        Item(f"{subject}-{row:04d}", subject, f"{subject} question {row}?", "yes")
        for subject, size in sizes.items() for row in range(size)
    ))

TEMPLATE = Template(
    name="plain",
    description=lambda subject: "",
    question=lambda item: item.question,
    choices=lambda item: (),
)
BENCH = Benchmark("bench", load, (Protocol("p", TEMPLATE, scorer="exact_match", ask="text"),))

@pytest.mark.llmeval(BENCH)
def test_bench(answer):
    assert answer.correct
"""

# Item n of a subject is right in its first n samples; a fourth is cut off.
MODEL = """
import os
import pytest
from pytest_llmeval import Response

class Sampling:
    name = "sampling"
    asks = frozenset({"text"})
    fingerprint = "1"

    def answer(self, requests):
        for request in requests:
            with open("asked.txt", "a") as file:
                file.write(f"- {request.id} {request.sample} {request.seed}\\n")
            yield self.respond(request)

    def respond(self, request):
        right = request.sample < int(request.id[-1])
        cut = "length" if request.sample == 3 else "stop"
        return Response(request.id, text="yes" if right else "no", sample=request.sample,
                        finish_reason=cut, seconds=0.5)

@pytest.fixture(scope="session")
def model():
    return Sampling()
"""


@pytest.fixture
def sampled(project):
    (project.path / "test_bench.py").write_text(TEXT)
    project.model(MODEL)
    return project


@pytest.mark.parametrize("workers", ["0", "2"])
def test_every_sample_counts(sampled, workers):
    result = sampled.run("--llm-samples=4", "--llm-seed=7", "-n", workers)
    assert result.ret == 0
    # An item's test passes when one sample is right: all but the first of each subject.
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "bench?exact_match? *5×4 *",
            "bench?exact_match?: pass@1 0.2000, pass@2 0.3667, pass^2 0.0333",
            "bench?exact_match?: over 4 samples*varies by ± 0.2828*",
            "bench?exact_match?: 5 answers (25.0%) were cut off at the token limit*",
            "*3 passed, 2 wrong*",
        ]
    )
    metrics = sampled.metrics()
    assert metrics["by_sample"]["accuracies"] == [0.6, 0.2, 0.0, 0.0]
    assert (metrics["samples"], metrics["items"], metrics["n_total"]) == (4, 5, 20)
    assert (metrics["correct"], metrics["answered"]) == (4, 20)
    assert metrics["accuracy"] == 0.2
    assert metrics["truncated"] == 5
    assert metrics["pass@k"]["1"]["value"] == pytest.approx(0.2)
    # Items with 0, 1, 0, 1, 2 of 4: two of four drawn hit with 1 - C(n-c,2)/C(4,2).
    assert metrics["pass@k"]["2"]["value"] == pytest.approx((0 + 0.5 + 0 + 0.5 + 5 / 6) / 5)
    assert metrics["variance"]["within_items"] == pytest.approx((3 + 3 + 4) / 12 / 5)
    requests = (sampled.path / "asked.txt").read_text().splitlines()
    assert sorted(requests) == sorted(
        f"- {item} {sample} 7"
        for item in ("art-0000", "art-0001", "law-0000", "law-0001", "law-0002")
        for sample in range(4)
    )


def test_decoding_is_that_of_the_protocol_unless_overridden(sampled):
    sampled.run()
    before = sampled.document("run.json")["results"][0]["ways"][0]
    sampled.run("--llm-temperature=0.25", "--llm-max-tokens=7", "--llm-runs=other")
    (folder,) = (sampled.path / "other").glob("*/")
    after = json.loads((folder / "run.json").read_text())["results"][0]["ways"][0]
    changed = {**before["protocol"]["decoding"], "temperature": 0.25, "max_tokens": 7}
    assert after["protocol"]["decoding"] == changed
    assert after["fingerprint"] != before["fingerprint"]
    assert sampled.run("--llm-temperature=-1").ret == 4


def test_samples_of_one_item_are_requested_together(sampled):
    result = sampled.run("--llm-samples=2", "-v")
    items = [line.split()[1] for line in (sampled.path / "asked.txt").read_text().splitlines()]
    assert items[::2] == items[1::2]
    result.stdout.fnmatch_lines(["*art-0000? WRONG (wrong: 0 of 2 samples rig*"])


def test_gates_on_several_samples(sampled):
    sampled.thresholds(
        """
        [benchmarks.bench]
        accuracy = 0.2
        truncated_rate = { max = 0.3 }
        "pass@1" = 0.2
        "pass@2" = { min = 0.3 }
        "pass^2" = { max = 0.1 }
        """
    )
    result = sampled.run("--llm-samples=4")
    assert result.ret == 0
    gates = {gate["id"]: gate for gate in sampled.document("gates.json")["gates"]}
    assert gates["bench::pass@2"]["measured"] == pytest.approx(11 / 30)
    assert gates["bench::truncated_rate"]["measured"] == 0.25
    assert all(gate["status"] == "pass" for gate in gates.values())


def test_pass_at_more_than_was_sampled_is_a_mistake(sampled):
    sampled.thresholds('[benchmarks.bench]\n"pass@5" = 0.2\n')
    result = sampled.run("--llm-samples=4")
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line]
    assert "thresholds.toml" in line
    assert "pass@5" in line
    assert "--llm-samples 5" in line
    assert sampled.requested == []


def test_a_sample_without_an_answer_is_an_error_of_its_item(sampled):
    """The other samples are unchanged, and not requested again."""
    sampled.model(
        MODEL.replace(
            "        right =",
            "        import pathlib\n"
            "        if request.sample == 1 and request.id == 'law-0002' and not"
            " pathlib.Path('up').exists():\n"
            "            return Response(request.id, error='server down', sample=1)\n"
            "        right =",
        )
    )
    result = sampled.run("--llm-samples=3")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*no answer to 1 of 3 samples: server down*"])
    metrics = sampled.metrics()
    assert (metrics["errors"], metrics["answered"], metrics["correct"]) == (1, 14, 3)
    assert metrics["accuracy"] is None
    assert metrics["pass@k"] is None

    (sampled.path / "up").touch()
    (sampled.path / "asked.txt").unlink()
    result = sampled.run("--llm-samples=3", "--llm-resume")
    assert result.ret == 0
    assert (sampled.path / "asked.txt").read_text().splitlines() == ["- law-0002 1 0"]
    assert sampled.metrics()["correct"] == 4


def test_a_model_that_ignores_samples_gets_as_many_requests(sampled):
    """A plain function has no sample numbers: its answers are taken in order."""
    sampled.model(
        """
import pytest
calls = []

def system(prompt):
    calls.append(prompt)
    return "yes" if len(calls) % 2 else "no"

@pytest.fixture(scope="session")
def model():
    return system
"""
    )
    assert sampled.run("--llm-samples=2").ret == 0
    assert sampled.metrics()["correct"] == 5
    assert sampled.metrics()["answered"] == 10


def test_recorded_samples_give_the_same_numbers(sampled):
    sampled.run("--llm-samples=4")
    first = sampled.metrics()
    records = sampled.run_folder / "records.jsonl"
    assert len(records.read_text().splitlines()) == 20
    (sampled.path / "conftest.py").unlink()
    assert sampled.run("--llm-samples=4", f"--llm-model=replay:{records}").ret == 0
    second = sampled.metrics()
    assert first.pop("model") != second.pop("model")
    assert first == second
    # A fifth sample was not recorded: an error, not a wrong answer.
    assert sampled.run("--llm-samples=5", f"--llm-model=replay:{records}").ret == 1
    assert sampled.metrics()["errors"] == 5


def test_likelihoods_have_one_sample(project):
    assert project.run("--llm-samples=5").ret == 0
    assert project.metrics()["samples"] == 1
    assert project.metrics()["answered"] == 9


def test_several_samples_need_the_answer_fixture(sampled):
    text = TEXT.replace(
        "test_bench(answer):\n    assert answer.correct", "test_bench(item, model): pass"
    )
    (sampled.path / "test_bench.py").write_text(text)
    result = sampled.run("--llm-samples=2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*does not use `answer`*"])


def test_a_body_that_contradicts_the_scorer_is_reported(sampled):
    text = TEXT.replace(
        "assert answer.correct", "assert all(s.text == 'yes' for s in answer.samples)"
    )
    (sampled.path / "test_bench.py").write_text(text)
    result = sampled.run("--llm-samples=2")
    result.stdout.fnmatch_lines(["2 items have another outcome by their test than by the scorer*"])
    assert sampled.metrics()["correct"] == 4
    outcomes = [
        json.loads(line)["outcome"]
        for line in (sampled.run_folder / "records.jsonl").read_text().splitlines()
    ]
    assert outcomes.count("correct") == 4


def test_the_number_of_samples_is_at_least_one(sampled):
    result = sampled.run("--llm-samples=0")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--llm-samples: 0 is below 1*"])


def test_an_item_without_a_readable_sample_is_unparsed(project):
    """In pytest's counts as in the run's: they would contradict each other otherwise."""
    (project.path / "test_bench.py").write_text(TEXT)
    (project.path / "conftest.py").write_text(
        MODEL.replace('text="yes" if right else "no"', 'text="yes" if right else ""')
    )
    result = project.run("--llm-samples=2", "--junitxml=junit.xml")
    # art-0000 and law-0000 are never right; the others are in one sample at least.
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*3 passed*, 2 unparsed in *"])
    assert project.metrics()["unparsed"] == 6
    report = (project.path / "junit.xml").read_text()
    assert report.count("unparsed: no answer could be read in 2 samples, gold yes") == 2


def requested(project) -> list[str]:
    file = project.path / "asked.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return sorted(lines)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_samples_are_added_to_a_run(sampled, workers):
    sampled.thresholds('[benchmarks.bench]\n"pass@1" = 0.1')
    options = ("--llm-seed=7", "-n", workers)
    sampled.run("--llm-samples=4", "--llm-runs=whole", *options)
    (whole,) = (sampled.path / "whole").glob("*/")
    all_requests = requested(sampled)
    sampled.run("--llm-samples=2", *options)
    first = requested(sampled)
    result = sampled.run("--llm-samples=4", "--llm-resume", *options)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["resumed a run with 2 samples per item: only further ones ran"])
    assert sorted([*first, *requested(sampled)]) == all_requests
    (folder,) = (sampled.path / "runs").glob("*/")
    for name in ("metrics.json", "gates.json"):
        assert (folder / name).read_text() == (whole / name).read_text()
    # The run now has the plan of the session.
    assert sampled.run("--llm-samples=4", "--llm-resume", *options).ret == 0
    assert requested(sampled) == []


def test_a_run_with_one_sample_has_the_first_of_three(sampled):
    sampled.run("--llm-seed=7")
    first = requested(sampled)
    sampled.run("--llm-samples=3", "--llm-resume", "--llm-seed=7")
    more = requested(sampled)
    assert len(more) == 10
    assert not {*first} & {*more}


def test_fewer_samples_than_the_run_has_are_refused(sampled):
    sampled.run("--llm-samples=3")
    requested(sampled)
    result = sampled.run("--llm-samples=2", "--llm-resume")
    assert result.ret == 4
    (line,) = [text for text in result.errlines if text]
    assert "has 3 samples per item, more than this session: give --llm-samples 3, or " in line
    assert requested(sampled) == []


def test_other_changes_than_samples_start_a_new_run(sampled):
    sampled.run("--llm-samples=2")
    result = sampled.run("--llm-samples=3", "--llm-temperature=0.5", "--llm-resume")
    result.stdout.fnmatch_lines(["nothing to resume: * differs in the protocol of bench*"])
    assert len(list((sampled.path / "runs").glob("*/"))) == 2


def test_a_run_killed_while_its_samples_grow_loses_nothing(sampled):
    """Between the records and run.json: the records have the new protocol already."""
    sampled.run("--llm-samples=2", "--llm-seed=7")
    requested(sampled)
    (folder,) = (sampled.path / "runs").glob("*/")
    before = (folder / "run.json").read_text()
    sampled.run("--llm-samples=3", "--llm-resume", "--llm-seed=7")
    assert len(requested(sampled)) == 5
    (folder / "run.json").write_text(before)
    assert sampled.run("--llm-samples=3", "--llm-resume", "--llm-seed=7").ret == 0
    assert requested(sampled) == []
    assert sampled.metrics()["n_total"] == 15
