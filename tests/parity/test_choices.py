"""Choice log-likelihoods equal lm-eval's: same tokens, same values, same chosen options.

lm-eval runs as a library with its own task files, its transformers backend and batch size 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import arc_challenge
from pytest_llmeval.catalog import arc_easy
from pytest_llmeval.catalog import cmmlu
from pytest_llmeval.catalog import commonsenseqa
from pytest_llmeval.catalog import hellaswag
from pytest_llmeval.catalog import mmlu
from pytest_llmeval.catalog import truthfulqa
from pytest_llmeval.catalog import winogrande
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models import load_model
from pytest_llmeval.models.hf.encoding import Encoder
from pytest_llmeval.scorers import get_scorer

PER_SUBJECT = 10
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Asked:
    """The tokens lm-eval gave its model for one choice, and what it got."""

    tokens: tuple[int, ...]
    logprob: float


@pytest.fixture(scope="module")
def lm(weights: Path) -> Any:
    """lm-eval's transformers backend, which keeps its requests."""
    models = pytest.importorskip("lm_eval.models.huggingface", reason="tox -e parity")

    class Listening(models.HFLM):
        scored: dict[tuple[str, str], Asked]

        def _loglikelihood_tokens(self, requests: Any, *args: Any, **options: Any) -> Any:
            requests = list(requests)
            results = super()._loglikelihood_tokens(requests, *args, **options)
            for (key, context, continuation), (value, _) in zip(requests, results, strict=True):
                self.scored[key] = Asked((*context, *continuation), float(value))
            return results

    model = Listening(pretrained=str(weights), dtype="float32", device="cpu", batch_size=1)
    model.scored = {}
    return model


def evaluate(lm: Any, tasks: Sequence[str], shots: int, limit: int) -> dict[str, Any]:
    """Run lm-eval's own tasks; its logged samples by task."""
    import lm_eval

    results = lm_eval.simple_evaluate(
        model=lm,
        tasks=list(tasks),
        num_fewshot=shots,
        limit=limit,
        bootstrap_iters=0,
        log_samples=True,
    )
    samples: dict[str, Any] = results["samples"]
    return samples


@dataclass(frozen=True)
class Pair:
    """One item by both tools. ``theirs``: lm-eval's requests, one a choice, in our order."""

    request: Request
    response: Response
    theirs: tuple[Asked, ...]
    sample: dict[str, Any]


def pairs(
    lm: Any, samples: Sequence[dict[str, Any]], requests: Sequence[Request], answers: Any
) -> Iterator[Pair]:
    ordered = sorted(samples, key=lambda sample: sample["doc_id"])
    for sample, request in zip(ordered, requests, strict=True):
        ours = [
            (prompt.text, prompt.delimiter + choice)
            for prompt, choice in zip(request.prompts, request.choices, strict=True)
        ]
        assert sorted(ours) == sorted(map(tuple, sample["arguments"])), request.id
        yield Pair(request, answers[request.id], tuple(lm.scored[key] for key in ours), sample)


def chosen(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda choice: values[choice])


def check(compared: Sequence[Pair], encoder: Encoder) -> float:
    """Assert equality item by item; the largest difference of a log-probability."""
    questions, refused = encoder.encode_questions([pair.request for pair in compared])
    assert not refused
    largest = 0.0
    for pair, question in zip(compared, questions, strict=True):
        assert pair.response.error is None
        assert list(question.rows) == [theirs.tokens for theirs in pair.theirs], pair.request.id
        theirs = [choice.logprob for choice in pair.theirs]
        ours = pair.response.logprobs
        largest = max(largest, *(abs(a - b) for a, b in zip(ours, theirs, strict=True)))
        assert largest <= TOLERANCE, pair.request.id
        assert chosen(ours) == chosen(theirs), pair.request.id
    return largest


@pytest.fixture(scope="module")
def encoder(lm: Any) -> Encoder:
    return Encoder(lm.tokenizer, None)


