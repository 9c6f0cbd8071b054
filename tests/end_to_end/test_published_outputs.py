"""Published outputs of real models, scored again through the whole plugin: exact counts."""

from __future__ import annotations

from pathlib import Path

import pytest

GSM8K = """
from dataclasses import replace
import pytest
from pytest_llmeval import Benchmark
from pytest_llmeval.catalog import gsm8k

PROTOCOL = replace(gsm8k().protocols[-1], name="recorded", scorer={scorer!r})

@pytest.mark.llmeval(Benchmark("gsm8k", gsm8k().source, (PROTOCOL,)))
def test_gsm8k(answer):
    assert answer.correct
"""

COMMONSENSEQA = """
import pytest
from pytest_llmeval import Benchmark, Protocol
from pytest_llmeval.catalog import commonsenseqa
from pytest_llmeval.prompts import CLOZE

PROTOCOL = Protocol("recorded", CLOZE, scorer="zero_shot_cot", ask="text")

@pytest.mark.llmeval(Benchmark("commonsenseqa", commonsenseqa().source, (PROTOCOL,)))
def test_commonsenseqa(answer):
    assert answer.correct
"""

# A few keys were corrected after these outputs were scored: they are scored with the keys of
# their own time, which stand beside the answers.
MMLU_PRO = """
import json
import zipfile
from dataclasses import replace
import pytest
from pytest_llmeval import Benchmark
from pytest_llmeval.catalog import mmlu_pro

def load(data_dir):
    with zipfile.ZipFile({file!r}) as archive:
        rows = json.loads(archive.read(archive.namelist()[0]))
    keys = {{
        f"{{row['category'].replace(' ', '_')}}-{{row['question_id']:04d}}": row["answer"]
        for row in rows
    }}
    dataset = mmlu_pro().source(data_dir)
    items = [item for item in dataset.items if item.id in keys]
    return replace(
        dataset, items=tuple(replace(one, gold="ABCDEFGHIJ".index(keys[one.id])) for one in items)
    )

OFFICIAL = next(one for one in mmlu_pro().protocols if one.name == "official")

@pytest.mark.llmeval(Benchmark("mmlu_pro", load, (replace(OFFICIAL, scorer={scorer!r}, also=()),)))
def test_mmlu_pro(answer):
    assert answer.correct
"""


def score(project, data: Path, test: str, spec: str) -> tuple[int, int, int]:
    """Correct, answered and errors of one run over recorded answers."""
    (project.path / "test_bench.py").write_text(test)
    (project.path / "conftest.py").unlink(missing_ok=True)
    project.run(f"--llm-data={data}", f"--llm-model=replay:{spec}")
    metrics = project.metrics()
    return metrics["correct"], metrics["answered"], metrics["errors"]


SOLUTIONS = "gsm8k/example_model_solutions.jsonl.gz"
TORA = "outputs/gsm8k/tora/tora-{}-v1.0_test_tora_-1_seed0_t0.0_s0_e1319.jsonl.gz"
KOJIMA = "outputs/gsm8k/zero_shot_cot/gsm8k_zero_shot{}.jsonl.gz"


@pytest.mark.parametrize(
    ("scorer", "spec", "correct"),
    [
        ("number", f"{SOLUTIONS}?text=6b_finetuning.solution&item=gsm8k-{{#:04d}}", 286),
        ("number", f"{SOLUTIONS}?text=6b_verification.solution&item=gsm8k-{{#:04d}}", 515),
        ("number", f"{SOLUTIONS}?text=175b_finetuning.solution&item=gsm8k-{{#:04d}}", 458),
        ("number", f"{SOLUTIONS}?text=175b_verification.solution&item=gsm8k-{{#:04d}}", 742),
        ("number", f"{TORA.format('70b')}?text=pred&item=gsm8k-{{idx:04d}}", 1112),
        ("number", f"{TORA.format('code-34b')}?text=pred&item=gsm8k-{{idx:04d}}", 1062),
        (
            "zero_shot_cot",
            f"{KOJIMA.format('')}?text=completion&item=gsm8k-{{index:04d}}",
            137,
        ),
        (
            "zero_shot_cot",
            f"{KOJIMA.format('_cot')}?text=completion&item=gsm8k-{{index:04d}}",
            537,
        ),
    ],
)
def test_gsm8k(project, data: Path, scorer: str, spec: str, correct: int) -> None:
    assert score(project, data, GSM8K.format(scorer=scorer), f"{data}/{spec}") == (correct, 1319, 0)


@pytest.mark.parametrize(("variant", "correct"), [("", 840), ("_cot", 789)])
def test_commonsenseqa(project, data: Path, variant: str, correct: int) -> None:
    file = f"{data}/outputs/commonsenseqa/zero_shot_cot/commonsensqa_zero_shot{variant}.jsonl.gz"
    assert score(project, data, COMMONSENSEQA, f"{file}?text=completion&item=id") == (
        correct,
        1221,
        0,
    )


# The published outputs of local models were scored with the first pattern of the chain alone.
@pytest.mark.parametrize(
    ("name", "text", "scorer", "correct", "answered"),
    [
        ("Llama-2-7b-hf", "generated_text", "mmlu_pro_official_first", 2207, 12032),
        ("gemini-1.5-flash-002", "model_outputs", "mmlu_pro_official", 7699, 12012),
    ],
)
def test_mmlu_pro(
    project, data: Path, name: str, text: str, scorer: str, correct: int, answered: int
) -> None:
    file = f"{data}/mmlu_pro_outputs/model_outputs_{name}_5shots.zip"
    spec = f"{file}?text={text}&item={{category}}-{{question_id:04d}}"
    test = MMLU_PRO.format(file=file, scorer=scorer)
    assert score(project, data, test, spec) == (correct, answered, 0)
