"""Configurations of lm-eval: what is refused and why, metrics, decoding, and the cleaned form."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Decoding
from pytest_llmeval.catalog import lm_eval_task
from pytest_llmeval.catalog.lm_eval.configuration import MetricName
from pytest_llmeval.catalog.lm_eval.configuration import cleaned
from pytest_llmeval.catalog.lm_eval.configuration import common_metrics
from pytest_llmeval.catalog.lm_eval.configuration import common_output
from pytest_llmeval.catalog.lm_eval.configuration import decoding_of
from pytest_llmeval.catalog.lm_eval.configuration import refusal
from pytest_llmeval.catalog.lm_eval.configuration import select_metrics
from pytest_llmeval.catalog.lm_eval.configuration import shots_of
from pytest_llmeval.catalog.lm_eval.configuration import supported_metrics
from pytest_llmeval.catalog.lm_eval.scoring import compared_values
from pytest_llmeval.core import ConfigError

CHOICES: dict[str, Any] = {"output_type": "multiple_choice", "task": "t"}
TEXT: dict[str, Any] = {"output_type": "generate_until", "task": "t"}


def metrics(*names: str, **options: Any) -> dict[str, Any]:
    return {"metric_list": [{"metric": name, **options} for name in names]}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"class": "/x/task.Task"}, "Python class"),
        ({**TEXT, "unsafe_code": True}, "unsafe_code"),
        ({**TEXT, "doc_to_image": ["image"]}, "images"),
        ({**TEXT, "doc_to_audio": ["audio"]}, "audio"),
        ({**TEXT, "custom_dataset": "/x/utils.load"}, "custom_dataset"),
        ({**TEXT, "use_prompt": "promptsource:*"}, "promptsource"),
        ({**TEXT, "repeats": 8}, "8 answers per document together"),
        ({**CHOICES, "fewshot_config": {"sampler": "/x/utils.Mine"}}, "sampler utils.Mine"),
        ({"output_type": "loglikelihood_rolling"}, "perplexity"),
        ({"output_type": "loglikelihood"}, "greedy"),
        ({"output_type": "other"}, "output_type 'other' is unknown"),
        ({**CHOICES, "filter_list": [{"name": "f", "filter": []}]}, "filters log-likelihoods"),
        ({**TEXT, "generation_kwargs": {"num_beams": 4}}, "its decoding has num_beams"),
        ({**TEXT, **metrics("bleu")}, "bleu is not 0 or 1"),
        ({**CHOICES, **metrics("f1", "mcc")}, "f1 is not 0 or 1.*mcc is not 0 or 1"),
        ({**CHOICES, **metrics("exact_match")}, "exact_match is not 0 or 1"),
        ({**TEXT, **metrics("/x/utils.judge")}, "utils.judge is not 0 or 1"),
        ({**TEXT, **metrics("exact_match", hf_evaluate=True)}, "hf_evaluate"),
        ({**TEXT, **metrics("exact_match", aggregation="/x/u.agg")}, r"not the mean \(u.agg\)"),
        ({**CHOICES, "process_results": "/x/u.f", **metrics("mc2")}, "mc2 is not 0 or 1"),
    ],
)
def test_what_does_not_map_is_refused_with_the_reason(config: dict[str, Any], reason: str) -> None:
    import re

    reason_given = refusal(config)
    assert reason_given is not None
    assert re.search(reason, reason_given), reason_given


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (CHOICES, ["acc,none", "acc_norm,none"]),
        (TEXT, ["exact_match,none"]),
        ({}, ["exact_match,none"]),
        ({**CHOICES, **metrics("f1", "acc_bytes")}, ["acc_bytes,none"]),
        (
            {**TEXT, "filter_list": [{"name": "strict", "filter": []}, {"name": "any"}]},
            ["exact_match,strict", "exact_match,any"],
        ),
        ({**TEXT, "process_results": "/x/u.f", **metrics("acc", "bleu")}, ["acc,none"]),
        ({**CHOICES, "fewshot_config": {"sampler": "first_n"}, "repeats": 1}, None),
    ],
)
def test_metrics_that_are_right_or_wrong(config: dict[str, Any], names: list[str] | None) -> None:
    assert refusal(config) is None
    assert names is None or list(map(str, supported_metrics(config))) == names


def test_scorers_are_called_after_metric_and_filter() -> None:
    assert MetricName("acc_norm").scorer == "lmeval_acc_norm"
    assert MetricName("exact_match", "strict-match").scorer == "lmeval_exact_match_strict-match"
    odd = MetricName("exact_match", "regex (any) é").scorer
    assert odd.startswith("lmeval_exact_match_regex_")
    assert odd.replace("_", "").replace("-", "").isalnum()


def test_metrics_are_selected_by_name() -> None:
    config = {**TEXT, "filter_list": [{"name": "strict"}, {"name": "any"}]}
    both = (MetricName("exact_match", "strict"), MetricName("exact_match", "any"))
    assert select_metrics("t", config, ["exact_match"]) == both
    assert select_metrics("t", config, ["exact_match,any", "exact_match"]) == both[::-1]
    with pytest.raises(ConfigError, match="'t' has no metric 'exact_mach'; did you mean"):
        select_metrics("t", config, ["exact_mach"])
    with pytest.raises(ConfigError, match="'f1' cannot be computed here: f1 is not 0 or 1"):
        select_metrics("t", {**CHOICES, **metrics("acc", "f1")}, ["f1"])
    with pytest.raises(ConfigError, match="metrics is empty"):
        select_metrics("t", config, [])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, Decoding(stop=("\n\n",))),
        ({"until": "X"}, Decoding(stop=("X",))),
        ({"until": ["X", ""]}, Decoding(stop=("X",))),
        ({"until": [], "max_tokens": 9}, Decoding(max_tokens=9)),
        ({"until": [], "max_tokens": 9, "max_gen_toks": 8}, Decoding(max_tokens=8)),
        ({"until": [], "max_completion_tokens": 7}, Decoding(max_tokens=7)),
        ({"until": [], "do_sample": False, "temperature": 0.7}, Decoding()),
        ({"until": [], "temperature": 0.7}, Decoding(temperature=0.7)),
        ({"until": [], "do_sample": True}, Decoding(temperature=1.0)),
        (
            {"until": [], "do_sample": True, "temperature": 0.5, "top_p": 0.9, "top_k": 5},
            Decoding(temperature=0.5, top_p=0.9, top_k=5),
        ),
        ({"until": [], "do_sample": False, "top_p": 0.9}, Decoding()),
    ],
)
def test_decoding(options: dict[str, Any] | None, expected: Decoding) -> None:
    assert decoding_of({**TEXT, "generation_kwargs": options}) == expected


def test_a_decoding_without_meaning_is_refused() -> None:
    with pytest.raises(ConfigError, match="do_sample is true and temperature is 0"):
        decoding_of({**TEXT, "generation_kwargs": {"do_sample": True, "temperature": 0.0}})


def test_a_configured_zero_of_shots_is_kept() -> None:
    assert shots_of({"num_fewshot": 0}, 5) == 0
    assert shots_of({"num_fewshot": 5}, None) == 5
    assert shots_of({"num_fewshot": 5}, 2) == 2
    assert shots_of({}, None) == 0
    assert shots_of({}, 3) == 3


def test_the_cleaned_form_has_no_paths_addresses_or_models(tmp_path: Path) -> None:
    def config(folder: Path, code: str) -> dict[str, Any]:
        folder.mkdir()
        (folder / "utils.py").write_text(code)
        return {
            **CHOICES,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": f"{folder}/rows.jsonl"},
            "process_docs": f"{folder}/utils.process",
            "fewshot_config": {"sampler": "first_n", "process_docs": f"{folder}/utils.process"},
            "metadata": {"version": 2.0, "pretrained": str(folder)},
            "doc_to_choice": ["A", "B"],
            "fewshot_split": None,
        }

    first, second, changed = (
        cleaned(config(tmp_path / name, code))
        for name, code in (("a", "x = 1"), ("b", "x = 1"), ("c", "x = 2"))
    )
    assert first == second
    assert str(tmp_path) not in str(first)
    assert first["version"] == "2.0"
    assert first["num_fewshot"] == 0
    assert {key for key in first if first[key] != changed[key]} == {
        "process_docs",
        "fewshot_config",
    }


def test_tasks_of_a_benchmark_have_one_output_and_common_metrics() -> None:
    configs = {"a": {**CHOICES, **metrics("acc", "acc_norm")}, "b": {**CHOICES, **metrics("acc")}}
    assert common_metrics(configs, None) == (MetricName("acc"),)
    with pytest.raises(ConfigError, match="'b' has no metric 'acc_norm'"):
        common_metrics(configs, ["acc_norm"])
    with pytest.raises(ConfigError, match="differ in output_type: a has 'multiple_choice', c has"):
        common_output({**configs, "c": TEXT})


TEXTS = st.text(min_size=1, max_size=5)


@given(st.lists(st.tuples(st.floats(-50, 0), TEXTS), min_size=2, max_size=6))
def test_compared_values_are_per_character_and_per_byte(pairs: list[tuple[float, str]]) -> None:
    logprobs, options = zip(*pairs, strict=True)
    assert compared_values("acc", logprobs, options) == list(logprobs)
    norm = compared_values("acc_norm", logprobs, options)
    per_byte = compared_values("acc_bytes", logprobs, options)
    assert norm is not None
    assert per_byte is not None
    for (value, text), by_character, by_byte in zip(pairs, norm, per_byte, strict=True):
        assert by_character * len(text) == pytest.approx(value)
        assert by_byte * len(text.encode()) == pytest.approx(value)
    assert compared_values("acc_norm", [-1.0, -2.0], ["a", ""]) is None


@pytest.mark.skipif(find_spec("lm_eval") is not None, reason="lm-eval is installed")
def test_without_lm_eval_the_message_names_the_extra() -> None:
    with pytest.raises(ConfigError, match=r"lm_eval_task needs lm-eval: .*lm-eval"):
        lm_eval_task("arc_easy")
