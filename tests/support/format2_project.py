"""The project whose baseline and run are in ``tests/data/format2``, where they are of format 2.

The last version that wrote this format made both with ``OPTIONS``: the baseline of a run with
``PLANTED=1`` in the environment, then the run that is compared with it. Among its items are an error
in another order, a skipped one, ties, carriers of content-free prompts, and one of two subjects
with fewer options.
"""

from __future__ import annotations

BENCHMARKS = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Decoding, Item, Protocol, Template

def make(prefix, subject, number, size):
    options = tuple(f"{prefix}{number} option {n}" for n in range(size))
    return Item(f"{prefix}-{number}", subject, f"{prefix} {number}?", number % size, options)

def lettered(data_dir):
    items = [make("art", "art", n, 4) for n in range(4)] + [make("few", "art", n, 3) for n in range(2)]
    items += [make("law", "law", n, 4) for n in range(2)]
    return Dataset(tuple(items), {subject: (make("shot", subject, 1, 4),) for subject in ("art", "law")})

def said(data_dir):
    return Dataset(tuple(make("tea", "tea", n, 3) for n in range(3)))

def sums(data_dir):
    return Dataset(tuple(Item(f"sum-{n}", "sums", f"{n} and {n}?", str(n + n)) for n in range(4)))

LETTERS = Template(
    name="letters",
    description=lambda subject: f"About {subject}.",
    question=lambda item: item.question + "".join(
        f"\\n{letter}. {option}" for letter, option in zip("ABCD", item.options)) + "\\nAnswer:",
    choices=lambda item: tuple("ABCD"[:len(item.options)]),
)
PLAIN = Template("plain", lambda subject: "", lambda item: item.question, lambda item: ())

@pytest.mark.llmeval(Benchmark("lettered", lettered, (
    Protocol("letters", LETTERS, scorer="letter", shots=1),)))
def test_lettered(answer, item):
    if item.id == "art-2":
        pytest.skip("not of interest")
    assert answer.correct

@pytest.mark.llmeval(Benchmark("said", said, (
    Protocol("said", LETTERS, scorer="choice", ask="text", also=("exact_match",)),)))
def test_said(answer):
    assert answer.correct

@pytest.mark.llmeval(Benchmark("sums", sums, (
    Protocol("sums", PLAIN, scorer="number", ask="text", samples=3,
             decoding=Decoding(max_tokens=16, temperature=0.5)),)))
def test_sums(answer):
    assert answer.correct
"""

MODEL = '''
import hashlib
import math
import os
import pytest
from pytest_llmeval import Response

class Planted:
    """Prefers A, and is else as a hash of the prompt has it; the first version knows less."""

    name = "planted"
    fingerprint = "weights-2"
    asks = frozenset({"choices", "text"})

    def answer(self, requests):
        for request in requests:
            with open("asked.txt", "a") as file:
                file.write(f"- {request.id}\\n")
            yield self.respond(request)

    def respond(self, request):
        number = int.from_bytes(hashlib.sha256(request.prompt.text.encode()).digest()[:4])
        knows = 4 if os.environ.get("PLANTED") == "1" else 3
        if not request.choices and " and " in request.prompt.question:
            right = 2 * int(request.id[-1])
            said = right if (number + request.sample) % knows else right + 1
            return Response(request.id, text=f"It is {said}.", completion_tokens=4,
                            sample=request.sample)
        if number % 29 == 3:
            return Response(request.id, error="the server was gone", sample=request.sample)
        shown = request.prompt.question.removesuffix("\\nAnswer:").split("\\n")[1:]
        weights = [1 + (n == 0) + (number >> 4 * n) % knows + 2 * option.endswith(
            f"option {int(request.id[-1]) % len(shown)}") for n, option in enumerate(shown)]
        if request.choices:
            return Response(request.id, logprobs=tuple(math.log(w / sum(weights)) for w in weights),
                            prompt_tokens=20, sample=request.sample)
        letter = "ABCD"[weights.index(max(weights))]
        text = (letter, f"The answer is ({letter}).", "I cannot tell")[number % 3]
        return Response(request.id, text=text, prompt_tokens=20, completion_tokens=5,
                        finish_reason="stop", sample=request.sample)

@pytest.fixture(scope="session")
def model():
    return Planted()
'''

THRESHOLDS = """version = 1

[benchmarks.lettered.scorers.letter]
accuracy = 0.3
consistency = 0.2
max_errors = 5

[benchmarks.lettered.scorers."letter+contextual"]
accuracy = 0.3
max_errors = 5

[benchmarks.said.scorers.choice]
accuracy = 0.9
max_errors = 5
position_range = 0.9

[benchmarks.said.scorers.exact_match]
accuracy = 0.1
max_errors = 5

[benchmarks.sums]
accuracy = 0.5

[benchmarks.sums.regression]
baseline = "before"
max_drop = 0.6
"""

OPTIONS = ("--llm-permutations=cyclic", "--llm-debias=contextual,pride")
"""Of both runs."""
