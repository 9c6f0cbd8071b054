"""Reading the chosen option out of generated text.

Only what is unmistakable counts: an explicit statement, a label that stands alone, or the whole
text of an option. Anything else is no answer; nothing is guessed. Every pattern is bounded, so
that the time is linear in the text whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score

_REASONING = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_MARKUP = re.compile(r"\\(?:boxed|text|textbf|mathrm|mathbf)\b|[*$`{}]")
# White space is one blank by the time these are used.
_ANCHOR = re.compile(
    r"\b(?:answer|option|choice)(?: is ?:?| ?[:=]) ?(?:(?:option|choice|letter) )?", re.IGNORECASE
)
_LABEL = re.compile(
    r"""[(\["']{0,2}
    (?: ([A-Z])(?![\w'\u2019])                    # a capital that is a word of its own
      | ([a-z])(?=[)\].,;:!?"']|\ ?$) )      # a small letter only where a statement ends
    [)\]"']{0,2}""",
    re.VERBOSE,
)
# "A metal …" and "I think …" are words; "A because …" is an answer.
_WORD = re.compile(r" (?!(?:because|since|as|which|and|or|but|due|with)\b)[a-z]")
_HEDGE = re.compile(r" ?(?:\bor\b|\band\b|/|&) ?(?:option )?[(\[]?[A-Za-z](?![\w'\u2019])")
_LINE_LABEL = re.compile(r"^[(\[]?([A-Z])(?:[)\].:]{1,2}(?= |$)|$)", re.MULTILINE)
_LONE = re.compile(r"[(\[]?([A-Za-z])[)\]]?[.:]?")


def choice(item: Item, response: Response) -> Score:
    """The option that the generated text names; no readable option is ``unparsed``."""
    if response.error is not None:
        return Score(Outcome.ERROR, error=response.error)
    if response.text is None:
        return Score(Outcome.ERROR, error="the response has no text")
    if not item.options or not isinstance(item.gold, int):
        return Score(Outcome.ERROR, error="the item has no options to choose from")
    answer = extract_choice(response.text, item.options)
    if answer is None:
        return Score(Outcome.UNPARSED)
    return Score(
        Outcome.CORRECT if answer == item.gold_label else Outcome.WRONG,
        answer=answer,
    )


def extract_choice(text: str, options: Sequence[str], *, labels: str | None = None) -> str | None:
    """The label of the option that ``text`` settles on, or None.

    ``labels`` are the options' letters, by default A, B, C… Reasoning blocks that are closed
    are dropped; one that is not closed means that no answer was reached. Then, first hit wins:
    the last explicit statement ("the answer is (B)", "Answer: B"), a label that stands alone
    at the first or the last line, the whole text of one option. Never raises.
    """
    labels = (LABELS if labels is None else labels)[: len(options)]
    visible = _without_reasoning(text)
    if visible is None:
        return None
    lines = [" ".join(line.split()) for line in _MARKUP.sub("", visible).split("\n")]
    lines = [line for line in lines if line]
    if not lines:
        return None
    found, label = _stated(" ".join(lines), options, labels)
    if found:
        return label
    return _standing_alone(lines, labels) or _option_text(visible, options, labels)


def _without_reasoning(text: str) -> str | None:
    """``text`` without reasoning blocks; None where one is left open.

    A closing tag without an opening one ends a block that the chat template opened.
    """
    kept: list[str] = []
    inside, position = False, 0
    for tag in _REASONING.finditer(text):
        if not tag.group(1):
            if not inside:
                kept.append(text[position : tag.start()])
            inside = True
            continue
        if not inside:
            kept.clear()
        inside, position = False, tag.end()
    return None if inside else "".join([*kept, text[position:]])


def _stated(line: str, options: Sequence[str], labels: str) -> tuple[bool, str | None]:
    """Whether there is an explicit statement, and the label of the last one (None: a hedge)."""
    found, label = False, None
    for anchor in _ANCHOR.finditer(line):
        match = _LABEL.match(line, anchor.end())
        if match is not None:
            letter = match.group(1) or match.group(2).upper()
            if letter in "AI" and _WORD.match(line, match.end()):
                continue
            found = True
            label = None if _HEDGE.match(line, match.end()) else _known(letter, labels)
    if not found:
        # "The answer is iron oxide.": looked at for the last anchor only, to stay linear.
        anchors = list(_ANCHOR.finditer(line))
        if anchors:
            label = _option_text(line[anchors[-1].end() :], options, labels)
            found = label is not None
    return found, label


def _standing_alone(lines: list[str], labels: str) -> str | None:
    """The label that the first or last line consists of or opens with, if it is the only one."""
    if len(lines) == 1:
        lone = _LONE.fullmatch(lines[0])
        if lone is not None:
            return _known(lone.group(1).upper(), labels)
    marked = [
        (number, match.group(1))
        for number, line in enumerate(lines)
        if (match := _LINE_LABEL.match(line)) and match.group(1) in labels
    ]
    # A list of the options again, or two answers: nothing is settled.
    if len({label for _, label in marked}) != 1:
        return None
    at_edge = marked[0][0] == 0 or marked[-1][0] == len(lines) - 1
    return marked[0][1] if at_edge else None


def _option_text(text: str, options: Sequence[str], labels: str) -> str | None:
    """The label of the one option that ``text`` is, apart from case, blanks and a full stop."""
    said = _plain(text)
    matches = [
        label for label, option in zip(labels, options, strict=False) if _plain(option) == said
    ]
    return matches[0] if said and len(matches) == 1 else None


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(" .").casefold()


def _known(letter: str, labels: str) -> str | None:
    return letter if letter in labels else None
