"""Formats for code against prompts made by the published templates, byte for byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.catalog import humaneval
from pytest_llmeval.catalog import mbpp
from pytest_llmeval.catalog import mbpp_sanitized
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.evaluation.fingerprint import fingerprint
from support.paths import GOLDEN_FILES

GOLDEN = GOLDEN_FILES

PROMPT = '''from typing import List


def area(sides: List[int]) -> int:
    """ Área of the rectangle with these two sides.
    >>> area([3, 4])
    12
    """
'''
AREA = Item(
    "a", "humaneval", PROMPT, "area", fields={"prompt": PROMPT, "solution": "    return 1\n"}
)
TASK = Item(
    "t",
    "mbpp",
    "Write a function to find the área of a rectangle.",
    "area",
    fields={"test_list": "assert area(3, 4) == 12\nassert area(0, 9) == 0\nassert area(2,2)==4"},
)
SHOTS = (
    Item(
        "s1",
        "mbpp",
        "Write a function to double a number.",
        "double",
        fields={
            "test_list": "assert double(2) == 4\nassert double(0) == 0 \nassert double(-1)==-2",
            "solution": "def double(n):\r\n    return 2 * n ",
        },
    ),
    Item(
        "s2",
        "mbpp",
        "Write a python function to find the larger of two numbers.",
        "larger",
        fields={
            "test_list": (
                "assert larger(1, 2) == 2\nassert larger(3, 1) == 3\nassert larger(5, 5) == 5"
            ),
            "solution": "def larger(a, b):\r\n  return max(a, b)",
        },
    ),
)


def protocol(benchmark: Benchmark, name: str) -> Protocol:
    return next(protocol for protocol in benchmark.protocols if protocol.name == name)


@pytest.mark.parametrize(
    ("benchmark", "name", "shots", "item", "file"),
    [
        pytest.param(humaneval(), "official", 0, AREA, "humaneval_official.txt", id="official"),
        pytest.param(humaneval(), "lmeval", 0, AREA, "humaneval_official.txt", id="lmeval"),
        pytest.param(humaneval(), "instruct", 0, AREA, "humaneval_instruct.txt", id="instruct"),
        pytest.param(
            humaneval(), "lmeval_instruct", 0, AREA, "humaneval_instruct.txt", id="lmeval_instruct"
        ),
        pytest.param(mbpp(), "official", 2, TASK, "mbpp_official_2shot.txt", id="mbpp"),
        pytest.param(mbpp(), "lmeval", 2, TASK, "mbpp_official_2shot.txt", id="lmeval_mbpp"),
        pytest.param(mbpp(), "instruct", 2, TASK, "mbpp_instruct_2shot.txt", id="mbpp_instruct"),
        pytest.param(
            mbpp_sanitized(), "official", 2, TASK, "mbpp_official_2shot.txt", id="sanitized"
        ),
    ],
)
def test_prompt_is_the_golden_one_byte_for_byte(
    benchmark: Benchmark, name: str, shots: int, item: Item, file: str
) -> None:
    selected = replace(protocol(benchmark, name), shots=shots)
    assert selected.ask == "text"
    assert selected.render(item, SHOTS).text.encode() == (GOLDEN / file).read_bytes()


@pytest.mark.parametrize("name", ["official", "official_sampled", "lmeval"])
def test_decoding_of_humaneval_is_the_published_one(name: str) -> None:
    decoding = protocol(humaneval(), name).decoding
    assert decoding.stop == ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
    assert decoding.max_tokens == 1024
    sampled = name == "official_sampled"
    assert (decoding.temperature, decoding.top_p) == ((0.8, 0.95) if sampled else (0.0, 1.0))


def test_decoding_of_mbpp_is_the_published_one() -> None:
    assert protocol(mbpp(), "official").decoding.stop == ("[DONE]",)
    assert protocol(mbpp(), "official_sampled").decoding.temperature == 0.5
    for name, stop in (("lmeval", ("[DONE]",)), ("lmeval_instruct", ())):
        decoding = protocol(mbpp(), name).decoding
        assert (decoding.max_tokens, decoding.temperature, decoding.stop) == (256, 0.0, stop)


@pytest.mark.parametrize("benchmark", [humaneval(), mbpp(), mbpp_sanitized()])
def test_in_a_chat_the_begun_answer_is_the_assistants(benchmark: Benchmark) -> None:
    item = AREA if benchmark.name == "humaneval" else TASK
    begun = protocol(benchmark, "instruct").with_chat().render(item, SHOTS)
    left = protocol(benchmark, "chat").render(item, ())
    assert begun.messages()[-1] == left.messages()[-1] == {"role": "user", "content": left.question}
    assert begun.prefix.endswith("```python\n" + (f"{PROMPT}\n" if item is AREA else ""))
    assert begun.text.endswith(left.question + begun.prefix)
    assert left.prefix == ""
    # A shot shows the answer as the model is to give it, the begun part included.
    assert all(
        message["content"].startswith("\n```python\ndef") and message["content"].endswith("\n```")
        for message in begun.messages()
        if message["role"] == "assistant"
    )


def test_a_begun_answer_is_part_of_the_fingerprint() -> None:
    plain = protocol(humaneval(), "instruct").bound_to(Dataset((AREA,)))
    other = replace(plain, template=replace(plain.template, prefix=lambda item: "Sure:\n"))
    none = replace(plain, template=replace(plain.template, prefix=None))
    assert len({fingerprint(each) for each in (plain, other, none)}) == 3
    rebound = other.bound_to(Dataset((AREA,)))
    assert rebound.prompts_used != plain.prompts_used
