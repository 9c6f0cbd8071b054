"""``--llm-debias contextual`` end to end: requests, results, and what stays unchanged."""

from __future__ import annotations

import json

import pytest

from support.lettered_templates import TEMPLATE

# Two subjects; of "art" some items have three options. Golds go round the positions.
BENCHMARK = (
    """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

def make(prefix, subject, number, size):
    options = tuple(f"{prefix}{number} option {n}" for n in range(size))
    return Item(f"{prefix}-{number:02d}", subject, f"{prefix} {number}?", number % size, options)

def load(data_dir):
    items = [make("art", "art", n, 4) for n in range(20)]
    items += [make("few", "art", n, 3) for n in range(9)]
    items += [make("law", "law", n, 4) for n in range(12)]
    pool = {subject: (make("shot", subject, 1, 4),) for subject in ("art", "law")}
    return Dataset(tuple(items), pool)
"""
    + TEMPLATE
    + """
BENCH = Benchmark("planted", load, (Protocol("letters", TEMPLATE, scorer="letter", shots=1),))

@pytest.mark.llmeval(BENCH)
def test_planted(answer):
    assert answer.correct
"""
)

# What a label's prior multiplies: 1/2 for the right option, 1/6 for each other.
MODEL = """
import math
import re
import pytest
from pytest_llmeval import Response

PRIORS = {"art": (0.5, 0.2, 0.2, 0.1), "law": (0.1, 0.2, 0.2, 0.5)}
FREE = {
    # The mean of the three is the prior for art; for law it takes too little from C.
    "art": {"N/A": (0.6, 0.15, 0.15, 0.1), "[MASK]": (0.5, 0.2, 0.2, 0.1), "": (0.4, 0.25, 0.25, 0.1)},
    "law": dict.fromkeys(("N/A", "[MASK]", ""), (0.1, 0.2, 0.05, 0.65)),
}

class Planted:
    name = "planted"
    fingerprint = "weights-1"
    asks = frozenset({"choices"})

    def answer(self, requests):
        for request in requests:
            question, *options = request.prompt.question.removesuffix("\\nAnswer:").split("\\n")
            texts = [option[3:] for option in options]
            with open("asked.txt", "a") as file:
                file.write(json_line(request, question, texts))
            subject = request.prompt.description[6:9]
            if set(texts) == {question}:
                weights = FREE[subject][question][:len(texts)]
                yield self.free(request, question, tuple(map(math.log, weights)))
                continue
            gold = int(request.id[-2:]) % len(texts)
            knows = [1 / 2 if n == gold else 1 / 6 for n in range(len(texts))]
            weights = [a * b for a, b in zip(PRIORS[subject], knows)]
            yield Response(request.id, logprobs=tuple(map(math.log, weights)), sample=request.sample)

    def free(self, request, question, logprobs):
        return Response(request.id, logprobs=logprobs, sample=request.sample)

def json_line(request, question, texts):
    import json
    return json.dumps([request.id, question, len(texts), request.prompt.shots[-1][1]]) + "\\n"

@pytest.fixture(scope="session")
def model():
    return Planted()
"""

CONTEXTUAL = "--llm-debias=contextual"
# A label wins with prior x 1/2 where it is right, against prior x 1/6 of the others. As it is: art
# fails where D is right (0.1/2 < 0.5/6), law where A is.
PLAIN = {"art": 15 + 9, "law": 9}
# Over p_cf, art's labels weigh the same, whether it has three or four; law's 1, 1, 4 and 10/13, so that C
# (4/6) beats whatever is right.
CALIBRATED = {"art": 29, "law": 3}


@pytest.fixture
def planted(project):
    (project.path / "test_bench.py").write_text(BENCHMARK)
    (project.path / "conftest.py").write_text(MODEL)
    return project


def results(project) -> dict[str, dict]:
    return {result["scorer"]: result for result in project.document("metrics.json")["results"]}


def requests(project) -> list[tuple[str, str, int, str]]:
    lines = (project.path / "asked.txt").read_text().splitlines()
    return [tuple(json.loads(line)) for line in lines]


def free_of(project) -> list[tuple[str, str, int, str]]:
    return [request for request in requests(project) if request[1] in ("N/A", "[MASK]", "")]


def records(project) -> list[dict]:
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def rights(result: dict) -> dict[str, int]:
    return {name: subject["correct"] for name, subject in result["subjects"].items()}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_known_prior_comes_out(planted, workers):
    assert planted.run(CONTEXTUAL, "-n", workers).ret == 0
    by_scorer = results(planted)
    assert rights(by_scorer["letter"]) == PLAIN
    assert rights(by_scorer["letter+contextual"]) == CALIBRATED
    assert len({result["protocol_fingerprint"] for result in by_scorer.values()}) == 2


