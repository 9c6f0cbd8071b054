"""Where an answer begins and ends, in whole texts and while they grow."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.models.stopping import ReplyParts
from pytest_llmeval.models.stopping import StopWatcher
from pytest_llmeval.models.stopping import split_reply


@pytest.mark.parametrize(
    ("text", "stop", "answer", "stopped"),
    [
        (" 4 + 4 = 8.\n\nQ: And", ("Q:",), " 4 + 4 = 8.\n\n", True),
        ("one two three", ("three", "two"), "one ", True),
        ("one two", ("four",), "one two", False),
        ("one two", (), "one two", False),
        ("one two", ("",), "one two", False),
        ("Q: at once", ("Q:",), "", True),
        # White space alone ends a paragraph, not an answer that begins with blank lines.
        ("\n\nB\n\nQ: And", ("\n\n",), "\n\nB", True),
        ("\n\n\n\nB", ("\n\n",), "\n\n\n\nB", False),
        (" \n B", ("\n",), " \n B", False),
        (" B", (" ",), " B", False),
        ("\n\n", ("\n\n",), "\n\n", False),
        # Any other stop string is text by itself, at once, too (HumanEval's).
        ("\ndef f():", ("\ndef",), "", True),
        ("\n\nQ: And", ("\n\n", "Q:"), "\n\n", True),
    ],
)
def test_text_ends_before_the_first_stop_string(
    text: str, stop: tuple[str, ...], answer: str, stopped: bool
) -> None:
    assert split_reply(text, stop) == ReplyParts(None, answer, stopped=stopped)


@pytest.mark.parametrize(
    ("text", "opened", "expected"),
    [
        (
            "<think>\nWell.\n\n</think>\n\n42\n\nmore",
            False,
            ReplyParts("Well.", "42", stopped=True),
        ),
        ("\n<think>Well.</think>42", False, ReplyParts("Well.", "42")),
        ("Well.\n\nSo\n</think>\n42", True, ReplyParts("Well.\n\nSo", "42")),
        # The template has opened the thought, and the model does so once more.
        ("<think>\nWell.</think>42", True, ReplyParts("Well.", "42")),
        # Closed, never opened: some templates open it without leaving a trace in the prompt.
        ("Well.</think> 42", False, ReplyParts("Well.", "42")),
        ("<think>\n\n</think>\n\n42", False, ReplyParts("", "42")),
        ("[THINK]Well.\n\nSo[/THINK]42", False, ReplyParts("Well.\n\nSo", "42")),
        ("◁think▷Well.◁/think▷42", False, ReplyParts("Well.", "42")),
        ("Well.[/THINK]42", False, ReplyParts("Well.", "42")),
        # Cut short within the thought: there is no answer.
        ("<think>It is [/THINK] 42", False, ReplyParts("It is [/THINK] 42", "", closed=False)),
        ("It is \0 42", True, ReplyParts("It is \0 42", "", closed=False)),
        ("<think>It is 42\n\nor", False, ReplyParts("It is 42\n\nor", "", closed=False)),
        ("It is 42", True, ReplyParts("It is 42", "", closed=False)),
        (
            "<|channel|>analysis<|message|>So.\n\nB?<|end|>"
            "<|start|>assistant<|channel|>final<|message|>C\n\nmore",
            False,
            ReplyParts("So.\n\nB?", "C", stopped=True),
        ),
        ("analysisSo.\n\nB?assistantfinalC", False, ReplyParts("So.\n\nB?", "C")),
        ("analysisSo.\n\nB?", False, ReplyParts("So.\n\nB?", "", closed=False)),
        ("<mm:think>So.\n\n</mm:think>C", False, ReplyParts("So.", "C")),
        # A closing mark too many.
        ("<think>So.</think>C</think>", False, ReplyParts("So.", "C")),
        # The indentation of a function's body.
        ("<think>So.</think>\n    return 1", False, ReplyParts("So.", "    return 1")),
        # What follows the end of a turn is not for the model to judge.
        ("<think>So.</think>C</s>D", False, ReplyParts("So.", "C</s>D")),
        # Not the first word: text about thoughts.
        ("Write <think> before it", False, ReplyParts(None, "Write <think> before it")),
    ],
)
def test_a_thought_is_split_off_before_stop_strings(
    text: str, opened: bool, expected: ReplyParts
) -> None:
    assert split_reply(text, ("\n\n",), opened=opened) == expected


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    """A text as tokens of the given lengths."""
    parts, begin = [], 0
    for length in cuts:
        parts.append(text[begin : begin + length])
        begin += length
    return [piece for piece in (*parts, text[begin:]) if piece]


def stops_at(tokens: list[str], stop: tuple[str, ...], *, opened: bool = False) -> int | None:
    """The number of tokens after which a watch ends the text; tokens are their own text."""
    watch = StopWatcher(lambda ids: "".join(tokens[i] for i in ids), stop, opened=opened)
    for count in range(1, len(tokens) + 1):
        if watch.stopped(range(count)):
            return count
    return None


def test_a_stop_string_over_several_tokens_ends_with_its_last() -> None:
    assert stops_at(["a", "\n", "\nQ", ":", "b"], ("\n\nQ:",)) == 4
    assert stops_at(["a", "xQ:y", "b"], ("Q:",)) == 2
    assert stops_at(["a", "Q", " :", "b"], ("Q:",)) is None


def test_tokens_without_a_text_do_not_hide_a_stop_string() -> None:
    stop = "### The end"
    tokens = ["a", *stop[:5], "", "", "", "", *stop[5:], "b"]
    assert stops_at(tokens, (stop,)) == len(tokens) - 1


def test_stop_strings_within_a_thought_mean_nothing() -> None:
    tokens = ["<th", "ink>", "a\n\n", "b", "</thi", "nk>", "\n\n", "42", "\n\n", "more"]
    assert stops_at(tokens, ("\n\n",)) == 9
    assert stops_at(tokens[2:], ("\n\n",), opened=True) == 7
    assert stops_at([*tokens[:8], *"and more words", "\n\n"], ("\n\n",)) == 23
    assert stops_at(["<th", "ing", "\n\n"], ("\n\n",)) == 3
    assert stops_at(["\n\n", "<th", "\n\n"], ("\n\n",)) == 3
    harmony = ["<|channel|>", "analysis", "<|message|>", "So.\n\n", "B", "<|end|>", "<|start|>"]
    final = ["assistant", "<|channel|>", "final", "<|message|>", "C", "\n\n", "more"]
    assert stops_at([*harmony, *final], ("\n\n",)) == 13
    assert stops_at(["analysis", "So.\n\n", "B", "assistant", "final", "C", "\n\n"], ("\n\n",)) == 7
    granite = [
        "Here is my thought",
        " process:\n\n",
        "A\n\n",
        "Here is my",
        " response:",
        "B",
        "\n\n",
    ]
    assert stops_at(granite, ("\n\n",)) == 7
    assert stops_at(["analysis", " of", "\n\n"], ("\n\n",)) == 3


@given(
    text=st.text("ab\n<>/think[]", max_size=60),
    cuts=st.lists(st.integers(1, 4), max_size=40),
    stop=st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3),
    thought=st.sampled_from(
        [
            *("", "<think>a\n</think>", "<think>b", "\n<think>\n\n</think>\n\n", "[THINK]a"),
            *("<mm:think>a</mm:think>", "<|channel|>analysis<|message|>a\n", "analysisA\n"),
            "analysisA\nassistantfinal",
            "<|channel|>analysis<|message|>a\n<|end|>"
            "<|start|>assistant<|channel|>final<|message|>\n",
        ]
    ),
    opened=st.booleans(),
)
def test_watching_token_by_token_finds_what_is_in_the_whole_text(
    text: str, cuts: list[int], stop: list[str], thought: str, opened: bool
) -> None:
    """It ends with the first token after which the text, taken as a whole, is stopped."""
    tokens = pieces(thought + text, cuts)
    expected = None
    for count in range(1, len(tokens) + 1):
        if split_reply("".join(tokens[:count]), stop, opened=opened).stopped:
            expected = count
            break
    assert stops_at(tokens, tuple(stop), opened=opened) == expected


def test_only_the_last_tokens_are_decoded() -> None:
    """Otherwise the work would grow with the square of the length."""
    decoded: list[int] = []

    def decode(ids: Sequence[int]) -> str:
        decoded.append(len(ids))
        return "x" * len(ids)

    watch = StopWatcher(decode, ("Q:",))
    for count in range(1, 1001):
        assert not watch.stopped(range(count))
    assert max(decoded[2:]) < 20
    decoded.clear()
    assert not StopWatcher(decode, ()).stopped(range(5))
    assert decoded == []
