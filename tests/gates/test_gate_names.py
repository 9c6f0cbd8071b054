"""Names in thresholds.toml against what was collected."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import parse_thresholds

KNOWN = ["mmlu", "mmlu_pro", "gsm8k", "starter", "humaneval"]
SCORERS = ["letter", "cloze", "number"]
COLLECTED = {
    "mmlu": CollectedBenchmark("mmlu", frozenset({"anatomy", "law"}), ("letter",), True),
    "gsm8k": CollectedBenchmark("gsm8k", frozenset({"gsm8k"}), ("number",), False),
    "starter": CollectedBenchmark(
        "starter", frozenset({"history"}), ("letter", "house_scorer"), True
    ),
    "faq_de": CollectedBenchmark("faq_de", frozenset({"faq"}), ("letter",), True),
}


def check(text: str) -> None:
    check_names(parse_thresholds(f"version = 1\n{text}"), KNOWN, COLLECTED, SCORERS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[benchmarks.mmlu]\naccuracy = 0.2\nsubjects.anatomy.accuracy = 0.1",
        "[benchmarks.humaneval]\naccuracy = 0.2\nsubjects.whatever.accuracy = 0.1",
        "[benchmarks.starter]\nrequired = true\nscorers.letter.accuracy = 0.2",
        "[benchmarks.starter.scorers.cloze]\naccuracy = 0.2",  # known, but did not run: judged
        "[benchmarks.starter.scorers.house_scorer.subjects.history]\naccuracy = 0.2",
        "[benchmarks.mmlu.scorers.letter]\naccuracy = 0.2",
        "[models.m.benchmarks.mmlu]\nnormalized_gain = 0.2",
        # Not collected and not in the catalog: a benchmark of the user's own in another file.
        "[benchmarks.support_tickets]\naccuracy = 0.2",
        "[benchmarks.faq_en]\naccuracy = 0.2\n[benchmarks.faq_de]\naccuracy = 0.2",
        "[benchmarks.gsm8k2]\naccuracy = 0.2\n[benchmarks.gsm8k]\naccuracy = 0.2",
        "[benchmarks.cmmlu]\naccuracy = 0.2\nrequired = false",
    ],
)
def test_right_names(text: str) -> None:
    check(text)


MISTAKES = [
    ("[benchmarks.mmul]\naccuracy = 1", "benchmarks.mmul: ", "'mmul'", "did you mean 'mmlu'?"),
    ("[benchmarks.MMLU]\naccuracy = 1", "benchmarks.MMLU: ", "did you mean 'mmlu'?"),
    ("[benchmarks.human_eval]\naccuracy = 1", "did you mean 'humaneval'?", "required = false"),
    ("[benchmarks.faq_dee]\naccuracy = 1", "benchmarks.faq_dee: ", "did you mean 'faq_de'?"),
    (
        "[benchmarks.mmlu]\naccuracy = 1\n[benchmarks.mmul.every_subject]\naccuracy = 1",
        "benchmarks.mmul: ",
        "did you mean 'mmlu'?",
    ),
    (
        "[benchmarks.mmlu]\naccuracy = 1\n[benchmarks.mmllu.every_subject]\naccuracy = 1",
        "did you mean 'mmlu'?",
    ),
    (
        "[benchmarks.mmlu]\naccuracy = 1\n[benchmarks.MMLU.every_subject]\naccuracy = 1",
        "did you mean 'mmlu'?",
    ),
    (
        '[models."openai:x".benchmarks.mmul]\naccuracy = 1',
        'models."openai:x".benchmarks.mmul: ',
        "did you mean 'mmlu'?",
    ),
    (
        "[benchmarks.mmlu.subjects.anatmy]\naccuracy = 1",
        "benchmarks.mmlu.subjects.anatmy: ",
        "did you mean 'anatomy'?",
    ),
    ("[benchmarks.mmlu.subjects.zzz]\naccuracy = 1", "no subject 'zzz'", "known: anatomy, law"),
    (
        "[benchmarks.starter.scorers.letter.subjects.hist0ry]\naccuracy = 1",
        "benchmarks.starter.scorers.letter.subjects.hist0ry: ",
        "did you mean 'history'?",
    ),
    ("[benchmarks.gsm8k]\nnormalized_gain = 0", "benchmarks.gsm8k.normalized_gain: ", "no chance"),
    ("[benchmarks.gsm8k.scorers.number]\nnormalized_gain = 0", "number.normalized_gain: "),
    (
        "[benchmarks.starter]\naccuracy = 1",
        "benchmarks.starter.accuracy: ",
        "benchmark 'starter' runs under 2 scorers (letter, house_scorer)",
        "put its gates under [benchmarks.starter.scorers.NAME]",
    ),
    ("[benchmarks.starter]\nmax_errors = 1", "put its gates under"),
    (
        '[models."a b".benchmarks.starter.every_subject]\naccuracy = 1',
        'models."a b".benchmarks.starter.every_subject: ',
        'under [models."a b".benchmarks.starter.scorers.NAME]',
    ),
    (
        "[benchmarks.starter.scorers.close]\naccuracy = 1",
        "benchmarks.starter.scorers.close: ",
        "did you mean 'cloze'?",
    ),
]


@pytest.mark.parametrize(
    ("text", "parts"),
    [pytest.param(text, parts, id=f"{i:02}") for i, (text, *parts) in enumerate(MISTAKES)],
)
def test_a_wrong_name_is_one_line(text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        check(text)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith("thresholds.toml: ")
    for part in parts:
        assert part in message
