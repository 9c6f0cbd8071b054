"""What the order tests show of items that a model has certainly read, and of items that it has not.

    python perf/contamination.py [--quick] [--only items|dump]

Eighty items of MMLU are planted into the demo model, AdamW at 5e-5 and ten texts a step; eighty
others of the same subjects are held out. All of them have options without an order by content.

items: every item by itself, with its answer, in a new random order each epoch
dump:  the items in the order of their files with their answers, ten to a document

Before and after, `option_order` (against the model before, and on its own) is run on seen and unseen
items, and `item_order` on shards of them. Next to the p values are those of the study that the tests
come from, which planted other items and, as a dump, rows of CSV: the order of magnitude is to be
compared. Then the false positives of drawn benchmarks: random orders in the place of the published
ones, and the published orders of `starter`, which nobody has read.

Needs the data under LLMEVAL_DATA or ``../shared/data``, 1 GB of temporary files, and about 25 minutes
of two CPUs; --quick plants 24 items for one epoch, in about two minutes.

Status 1: a test misses what was planted for the last epoch (p > 0.01), or accuses the unseen items.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple

from peer import data

from pytest_llmeval.bias.order_texts import group_request
from pytest_llmeval.bias.order_texts import order_texts
from pytest_llmeval.bias.order_texts import shards
from pytest_llmeval.catalog import mmlu
from pytest_llmeval.catalog import starter
from pytest_llmeval.core import Item
from pytest_llmeval.core import Request
from pytest_llmeval.core.plan import ITEM_ORDER
from pytest_llmeval.core.plan import OPTION_ORDER
from pytest_llmeval.metrics.contamination.orders import OrderTest
from pytest_llmeval.metrics.contamination.orders import differences
from pytest_llmeval.metrics.contamination.orders import order_test
from pytest_llmeval.metrics.contamination.published import natural_order
from pytest_llmeval.models import load_model
from pytest_llmeval.models.demo import weights

ALPHA = 0.01
BATCH = 10
RATE = 5e-5
SUBJECTS = 8
CHARACTERS = (60, 260)
"""Length of the planted items, question and options: about 20 to 60 tokens."""

STUDY = {
    # arm, epoch: option order alone, against the model before, unseen items against it, item order
    ("items", 0): ("0.004", "–", "–", "0.42"),
    ("items", 1): ("7e-13", "3e-15", "0.28", "–"),
    ("items", 2): ("3e-28", "6e-28", "0.31", "–"),
    ("items", 4): ("3e-59", "1e-46", "0.52", "0.79"),
    ("dump", 0): ("0.008", "–", "–", "0.42"),
    ("dump", 1): ("3e-6", "4e-5", "0.18", "0.002"),
    ("dump", 3): ("2e-18", "4e-16", "0.28", "1e-8"),
    ("dump", 6): ("2e-33", "7e-30", "0.62", "1e-10"),
}

Likelihoods = dict[str, list[float]]


class Measured(NamedTuple):
    """Log-likelihoods of seen and unseen items, of shards of seen ones, and their cost."""

    seen: Likelihoods
    unseen: Likelihoods
    shards: Likelihoods
    texts: int
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="24 items, one epoch")
    parser.add_argument("--only", choices=("items", "dump"))
    options = parser.parse_args()
    items = 24 if options.quick else 80
    seen, unseen = halves(items)
    print(f"{len(seen)} items planted, {len(unseen)} held out, of {SUBJECTS} subjects of MMLU")
    before = measure("demo", seen, unseen)
    plain_texts, plain_seconds = plain_cost(seen)
    print(
        f"cost: {before.texts:,} texts in {before.seconds:.1f} s for {2 * len(seen)} items and"
        f" {len(before.shards)} shards; their {plain_texts:,} texts alone take {plain_seconds:.1f} s"
    )
    print(
        f"\n{'':9}{'option order alone':>24}{'against before':>22}{'unseen, against':>22}"
        f"{'item order':>22}\n{'epochs':9}" + f"{'p':>12}{'study':>10}" * 4
    )
    status = 0
    for arm in ("items", "dump"):
        if options.only in (None, arm):
            status |= plant(arm, seen, unseen, before, quick=options.quick)
    false_positives(quick=options.quick)
    # The program of the overlap with a corpus adds its part here: the planted items as a corpus.
    return status


# Items -----------------------------------------------------------------------------------


def halves(number: int) -> tuple[list[Item], list[Item]]:
    """Return random halves of items without a natural order, in the order of their files."""
    generator = random.Random(7)
    by_subject: dict[str, list[Item]] = {}
    for item in mmlu().source(data("mmlu")).items:
        size = len(item.question) + sum(map(len, item.options))
        if CHARACTERS[0] <= size <= CHARACTERS[1] and natural_order(item.options) is None:
            by_subject.setdefault(item.subject, []).append(item)
    each = 2 * number // SUBJECTS
    large = sorted(subject for subject, items in by_subject.items() if len(items) >= each)
    seen, unseen = [], []
    for subject in generator.sample(large, SUBJECTS):
        members = by_subject[subject][:each]
        half = set(generator.sample(range(each), each // 2))
        seen += [item for place, item in enumerate(members) if place in half]
        unseen += [item for place, item in enumerate(members) if place not in half]
    return seen, unseen


def files(items: Sequence[Item]) -> list[list[Item]]:
    """Return the items of every subject, which is a file of its own."""
    subjects = dict.fromkeys(item.subject for item in items)
    return [[item for item in items if item.subject == subject] for subject in subjects]


# Measuring -------------------------------------------------------------------------------


def measure(spec: str, seen: Sequence[Item], unseen: Sequence[Item]) -> Measured:
    """Request all order tests of a model, as a run does."""
    model = load_model(spec)
    requests = [group_request(OPTION_ORDER, [item], 0) for item in (*seen, *unseen)]
    groups = list(shards(files(seen)))
    requests += [group_request(ITEM_ORDER, group, 0) for group in groups]
    list(model.answer(requests[:1]))  # loads the weights
    started = time.perf_counter()
    answers = {(r.id, r.arm): list(r.logprobs) for r in model.answer(requests)}
    seconds = time.perf_counter() - started
    model.close()
    option_arm, item_arm = requests[0].arm, requests[-1].arm
    return Measured(
        {item.id: answers[item.id, option_arm] for item in seen},
        {item.id: answers[item.id, option_arm] for item in unseen},
        {group[0].id: answers[group[0].id, item_arm] for group in groups},
        sum(len(request.choices) for request in requests),
        seconds,
    )


def plain_cost(seen: Sequence[Item]) -> tuple[int, float]:
    """Return number and time of the published texts alone, one forward pass each."""
    model = load_model("demo")
    requests: list[Request] = []
    for item in seen:
        request = group_request(OPTION_ORDER, [item], 0)
        requests.append(
            Request(item.id, request.prompt, choices=request.choices[:1], arm=request.arm)
        )
    list(model.answer(requests[:1]))
    started = time.perf_counter()
    list(model.answer(requests))
    model.close()
    return len(requests), time.perf_counter() - started


def run_test(values: Likelihoods, reference: Likelihoods | None = None) -> OrderTest:
    """Return the exact test; with a reference, of the differences."""
    groups: Sequence[Sequence[float]] = list(values.values())
    if reference is not None:
        groups = differences(groups, [reference[name] for name in values])
    test = order_test(groups)
    assert test is not None
    return test


# Planting --------------------------------------------------------------------------------


def plant(
    arm: str, seen: Sequence[Item], unseen: Sequence[Item], before: Measured, *, quick: bool
) -> int:
    """Train on the seen items and print the p values after every epoch of the study."""
    epochs = [epoch for name, epoch in STUDY if name == arm and (epoch <= 1 or not quick)]
    print_row(arm, 0, before, None)
    folder = Path(tempfile.mkdtemp(prefix="contamination-"))
    last = before
    try:
        trained = training(documents(arm, seen), max(epochs))
        for epoch, (model, tokenizer) in enumerate(trained, 1):
            if epoch in epochs:
                model.save_pretrained(folder)
                tokenizer.save_pretrained(folder)
                last = measure(f"hf:{folder}", seen, unseen)
                print_row(arm, epoch, last, before)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    visible = run_test(last.seen, before.seen).p_value
    accused = run_test(last.unseen, before.unseen).p_value
    if arm == "dump" and not quick:
        visible = max(visible, run_test(last.shards).p_value)
    return int((visible > ALPHA and not quick) or accused <= ALPHA)


def print_row(arm: str, epoch: int, now: Measured, before: Measured | None) -> None:
    tests = [
        run_test(now.seen),
        None if before is None else run_test(now.seen, before.seen),
        None if before is None else run_test(now.unseen, before.unseen),
        run_test(now.shards),
    ]
    cells = [
        f"{'–' if test is None else format(test.p_value, '.2g'):>12}{study:>10}"
        for test, study in zip(tests, STUDY[arm, epoch], strict=True)
    ]
    ranks = " ".join(f"{test.mean_rank:.3f}" for test in tests if test is not None)
    print(f"{arm:6}{epoch:2} {''.join(cells)}   mean ranks {ranks}", flush=True)


def documents(arm: str, seen: Sequence[Item]) -> list[str]:
    """Return the texts to train on: items by themselves, or ten in the order of their files."""
    if arm == "items":
        # A shard of one item: its question, options and answer.
        return [order_texts(ITEM_ORDER, [item], 0)[0] for item in seen]
    return [
        order_texts(ITEM_ORDER, seen[start : start + 10], 0)[0] for start in range(0, len(seen), 10)
    ]


def training(texts: Sequence[str], epochs: int) -> Iterator[tuple[Any, Any]]:
    """Yield the model and its tokenizer after every epoch."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    file = weights()
    assert file is not None, "the demo model is not installed"
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    # Weights that come from GGUF are dequantized, and are saved as any others.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    generator = random.Random(11)
    size = BATCH if len(texts) > BATCH else 1
    for _ in range(epochs):
        model.train()
        order = generator.sample(texts, len(texts)) if size > 1 else list(texts)
        for start in range(0, len(order), size):
            for text in order[start : start + size]:
                ids = torch.tensor([tokenizer(text).input_ids])
                # The mean over the tokens of a text, and over the texts of a step.
                (model(input_ids=ids, labels=ids).loss / size).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        yield model, tokenizer


