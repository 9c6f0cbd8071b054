"""A project whose model answers by a rule, such as always A, and what an audit of it shows."""

from __future__ import annotations

from support.lettered_templates import TEMPLATE

# Forty items; the gold's position and text differ from item to item, so that content can be known.
PLANTED_BENCHMARK = (
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


PLANTED_MODEL = """
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


def audit(project) -> dict:
    return project.metrics()["audit"]


def accuracies(project) -> dict[str, float]:
    return {arm["name"]: arm["accuracy"] for arm in audit(project)["arms"]}


BIASED = """
scores = [0.0] * 4
            scores[gold] += 1.0
            scores[0] += 1.5
            yield Response(request.id, logprobs=tuple(s - 5.0 for s in scores), sample=request.sample)
"""


# The right text occurs twice, so every answer is one of the two at random.
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


# A function sees the prompt alone, and its answer does not name the request.
FUNCTION = """
import re
import pytest

def system(prompt):
    return f"The answer is ({re.findall(r'Answer: ([A-D])', prompt)[-1]})."

@pytest.fixture(scope="session")
def model():
    return system
"""
