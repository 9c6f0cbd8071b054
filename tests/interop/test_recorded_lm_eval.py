"""Logs that lm-evaluation-harness wrote, with the numbers that it or another source has for them."""

from __future__ import annotations

import pytest

from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.runs import compare
from pytest_llmeval.runs.comparison import MismatchError
from support.foreign_logs import copy_log
from support.foreign_logs import edit_json
from support.foreign_logs import edit_lines
from support.foreign_logs import results_of
from support.foreign_logs import sample_log
from support.foreign_logs import samples_of
from support.imported_runs import counts
from support.imported_runs import imported
from support.imported_runs import refusal


@pytest.mark.parametrize(
    ("name", "expected", "chance", "size"),
    [
        ("local_arc", {"lmeval_acc": (13, 24, 0, 0), "lmeval_acc_norm": (9, 24, 0, 0)}, 0.25, 2376),
        ("local_winogrande", {"lmeval_acc": (12, 24, 0, 0)}, 0.5, 1267),
        ("local_mmlu", {"lmeval_acc": (3, 24, 0, 0)}, 0.25, 453),
        (
            "local_gsm8k_short",
            {
                "lmeval_exact_match_strict-match": (0, 20, 6, 0),
                "lmeval_exact_match_flexible-extract": (0, 20, 0, 0),
            },
            None,
            1319,
        ),
        (
            "recorded_gsm8k_175b_verification",
            {
                "lmeval_exact_match_strict-match": (0, 75, 75, 0),
                "lmeval_exact_match_flexible-extract": (42, 75, 0, 0),
            },
            None,
            1319,
        ),
        (
            "recorded_gsm8k_6b_verification",
            {
                "lmeval_exact_match_strict-match": (0, 75, 75, 0),
                "lmeval_exact_match_flexible-extract": (26, 75, 0, 0),
            },
            None,
            1319,
        ),
    ],
)
def test_recorded_numbers(name, expected, chance, size, tmp_path):
    run = imported(sample_log("lm_eval", name), tmp_path / "run")
    assert counts(run) == expected
    for result in run.results():
        assert result.chance == (None if chance is None else pytest.approx(chance, abs=0.001))
        assert result.counts.total == size
        assert not result.complete
        assert not result.sampled
        assert result.drawn is None


def test_the_tasks_of_a_group_are_its_subjects(tmp_path):
    run = imported(sample_log("lm_eval", "local_mmlu"), tmp_path / "run")
    (result,) = run.results()
    assert result.benchmark == "lmeval_local_mmlu"
    assert {name: (s.correct, s.answered, s.total) for name, s in result.subjects.items()} == {
        "local_mmlu_anatomy": (1, 8, 135),
        "local_mmlu_astronomy": (1, 8, 152),
        "local_mmlu_virology": (1, 8, 166),
    }


def test_a_log_of_a_few_lines_is_refused():
    text = refusal(sample_log("lm_eval_eee"))
    assert "has 10 of the 5,000 documents that were evaluated: it is not the whole log" in text


def test_published_logs_of_a_few_lines_are_refused():
    folder = sample_log().parent / "lm_eval_logs"
    for file in sorted(folder.rglob("results_*.json")):
        text = refusal(file, ImportOptions(model="m"))
        assert "of the 100 documents" in text or "--log_samples" in text
    assert "names its model by a path (/workspace/gemma3_12b_u2): add --model NAME" in refusal(
        folder / "eval_mmlu_pro_plus"
    )


def test_two_recorded_models(tmp_path):
    """The flags of the data set's own file give the same four numbers."""
    options = ImportOptions(selection_is_benchmark=True)
    large, small = (
        imported(
            sample_log("lm_eval", f"recorded_gsm8k_{size}_verification"), tmp_path / size, options
        )
        for size in ("175b", "6b")
    )
    comparison = compare(large, small)
    flexible = next(c for c in comparison.comparisons if c.scorer.endswith("flexible-extract"))
    overall = flexible.overall
    assert (overall.newly_wrong, overall.newly_right) == (21, 5)
    assert overall.p_value == pytest.approx(0.0024939, abs=5e-8)


@pytest.mark.parametrize(
    ("edit", "fields"),
    [
        (
            lambda folder: edit_lines(
                samples_of(folder),
                lambda lines: [
                    line["arguments"]["gen_args_0"].update(arg_0="Another prompt")
                    for line in lines
                    if line["doc_id"] == 3
                ],
            ),
            ["requests.local_gsm8k_zero"],
        ),
        (
            lambda folder: edit_json(
                results_of(folder), lambda r: r["n-shot"].update(local_gsm8k_zero=5)
            ),
            ["shots 0 against 5"],
        ),
        (
            lambda folder: edit_json(
                results_of(folder), lambda r: r["config"].update(fewshot_seed=7)
            ),
            ["seeds.fewshot_seed 1234 against 7"],
        ),
        (
            lambda folder: edit_lines(
                samples_of(folder),
                lambda lines: [line.update(target="8") for line in lines if line["doc_id"] == 3],
            ),
            ["data "],
        ),
        (
            lambda folder: edit_json(
                results_of(folder), lambda r: r.update(lm_eval_version="0.4.14")
            ),
            ["harness_version '0.4.13' against '0.4.14'"],
        ),
        (
            lambda folder: edit_json(
                results_of(folder),
                lambda r: r["configs"]["local_gsm8k_zero"]["generation_kwargs"].update(
                    temperature=0.7
                ),
            ),
            ["config.generation_kwargs.temperature 0 against 0.7"],
        ),
        (
            lambda folder: edit_json(
                results_of(folder), lambda r: r.update(system_instruction="Be brief.")
            ),
            ["system_instruction"],
        ),
    ],
    ids=["prompt", "shots", "seed", "gold", "version", "decoding", "system"],
)
def test_a_changed_log_is_not_compared(edit, fields, tmp_path):
    source = sample_log("lm_eval", "recorded_gsm8k_6b_verification")
    changed = copy_log(source, tmp_path / "log")
    edit(changed)
    before, after = imported(source, tmp_path / "a"), imported(changed, tmp_path / "b")
    with pytest.raises(MismatchError) as error:
        compare(before, after)
    for field in fields:
        assert field in str(error.value)
