"""Replies with code in them, in the forms that models give it, for one small task.

Every reply here is harmless and known, so that what is read from it may be run on the spot. The
cases named c.. are those of the project's collection of public bug reports, written here so that
the tests run everywhere.
"""

from __future__ import annotations

import textwrap

PROMPT = '''def area(w, h):
    """Area of a w by h rectangle."""
'''
TESTS = "assert area(3, 4) == 12\nassert area(0, 9) == 0\n"
BODY = "    total = 0\n    for _ in range(h):\n        total += w\n    return total\n"
WHOLE = "def area(w, h):\n    return w * h\n"
WRONG = "def area(w, h):\n    return w + h\n"

LIST_PROMPT = (
    "from typing import List\n\n\ndef running_max(values: List[int]) -> List[int]:\n"
    '    """Largest value seen so far at each position."""\n'
)
LIST_TESTS = (
    "assert running_max([2, 1, 5]) == [2, 2, 5]\nassert running_max([]) == []\n"
    "assert running_max([-3, -7]) == [-3, -3]\n"
)

# id: reply, prompt, tests. All are right.
REPORTED: dict[str, tuple[str, str, str]] = {
    "c01": (
        f"First try:\n\n```python\n{WRONG}```\n\nThat adds. Corrected:\n\n```python\n{WHOLE}```\n",
        PROMPT,
        TESTS,
    ),
    "c03": (f"Here is the function:\n\n```python\n{WHOLE}", PROMPT, TESTS),
    "c05": (
        "    out = []\n    for v in values:\n"
        "        out.append(v if not out or v > out[-1] else out[-1])\n    return out\n",
        LIST_PROMPT,
        LIST_TESTS,
    ),
    "c06": (
        "```python\ndef running_max(values: List[int]) -> List[int]:\n    out = []\n"
        "    for v in values:\n        out.append(max(v, out[-1]) if out else v)\n    return out\n```\n",
        LIST_PROMPT,
        LIST_TESTS,
    ),
    "c08": (
        "    total = 0\n# add up the rows\n    for _ in range(h):\n        total += w\n    return total",
        PROMPT,
        TESTS,
    ),
    "c09": ("    return w * h", PROMPT, TESTS),
    "c11": ("    return w * h\n<|endoftext|>", PROMPT, TESTS),
}

# Text around a whole function; {} is the place of the code.
AROUND = {
    "bare": "{}",
    "fence": "```\n{}```",
    "python fence": "```python\n{}```\n",
    "py fence": "```py\n{}\n```",
    "tildes": "~~~python\n{}~~~\n",
    "long fence": "````python\n{}````\n",
    "attribute": "``` {{.python}}\n{}```",
    "never closed": "Sure!\n```python\n{}",
    "prose around": "Here's the function:\n\n```python\n{}```\n\nIt takes *O(1)* time.",
    "no fence": "Here is the function you asked for:\n\n{}\nThis multiplies the two sides.\n",
    "language line": "python\n{}",
    "reasoning": "<think>\n```python\ndef area(w, h):\n    return 0\n```\n</think>\n\n```python\n{}```",
    "reasoning, no fence": "I may add them: def area(w, h): return w + h</think>\n{}",
    "usage after": "```python\n{}```\nUsage:\n```python\nfrom answer import area\nprint(area(3, 4))\n```",
    "output after": "```python\n{}```\nOutput:\n```\n12\n```",
    "shell before": "```bash\npip install nothing\n```\n```python\n{}```",
    "wrong before": "```python\ndef area(w, h):\n    return w + h\n```\nNo:\n```python\n{}```",
    "wrong before, no fence": "def area(w, h):\n    return w + h\n\nThat is wrong. Better:\n\n{}",
    "stub after": "```python\n{}```\nThe skeleton:\n```python\ndef area(w, h):\n    pass\n```",
    "broken after": "```python\n{}```\nOr:\n```python\ndef area(w, h)\n    return w *\n```",
    "demonstration": "```python\n{}\nprint(area(1, 2))\nassert area(1, 1) == 3\n```",
    "main": "```python\n{}\nif __name__ == '__main__':\n    raise SystemExit(1)\n```",
    "begin and done": "[BEGIN]\n{}[DONE]\n\nYou are an expert",
    "end of turn": "{}<|im_end|>\n<|im_start|>user\nThanks",
    "future": "```python\nfrom __future__ import annotations\n{}```",
}

# Replies that hold the body alone, or the code in another shape.
SHAPES = {
    "body": BODY,
    "body in a fence": f"```python\n{BODY}```",
    "body at the margin, in a fence": f"```python\n{textwrap.dedent(BODY)}```",
    "first line at the margin": BODY.lstrip(),
    "first line with a blank too few": BODY[1:],
    "all at the margin": textwrap.dedent(BODY),
    "a level too deep": textwrap.indent(BODY, "    "),
    "tabs": BODY.replace("    ", "\t"),
    "tabs, first line at the margin": BODY.replace("    ", "\t").lstrip(),
    "mixed": "    total = w\n\treturn total * h\n",
    "closed behind code": f"```python\n{WHOLE.rstrip()}```\nDone.",
    "carriage returns": f"```python\n{WHOLE}```".replace("\n", "\r\n"),
    "body, carriage returns": BODY.replace("\n", "\r\n"),
    "body, fence closed": f"{BODY}```",
    "body, fence closed, prose": f"{BODY}```\n\nIt adds up the rows.\n",
    "body, fence closed, usage": f"{BODY}```\nUse:\n```python\nprint(area(3, 4))\n```",
    "body, prose after": f"{BODY}\nThis function returns the area.\n",
    "body, another function cut off": f"{BODY}\n\ndef perimeter(w, h):\n    return 2 * (w +",
    "body, tries": f"{BODY}\nprint(area(2, 3))\nassert area(1, 1) == 3\n",
    "body behind prose": f"Sure! The body is:\n\n{BODY}",
    "body, comment first": "# multiply\nreturn w * h",
    "prompt repeated": PROMPT + BODY,
    "indented whole": textwrap.indent(WHOLE, "    "),
    "in a list": f"1. Do this:\n\n   ```python\n{textwrap.indent(WHOLE, '   ')}   ```\n2. Done.",
    "class of a judge": (
        "```python\nclass Solution:\n    def area(self, w, h):\n        return w * h\n```"
    ),
    "lambda": "```python\narea = lambda w, h: w * h\n```",
    "helper in another block": (
        "```python\ndef times(a, b):\n    return a * b\n```\nand\n"
        "```python\ndef area(w, h):\n    return times(w, h)\n```"
    ),
    "import in another block": (
        "First:\n```python\nfrom operator import mul\n```\nThen:\n"
        "```python\ndef area(w, h):\n    return mul(w, h)\n```"
    ),
    "constant first": "K = 1\n\n\ndef area(w, h):\n    return K * w * h\n\nThat is it.",
    "fence in a docstring": (
        '```python\ndef area(w, h):\n    """Multiply.\n\n    ```\n    area(1, 2)\n    ```\n    """\n'
        "    return w * h\n```\n"
    ),
    "calls itself": "    return 0 if h == 0 else w + area(w, h - 1)\n",
}

NO_CODE = [
    "",
    " \n",
    "I cannot help with that.",
    "Sorry",
    "None",
    "12",
    "```python\n```",
    "<think>\ndef area(w, h):\n    return w * h\n",
    "The area is w times h.",
]
