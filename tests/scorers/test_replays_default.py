"""What our own extraction makes of recorded outputs: counts that only a deliberate change moves.

Where it differs from the published extraction, 50 replies of every set were read by eye.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.recorded import commonsenseqa_davinci
from support.recorded import gsm8k_davinci
from support.recorded import gsm8k_tora
from support.recorded import mmlu_pro
from support.recorded import outcomes


@pytest.mark.parametrize(
    ("model", "correct", "unparsed"),
    [
        ("Llama-2-7b-hf", 2205, 2067),
        ("Meta-Llama-3-8B", 4111, 1296),
        ("gemini-1.5-flash-002", 7691, 489),
    ],
)
def test_choice_on_mmlu_pro(data: Path, model: str, correct: int, unparsed: int) -> None:
    counts = outcomes("choice", mmlu_pro(data, model))
    assert (counts["correct"], counts["unparsed"]) == (correct, unparsed)


@pytest.mark.parametrize(
    ("prompt", "correct", "unparsed"), [("zero_shot", 852, 2), ("zero_shot_cot", 718, 161)]
)
def test_choice_on_commonsenseqa(data: Path, prompt: str, correct: int, unparsed: int) -> None:
    counts = outcomes("choice", commonsenseqa_davinci(data, prompt))
    assert (counts["correct"], counts["unparsed"]) == (correct, unparsed)


@pytest.mark.parametrize(("prompt", "correct"), [("zero_shot", 141), ("zero_shot_cot", 573)])
def test_number_on_gsm8k(data: Path, prompt: str, correct: int) -> None:
    assert outcomes("number", gsm8k_davinci(data, prompt))["correct"] == correct


@pytest.mark.parametrize(
    ("model", "correct"), [("tora-70b-v1.0", 1109), ("tora-code-34b-v1.0", 1062)]
)
def test_number_on_the_whole_text_of_tora(data: Path, model: str, correct: int) -> None:
    assert outcomes("number", gsm8k_tora(data, model, field="code"))["correct"] == correct
