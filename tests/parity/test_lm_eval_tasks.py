"""Tasks of lm-eval as benchmarks: requests, hashes, outcomes and texts equal those of lm-eval itself.

lm-eval runs as a library, with its own task files or files over the public data, and with a model
whose answers are a function of the request; two tests use the demo model.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import lm_eval_task
from pytest_llmeval.catalog import lm_eval_task_hashes
from pytest_llmeval.cli import main
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.evaluation.fingerprint import protocol_content
from pytest_llmeval.models import load_model
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import load_run
from pytest_llmeval.scorers import get_scorer

LIMIT = 24


@pytest.fixture(scope="module")
def files(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support.lm_eval_files import write_files

    return write_files(tmp_path_factory.mktemp("lm_eval") / "tasks", data)


@dataclass(frozen=True)
class Case:
    """A task with the arguments of ``lm_eval_task``; ``folder``: of lm-eval's own files."""

    task: str
    folder: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    #: All documents, so that the hashes can be compared.
    whole: bool = False

    def __str__(self) -> str:
        return "-".join([self.task, *(f"{key}={value}" for key, value in self.options.items())])


CHAT = {"apply_chat_template": True}
ONE_TURN = {**CHAT, "fewshot_as_multiturn": False}
CASES = [
    Case("local_choices", whole=True),
    Case("local_choices", options={**CHAT, "system_instruction": "Be brief."}),
    Case("local_choices", options=ONE_TURN),
    Case("local_mmlu", options={"num_fewshot": 3}, whole=True),
    Case("local_gsm8k"),
    Case("local_gsm8k", options=CHAT),
    Case("arc_easy", "arc", options={"num_fewshot": 3}),
    Case("hellaswag", "hellaswag"),
    Case("winogrande", "winogrande", options={"num_fewshot": 2}),
    Case("commonsense_qa", "commonsense_qa", options=ONE_TURN),
    Case("gsm8k", "gsm8k"),
    Case("mmlu_anatomy", "mmlu", options={"num_fewshot": 5}, whole=True),
]


def manager(case: Case, files: Path) -> Any:
    """Index of one folder only, because that of all takes seconds."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    folder = Path(lm_eval.__file__).parent / "tasks" / case.folder if case.folder else files
    return TaskManager(include_path=str(folder), include_defaults=False)


def benchmark_of(case: Case, files: Path) -> Benchmark:
    import lm_eval

    folder = Path(lm_eval.__file__).parent / "tasks" / case.folder if case.folder else files
    return lm_eval_task(case.task, include_path=folder, **case.options)


def sent(request: Request) -> list[tuple[str, ...]]:
    """The request as lm-eval's model receives it; in a chat, contexts are JSON."""
    if request.ask == "text":
        return [(_context(request, request.prompt),)]
    return [
        (_context(request, prompt), prompt.delimiter + choice)
        for prompt, choice in zip(request.prompts, request.choices, strict=True)
    ]


def _context(request: Request, prompt: Any) -> str:
    return json.dumps(prompt.messages()) if request.chat else str(prompt.text)


