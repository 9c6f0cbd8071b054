"""A project whose model prefers texts that it has read: published option blocks, or shards."""

from __future__ import annotations

from typing import Any

# Forty items whose options and items are in a random order; `sorted` makes the options ascend.
BENCHMARK = """
import random
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

def items(name="item", size=40):
    generator = random.Random(SEED)
    words = [f"w{n}" for n in range(60)]
    made = []
    for number in range(size):
        options = OPTIONS
        question = f"Which {' '.join(generator.sample(words, 5))} is it?"
        made.append(Item(f"{name}-{number:02d}", "all", question, number % 4, tuple(options)))
    return tuple(made)

def load(data_dir):
    return Dataset(items())

TEMPLATE = Template(
    name="plain",
    description=lambda subject: "",
    question=lambda item: item.question,
    choices=lambda item: ("A", "B", "C", "D"),
)

BENCH = Benchmark("bench", load, (Protocol("plain", TEMPLATE, scorer="letter"),))

@pytest.mark.llmeval(BENCH)
def test_bench(answer):
    assert answer.correct
"""
RANDOM = "generator.sample(words, 4)"
ASCENDING = "sorted(str(n) for n in generator.sample(range(10, 99), 4))"
NONE = "()"

# The text that the model has read has a likelihood higher by `READ`; others are as likely as the
# hash of the text and the model's name has it.
MODEL = """
import zlib
import pytest
from pytest_llmeval import Response
from pytest_llmeval.bias.order_texts import order_texts, shards
from test_bench import items

NAME, READ = {name!r}, {read!r}

def read_texts():
    texts = set()
    if "options" in READ:
        texts |= {{order_texts("option_order", (item,), 0)[0] for item in items()}}
    if "items" in READ:
        texts |= {{order_texts("item_order", shard, 0)[0] for shard in shards([items()])}}
    return texts

class Reader:
    name = NAME
    fingerprint = f"weights-{{NAME}}"
    asks = frozenset({{"choices"}})

    def __init__(self):
        self.texts = read_texts()

    def answer(self, requests):
        for request in requests:
            with open("asked.txt", "a") as file:
                file.write(f"main {{request.id}}\\n")
            {failing}
            scores = tuple(self.score(text, request.id) for text in request.choices)
            if not request.arm:
                gold = int(request.id[-2:]) % 4
                scores = tuple(-1.0 if n == gold else -2.0 for n in range(4))
            yield Response(request.id, logprobs=scores, arm=request.arm)

    def score(self, text, item):
        noise = zlib.crc32(f"{{NAME}} {{item}} {{text}}".encode()) / 2**32
        return -20.0 + noise + 5.0 * (text in self.texts) + {taste}

@pytest.fixture(scope="session")
def model():
    return Reader()
"""


def benchmark(options: str = RANDOM, seed: int = 1) -> str:
    return BENCHMARK.replace("OPTIONS", options).replace("SEED", str(seed))


def model(
    name: str = "fresh", *, read: tuple[str, ...] = (), failing: str = "pass", taste: str = "0"
) -> str:
    return MODEL.format(name=name, read=read, failing=failing, taste=taste)


def entry(project: Any) -> dict[str, Any]:
    """The only order test of the newest run's metrics.json."""
    (value,) = project.document("metrics.json")["contamination"]
    return value


def gates(project: Any) -> dict[str, dict[str, Any]]:
    """The newest run's gates by id."""
    return {gate["id"]: gate for gate in project.document("gates.json")["gates"]}