def test_content_free_requests(planted):
    planted.run(CONTEXTUAL)
    free = free_of(planted)
    # Three inputs for art with four and with three options, and for law: once each, with one of the
    # items, and with the shots of its subject.
    assert sorted(free) == sorted(
        (item, text, size, "B")
        for item, size in (("art-00", 4), ("few-00", 3), ("law-00", 4))
        for text in ("N/A", "[MASK]", "")
    )
    assert len(requests(planted)) == 41 + 9


def test_the_result_itself_is_that_of_a_plain_run(planted):
    planted.run()
    plain = planted.metrics()
    planted.run(CONTEXTUAL, "--llm-runs=calibrated")
    (folder,) = (planted.path / "calibrated").glob("*/")
    first, second = json.loads((folder / "metrics.json").read_text())["results"]
    assert first == plain
    assert second["answered"] == plain["answered"] == 41
    stored = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    free = [record for record in stored if record.get("order")]
    assert len(free) == 9
    assert {record["gold"] for record in free} == {""}
    assert {record["outcome"] for record in free} == {"wrong"}
    assert len({record["protocol"] for record in free}) == 3
    assert len({record["protocol"] for record in stored}) == 4
    assert "audit" not in first  # none is made of them


def test_contextual_calibration_with_option_orders(planted):
    planted.run("--llm-debias=contextual,cyclic", "--llm-permutations=cyclic")
    together = results(planted)
    assert len(requests(planted)) == 41 + 3 * 32 + 2 * 9 + 9
    assert {arm["name"] for arm in together["letter"]["audit"]["arms"]} == {
        "original",
        "cyclic@1",
        "cyclic@2",
        "cyclic@3",
    }
    assert rights(together["letter+contextual"]) == CALIBRATED


def test_of_a_draw_and_of_a_selection(planted):
    planted.run(CONTEXTUAL, "--llm-limit=4")
    drawn = {(request[0][:3], request[2]) for request in requests(planted)}
    assert len(free_of(planted)) == 3 * len(drawn)
    result = results(planted)["letter+contextual"]
    assert (result["answered"], result["subjects"]["art"]["correct"]) == (8, 4)
    (planted.path / "asked.txt").unlink()
    planted.run(CONTEXTUAL, "-k", "law")
    assert [request[0] for request in free_of(planted)] == ["law-00"] * 3
    assert rights(results(planted)["letter+contextual"]) == {"art": 0, "law": 3}


def test_a_resumed_run_requests_only_what_is_missing(planted):
    planted.run(CONTEXTUAL)
    before, count = planted.document("metrics.json"), len(requests(planted))
    file = planted.run_folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"order"' not in line or '"art-00"' in line]
    assert len(lines) - len(kept) == 6
    file.write_text("".join(kept))
    assert planted.run(CONTEXTUAL, "--llm-resume").ret == 0
    assert planted.document("metrics.json") == before
    assert len(requests(planted)) == count + 6
    # A complete run makes no requests.
    assert planted.run(CONTEXTUAL, "--llm-resume").ret == 0
    assert len(requests(planted)) == count + 6


def test_gates_in_the_run_and_from_disk(planted):
    planted.thresholds(
        """
        [benchmarks.planted.scorers.letter]
        accuracy = 0.8
        max_errors = 0
        [benchmarks.planted.scorers."letter+contextual"]
        accuracy = { min = 0.75, max = 0.8 }
        max_errors = 0
        """
    )
    result = planted.run(CONTEXTUAL)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["PASS planted::scorers.letter+contextual::accuracy:*", "* 0.7805 *"]
    )
    again = planted.pytester.run("llmeval", "gate", str(planted.run_folder))
    assert again.ret == 0
    again.stdout.fnmatch_lines(
        ["PASS planted::scorers.letter+contextual::accuracy:*", "* 0.7805 *"]
    )
    # The same file, of a run without it.
    planted.run("--llm-runs=plain")
    (folder,) = (planted.path / "plain").glob("*/")
    plain = planted.pytester.run("llmeval", "gate", str(folder))
    assert plain.ret == 1
    plain.stdout.fnmatch_lines(["UNDECIDED *letter+contextual*", "*did not run*"])