def response_to(request: Request, item: Item) -> Response:
    from support.lm_eval_files import made_up_logprob
    from support.lm_eval_files import made_up_text

    if request.ask == "text":
        return Response(request.id, text=made_up_text(sent(request)[0][0], item.gold_text))
    return Response(request.id, logprobs=tuple(made_up_logprob(*pair) for pair in sent(request)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_requests_hashes_and_outcomes(case: Case, files: Path) -> None:
    from support.lm_eval_files import evaluate

    benchmark = benchmark_of(case, files)
    dataset, (protocol,) = benchmark.source(None), benchmark.protocols
    limit = None if case.whole else LIMIT
    results = evaluate(case.task, manager(case, files), limit, **case.options)
    theirs: dict[tuple[str, int], dict[int, Any]] = {}
    for request in results["requests"]:
        key = (request.task_name, int(request.doc_id))
        theirs.setdefault(key, {})[request.idx] = request.args
    samples = results["samples"]
    outcomes: set[Outcome] = set()
    compared = 0
    for item in dataset.items:
        key = (item.fields["task"], int(item.fields["document"]))
        if key not in theirs:
            continue
        compared += 1
        request = protocol.request(item, ())
        texts = 1 if request.ask == "text" else 2
        expected = [theirs[key][index][:texts] for index in sorted(theirs[key])]
        assert sent(request) == [tuple(pair) for pair in expected], item.id
        response = response_to(request, item)
        for scorer in (protocol.scorer, *protocol.also):
            score = get_scorer(scorer)(item, response)
            assert score.error is None
            metric, filter_name = metric_of(scorer)
            (sample,) = (
                row
                for row in samples[key[0]]
                if row["doc_id"] == key[1] and row["filter"] == filter_name
            )
            assert (score.outcome is Outcome.CORRECT) == bool(sample[metric]), (item.id, scorer)
            if sample["filtered_resps"] == ["[invalid]"]:
                assert score.outcome is Outcome.UNPARSED
            outcomes.add(score.outcome)
    assert compared == len(theirs)
    assert {Outcome.CORRECT, Outcome.WRONG} <= outcomes
    if case.whole:
        assert compared == len(dataset.items)
        assert lm_eval_task_hashes(benchmark) == their_hashes(samples)


def metric_of(scorer: str) -> tuple[str, str]:
    """lm-eval's metric and filter of a scorer."""
    name = scorer.removeprefix("lmeval_")
    for filter_name in ("strict-match", "flexible-extract"):
        if name.endswith(filter_name):
            return name.removesuffix(f"_{filter_name}"), filter_name
    return name, "none"


def their_hashes(samples: Mapping[str, Any]) -> dict[str, str]:
    """As in lm-eval's ``loggers/evaluation_tracker.py``."""
    return {
        task: hashlib.sha256(
            "".join(
                row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in rows
            ).encode()
        ).hexdigest()
        for task, rows in samples.items()
    }


def test_a_group_has_its_tasks_as_subjects(files: Path) -> None:
    benchmark = lm_eval_task("local_mmlu", include_path=files)
    sizes = benchmark.source(None).subject_sizes()
    assert sizes == {"local_mmlu_anatomy": 135, "local_mmlu_abstract_algebra": 100}
    assert benchmark.name == "lmeval_local_mmlu"
    assert (benchmark.protocols[0].scorer, benchmark.protocols[0].also) == (
        "lmeval_acc",
        ("lmeval_acc_norm",),
    )


def test_the_fingerprint_names_what_differs(files: Path) -> None:
    def content(**options: Any) -> dict[str, Any]:
        benchmark = lm_eval_task("local_choices", include_path=files, **options)
        return protocol_content(benchmark.protocols[0].bound_to(benchmark.source(None)))

    first, other = content(), content(num_fewshot=1)
    assert first == content()
    assert {key for key in first if first[key] != other[key]} == {"prompts_used", "origin"}
    config = other["origin"]["tasks"]["local_choices"]
    assert (config["num_fewshot"], other["origin"]["lm_eval"][:6]) == (1, "0.4.13")
    assert "0x" not in json.dumps(first)
    assert str(files) not in json.dumps(first)
    again = lm_eval_task("local_choices", include_path=files).protocols[0]
    assert fingerprint(again) == fingerprint(again)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("output_type: loglikelihood_rolling", "perplexity"),
        ("output_type: generate_until\nmetric_list: [{metric: bleu}]", "bleu is not 0 or 1"),
        ("output_type: generate_until\nunsafe_code: true", "unsafe_code"),
        ("class: !function broken.Task", "Python class"),
        ("output_type: multiple_choice\ndoc_to_text: !function broken.f\nrepeats: 3", "repeats"),
    ],
)
def test_what_does_not_map_is_refused_without_running_code(
    files: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit('this code ran')")
    file = tmp_path / "refused.yaml"
    file.write_text(f"task: refused\ndataset_path: json\n{text}\n")
    with pytest.raises(ConfigError, match=f"'refused' cannot be evaluated here: .*{message}"):
        lm_eval_task(str(file))


def test_an_unknown_name_suggests_the_nearest(files: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"no task, group or tag 'local_choises'.*'local_choices'"
    ):
        lm_eval_task("local_choises", include_path=files)
    with pytest.raises(ConfigError, match="has no metric 'acc_nrm'; did you mean 'acc_norm'"):
        lm_eval_task("local_choices", include_path=files, metrics=["acc_nrm"])
    with pytest.raises(ConfigError, match="'mcc' cannot be computed here"):
        lm_eval_task("local_choices", include_path=files, metrics=["mcc"])


def test_data_that_cannot_be_loaded_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "missing.yaml"
    file.write_text(
        "task: missing\ndataset_path: json\ndataset_kwargs: {data_files: /none.jsonl}\n"
        "output_type: generate_until\ntest_split: train\ndoc_to_text: q\ndoc_to_target: a\n"
    )
    with pytest.raises(DataError, match="lm-eval task 'missing' cannot be loaded") as caught:
        lm_eval_task(str(file)).source(None)
    assert "\n" not in str(caught.value)


def test_outcomes_with_the_demo_model(files: Path, weights: Path) -> None:
    items = 8
    case = Case("local_choices")
    benchmark = benchmark_of(case, files)
    (protocol,) = benchmark.protocols
    chosen = benchmark.source(None).items[:items]
    answers = answers_of(protocol, chosen, weights)
    samples = demo_samples(case, files, weights, items)
    for item in chosen:
        sample = samples[int(item.fields["document"])]["none"]
        theirs = [values[0] for values in sample["filtered_resps"]]
        assert answers[item.id].logprobs == pytest.approx(theirs, abs=1e-3)
        for scorer in (protocol.scorer, *protocol.also):
            score = get_scorer(scorer)(item, answers[item.id])
            assert (score.outcome is Outcome.CORRECT) == bool(sample[metric_of(scorer)[0]])


def test_texts_with_the_demo_model(files: Path, weights: Path) -> None:
    items = 3
    case = Case("local_gsm8k", options={"num_fewshot": 1})
    benchmark = benchmark_of(case, files)
    (protocol,) = benchmark.protocols
    chosen = benchmark.source(None).items[:items]
    tokens = 24
    answers = answers_of(protocol, chosen, weights, tokens)
    options = {**case.options, "gen_kwargs": {"max_gen_toks": tokens}}
    samples = demo_samples(Case(case.task, options=options), files, weights, items)
    for item in chosen:
        rows = samples[int(item.fields["document"])]
        assert answers[item.id].text == rows["strict-match"]["resps"][0][0]
        for scorer in (protocol.scorer, *protocol.also):
            metric, filter_name = metric_of(scorer)
            score = get_scorer(scorer)(item, answers[item.id])
            assert (score.outcome is Outcome.CORRECT) == bool(rows[filter_name][metric])


def answers_of(
    protocol: Any, items: tuple[Item, ...], weights: Path, tokens: int | None = None
) -> dict[str, Response]:
    if tokens is not None:
        protocol = replace(protocol, decoding=replace(protocol.decoding, max_tokens=tokens))
    model = load_model(f"hf:{weights}?device=cpu&dtype=float32")
    requests = [protocol.request(item, ()) for item in items]
    answers = {response.id: response for response in model.answer(requests)}
    assert not [answer.error for answer in answers.values() if answer.error]
    return answers


def demo_samples(
    case: Case, files: Path, weights: Path, items: int
) -> dict[int, dict[str, dict[str, Any]]]:
    """lm-eval's samples by document and filter, with its transformers backend."""
    import lm_eval
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=str(weights), dtype="float32", device="cpu", batch_size=1)
    results = lm_eval.simple_evaluate(
        model=model,
        tasks=[case.task],
        task_manager=manager(case, files),
        limit=items,
        bootstrap_iters=0,
        log_samples=True,
        **case.options,
    )
    samples: dict[int, dict[str, dict[str, Any]]] = {}
    for row in results["samples"][case.task]:
        samples.setdefault(row["doc_id"], {})[row["filter"]] = row
    return samples


