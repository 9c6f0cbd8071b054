"""The program in a reply: what is read from a known answer passes its tests, whatever is around it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.scorers import extract_code
from support.code_replies import AROUND
from support.code_replies import BODY
from support.code_replies import LIST_PROMPT
from support.code_replies import LIST_TESTS
from support.code_replies import NO_CODE
from support.code_replies import PROMPT
from support.code_replies import REPORTED
from support.code_replies import SHAPES
from support.code_replies import TESTS
from support.code_replies import WHOLE
from support.code_replies import WRONG
from support.linear import assert_linear


def passes(program: str, tests: str) -> bool:
    """Whether a program of this file passes: run here, since all of it was written here."""
    try:
        exec(compile(f"{program}\n{tests}", "<program>", "exec"), {"__name__": "program"})
    except (Exception, SystemExit):
        return False
    return True


def read(reply: str, prompt: str = PROMPT, entry_point: str | None = "area") -> str:
    return extract_code(reply, prompt=prompt, entry_point=entry_point)


@pytest.mark.parametrize("case", REPORTED)
def test_reported_replies(case: str) -> None:
    reply, prompt, tests = REPORTED[case]
    entry_point = "area" if prompt is PROMPT else "running_max"
    assert passes(read(reply, prompt, entry_point), tests)
    assert passes(read(reply, prompt, None), tests)  # the prompt names the function, too


@pytest.mark.parametrize("around", AROUND)
def test_a_whole_function_in_every_setting(around: str) -> None:
    reply = AROUND[around].format(WHOLE)
    assert passes(read(reply), TESTS)
    # Without a prompt, as for benchmarks with questions in words.
    assert passes(read(reply, prompt=""), TESTS)
    # What is found is the answer, not whatever passes.
    assert not passes(read(AROUND[around].format(WRONG)), TESTS)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_an_answer(shape: str) -> None:
    assert passes(read(SHAPES[shape]), TESTS)


@pytest.mark.parametrize("reply", NO_CODE)
def test_a_reply_without_code_gives_no_program(reply: str) -> None:
    assert read(reply) == ""
    assert read(reply, prompt="") == ""


def test_a_continuation_is_not_touched() -> None:
    assert read(BODY) == PROMPT + BODY
    assert read(BODY + "\n\ndef perimeter(w, h):\n    return 2 * (w + h)\n").startswith(
        PROMPT + BODY
    )


def test_definitions_of_the_prompt_are_kept() -> None:
    prompt = (
        "import math\nfrom typing import List\n\n\ndef twice(n):\n    return 2 * n\n\n\n"
        "@staticmethod\ndef area(w, h):\n    ...\n"
    )
    program = read("```python\ndef area(w, h):\n    return math.floor(w * h)\n```", prompt)
    assert [node.name for node in ast.parse(program).body if isinstance(node, ast.FunctionDef)] == [
        "twice",
        "area",
    ]
    assert passes(program, f"{TESTS}assert twice(2) == 4\nassert List")
    own = "```python\ndef twice(n):\n    return n\n\ndef area(w, h):\n    return twice(w) * h\n```"
    assert passes(read(own, prompt), TESTS)


def test_imports_of_the_future_come_first() -> None:
    program = read("```python\nfrom __future__ import annotations\n" + WHOLE + "```", LIST_PROMPT)
    assert program.startswith("from __future__ import annotations\n")
    assert passes(program, TESTS)


def test_code_that_exits_is_not_a_demonstration() -> None:
    # It fails for what it does, and is not made right.
    program = read(f"```python\n{WHOLE}\nimport sys\nsys.exit(0)\n```")
    assert "sys.exit(0)" in program
    assert not passes(program, TESTS)


def test_broken_code_is_returned_unchanged() -> None:
    assert "return w *\n" in read("```python\ndef area(w, h):\n    return w *\n```")
    assert read("    return w *") == PROMPT + "    return w *"
    assert "def other" in read("```python\ndef other(w, h):\n    return w * h\n```")


def test_a_placeholder_is_no_answer_to_prefer() -> None:
    reply = f"```python\n{WHOLE}```\nor\n```python\ndef area(w, h):\n    ...\n```"
    assert passes(read(reply), TESTS)
    assert not passes(read("```python\ndef area(w, h):\n    pass\n```"), TESTS)
    assert not passes(read("    pass\n"), TESTS)


def test_without_prompt_and_entry_point_the_last_block_is_the_program() -> None:
    reply = f"```python\nx = 1\n```\n```python\n{WHOLE}```\n```text\n12\n```"
    assert extract_code(reply) == WHOLE


@pytest.mark.parametrize(
    "reply",
    [
        "    return '\x00'\n",
        "    return '\ud800'\n",
        "    return " + "(" * 5000,
        "    return " + "-" * 50_000 + "1",
        "    return a" + ".b" * 20_000,
        "".join(" " * n + "if h:\n" for n in range(1, 300)),
        "    return '\\d'\n",
        "```python\ndef area(w, h):\n    return '''\n```",
        "def area(w, h):\n\f    return w * h\n",
    ],
)
@pytest.mark.filterwarnings("error")
def test_any_text_is_read_without_an_exception(reply: str) -> None:
    assert isinstance(read(reply), str)


PIECES = [
    "The answer is long. ",
    "`",
    "```\n",
    "```python\nx = 1\n```\n",
    "x```\n",
    " ",
    "def area(w, h):\n",
    "def area(w, h):\n    return 1\n\n",
    "    x = 1\n",
    "x = 1\n",
    "#\n",
    '"""\n',
    "@a\n",
    "<think>",
    "[DONE] ",
]


