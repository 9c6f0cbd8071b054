"""Programs whose literals hold marks and fences: they come back as they were written."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.scorers import extract_code
from support.code_replies import PROMPT

# What a program about models, templates, Markdown or prompts has in its literals.
TEXTS = [
    *("</s>", "<s>", "<think>", "</think>", "<|im_end|>", "<|im_start|>user", "<|endoftext|>"),
    *("[THINK]", "[/THINK]", "<eos>", "<|channel|>final<|message|>", "<|end|>", "assistantfinal"),
    *(
        "```",
        "```python",
        "~~~",
        "[DONE]",
        "[/ANSWER]",
        "[/PYTHON]",
        "Question:",
        "Q: 1",
        "#",
        " # x",
    ),
    *("<think>a</think>", "it's", '"', "\\", "\t", "{}", "from __future__ import annotations"),
    *(
        "<|begin_of_box|>",
        "[BEGIN FINAL RESPONSE]",
        "Here is my response:",
        "<answer>",
        "</answer>",
    ),
]
TEXT = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3).map(" ".join)
LINES = st.lists(st.one_of(TEXT, st.sampled_from(["", "    x", "y  "])), min_size=1, max_size=4)


def quoted(lines: list[str]) -> str:
    """A literal of several lines, at the margin where the lines are."""
    text = "\n".join(lines).replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{text}\n"""'


def docstring(lines: list[str]) -> str:
    text = quoted(["Multiply.", *lines])
    return "\n".join(f"    {line}" if line else line for line in text.split("\n"))


STATEMENTS = st.one_of(
    TEXT.map(lambda text: f"    note = {text!r}"),
    TEXT.map(lambda text: f"    note = f{text.replace('{}', '')!r}"),
    TEXT.map(lambda text: f"    note = note.replace({text!r}, '')"),
    LINES.map(lambda lines: f"    note = {quoted(lines)}"),
    LINES.map(lambda lines: f"    note = len({quoted(lines)}.split())"),
    TEXT.map(lambda text: f"    note = (\n        {text!r}\n        {text!r}\n    )"),
    TEXT.map(lambda text: f"    if w == {text!r}:\n        return {quoted([text, 'x'])}"),
)

COMMENTS = st.one_of(
    TEXT.map(lambda text: f"    # without {text} too"),
    TEXT.map(lambda text: f"    note = ''  # {text} too"),
)


@st.composite
def programs(draw: st.DrawFn, constant: bool = True, comments: bool = True) -> str:
    """A whole program that defines ``area``."""
    parts = []
    if constant and draw(st.booleans()):
        parts.append(f"TEMPLATE = {quoted(draw(LINES))}\n")
    parts.append("def area(w, h):")
    if draw(st.booleans()):
        parts.append(docstring(draw(LINES)))
    parts.append("    note = ''")
    statements = st.one_of(STATEMENTS, COMMENTS) if comments else STATEMENTS
    parts += draw(st.lists(statements, max_size=3))
    parts.append("    return w * h\n")
    return "\n".join(parts)


WRAPPED = [
    "{}",
    "```python\n{}```",
    "```python\n{}```\n\nIt multiplies `w` and `h`, that's all.",
    "Here's the function:\n\n```python\n{}```\n",
    "~~~python\n{}~~~\n",
    "````python\n{}````\n",
    "```python\n{}",
    "<think>\nLet's multiply.\n</think>\n\n```python\n{}```",
    "Let's multiply.\n</think>\n\n```python\n{}```",
    "<think>\n```python\ndef area(w, h):\n    return 0\n```\n</think>\n```python\n{}```",
    "<|channel|>analysis<|message|>Multiply.<|end|><|start|>assistant<|channel|>final<|message|>"
    "```python\n{}```<|return|>",
    "<think>Multiply.</think>{}",
    "[BEGIN]\n{}[DONE]\n",
    "````markdown\nThe function:\n\n```python\n{}```\n````\n",
    "The tag `</s>` is dropped, and `<think>` too:\n\n```python\n{}```\n",
    'I\'d write `</think>` so:\n```\n{}```\nand "<think>" so.',
    "{}<|endoftext|>import os\nos.abort()\n",
    "[PYTHON]\n{}[/PYTHON]\n",
    "{}<|im_end|>",
    "{}</s>",
    "```python\n{}```<|im_end|>\n<|im_start|>user\nThanks!",
]


# Without a fence only the function is looked for in prose.
IN_PROSE = ["Here is the function:\n\n{}\n", "Here it is:\n\n{}\nIt doesn't need anything else.\n"]


def reply_of(shape: str, program: str) -> str:
    return shape.replace("{}", program, 1)


@settings(max_examples=400, deadline=None)
@given(programs(), st.sampled_from(WRAPPED), st.booleans())
def test_a_program_comes_back_as_it_was_written(program: str, shape: str, returns: bool) -> None:
    reply = reply_of(shape, program)
    read = extract_code(
        reply.replace("\n", "\r\n") if returns else reply, prompt=PROMPT, entry_point="area"
    )
    assert read.strip() == program.strip()


@settings(max_examples=100, deadline=None)
@given(programs(constant=False), st.sampled_from(IN_PROSE))
def test_a_function_in_prose_comes_back_as_it_was_written(program: str, shape: str) -> None:
    read = extract_code(reply_of(shape, program), prompt=PROMPT, entry_point="area")
    assert read.strip() == program.strip()


@settings(max_examples=300, deadline=None)
@given(
    programs(comments=False),
    st.sampled_from(["{}", "{}\n```", "{}<|im_end|>", "```python\n{}```"]),
    st.booleans(),
)
def test_a_body_comes_back_as_it_was_written(program: str, shape: str, at_margin: bool) -> None:
    lines = program[program.index("    note = ''") :]
    tree = ast.parse(PROMPT + lines)
    body = without_margin(lines) if at_margin else lines
    read = extract_code(reply_of(shape, body), prompt=PROMPT, entry_point="area")
    assert ast.dump(ast.parse(read)) == ast.dump(tree)


def without_margin(body: str) -> str:
    """The statements of a body at the margin, their literals unchanged."""
    tree = ast.parse("def f():\n" + body).body[0]
    assert isinstance(tree, ast.FunctionDef)
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)]
    inside = {
        number - 2
        for literal in literals
        for number in range(literal.lineno + 1, (literal.end_lineno or literal.lineno) + 1)
        if '"""' in (ast.get_source_segment("def f():\n" + body, literal) or "")
    }
    lines = enumerate(body.split("\n"))
    return "\n".join(line if number in inside else line[4:] for number, line in lines)
