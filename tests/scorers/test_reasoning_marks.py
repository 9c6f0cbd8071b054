"""Reasoning and answer, separated by the marks of every family and by nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import Response
from pytest_llmeval.core.reasoning import is_cut_off
from pytest_llmeval.core.reasoning import split_reasoning
from pytest_llmeval.core.reasoning_marks import FAMILIES
from pytest_llmeval.core.reasoning_marks import mark_tokens
from pytest_llmeval.core.reasoning_marks import open_reasoning_mark
from pytest_llmeval.evaluation.scoring import scored_record
from pytest_llmeval.scorers import extract_choice
from pytest_llmeval.scorers import extract_code
from pytest_llmeval.scorers import extract_number
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers.response_text import answer_to_item
from pytest_llmeval.scorers.response_text import without_reasoning
from support.linear import assert_linear

OPTIONS = ("iron", "zinc", "lead", "tin")
# gpt-oss, as in openai/harmony, docs/format.md; and with its special tokens not decoded.
ANALYSIS = "<|channel|>analysis<|message|>{}<|end|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>{}"
# Draft and answer as each family writes them. {0}: the draft, {1}: the answer.
REPLIES = {
    "think": "<think>\n{0}\n</think>\n\n{1}",
    "think, in capitals": "<THINK>{0}</THINK>{1}",
    "thinking": "<thinking>{0}</thinking>\n{1}",
    "thought": "<thought>{0}</thought>\n{1}",
    "reasoning": "<reasoning>\n{0}\n</reasoning>\n<answer>\n{1}\n</answer>",
    "opened by the template": "{0}\n</think>\n\n{1}",
    "Hunyuan-A13B": "<think>\n{0}\n</think>\n<answer>\n{1}\n</answer>",
    "ERNIE-4.5": "{0}\n</think>\n\n<response>\n{1}\n</response>\n",
    "MiniMax-M3": "<mm:think>{0}</mm:think>{1}",
    "Seed-OSS": "<seed:think>{0}</seed:think>{1}<seed:eos>",
    "Hunyuan 3": "<think:opensource>{0}</think:opensource>{1}",
    "LongCat": "<longcat_think>{0}</longcat_think>{1}",
    "K2 Horizon": "<ifm|think_fast>{0}</ifm|think_fast>{1}",
    "Magistral": "[THINK]{0}[/THINK]{1}</s>",
    "Kimi-VL": "◁think▷{0}◁/think▷{1}",
    "Kimi K3": "<|open|>think<|sep|>{0}<|close|>think<|sep|>"
    "<|open|>response<|sep|>{1}<|close|>response<|sep|>",
    "OpenThinker": "<|begin_of_thought|>\n\n{0}\n\n<|end_of_thought|>\n\n"
    "<|begin_of_solution|>\n\n{1}\n\n<|end_of_solution|>",
    "Command A": "<|START_THINKING|>{0}<|END_THINKING|><|START_RESPONSE|>{1}<|END_RESPONSE|>",
    "Command A, opened": "{0}<|END_THINKING|><|START_TEXT|>{1}<|END_TEXT|>",
    "Apertus": "<|inner_prefix|>{0}<|inner_suffix|>{1}",
    "Gemma 4": "<|channel>thought\n{0}<channel|>{1}<turn|>",
    "Solar Open": "<|think|>{0}<|end|><|begin|>assistant<|content|>{1}<|flush|>",
    "Solar Open 2": "<|think:start|>{0}<|think:end|>{1}",
    "PLaMo 3": "<|plamo:begin_think:plamo|>{0}<|plamo:end_think:plamo|>{1}",
    "Pangu": "[unused16]{0}[unused17]{1}",
    "Inkling": "<|message_model|><|content_thinking|>{0}<|end_message|>"
    "<|message_model|><|content_text|>{1}<|end_message|><|content_model_end_sampling|>",
    "Muse Glimmer": "to=self<|message|>{0}<|eom|><|start|>assistant to=user<|message|>{1}<|eot|>",
    "HyperCLOVA X": "/think\n{0}<|im_end|>\n<|im_start|>assistant\n{1}<|im_end|>",
    "Granite": "Here is my thought process:\n\n{0}\n\nHere is my response:\n\n{1}",
    "Granite, quantized": "Here's my thought process: {0} Here's my response: {1}",
    "Apriel": "{0}\n[BEGIN FINAL RESPONSE]\n{1}\n[END FINAL RESPONSE]\n<|end|>",
    "gpt-oss": ANALYSIS.format("{0}") + FINAL.format("{1}") + "<|return|>",
    "gpt-oss, stopped": ANALYSIS.format("{0}") + FINAL.format("{1}"),
    "gpt-oss, with a preamble": ANALYSIS.format("{0}")
    + "<|start|>assistant<|channel|>commentary<|message|>{0}<|end|>"
    + FINAL.format("{1}"),
    "gpt-oss, with a tool": ANALYSIS.format("{0}")
    + "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
    "{0}<|call|>" + FINAL.format("{1}"),
    "gpt-oss, typed": ANALYSIS.format("{0}")
    + "<|start|>assistant<|channel|>final <|constrain|>text<|message|>{1}<|return|>",
    "gpt-oss, no special tokens": "analysis{0}assistantfinal{1}",
    "gpt-oss, no special tokens, preamble": "analysis{0}assistantcommentary{0}assistantfinal{1}",
    "gpt-oss, next turn": ANALYSIS.format("{0}")
    + FINAL.format("{1}")
    + "<|end|><|start|>user<|message|>{0}",
    "a second closing mark": "<think>{0}</think>{1}</think>",
    "a second closing mark, opened": "{0}</think>\n{1}\n</think>\n",
    "two blocks": "<think>{0}</think>\n<think>{0}</think>\n{1}",
    "a block within": "<think>{0}<think>{0}</think>{0}</think>{1}",
    "opened twice": "<think>\n<think>\n{0}</think>{1}",
    "a mention within": "<think>Write <think> first? {0}</think>{1}",
    "a quoted mention within": "<think>Close it with `</think>`. {0}</think>{1}",
    "a draft left open": "<think>\n```python\n{0}\n</think>\n\n{1}",
    "a draft left open, opened": "So:\n```python\n{0}\n</think>\n\n{1}",
    "the next turn": "<think>{0}</think>{1}<|im_end|>\n<|im_start|>assistant\n<think>",
}
# Cut off before the answer.
CUT_OFF = {
    name: reply.partition("{1}")[0].partition(end)[0]
    for name, reply, end in [
        ("think", REPLIES["think"], "</think>"),
        ("MiniMax-M3", REPLIES["MiniMax-M3"], "</mm:think>"),
        ("Magistral", REPLIES["Magistral"], "[/THINK]"),
        ("OpenThinker", REPLIES["OpenThinker"], "<|end_of_thought|>"),
        ("Command A", REPLIES["Command A"], "<|END_THINKING|>"),
        ("Apertus", REPLIES["Apertus"], "<|inner_suffix|>"),
        ("Gemma 4", REPLIES["Gemma 4"], "<channel|>"),
        ("gpt-oss", REPLIES["gpt-oss"], "<|end|>"),
        ("gpt-oss, behind the analysis", REPLIES["gpt-oss"], "<|start|>"),
        ("gpt-oss, in a header", REPLIES["gpt-oss"], "<|channel|>final"),
        ("gpt-oss, in a channel's name", REPLIES["gpt-oss"], "inal<|message|>"),
        ("gpt-oss, before the message", REPLIES["gpt-oss"], "{1}"),
        ("gpt-oss, in a preamble", REPLIES["gpt-oss, with a preamble"], "<|start|>assistant<|channel|>f"),
        ("gpt-oss, no special tokens", REPLIES["gpt-oss, no special tokens"], "assistantfinal"),
    ]
}  # fmt: skip
# No marks: text about them, or other words.
TEXT_ABOUT_MARKS = [
    "Write <think> before it. The answer is B.",
    "A thought ends with </think>, and a turn with </s>. The answer is B.",
    "The tag `<think>` opens a thought. The answer is B.",
    'It prints "</think>" at the end. The answer is B.',
    "```html\n<think>\nA\n</think>\n```\nThe answer is B.",
    "~~~\nTEMPLATE = '''\n</think>\n'''\n~~~\nThe answer is B.",
    "analysis of the options: the answer is B.",
    "finally, the answer is B.",
    "Here is my thought process: lead is too soft. The answer is B.",
    "The answer is B. (Not <s>A</s> as I first wrote.)",
    "</thinker> The answer is B.",
]


@pytest.mark.parametrize("name", REPLIES)
def test_the_draft_is_not_scored(name: str) -> None:
    def reply(draft: str, answer: str) -> str:
        return REPLIES[name].replace("{0}", draft).replace("{1}", answer)

    assert extract_choice(reply("The answer is C.", "The answer is B."), OPTIONS) == "B"
    assert extract_choice(reply("The answer is C.", "B"), OPTIONS) == "B"
    assert extract_number(reply("So it is 12, I think.", "It is 7.")) == 7
    code = reply("```\ndef f():\n    return 1\n```", "```\ndef f():\n    return 2\n```")
    assert "return 2" in extract_code(code, entry_point="f")
    assert "return 1" not in extract_code(code, entry_point="f")


@pytest.mark.parametrize("name", REPLIES)
def test_the_answer_alone_is_compared_as_text(name: str) -> None:
    item = Item("q", "s", "Which?", "zinc")
    text = REPLIES[name].replace("{0}", "Zinc or lead").replace("{1}", "zinc")
    assert get_scorer("exact_match")(item, Response("q", text=text)).outcome is Outcome.CORRECT
    lead = Item("q", "s", "Which?", "lead")
    assert get_scorer("contains")(lead, Response("q", text=text)).outcome is Outcome.WRONG


@pytest.mark.parametrize("name", CUT_OFF)
def test_a_reply_without_an_answer_is_unparsed_and_truncated(name: str) -> None:
    text = CUT_OFF[name].replace("{0}", "The answer is C, that is 12.")
    assert without_reasoning(text) is None
    assert answer_to_item(text) is None
    assert extract_choice(text, OPTIONS) is None
    assert extract_number(text) is None
    draft = CUT_OFF[name].replace("{0}", "So:\n```\ndef f():\n    return 1\n```")
    assert extract_code(draft, entry_point="f") == ""
    item = Item("q", "s", "Which?", 2, OPTIONS)
    for finish in (None, "stop", "length"):
        response = Response("q", text=text, finish_reason=finish)
        record = scored_record(BLANK, response, get_scorer("choice")(item, response))
        assert (record.outcome, record.truncated) == (Outcome.UNPARSED, True)
        assert record.text == text


BLANK = Record("m", "b", "choice", "q", "s", Outcome.ERROR, None, "C")


def test_a_complete_reply_is_not_truncated() -> None:
    for reply in REPLIES.values():
        text = reply.replace("{0}", "C").replace("{1}", "B")
        assert not is_cut_off(text)
        response = Response("q", text=text, finish_reason="stop")
        item = Item("q", "s", "Which?", 1, OPTIONS)
        assert not scored_record(BLANK, response, get_scorer("choice")(item, response)).truncated


@pytest.mark.parametrize("text", TEXT_ABOUT_MARKS)
def test_text_about_marks_is_text(text: str) -> None:
    reply = split_reasoning(text)
    assert (reply.reasoning, reply.answer, reply.after) == (None, text, "")
    assert extract_choice(text, OPTIONS) == "B"


def test_marks_around_the_answer_leave_the_sentence_whole() -> None:
    text = "<think>C?</think>The answer is <|begin_of_box|>B<|end_of_box|>, zinc."
    assert split_reasoning(text).answer == "The answer is B, zinc."


def test_a_dropped_block_joins_no_words() -> None:
    assert split_reasoning("It is 1<think>so</think>2").answer == "It is 1\n2"
    assert extract_number("<think>a</think>It is 12</think>3 more") != 123


def test_marks_of_another_family_close_nothing() -> None:
    assert without_reasoning("<think>It is [/THINK] B") is None
    assert without_reasoning("<|channel>thought\nIt is </think> B") is None


def test_the_end_of_the_turn_is_the_end_of_the_answer() -> None:
    assert split_reasoning("B<|im_end|>\n<think>C").after == "<|im_end|>\n<think>C"
    assert answer_to_item("18</s>\n19") == "18"
    assert answer_to_item("`</s>` is a token.\nB</s>\nC") == "`</s>` is a token.\nB"


def test_the_next_question_is_none_within_code() -> None:
    program = "```python\nprint('''\nQuestion: 3 + 4?\n''')\n```\nIt prints 7."
    assert answer_to_item(program) == program
    assert answer_to_item("7\nQuestion: 3 + 5?\n8") == "7"
    # A fence that was left open hides nothing.
    assert answer_to_item("```\n7\nQuestion: 3 + 5?\n8") == "```\n7"


def test_every_family_is_documented() -> None:
    for family in FAMILIES:
        assert family.models
        assert family.source
        assert family.opening or family.answer
        assert bool(family.opening) == bool(family.begins)
        for begin in family.begins:
            if family.opening and not family.phrase and not begin.isalpha():
                assert not split_reasoning(f"{begin}x").closed


def test_a_prompt_may_end_within_reasoning() -> None:
    assert open_reasoning_mark("<assistant><think>\n") == "<think>"
    assert open_reasoning_mark("<assistant>[THINK]") == "[THINK]"
    assert open_reasoning_mark("<|START_THINKING|>") == "<|START_THINKING|>"
    assert open_reasoning_mark("<|start|>assistant<|channel|>analysis<|message|>")
    assert open_reasoning_mark("<think>\n\n</think>\n\n") is None
    assert open_reasoning_mark("<|START_THINKING|><|END_THINKING|>") is None
    assert open_reasoning_mark("<|start|>assistant") is None
    assert open_reasoning_mark("analysisThe answer is") is None


def test_special_tokens_are_marks_of_families_that_are_complete() -> None:
    assert mark_tokens(["<|end|>", "<s>"]) == frozenset()
    assert mark_tokens(["<think>", "</think>", "<s>"]) == {"<think>", "</think>"}
    harmony = {"<|start|>", "<|channel|>", "<|message|>", "<|end|>"}
    assert mark_tokens([*harmony, "<|return|>"]) == harmony


PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "<think>",
                "</think>",
                "[THINK]",
                "[/THINK]",
                "<|end|>",
                "</s>",
                "<answer>",
                "</answer>",
            ),
            *(
                "<|channel|>analysis<|message|>",
                "<|channel|>final<|message|>",
                "<|start|>assistant",
            ),
            *("analysisA", "assistantfinal", "Here is my thought process:", "Here is my response:"),
            *(
                "<|begin_of_box|>",
                "```\n",
                "```python\n",
                "'''",
                '"',
                "`",
                "\n",
                " ",
                "a",
                "B. ",
                "# ",
            ),
        ]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=500)
@given(PIECES, st.booleans())
def test_any_sequence_of_marks_is_read(text: str, opened: bool) -> None:
    reply = split_reasoning(text, opened=opened)
    assert reply.closed or reply.answer == ""
    assert len(reply.answer) + len(reply.after) <= len(text) + text.count(">") + text.count(":")
    if reply.closed and opened:
        assert reply.reasoning is not None


@given(st.text())
def test_text_without_marks_is_the_answer(text: str) -> None:
    if not any(char in text for char in "<[◁"):
        assert split_reasoning(text).answer == text


@pytest.mark.parametrize(
    "piece",
    [
        *("<think>", "</think>", "<think>a</think>b", "a</think>", "<think> b", "</think>```\n"),
        *("assistantfinal", "<|channel|>analysis<|message|>", "<|channel|>", "<|start|>assistant"),
        *("Here is my response:", "</s> a", "<s>a</s>", "<|begin_of_box|>", "<answer>"),
        *("```\n", "```python\n", "```x\n'''\n", "'''\n", '"', '\\"', "`", "a ` b", "   #", " "),
    ],
)
@pytest.mark.parametrize("begin", ["", "<think>", "a</think>"])
def test_time_is_linear(begin: str, piece: str) -> None:
    assert_linear(lambda text: split_reasoning(begin + text), piece, size=4_000)
