"""The marks by which models separate reasoning from the answer, and by which a turn ends.

Every family is one row of ``FAMILIES``: what opens and closes its reasoning, what opens and closes
its answer, and where that is documented. ``split_reasoning`` reads replies by them, for scorers
and models alike.
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
    """One family of marks.

    ``opening``, ``closing``: around reasoning. ``answer``, ``ending``: around the answer, where
    the family has such marks; what is outside of them is no answer. All four are regular
    expressions ("": none). ``source``: where they are documented.

    ``bare_closing``: the closing mark means the same without an opening one, which a chat template
    has written. ``nests``: reasoning may contain a pair of the same marks. ``phrase``: the marks
    are ordinary words; they count only where the opening ones begin a reply and those of the
    answer follow. ``final``: without an answer mark, nothing behind closed reasoning means that
    the reply was cut off. ``begins``: what reasoning begins with, as texts. ``tokens``: special
    tokens of which the marks consist, without which they cannot be recognized.
    """

    models: str
    opening: str
    closing: str
    source: str
    answer: str = ""
    ending: str = ""
    bare_closing: bool = True
    nests: bool = True
    phrase: bool = False
    final: bool = False
    begins: tuple[str, ...] = ()
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
    """A family whose marks are literal texts; tags of plain letters in any case."""
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
    """A message of gpt-oss up to its text: ``<|start|>assistant<|channel|>final<|message|>``.

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
        # Where special tokens were not decoded, the names of the channels are what is left.
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
"""Tags around the answer, directly behind reasoning: Hunyuan-A13B, ERNIE-4.5, LLaVA-CoT."""
WRAPPER_ENDS = re.compile(rf"(?i:</(?:{_TAGS})>)")

FRAMES = re.compile(r"<\|(?:begin|end)_of_box\|>")
"""Marks around the answer within its sentence: GLM-4.5V. They go, their surroundings stay."""

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
    """The special tokens of a tokenizer that are marks: of families all of whose tokens it has."""
    known = set(special)
    return frozenset(
        token for one in FAMILIES if known.issuperset(one.tokens) for token in one.tokens
    )


def open_at_the_end(prompt: str) -> str | None:
    """The mark that leaves reasoning open at the end of a prompt, None where there is none."""
    for family in FAMILIES:
        if not family.opening or family.phrase:
            continue
        found = [one for one in family.patterns["opening"].finditer(prompt) if not _is_word(one)]
        ends = [family.patterns[role] for role in ("closing", "answer") if role in family.patterns]
        if found and not any(end.search(prompt, found[-1].end()) for end in ends):
            return found[-1].group().strip()
    return None


def _is_word(mark: re.Match[str]) -> bool:
    return mark.group().strip().isalpha()