def test_mmlu_five_shots_every_subject(
    data: Path, weights: Path, lm: Any, encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = mmlu()
    dataset = benchmark.source(data)
    protocol = replace(benchmark.protocols[0], shots=5)
    assert protocol.name == "lmeval"
    requests: dict[str, list[Request]] = {subject: [] for subject in dataset.subject_sizes()}
    assert len(requests) == 57
    for item in dataset.items:
        if len(requests[item.subject]) < PER_SUBJECT:
            requests[item.subject].append(protocol.request(item, dataset.pool[item.subject]))
    # All subjects in one call, as a caller may: they are grouped by what they share.
    model = load_model(f"hf:{weights}?device=cpu")
    every = [request for subject in requests.values() for request in subject]
    answers = {response.id: response for response in model.answer(every)}
    samples = evaluate(lm, [f"mmlu_{subject}" for subject in requests], 5, PER_SUBJECT)
    largest = 0.0
    for subject, requests_of_subject in requests.items():
        compared = list(pairs(lm, samples[f"mmlu_{subject}"], requests_of_subject, answers))
        assert len(compared) == PER_SUBJECT
        largest = max(largest, check(compared, encoder))
        for pair in compared:
            ours = chosen(pair.response.logprobs)
            assert float(ours == pair.sample["target"]) == pair.sample["acc"]
    with capsys.disabled():
        print(f"\nmmlu, {len(every)} items: largest |Δ log-probability| {largest:.2g}")


# Two benchmarks compare letters, four compare texts of one to many tokens; WinoGrande scores what
# follows them.
BENCHMARKS = [
    ("arc_easy", arc_easy(), 120),
    ("arc_challenge", arc_challenge(), 50),
    ("commonsense_qa", commonsenseqa(), 50),
    ("hellaswag", hellaswag(), 50),
    ("winogrande", winogrande(), 50),
    ("truthfulqa_mc1", truthfulqa(), 50),
    ("cmmlu_agronomy", cmmlu(), 50),
]
METRICS = {"letter": "acc", "likelihood": "acc", "cloze": "acc_norm"}


@pytest.mark.parametrize(("task", "benchmark", "count"), BENCHMARKS)
def test_benchmark(
    data: Path,
    weights: Path,
    lm: Any,
    encoder: Encoder,
    capsys: pytest.CaptureFixture[str],
    task: str,
    benchmark: Benchmark,
    count: int,
) -> None:
    dataset = benchmark.source(data)
    protocol = next(
        protocol for protocol in benchmark.protocols if protocol.name == "lmeval"
    ).bound_to(dataset)
    assert protocol.shots == 0
    items = dataset.items[:count]
    requests = [protocol.request(item, ()) for item in items]
    model = load_model(f"hf:{weights}?device=cpu")
    answers = {response.id: response for response in model.answer(requests)}
    compared = list(pairs(lm, evaluate(lm, [task], 0, count)[task], requests, answers))
    assert len(compared) == count
    largest = check(compared, encoder)
    rates = []
    for name in (protocol.scorer, *protocol.also):
        score, right = get_scorer(name), 0
        for pair, item in zip(compared, items, strict=True):
            outcome = score(item, pair.response).outcome
            assert outcome in (Outcome.CORRECT, Outcome.WRONG)
            assert float(outcome == Outcome.CORRECT) == pair.sample[METRICS[name]], item.id
            right += outcome == Outcome.CORRECT
        rates.append(f"{METRICS[name]} {right / count:.3f}")
    for pair, item in zip(compared, items, strict=True):
        # Right and wrong could agree by chance where the chosen options do not.
        lengths = [len(option) for option in item.options]
        ours, theirs = (
            chosen([value / length for value, length in zip(values, lengths, strict=True)])
            for values in (pair.response.logprobs, [choice.logprob for choice in pair.theirs])
        )
        assert ours == theirs, item.id
    with capsys.disabled():
        print(
            f"\n{task}, {count} items: {', '.join(rates)}, both tools;"
            f" largest |Δ log-probability| {largest:.2g}"
        )
