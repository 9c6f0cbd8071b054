"""Names in thresholds.toml against what was collected."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import EarlierNames
from pytest_llmeval.gates import KnownNames
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import collected_benchmarks
from pytest_llmeval.gates import parse_thresholds

KNOWN = KnownNames(
    benchmarks=["mmlu", "mmlu_pro", "gsm8k", "starter", "humaneval", "cmmlu"],
    scorers=["letter", "cloze", "number"],
    tests={"test_faq": "faq_de", "test_mmlu": "mmlu"},
    models={"m": "m", "hf:./checkpoint-9000": "checkpoint-9000", "a b": "a-b", "openai:x": "x"},
    earlier=lambda: EarlierNames(frozenset({"hf:old"}), frozenset({"support_tickets"})),
)
COLLECTED = {
    "mmlu": CollectedBenchmark("mmlu", {"anatomy": 100, "law": 50}, ("letter",), 0.25),
    "gsm8k": CollectedBenchmark("gsm8k", {"gsm8k": 1319}, ("number",), None, samples=4),
    "starter": CollectedBenchmark("starter", {"history": 80}, ("letter", "house_scorer"), 0.25),
    "faq_de": CollectedBenchmark("faq_de", {"faq": 20}, ("letter",), 0.5),
}


def check(text: str) -> None:
    check_names(parse_thresholds(f"version = 1\n{text}"), KNOWN, COLLECTED)


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
        "[benchmarks.mmlu]\naccuracy.chance = true\nevery_subject.accuracy.chance = true",
        '[benchmarks.gsm8k]\n"pass@4" = 0.2\n"pass^1" = 0.1\nevery_subject."pass^4" = 0.1',
        '[benchmarks.humaneval]\n"pass@100" = 0.2',  # not collected: its samples are not known
        "[benchmarks.gsm8k.regression]\nmax_drop = 0.1",
        "[benchmarks.support_tickets]\naccuracy = 0.2",  # of an earlier run
        "[benchmarks.cmmlu]\naccuracy = 0.2",  # of the catalog
        "[benchmarks.our_own]\naccuracy = 0.2\nrequired = false",
        '[models."hf:old".benchmarks.mmlu]\naccuracy = 0.2',  # of an earlier run
        '[models."hf:new"]\nrequired = false\nbenchmarks.mmlu.accuracy = 0.2',
    ],
)
def test_right_names(text: str) -> None:
    check(text)


MISTAKES = [
    ("[benchmarks.mmul]\naccuracy = 1", "benchmarks.mmul: ", "'mmul'", "did you mean 'mmlu'?"),
    ("[benchmarks.MMLU]\naccuracy = 1", "benchmarks.MMLU: ", "did you mean 'mmlu'?"),
    ("[benchmarks.human_eval]\naccuracy = 1", "did you mean 'humaneval'?", "required = false"),
    ("[benchmarks.our_own]\naccuracy = 1", "benchmarks.our_own: ", "add required = false"),
    ("[benchmarks.faq_en]\naccuracy = 1\n[benchmarks.faq_de]\naccuracy = 1", "'faq_de'?"),
    ("[benchmarks.gsm8k2]\naccuracy = 1\n[benchmarks.gsm8k]\naccuracy = 1", "'gsm8k'?"),
    (
        '[benchmarks."starter[cloze]"]\naccuracy = 1',
        'benchmarks."starter[cloze]": ',
        "write [benchmarks.starter.scorers.cloze]",
    ),
    (
        '[models.m.benchmarks."mmlu[letter]"]\naccuracy = 1',
        "write [models.m.benchmarks.mmlu.scorers.letter]",
    ),
    (
        '[benchmarks."mmlu::subjects.anatomy::accuracy"]\naccuracy = 1',
        "write benchmarks.mmlu.subjects.anatomy.accuracy",
    ),
    ("[benchmarks.test_faq]\naccuracy = 1", "is a test", "write [benchmarks.faq_de]"),
    (
        '[benchmarks."benchmarks/test_mmlu.py::test_mmlu[anatomy-0001]"]\naccuracy = 1',
        "write [benchmarks.mmlu]",
    ),
    (
        "[models.checkpoint-9000.benchmarks.mmlu]\naccuracy = 1",
        "models.checkpoint-9000: ",
        'write [models."hf:./checkpoint-9000"]',
    ),
    (
        '[models."hf:checkpoint-9000".benchmarks.mmlu]\naccuracy = 1',
        "did you mean 'hf:./checkpoint-9000'?",
    ),
    ("[models.other.benchmarks.mmlu]\naccuracy = 1", "models.other: ", "add required = false"),
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
    ("[benchmarks.gsm8k]\naccuracy.chance = true", "benchmarks.gsm8k.accuracy: ", "no chance"),
    ("[benchmarks.gsm8k]\nevery_subject.accuracy.chance = true", "every_subject.accuracy: "),
    ("[benchmarks.gsm8k]\nsubjects.gsm8k.accuracy.chance = true", "subjects.gsm8k.accuracy: "),
    (
        '[benchmarks.gsm8k]\n"pass@5" = 0.1',
        'benchmarks.gsm8k."pass@5": pass@5 needs at least 5 samples: --llm-samples 5',
    ),
    ('[benchmarks.gsm8k.every_subject]\n"pass^5" = 0.1', 'every_subject."pass^5": ', "5 samples"),
    ('[benchmarks.mmlu.scorers.letter]\n"pass@2" = 0.1', "pass@2 needs at least 2 samples"),
    (
        "[benchmarks.starter.regression]\nmax_drop = 0.1",
        "benchmarks.starter.regression: ",
        "put its gates under",
    ),
    (
        '[benchmarks.starter]\n"pass@1" = 0.1',
        'benchmarks.starter."pass@1": ',
        "put its gates under",
    ),
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


def test_collected_subjects_by_benchmark() -> None:
    benchmarks = collected_benchmarks(
        [
            ("x", "letter", {"a": 3, "b": 2}, 0.25, 1),
            ("y", "text", {"a": 9}, None, 2),
            ("x", "cloze", {"a": 3, "b": 2}, 0.25, 5),
            ("x", "letter", {"a": 3, "b": 2}, 0.25, 2),
        ]
    )
    assert benchmarks == {
        "x": CollectedBenchmark("x", {"a": 3, "b": 2}, ("letter", "cloze"), 0.25, 5),
        "y": CollectedBenchmark("y", {"a": 9}, ("text",), None, 2),
    }
