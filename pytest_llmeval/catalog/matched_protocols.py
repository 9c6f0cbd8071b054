"""Two protocols that differ only in their labels: answers as texts, and answers as letters.

"M&D" and "S&L" of Nowak et al. 2026 (arXiv:2602.17445), for any benchmark with options: the first
shows a dash before every option and matches the text of the answer (``scorers.matched``), the
second shows letters. Decoding is as reported, though only by a secondary source: temperature 0.6,
top_k 20, top_p 0.95, min_p 0. The ``_greedy`` variants decode greedily, so that differences between
orders are not due to sampling noise.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.uniform_labels import DASHED
from pytest_llmeval.prompts.uniform_labels import DASHED_COT
from pytest_llmeval.prompts.uniform_labels import LETTERED
from pytest_llmeval.prompts.uniform_labels import LETTERED_COT

SAMPLED = Decoding(
    max_tokens=2048, temperature=0.6, top_k=20, top_p=0.95, min_p=0.0, stop=("Question:",)
)
GREEDY = Decoding(max_tokens=2048, stop=("Question:",))


def matched_protocols(
    *, shots: int = 5, reasoning: bool = True, embedding: str = "", template: Template | None = None
) -> tuple[Protocol, ...]:
    """Return the protocols ``matched``, ``lettered`` and their ``_greedy`` variants.

    ``reasoning`` requests reasoning before the answer. ``embedding`` is the name of an embedding
    model other than the scorer's default, such as ``minilm``; ``template`` is another template for
    ``matched``, such as ``prompts.uniform_labels.randomly_labelled()``.
    """
    texts = template or (DASHED_COT if reasoning else DASHED)
    letters = LETTERED_COT if reasoning else LETTERED
    matched = Protocol(
        "matched",
        texts,
        scorer=f"matched+{embedding}" if embedding else "matched",
        shots=shots,
        ask="text",
        decoding=SAMPLED,
    )
    lettered = replace(
        matched,
        name="lettered",
        template=letters,
        scorer="choice",
        also=("mmlu_pro_official",),
    )
    return tuple(
        protocol
        for sampled in (matched, lettered)
        for protocol in (
            sampled,
            replace(sampled, name=f"{sampled.name}_greedy", decoding=GREEDY),
        )
    )
