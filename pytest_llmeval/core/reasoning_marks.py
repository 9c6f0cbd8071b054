"""The marks with which models separate reasoning from the answer, and with which a turn ends.

Every family is one row of ``FAMILIES``: the marks that open and close its reasoning, those that
open and close its answer, and the source that documents them. ``split_reasoning`` uses them, for
scorers and models.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

_VLLM = "vllm-project/vllm: vllm/reasoning/"
_SGLANG = "sgl-project/sglang: python/sglang/srt/parser/reasoning_parser.py"
_TOKEN = re.compile(r"<\|?[^<>\s]+>|\[/?[A-Za-z]+\d*\]|◁/?\w+▷")
_TAG = re.compile(r"</?[a-z]+>")


@dataclass(frozen=True)
class Marks:
    """One family of marks; the marks are regular expressions, empty if the family has none."""

    models: str
    #: Marks around reasoning.
    opening: str
    closing: str
    #: The place where the marks are documented.
    source: str
    #: Marks around the answer; if a family has them, text outside of them is not part of it.
    answer: str = ""
    ending: str = ""
    #: The closing mark counts without an opening one, which may be part of the chat template.
    bare_closing: bool = True
    #: Reasoning may contain a pair of the same marks.
    nests: bool = True
    #: The marks are ordinary words: they count only if the opening mark begins the reply and an
    #: answer mark follows.
    phrase: bool = False
    #: Without an answer mark, empty text after closed reasoning means that the reply was cut off.
    final: bool = False
    #: Texts with which reasoning begins.
    begins: tuple[str, ...] = ()
    #: Special tokens of the marks; without them the marks cannot be recognized.
    tokens: tuple[str, ...] = ()

    @cached_property
    def patterns(self) -> dict[str, re.Pattern[str]]:
        """The patterns by role: ``opening``, ``closing``, ``answer``, ``ending``."""
        roles = ("opening", "closing", "answer", "ending")
        return {role: re.compile(text) for role in roles if (text := getattr(self, role))}


def _marks(
    models: str,
    opening: str,
    closing: str,
    source: str,
    answer: str | tuple[str, ...] = (),
    ending: str | tuple[str, ...] = (),
) -> Marks:
    """Return a family with literal marks; tags of lower-case letters match in any case."""
    answers = (answer,) if isinstance(answer, str) else answer
    endings = (ending,) if isinstance(ending, str) else ending
    texts = (opening, closing, *answers, *endings)
    tokens = [token for text in texts for token in _TOKEN.findall(text) or [text]]
    return Marks(
        models,
        _literal(opening),
        _literal(closing),
        source,
        "|".join(map(_literal, answers)),
        "|".join(map(_literal, endings)),
        begins=(opening,),
        tokens=tuple(dict.fromkeys(tokens)),
    )


def _literal(text: str) -> str:
    return f"(?i:{text})" if _TAG.fullmatch(text) else re.escape(text)


def _header(channels: str) -> str:
    """Return the pattern of a gpt-oss message header.

    For example ``<|start|>assistant<|channel|>final<|message|>``.
    A recipient (``to=functions.f``) and a type (``<|constrain|>json``) may follow the channel.
    """
    return (
        r"(?:<\|start\|>assistant[^<\n]{0,80})?"
        rf"<\|channel\|>\s?(?:{channels})\b[^<\n]{{0,80}}"
        r"(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>"
    )


FAMILIES: tuple[Marks, ...] = (
    _marks(
        "DeepSeek-R1, Qwen3, QwQ, GLM-4.5, MiniMax-M2, Nemotron, Phi-4-reasoning, ERNIE-4.5,"
        " Hunyuan-A13B, Step3, OLMo 3, Kimi-K2, MiMo, GigaChat",
        "<think>",
        "</think>",
        f"{_VLLM}deepseek_r1_reasoning_parser.py",
    ),
    _marks("Reflection, OmniThought", "<thinking>", "</thinking>", "open-webui: reasoning tags"),
    _marks("EXAONE Deep", "<thought>", "</thought>", "LGAI-EXAONE: model card of EXAONE-Deep"),
    _marks("Reka Flash 3", "<reasoning>", "</reasoning>", "RekaAI: model card of reka-flash-3"),
    _marks("fine-tuned models", "<reason>", "</reason>", "open-webui: reasoning tags"),
    _marks("MiniMax-M3", "<mm:think>", "</mm:think>", f"{_VLLM}minimax_m3_reasoning_parser.py"),
    _marks("Seed-OSS", "<seed:think>", "</seed:think>", f"{_VLLM}seedoss_reasoning_parser.py"),
    _marks(
        "Hunyuan 3",
        "<think:opensource>",
        "</think:opensource>",
        f"{_VLLM}hy_v3_reasoning_parser.py, with the suffix of the published tokenizer",
    ),
    _marks("LongCat", "<longcat_think>", "</longcat_think>", f"{_VLLM}longcat_reasoning_parser.py"),
    *(
        _marks("K2 Horizon", f"<{name}>", f"</{name}>", f"{_VLLM}k2_horizon_reasoning_parser.py")
        for name in ("ifm|think", "ifm|think_fast", "ifm|think_faster")
    ),
    _marks("Magistral", "[THINK]", "[/THINK]", f"{_VLLM}mistral_reasoning_parser.py"),
    _marks("Kimi-VL-Thinking", "◁think▷", "◁/think▷", _SGLANG),
    _marks(
        "Kimi K3",
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|>",
        _SGLANG,
        "<|open|>response<|sep|>",
        "<|close|>response<|sep|>",
    ),
    _marks(
        "OpenThinker, Sky-T1",
        "<|begin_of_thought|>",
        "<|end_of_thought|>",
        "NovaSky-AI/SkyThought: system prompt of Sky-T1",
        "<|begin_of_solution|>",
        "<|end_of_solution|>",
    ),
    _marks(
        "Command A Reasoning, Command R7B",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        f"{_VLLM}cohere_command_reasoning_parser.py",
        ("<|START_RESPONSE|>", "<|START_TEXT|>"),
        ("<|END_RESPONSE|>", "<|END_TEXT|>"),
    ),
    _marks(
        "Apertus", "<|inner_prefix|>", "<|inner_suffix|>", f"{_VLLM}apertus_reasoning_parser.py"
    ),
    _marks("Gemma 4", "<|channel>", "<channel|>", f"{_VLLM}gemma4_utils.py"),
    _marks(
        "Solar Open 2",
        "<|think:start|>",
        "<|think:end|>",
        f"{_VLLM}solar_open2_reasoning_parser.py",
    ),
    Marks(
        "Solar Open",
        r"(?:<\|begin\|>assistant)?<\|think\|>",
        r"<\|end\|>",
        "upstage: chat template of Solar-Open-100B",
        r"(?:<\|begin\|>assistant)?<\|content\|>",
        r"<\|(?:end|flush)\|>",
        bare_closing=False,
        nests=False,
        begins=("<|begin|>assistant<|think|>", "<|think|>"),
        tokens=("<|begin|>", "<|think|>", "<|content|>", "<|end|>"),
    ),
    _marks(
        "PLaMo 3",
        "<|plamo:begin_think:plamo|>",
        "<|plamo:end_think:plamo|>",
        f"{_VLLM}plamo3_reasoning_parser.py",
    ),
    _marks("Pangu", "[unused16]", "[unused17]", f"{_VLLM}pangu_reasoning_parser.py"),
    Marks(
        "Inkling",
        r"(?:<\|message_model\|>)?<\|content_thinking\|>",
        r"<\|end_message\|>",
        _SGLANG,
        r"(?:<\|message_model\|>)?<\|content_text\|>",
        r"<\|end_message\|>",
        bare_closing=False,
        nests=False,
        begins=("<|message_model|><|content_thinking|>", "<|content_thinking|>"),
        tokens=("<|message_model|>", "<|content_thinking|>", "<|content_text|>", "<|end_message|>"),
    ),
    Marks(
        "Muse Glimmer",
        r"(?:<\|start\|>assistant[ \t]?)?to=self<\|message\|>",
        r"<\|eom\|>",
        f"{_VLLM}muse_glimmer_utils.py",
        r"(?:<\|start\|>assistant[ \t]?)?to=user<\|message\|>",
        r"<\|(?:eom|eot)\|>",
        bare_closing=False,
        nests=False,
        begins=("<|start|>assistant to=self<|message|>", "to=self<|message|>"),
        tokens=("<|start|>", "<|message|>", "<|eom|>"),
    ),
    Marks(
        "gpt-oss",
        # If special tokens were not decoded, only the names of the channels remain.
        _header("analysis|commentary")
        + r"|(?:\A\s*|assistant)(?:analysis|commentary)(?=[^\W\d_]|[\"“‘']| to=)",
        r"<\|(?:end|call)\|>",
        "openai/harmony: docs/format.md",
        _header("final") + r"|assistantfinal|\A\s*final(?=[A-Z0-9*$\\\"])",
        r"<\|(?:return|end|call)\|>",
        bare_closing=False,
        nests=False,
        final=True,
        begins=("<|start|>assistant<|channel|>", "<|channel|>analysis", "analysis", "commentary"),
        tokens=("<|start|>", "<|channel|>", "<|message|>", "<|end|>"),
    ),
    Marks(
        "HyperCLOVA X SEED Think 14B",
        r"\A\s*/think\n",
        r"<\|im_end\|>\n<\|im_start\|>assistant\n?",
        f"{_VLLM}hyperclovax_seed_think_14b_reasoning_parser.py",
        bare_closing=False,
        nests=False,
        begins=("/think\n",),
    ),
    Marks(
        "Granite 3.2",
        r"\A\s*Here(?:'s|’s| is) my thought process:",
        "",
        f"{_VLLM}granite_reasoning_parser.py",
        r"Here(?:'s|’s| is) my response:",
        phrase=True,
        nests=False,
        begins=tuple(f"Here{word} my thought process:" for word in ("'s", "’s", " is")),
    ),
    Marks(
        "Apriel",
        # The chat template writes "Here are my reasoning steps:".
        "",
        "",
        "ServiceNow-AI: model card of Apriel-1.5-15b-Thinker",
        r"\[BEGIN FINAL RESPONSE\]",
        r"\[END FINAL RESPONSE\]",
    ),
)

_TAGS = "answer|response|output|solution|conclusion"
WRAPPERS = re.compile(rf"\s*<({_TAGS})>", re.IGNORECASE)
"""Tags around the answer, directly after reasoning: Hunyuan-A13B, ERNIE-4.5, LLaVA-CoT."""
WRAPPER_ENDS = re.compile(rf"(?i:</(?:{_TAGS})>)")

FRAMES = re.compile(r"<\|(?:begin|end)_of_box\|>")
"""Marks around the answer within its sentence (GLM-4.5V); only the marks are removed."""

ENDS = re.compile(
    r"<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|end|return|EOT|eom_id|eot|eom|file_sep"
    r"|END_OF_TURN_TOKEN)\|>"
    r"|<\|start\|>(?:user|system|developer)|<[｜|](?:end▁of▁sentence|EOT)[｜|]>"
    r"|</s>|<end_of_turn>|<turn\|>|<eos>|<seed:eos>|<file_sep>"
)
"""Marks that end a turn. Most of them are special tokens, which a server may have decoded."""

UNFINISHED = re.compile(
    r"(?:<\|start\|>assistant[^<\n]{0,80}(?=<\|channel\|>|\Z)|(?=<\|channel\|>))"
    r"(?:<\|channel\|>[^<\n]{0,80}(?:<\|constrain\|>[^<\n]{0,40})?)?\Z"
    r"|<\|message_model\|>\Z"
)
"""A message of gpt-oss or Inkling that was cut off before its text begins."""


def mark_tokens(special: Collection[str]) -> frozenset[str]:
    """Return the marks among a tokenizer's special tokens.

    Only families are considered all of whose tokens the tokenizer has.
    """
    available = set(special)
    return frozenset(
        token
        for family in FAMILIES
        if available.issuperset(family.tokens)
        for token in family.tokens
    )


def open_reasoning_mark(prompt: str) -> str | None:
    """Return the mark that leaves reasoning open at the end of a prompt, or None."""
    for family in FAMILIES:
        if not family.opening or family.phrase:
            continue
        openings = family.patterns["opening"].finditer(prompt)
        marks = [mark for mark in openings if not _is_word(mark)]
        ends = [family.patterns[role] for role in ("closing", "answer") if role in family.patterns]
        if marks and not any(end.search(prompt, marks[-1].end()) for end in ends):
            return marks[-1].group().strip()
    return None


def _is_word(mark: re.Match[str]) -> bool:
    return mark.group().strip().isalpha()