SESSION = """
import pytest
from pytest_llmeval.catalog import lm_eval_task

@pytest.mark.llmeval(lm_eval_task("local_choices", include_path={folder!r}))
def test_choices(answer):
    assert answer.correct
"""


def test_the_log_of_lm_eval_agrees_with_a_run_of_its_task(
    files: Path, weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both as commands: lm-eval with its log imported, and pytest."""
    lm_eval_command = [
        *(sys.executable, "-m", "lm_eval", "--model", "hf", "--device", "cpu"),
        *("--model_args", f"pretrained={weights},dtype=float32", "--batch_size", "1"),
        *("--tasks", "local_choices", "--include_path", str(files)),
        *("--log_samples", "--output_path", str(tmp_path / "log")),
    ]
    (tmp_path / "test_choices.py").write_text(SESSION.format(folder=str(files)))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    own_command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("--llm-model", f"hf:{weights}?device=cpu&dtype=float32"),
    ]
    theirs = timed(lm_eval_command, tmp_path)
    ours = timed(own_command, tmp_path)
    (log,) = (tmp_path / "log").rglob("results_*.json")
    assert main(["import", str(log), "--out", str(tmp_path / "imported"), "--model", "demo"]) == 0
    (own,) = (tmp_path / "runs").glob("*/")
    imported = load_run(tmp_path / "imported")
    comparison = compare(imported, load_run(own), allow_mismatch=True)
    assert {pair.scorer for pair in comparison.comparisons} == {
        *("lmeval_acc", "lmeval_acc_norm", "lmeval_acc_bytes")
    }
    for pair in comparison.comparisons:
        assert (pair.overall.items, pair.newly_wrong, pair.newly_right) == (24, (), ())
    with capsys.disabled():
        print(f"\nlocal_choices, whole commands: lm-eval {theirs:.1f} s, pytest {ours:.1f} s")


def timed(command: list[str], folder: Path) -> float:
    """Wall seconds of a command, which must succeed."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return time.perf_counter() - started