@pytest.mark.parametrize("piece", PIECES)
def test_time_is_linear(piece: str) -> None:
    assert_linear(read, piece, size=3_000)


SENTENCES = st.lists(
    st.sampled_from(
        [
            "Here is the function.",
            "It multiplies the sides: w * h.",
            "Let's think about it step by step",
            "* first, the rows",
            "1. Read `w`.",
            "**Note** that h may be 0!",
            "For example, area(3, 4) is 12.",
            "",
            "import the module and call it",
            "We return the result; if h is 0, that is 0.",
        ]
    ),
    max_size=4,
).map("\n".join)
ANSWERS = st.sampled_from(
    [
        WHOLE,
        PROMPT + BODY,
        f"import math\n\n\n{WHOLE}",
        f"def helper(n):\n    return n\n\n\n{WHOLE}",
    ]
)
FENCES = st.sampled_from(
    ["```python\n{}```", "```\n{}\n```", "~~~py\n{}~~~", "````Python\n{}````", "```python3\n{}"]
)


@settings(max_examples=200)
@given(before=SENTENCES, after=SENTENCES, answer=ANSWERS, fence=FENCES, returns=st.booleans())
def test_a_known_answer_is_read_back_from_any_prose(
    before: str, after: str, answer: str, fence: str, returns: bool
) -> None:
    closed = fence.rstrip("\n").endswith(("`", "~"))
    reply = f"{before}\n{fence.format(answer)}\n{after if closed else ''}"
    program = read(reply.replace("\n", "\r\n") if returns else reply)
    assert passes(program, TESTS)
    assert passes(read(f"```python\n{program}\n```"), TESTS)


@settings(max_examples=200)
@given(before=SENTENCES, after=SENTENCES, answer=ANSWERS)
def test_a_known_answer_is_read_back_without_fences(before: str, after: str, answer: str) -> None:
    assert passes(read(f"{before}\n\n{answer}\n{after}\n"), TESTS)


@given(st.text(), st.sampled_from(["", PROMPT, "def f(", "x = '"]))
def test_never_raises(text: str, prompt: str) -> None:
    assert isinstance(extract_code(text, prompt=prompt, entry_point="area"), str)


def test_a_long_chain_of_helpers_is_followed() -> None:
    def reply(length: int) -> str:
        helpers = "".join(f"def h{n}(w, h):\n    return h{n + 1}(w, h)\n" for n in range(length))
        last = f"def h{length}(w, h):\n    return w * h\n"
        whole = "def area(w, h):\n    return h0(w, h)\n"
        return f"```python\n{helpers}{last}```\nand\n```python\n{whole}```"

    assert passes(read(reply(20)), TESTS)
    program = read(reply(1000))
    assert program.count("def h") == 1001


TOKENS = st.lists(
    st.sampled_from(
        [
            *("```", "~~~", "\n", "\n    ", "def area(w, h):", "return w", "python", "(", "#", ":"),
            *("class A:", "\n\n", "x = 1", "if", "<think>", "</think>", "[DONE]", "import os", "@"),
        ]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=300)
@given(TOKENS, st.sampled_from(["", PROMPT]))
def test_scrambled_code_has_one_reading(text: str, prompt: str) -> None:
    program = read(text, prompt)
    assert read(text, prompt) == program
    assert not program or program.strip()


def cases(data: Path) -> list[dict[str, Any]]:
    path = data.parent / "cases" / "cases.jsonl"
    if not path.is_file():
        pytest.skip(f"no collection of reported cases: {path} does not exist")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["group"] == "c" and "completion" in row["input"]]


def test_programs_of_the_collection_are_complete(data: Path) -> None:
    """Those that do harm are only read here: nothing of what they do is lost."""
    inputs = {row["id"]: row["input"] for row in cases(data)}
    assert len(inputs) > 15
    for name, given_ in inputs.items():
        program = extract_code(
            given_["completion"], prompt=given_["prompt"], entry_point=given_["entry_point"]
        )
        tree = ast.parse(program)
        assert any(
            isinstance(node, ast.FunctionDef) and node.name == given_["entry_point"]
            for node in tree.body
        ), name
        for call in ("_exit(0)", "sys.exit(0)", "os.fork()", "ctypes.string_at(0)", "input()"):
            assert (call in given_["completion"]) == (call in program), name
    for name, (reply, prompt, tests) in REPORTED.items():
        assert inputs[name]["completion"] == reply
        assert inputs[name]["prompt"] == prompt
        assert tests.count("assert") == inputs[name]["test"].count("assert")


def test_the_second_prompt_has_its_tests() -> None:
    assert passes(
        read("    return sorted(values)[:0] or values", LIST_PROMPT, None), "running_max([])"
    )
    assert not passes(read("    return values", LIST_PROMPT, None), LIST_TESTS)