def test_shards_are_merged_to_the_same(planted):
    planted.run(CONTEXTUAL)
    whole = planted.document("metrics.json")
    for part in "12":
        planted.run(CONTEXTUAL, f"--llm-shard={part}/2", "--llm-runs=shards")
    shards = sorted((planted.path / "shards").glob("*/"))
    merged = planted.pytester.run("llmeval", "merge", *map(str, shards), "--out", "merged")
    assert merged.ret == 0
    assert json.loads((planted.path / "merged" / "metrics.json").read_text()) == whole


def free_gives(project, body: str) -> None:
    text = MODEL.replace(
        "        return Response(request.id, logprobs=logprobs, sample=request.sample)", body
    )
    assert text != MODEL
    (project.path / "conftest.py").write_text(text)


def test_an_error_without_content_is_one_of_all_that_need_it(planted):
    free_gives(
        planted,
        '        error = "gone" if request.id == "law-00" and not question else None\n'
        "        logprobs = () if error else logprobs\n"
        "        return Response(request.id, logprobs=logprobs, error=error, sample=request.sample)",
    )
    result = planted.run(CONTEXTUAL)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*no answer to 1 of 4 prompts: gone*"])
    calibrated = results(planted)["letter+contextual"]
    assert (calibrated["errors"], calibrated["correct"]) == (12, 29)
    (planted.path / "conftest.py").write_text(MODEL)
    assert planted.run(CONTEXTUAL, "--llm-resume").ret == 0
    assert rights(results(planted)["letter+contextual"]) == CALIBRATED


def test_labels_without_log_probabilities_calibrate_nothing(planted):
    """An endpoint lists the likeliest tokens only; missing ones do not count as impossible."""
    free_gives(
        planted,
        "        logprobs = (*logprobs[:-1], -math.inf)\n"
        "        return Response(request.id, logprobs=logprobs, sample=request.sample)",
    )
    result = planted.run(CONTEXTUAL)
    by_scorer = results(planted)
    assert by_scorer["letter"]["errors"] == 0
    assert by_scorer["letter+contextual"]["errors"] == 41
    result.stdout.fnmatch_lines(
        ["planted?letter+contextual?: 41 items are errors: their content-free prompt*"]
    )


def test_a_text_model_gets_no_content_free_prompts(planted):
    (planted.path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session')\ndef model():\n"
        "    def says_a(prompt):\n"
        "        open('asked.txt', 'a').write('[]\\n')\n"
        "        return 'A'\n"
        "    return says_a\n"
    )
    result = planted.run(CONTEXTUAL)
    assert len(requests(planted)) == 41
    assert list(results(planted)) == ["choice"]
    result.stdout.fnmatch_lines(["planted?letter+contextual? is not computed: *"])


def test_a_dry_run_counts_content_free_requests(planted):
    result = planted.run(CONTEXTUAL, "--llm-dry-run")
    result.stdout.fnmatch_lines(["planted?letter?*41*50*"])
    both = planted.run(CONTEXTUAL, "--llm-permutations=cyclic", "--llm-dry-run")
    both.stdout.fnmatch_lines(["planted?letter?*41*164*"])
    assert not (planted.path / "asked.txt").exists()


def test_a_protocol_without_one_prompt_for_all_is_refused(planted):
    text = BENCHMARK.replace("item: item.question", "item: item.fields['n'] + item.question")
    text = text.replace("number % size, options)", "number % size, options, {'n': str(number)})")
    (planted.path / "test_bench.py").write_text(text)
    result = planted.run(CONTEXTUAL)
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*--llm-debias contextual sends one prompt per subject*'letters' shows more*"]
    )


def test_nothing_to_debias_is_reported(planted):
    (planted.path / "test_bench.py").write_text(
        BENCHMARK.replace('scorer="letter"', 'scorer="likelihood"')
    )
    result = planted.run(CONTEXTUAL)
    result.stdout.fnmatch_lines(
        ["--llm-debias: no effect, because no benchmark of this run compares letters"]
    )
    assert not free_of(planted)


def test_a_skipped_carrier_leaves_what_it_carries(planted):
    text = BENCHMARK.replace(
        "def test_planted(answer):",
        "def test_planted(answer, item):\n    if item.id == 'law-00':\n        pytest.skip('no')",
    )
    (planted.path / "test_bench.py").write_text(text)
    planted.run(CONTEXTUAL)
    result = results(planted)["letter+contextual"]
    assert (result["answered"], result["missing"], rights(result)) == (40, 1, CALIBRATED)
    again = planted.pytester.run("llmeval", "show", str(planted.run_folder))
    assert again.ret == 0