# False positives -------------------------------------------------------------------------


def false_positives(*, quick: bool) -> None:
    """Print how often the test accuses the demo model of drawn orders that it cannot have read."""
    generator = random.Random(3)
    items = generator.sample(starter().source(None).items, 40 if quick else 100)
    model = load_model("demo")
    requests = [group_request(OPTION_ORDER, [item], 0) for item in items]
    values = [list(response.logprobs) for response in model.answer(requests)]
    model.close()
    test = order_test(values)
    assert test is not None
    print(
        f"\nstarter, as published: {test.groups} items, mean rank {test.mean_rank:.3f},"
        f" p = {test.p_value:.2g} (never published: 0.5 is expected)"
    )
    hits = {0.05: 0, 0.01: 0}
    trials = 2000
    for _ in range(trials):
        groups = []
        for own in generator.sample(values, min(40, len(values))):
            first = generator.randrange(len(own))
            groups.append([own[first], *own[:first], *own[first + 1 :]])
        shuffled = order_test(groups)
        assert shuffled is not None
        for alpha in hits:
            hits[alpha] += shuffled.p_value <= alpha
    rates = ", ".join(f"{count / trials:.3f} at {alpha}" for alpha, count in hits.items())
    print(
        f"a random order in the place of the published one, {trials:,} times: {rates}"
        " (study: 0.045 at 0.05, 0.011 at 0.01)"
    )


if __name__ == "__main__":
    raise SystemExit(main())
