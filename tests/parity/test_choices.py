"""Choice log-likelihoods equal lm-eval's: same tokens, same values, same chosen options.

lm-eval runs as a library with its own task files, its transformers backend and batch size 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import mmlu
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core import Template
from pytest_llmeval.models import load_model
from pytest_llmeval.models.engine.encoding import Encoder

PER_SUBJECT = 10
ARC_ITEMS = 120
TOLERANCE = 1e-3

ARC = Protocol(
    "lmeval",
    Template(
        name="lmeval-arc",
        description=lambda subject: "",
        question=lambda item: f"Question: {item.question}\nAnswer:",
        choices=lambda item: item.options,
    ),
    scorer="likelihood",
)


@dataclass(frozen=True)
class Asked:
    """What lm-eval asked its model about one choice, and what it got."""

    context: str
    tokens: tuple[int, ...]
    logprob: float


@pytest.fixture(scope="module")
def lm(weights: Path) -> Any:
    """lm-eval's transformers backend, keeping what it is asked."""
    models = pytest.importorskip("lm_eval.models.huggingface", reason="tox -e parity")

    class Listening(models.HFLM):
        asked: dict[tuple[str, str], Asked]

        def _loglikelihood_tokens(self, requests: Any, *args: Any, **options: Any) -> Any:
            requests = list(requests)
            results = super()._loglikelihood_tokens(requests, *args, **options)
            for (key, context, continuation), (value, _) in zip(requests, results, strict=True):
                self.asked[key] = Asked(key[0], (*context, *continuation), float(value))
            return results

    model = Listening(pretrained=str(weights), dtype="float32", device="cpu", batch_size=1)
    model.asked = {}
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
    """One item by both tools. ``theirs``: what lm-eval asked, one a choice."""

    request: Request
    response: Response
    theirs: tuple[Asked, ...]
    sample: dict[str, Any]


def pairs(
    lm: Any, samples: Sequence[dict[str, Any]], requests: Sequence[Request], answers: Any
) -> Iterator[Pair]:
    ordered = sorted(samples, key=lambda sample: sample["doc_id"])
    for sample, request in zip(ordered, requests, strict=True):
        theirs = tuple(lm.asked[context, text] for context, text in sample["arguments"])
        yield Pair(request, answers[request.id], theirs, sample)


def chosen(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda choice: values[choice])


def check(found: Sequence[Pair], encoder: Encoder) -> float:
    """Assert equality item by item; the largest difference of a log-probability."""
    questions, refused = encoder.questions([pair.request for pair in found])
    assert not refused
    largest = 0.0
    for pair, question in zip(found, questions, strict=True):
        assert pair.response.error is None
        assert [asked.context for asked in pair.theirs] == [pair.request.prompt.text] * len(
            pair.theirs
        )
        assert list(question.rows) == [asked.tokens for asked in pair.theirs], pair.request.id
        theirs = [asked.logprob for asked in pair.theirs]
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
    for subject, asked in requests.items():
        found = list(pairs(lm, samples[f"mmlu_{subject}"], asked, answers))
        assert len(found) == PER_SUBJECT
        largest = max(largest, check(found, encoder))
        for pair in found:
            ours = chosen(pair.response.logprobs)
            assert float(ours == pair.sample["target"]) == pair.sample["acc"]
    with capsys.disabled():
        print(f"\nmmlu, {len(every)} items: largest |Δ log-probability| {largest:.2g}")


def test_arc_easy_choices_of_many_tokens(
    data: Path, weights: Path, lm: Any, encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    path = data / "arc" / "ARC-Easy" / "ARC-Easy-Test.jsonl"
    requests = []
    for line in path.read_text(encoding="utf-8").splitlines()[:ARC_ITEMS]:
        row = json.loads(line)
        options = row["question"]["choices"]
        gold = [option["label"] for option in options].index(row["answerKey"])
        texts = tuple(option["text"] for option in options)
        item = Item(row["id"], "arc_easy", row["question"]["stem"], gold, texts)
        requests.append(ARC.request(item, ()))
    model = load_model(f"hf:{weights}?device=cpu")
    answers = {response.id: response for response in model.answer(requests)}
    samples = evaluate(lm, ["arc_easy"], 0, ARC_ITEMS)["arc_easy"]
    found = list(pairs(lm, samples, requests, answers))
    assert len(found) == ARC_ITEMS
    largest = check(found, encoder)
    for pair in found:
        ours = pair.response.logprobs
        by_length = [
            value / len(choice) for value, choice in zip(ours, pair.request.choices, strict=True)
        ]
        target = pair.sample["target"]
        assert float(chosen(ours) == target) == pair.sample["acc"]
        assert float(chosen(by_length) == target) == pair.sample["acc_norm"]
    with capsys.disabled():
        print(f"\narc_easy, {len(found)} items: largest |Δ log-probability| {largest:.2g}")
