"""Published scores come out again, to the item, when recorded outputs are scored."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmeval.scorers import with_random_guesses
from support.recorded import commonsenseqa_davinci
from support.recorded import gsm8k_davinci
from support.recorded import gsm8k_examples
from support.recorded import gsm8k_tora
from support.recorded import mmlu_pro
from support.recorded import outcomes
from support.recorded import scores

# The two local models were published with the first pattern alone, gemini with the chain.
MMLU_PRO = [
    ("Llama-2-7b-hf", "mmlu_pro_official_first", 12032, 2207, 0.2010),
    ("Meta-Llama-3-8B", "mmlu_pro_official_first", 12032, 4112, 0.3549),
    ("gemini-1.5-flash-002", "mmlu_pro_official", 12012, 7699, 0.6419),
]


@pytest.mark.parametrize(("model", "scorer", "total", "correct", "guessed"), MMLU_PRO)
def test_mmlu_pro(
    data: Path, model: str, scorer: str, total: int, correct: int, guessed: float
) -> None:
    pairs = mmlu_pro(data, model)
    scored = scores(scorer, pairs)
    assert len(scored) == total
    assert sum(score.outcome == "correct" for score in scored) == correct
    answers = with_random_guesses(
        [score.answer for score in scored], [item.options for item, _ in pairs]
    )
    right = sum(answer == item.gold_label for answer, (item, _) in zip(answers, pairs, strict=True))
    assert round(right / total, 4) == guessed
    if scorer == "mmlu_pro_official_first":
        # The same pattern in another tool.
        assert outcomes("mmlu_pro_lmeval", pairs)["correct"] == correct


@pytest.mark.parametrize(
    ("prompt", "correct", "unparsed"), [("zero_shot", 137, 4), ("zero_shot_cot", 537, 43)]
)
def test_gsm8k_zero_shot_cot(data: Path, prompt: str, correct: int, unparsed: int) -> None:
    counts = outcomes("zero_shot_cot", gsm8k_davinci(data, prompt))
    assert (sum(counts.values()), counts["correct"], counts["unparsed"]) == (
        1319,
        correct,
        unparsed,
    )


@pytest.mark.parametrize(("prompt", "correct"), [("zero_shot", 840), ("zero_shot_cot", 789)])
def test_commonsenseqa_zero_shot_cot(data: Path, prompt: str, correct: int) -> None:
    counts = outcomes("zero_shot_cot", commonsenseqa_davinci(data, prompt))
    assert (sum(counts.values()), counts["correct"]) == (1221, correct)


@pytest.mark.parametrize(
    ("model", "correct"), [("tora-70b-v1.0", 1112), ("tora-code-34b-v1.0", 1062)]
)
def test_tora_by_number(data: Path, model: str, correct: int) -> None:
    counts = outcomes("number", gsm8k_tora(data, model))
    assert (sum(counts.values()), counts["correct"]) == (1319, correct)


@pytest.mark.parametrize(
    ("model", "correct"),
    [
        ("6b_finetuning", 286),
        ("6b_verification", 515),
        ("175b_finetuning", 458),
        ("175b_verification", 742),
    ],
)
def test_gsm8k_example_solutions_by_number(data: Path, model: str, correct: int) -> None:
    counts = outcomes("number", gsm8k_examples(data, model))
    assert (sum(counts.values()), counts["correct"]) == (1319, correct)
