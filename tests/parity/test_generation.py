"""Generated text equals lm-eval's: same prompt tokens, same text, same scores.

lm-eval runs as a library with its own task files, its transformers backend, batch size 1 and
greedy decoding. Text may part where two tokens are nearly as likely: every such place is listed
with the difference of the two logits, which the model by itself computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import gsm8k
from pytest_llmeval.catalog import mmlu_pro
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.hf.encoding import Encoder
from pytest_llmeval.models.hf.generation import TextEngine
from pytest_llmeval.models.hf.generation_state import Generation
from pytest_llmeval.models.hf.loading import LoadedModel
from pytest_llmeval.models.hf.loading import load
from pytest_llmeval.models.hf.spec import parse_spec
from pytest_llmeval.scorers import get_scorer

GSM8K_ITEMS = 50
# Three items of every subject but the last four.
PRO_SUBJECTS, PRO_ITEMS = 10, 3
# The task's 2,048 tokens an item would take hours on a CPU, and show no more.
PRO_TOKENS = 128

BATCH_ITEMS, BATCH_TOKENS = 24, 128

# Two tokens whose logits are as close as this may change places by the rounding of sums.
NEAR_TIE = 1e-2

SCORERS = {
    "strict-match": "lmeval_strict",
    "flexible-extract": "lmeval_flexible",
    "custom-extract": "mmlu_pro_lmeval",
}


class Recording(TextEngine):
    """Our engine, keeping the tokens of what it makes."""

    made: dict[str, tuple[int, ...]]

    def _response(self, request: Request, generation: Generation, each: float) -> Response:
        self.made[request.id] = tuple(generation.tokens)
        return super()._response(request, generation, each)


@pytest.fixture(scope="module")
def loaded(weights: Path) -> LoadedModel:
    return load(parse_spec(f"{weights}?device=cpu&dtype=float32"))


@pytest.fixture(scope="module")
def engine(loaded: LoadedModel) -> Recording:
    return Recording(loaded)


@pytest.fixture(scope="module")
def lm(weights: Path) -> Any:
    """lm-eval's transformers backend, keeping the tokens it reads and makes."""
    models = pytest.importorskip("lm_eval.models.huggingface", reason="tox -e parity")

    class Listening(models.HFLM):
        made: dict[tuple[int, ...], tuple[int, ...]]

        def _model_generate(self, context: Any, *args: Any, **options: Any) -> Any:
            generated = super()._model_generate(context, *args, **options)
            (read,), (whole,) = context.tolist(), generated.tolist()
            self.made[tuple(read)] = tuple(whole[len(read) :])
            return generated

    model = Listening(pretrained=str(weights), dtype="float32", device="cpu", batch_size=1)
    model.made = {}
    return model


@dataclass(frozen=True)
class Pair:
    """One item by both tools. ``rows``: lm-eval's samples of it, one for every filter."""

    item: Item
    request: Request
    response: Response
    rows: Mapping[str, dict[str, Any]]

    @property
    def their_text(self) -> str:
        (row, *_) = self.rows.values()
        return str(row["resps"][0][0])


def ask(
    lm: Any,
    engine: Recording,
    data: Path,
    benchmark: Benchmark,
    tasks: Mapping[str, str],
    **how: Any,
) -> list[Pair]:
    """Both tools on the first items of tasks; ``tasks``: lm-eval's name → our subject."""
    import lm_eval

    limit, tokens = how["limit"], how["tokens"]
    results = lm_eval.simple_evaluate(
        model=lm,
        tasks=list(tasks),
        limit=limit,
        bootstrap_iters=0,
        log_samples=True,
        gen_kwargs={"max_gen_toks": tokens},
    )
    dataset = benchmark.source(data)
    (protocol,) = (protocol for protocol in benchmark.protocols if protocol.name == "lmeval")
    protocol = protocol.bound_to(dataset)
    protocol = replace(protocol, decoding=replace(protocol.decoding, max_tokens=tokens))
    documents: list[tuple[Item, Request, dict[str, dict[str, Any]]]] = []
    for task, subject in tasks.items():
        items = [item for item in dataset.items if item.subject == subject][:limit]
        for number, item in enumerate(items):
            rows = {
                row["filter"]: row for row in results["samples"][task] if row["doc_id"] == number
            }
            documents.append((item, protocol.request(item, dataset.pool[subject]), rows))
    engine.made = {}
    answers = {
        response.id: response
        for response in engine.answer([request for _, request, _ in documents])
    }
    return [Pair(item, request, answers[request.id], rows) for item, request, rows in documents]


def check(
    compared: Sequence[Pair], lm: Any, engine: Recording, loaded: LoadedModel, scorers: set[str]
) -> Iterator[str]:
    """Assert equality item by item; yield a line for every text that parts at a near-tie."""
    openings, refused = Encoder(loaded.tokenizer, None).encode_prompts(
        [pair.request for pair in compared]
    )
    assert not refused
    for pair, opening in zip(compared, openings, strict=True):
        name = pair.item.id
        assert pair.response.error is None
        assert pair.response.prompt_tokens == len(opening.tokens)
        # Token-identical prompts: this was exactly its request.
        theirs, ours = lm.made[opening.tokens], engine.made[pair.request.id]
        if pair.response.text != pair.their_text:
            yield near_tie(name, loaded, opening.tokens, ours, theirs)
        assert {SCORERS[filter_name] for filter_name in pair.rows} == scorers
        for filter_name, row in pair.rows.items():
            given = Response(pair.request.id, text=pair.their_text)
            score = get_scorer(SCORERS[filter_name])(pair.item, given)
            assert (score.outcome is Outcome.CORRECT) == bool(row["exact_match"]), name


def near_tie(
    name: str,
    loaded: LoadedModel,
    prompt: tuple[int, ...],
    first: tuple[int, ...],
    other: tuple[int, ...],
) -> str:
    """Assert that two texts part where two tokens are nearly as likely, and say where."""
    import torch

    place = next(n for n, (a, b) in enumerate(zip(first, other, strict=False)) if a != b)
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([(*prompt, *first[:place])])).logits[0, -1]
    margin = abs(float(logits[first[place]] - logits[other[place]]))
    assert margin <= NEAR_TIE, name
    words = loaded.tokenizer.decode(first[place]), loaded.tokenizer.decode(other[place])
    return f"{name}, token {place}: {words[0]!r} or {words[1]!r}, logits differ by {margin:.2g}"


def report(capsys: pytest.CaptureFixture[str], name: str, count: int, ties: list[str]) -> None:
    with capsys.disabled():
        print(f"\n{name}: {count - len(ties)} of {count} texts identical", *ties, sep="\n  ")


def test_gsm8k_five_shots(
    data: Path, lm: Any, engine: Recording, loaded: LoadedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = {"gsm8k": "gsm8k"}
    compared = ask(lm, engine, data, gsm8k(), tasks, limit=GSM8K_ITEMS, tokens=256)
    assert len(compared) == GSM8K_ITEMS
    ties = list(check(compared, lm, engine, loaded, {"lmeval_strict", "lmeval_flexible"}))
    report(capsys, "gsm8k", len(compared), ties)


def test_mmlu_pro_five_shots(
    data: Path, lm: Any, engine: Recording, loaded: LoadedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    subjects = list(mmlu_pro().source(data).subject_sizes())[:PRO_SUBJECTS]
    tasks = {f"mmlu_pro_{subject}": subject for subject in subjects}
    compared = ask(lm, engine, data, mmlu_pro(), tasks, limit=PRO_ITEMS, tokens=PRO_TOKENS)
    assert len(compared) == PRO_SUBJECTS * PRO_ITEMS
    ties = list(check(compared, lm, engine, loaded, {"mmlu_pro_lmeval"}))
    report(capsys, "mmlu_pro", len(compared), ties)


def test_greedy_text_does_not_depend_on_the_batch(
    data: Path, loaded: LoadedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    """One at a time, eight at a time, and all at once."""
    dataset = gsm8k().source(data)
    (protocol,) = (protocol for protocol in gsm8k().protocols if protocol.name == "lmeval_cot")
    protocol = replace(protocol, decoding=replace(protocol.decoding, max_tokens=BATCH_TOKENS))
    requests = [protocol.request(item, ()) for item in dataset.items[:BATCH_ITEMS]]
    made = []
    for rows in (1, 8, None):
        engine = Recording(loaded, rows=rows)
        engine.made = {}
        assert not [response.error for response in engine.answer(requests) if response.error]
        made.append(engine.made)
    openings, _ = Encoder(loaded.tokenizer, None).encode_prompts(requests)
    prompts = {
        request.id: opening.tokens for request, opening in zip(requests, openings, strict=True)
    }
    ties = [
        near_tie(name, loaded, prompts[name], tokens, other[name])
        for other in made[1:]
        for name, tokens in made[0].items()
        if tokens != other[name]
    ]
    report(capsys, "batches of 8 and of all against 1", 2 * len(requests), ties)
