"""thresholds.toml: its meaning, and one line for every mistake in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import Bound
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.gates import parse_thresholds

FULL = """
version = 1

[benchmarks.mmlu]
required = true
accuracy = 0.28
macro_accuracy = { min = 0.28, max = 0.9 }
normalized_gain = { min = 0.04, confidence = 0.95 }
unparsed_rate = 0.01
truncated_rate = { max = 0.01, confidence = 0.9 }
error_rate = 0.001
max_errors = 0
"pass@10" = 0.5
"pass@5" = { min = 0.4, confidence = 0.95 }
"pass^2" = 0.1

[benchmarks.mmlu.every_subject]
accuracy = { min = 0.15 }
"pass@1" = 0.1

[benchmarks.mmlu.regression]
max_drop = 0.01
max_subject_drop = 0.05
alpha = 0.01

[benchmarks.mmlu.subjects.college_mathematics]
accuracy = { min = 0.20 }
max_errors = 2

[benchmarks.starter.scorers.cloze]
accuracy = { chance = true }
regression.max_drop = 0

[models."openai:qwen3-8b".benchmarks.mmlu]
accuracy = 0.70
subjects.anatomy.accuracy = 0.5
subjects.college_mathematics.accuracy = 0.4
"pass@5" = 0.3
"pass@1" = 0.2
regression.max_drop = 0.02

[models."openai:qwen3-8b".benchmarks.other]
accuracy = 0.5
"""


def test_a_full_file() -> None:
    mmlu = parse_thresholds(FULL).benchmarks["mmlu"]
    assert mmlu.required
    assert mmlu.accuracy == Bound(min=0.28)
    assert mmlu.macro_accuracy == Bound(min=0.28, max=0.9)
    assert mmlu.normalized_gain == Bound(min=0.04, confidence=0.95)
    assert mmlu.unparsed_rate == Bound(max=0.01)  # for a rate the short form is the maximum
    assert mmlu.truncated_rate == Bound(max=0.01, confidence=0.9)
    assert mmlu.error_rate == Bound(max=0.001)
    assert mmlu.max_errors == 0
    assert mmlu.regression is not None
    assert (mmlu.regression.max_drop, mmlu.regression.max_subject_drop) == (0.01, 0.05)
    assert mmlu.regression.alpha == 0.01
    assert list(mmlu.bounds()) == [
        *("accuracy", "macro_accuracy", "normalized_gain"),
        *("unparsed_rate", "truncated_rate", "error_rate"),
        *("pass@5", "pass@10", "pass^2"),
    ]
    assert mmlu.bounds()["pass@5"] == Bound(min=0.4, confidence=0.95)
    assert mmlu.every_subject is not None
    assert mmlu.every_subject.bounds()["pass@1"] == Bound(min=0.1)
    assert mmlu.every_subject.accuracy == Bound(min=0.15)
    assert mmlu.subjects["college_mathematics"].max_errors == 2
    starter = parse_thresholds(FULL).benchmarks["starter"]
    cloze = starter.scorers["cloze"]
    assert cloze.accuracy == Bound(chance=True)
    assert (cloze.accuracy.level, cloze.accuracy.by_interval) == (0.95, True)
    assert cloze.regression is not None
    assert (cloze.regression.max_drop, cloze.regression.alpha) == (0, 0.05)
    assert (starter.direct, starter.required, starter.max_errors) == ([], None, None)


def test_a_model_overrides_key_by_key() -> None:
    thresholds = parse_thresholds(FULL)
    assert thresholds.for_model("demo") == thresholds.benchmarks
    own = thresholds.for_model("openai:qwen3-8b")
    assert list(own) == ["mmlu", "starter", "other"]
    assert own["mmlu"].accuracy == Bound(min=0.70)
    assert own["mmlu"].macro_accuracy == Bound(min=0.28, max=0.9)
    assert own["mmlu"].required
    assert own["mmlu"].subjects["anatomy"].accuracy == Bound(min=0.5)
    assert own["mmlu"].subjects["college_mathematics"].accuracy == Bound(min=0.4)
    assert own["mmlu"].subjects["college_mathematics"].max_errors == 2
    assert own["mmlu"].every_subject == thresholds.benchmarks["mmlu"].every_subject
    assert thresholds.benchmarks["mmlu"].accuracy == Bound(min=0.28)
    before, after = thresholds.benchmarks["mmlu"].bounds(), own["mmlu"].bounds()
    assert "pass@1" not in before
    assert before["pass@5"] == Bound(min=0.4, confidence=0.95)
    assert (after["pass@1"], after["pass@5"]) == (Bound(min=0.2), Bound(min=0.3))
    assert (after["pass@10"], after["pass^2"]) == (before["pass@10"], before["pass^2"])
    drops = own["mmlu"].regression
    assert drops is not None
    assert (drops.max_drop, drops.max_subject_drop, drops.alpha) == (0.02, 0.05, 0.01)


def test_a_model_may_give_only_what_differs_of_the_regression() -> None:
    thresholds = parse_thresholds(
        "version = 1\n[benchmarks.x.scorers.s.regression]\nmax_drop = 0.1\n"
        "[models.m.benchmarks.x.scorers.s.regression]\nalpha = 0.01"
    )
    drops = thresholds.for_model("m")["x"].scorers["s"].regression
    assert drops is not None
    assert (drops.max_drop, drops.alpha) == (0.1, 0.01)


def test_the_keys_that_gate_the_benchmark_itself() -> None:
    text = 'version = 1\n[benchmarks.x]\n"pass@1" = 0.2\nrequired = true\nscorers.a."pass@2" = 1'
    table = parse_thresholds(text).benchmarks["x"]
    assert table.direct == ["pass@1"]
    assert [(where, list(gates.bounds())) for where, gates in table.parts()] == [
        ((), ["pass@1"]),
        (("scorers", "a"), ["pass@2"]),
    ]


def test_a_bound_is_overridden_as_a_whole() -> None:
    thresholds = parse_thresholds(
        "version = 1\n[benchmarks.x]\naccuracy = { min = 0.2, max = 0.4, confidence = 0.9 }\n"
        "[models.m.benchmarks.x]\naccuracy = 0.7"
    )
    assert thresholds.for_model("m")["x"].accuracy == Bound(min=0.7)


def test_the_models_are_frozen() -> None:
    thresholds = parse_thresholds(FULL)
    with pytest.raises(ValidationError, match="frozen"):
        thresholds.benchmarks["mmlu"].required = False


def test_line_ends_and_byte_order_mark_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.toml"
    path.write_bytes(b"\xef\xbb\xbf" + FULL.replace("\n", "\r\n").encode())
    assert load_thresholds(path).benchmarks == parse_thresholds(FULL).benchmarks
    assert load_thresholds(path).file == str(path)


def test_a_file_may_gate_nothing() -> None:
    assert parse_thresholds("version = 1").benchmarks == {}


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (Bound(min=0.28), ">= 0.28"),
        (Bound(max=0.01), "<= 0.01"),
        (Bound(min=0.2, max=1), ">= 0.2 and <= 1"),
        (Bound(min=0.1234567, confidence=0.95), ">= 0.1234567 (95 % interval)"),
        (Bound(chance=True), "= chance (95 % interval)"),
        (Bound(chance=True, confidence=0.99), "= chance (99 % interval)"),
    ],
)
def test_a_bound_as_text(bound: Bound, text: str) -> None:
    assert bound.text == text


MMLU = "version = 1\n[benchmarks.mmlu]\n"

# The text, then all that its message must hold besides the file.
MISTAKES = [
    ("", "version: missing", "write version = 1"),
    ("[benchmarks.mmlu]\naccuracy = 0.2", "version: missing"),
    ("version = 2\nnew_key = 1", "version: 2 is not supported", "write version = 1"),
    ("version = true", "version: True is not supported"),
    ("version = 1.0", "version: a number with a fraction is not supported"),
    ("version = '1'", "version: '1' is not supported"),
    ("verison = 1", "verison: unknown key", "did you mean 'version'?"),
    ("version = 1\n[benchmark.mmlu]\naccuracy = 1", "benchmark: ", "did you mean 'benchmarks'?"),
    (MMLU, "benchmarks.mmlu: empty table"),
    (MMLU + "acuracy = 0.2", "benchmarks.mmlu.acuracy: unknown", "did you mean 'accuracy'?"),
    (MMLU + "Accuracy = 0.2", "benchmarks.mmlu.Accuracy: unknown", "did you mean 'accuracy'?"),
    (MMLU + "zzz = 0.2", "benchmarks.mmlu.zzz: unknown", "known: accuracy, clean, consistency, "),
    (MMLU + "accuracy = { mim = 0.2 }", "benchmarks.mmlu.accuracy.mim: ", "did you mean 'min'?"),
    (MMLU + "accuracy = {}", "benchmarks.mmlu.accuracy: needs min or max"),
    (MMLU + "accuracy = { confidence = 0.9 }", "mmlu.accuracy: needs min or max"),
    (MMLU + "accuracy = 28", "mmlu.accuracy: min = 28 is outside [0, 1]", "write 0.28 for 28 %"),
    (MMLU + "accuracy = -0.1", "benchmarks.mmlu.accuracy: min = -0.1 is outside [0, 1]"),
    (MMLU + "accuracy = { max = 1.5 }", "benchmarks.mmlu.accuracy: max = 1.5 is outside [0, 1]"),
    (MMLU + "macro_accuracy = 1.5", "mmlu.macro_accuracy: min = 1.5 is outside [0, 1]"),
    (MMLU + "normalized_gain = -1.5", "normalized_gain: min = -1.5 is outside [-1, 1]"),
    (MMLU + "unparsed_rate = 1.5", "mmlu.unparsed_rate: max = 1.5 is outside [0, 1]"),
    (MMLU + "accuracy = nan", "benchmarks.mmlu.accuracy: min = nan is not a finite number"),
    (MMLU + "accuracy = { max = inf }", "accuracy: max = inf is not a finite number"),
    (MMLU + "accuracy = 1e999", "benchmarks.mmlu.accuracy: min = inf is not a finite number"),
    (MMLU + f"accuracy = {'9' * 400}", "benchmarks.mmlu.accuracy.min: too large a number"),
    (MMLU + f"accuracy = {'9' * 5000}", "not valid TOML"),
    (MMLU + "accuracy = { min = 0.5, max = 0.2 }", "accuracy: min = 0.5 is above max = 0.2"),
    (MMLU + "accuracy = '0.2'", "mmlu.accuracy: expected a number or a table", "got a string"),
    (MMLU + "accuracy = true", "mmlu.accuracy: expected a number or a table", "got a boolean"),
    (MMLU + "accuracy = [0.2]", "mmlu.accuracy: expected a number or a table", "got an array"),
    (MMLU + "accuracy = 2020-01-01", "mmlu.accuracy: expected a number", "got a date or time"),
    (MMLU + "accuracy = { min = '0.2' }", "mmlu.accuracy.min: expected a number, got a string"),
    (MMLU + "accuracy = { min = true }", "mmlu.accuracy.min: expected a number, got a boolean"),
    (
        MMLU + "accuracy = { min = 0.1, confidence = 95 }",
        "accuracy.confidence: ",
        "between 0 and 1",
    ),
    (MMLU + "accuracy = { min = 0.1, confidence = 1 }", "accuracy.confidence: ", "between 0 and 1"),
    (MMLU + "accuracy = { min = 0.1, confidence = nan }", "accuracy.confidence: ", "between"),
    (
        MMLU + "macro_accuracy = { min = 0.1, confidence = 0 }",
        "benchmarks.mmlu.macro_accuracy.confidence: confidence = 0 is not between 0 and 1",
    ),
    (MMLU + "unparsed_rate = { max = 0.1, confidence = 2 }", "confidence: confidence = 2 is not"),
    (MMLU + "truncated_rate = 1.5", "mmlu.truncated_rate: max = 1.5 is outside [0, 1]"),
    (MMLU + "error_rate = -1", "mmlu.error_rate: max = -1 is outside [0, 1]"),
    (MMLU + "truncate_rate = 0.1", "unknown key", "did you mean 'truncated_rate'?"),
    (MMLU + "max_errors = -1", "benchmarks.mmlu.max_errors: -1 is negative"),
    (MMLU + "max_errors = 0.5", "mmlu.max_errors: expected a whole number"),
    (MMLU + "max_errors = true", "mmlu.max_errors: expected a whole number, got a boolean"),
    (MMLU + "required = 1", "mmlu.required: expected true or false, got a whole number"),
    (MMLU + "every_subject = 0.2", "mmlu.every_subject: expected a table"),
    (MMLU + "every_subject = {}", "mmlu.every_subject: empty table"),
    (MMLU + "subjects = {}", "mmlu.subjects: empty table"),
    (MMLU + "scorers = {}", "mmlu.scorers: empty table"),
    (MMLU + "subjects.a = {}", "mmlu.subjects.a: empty table"),
    (MMLU + "scorers.a = {}", "mmlu.scorers.a: empty table"),
    (MMLU + "subjects.a.acuracy = 1", "mmlu.subjects.a.acuracy: ", "did you mean 'accuracy'?"),
    (MMLU + "subjects.a.macro_accuracy = 1", "a.macro_accuracy: ", "a gate of a whole benchmark"),
    (MMLU + "every_subject.normalized_gain = 1", "normalized_gain: ", "not of a subject"),
    (MMLU + "scorers.a.required = true", "scorers.a.required: ", "the benchmark's table"),
    (MMLU + "scorers.a.scorers.b.accuracy = 1", "scorers.a.scorers: ", "not to a scorer"),
    (
        MMLU + "accuracy = { chance = true, min = 0.2 }",
        "mmlu.accuracy.chance: ",
        "remove min and max",
    ),
    (
        MMLU + "accuracy = { chance = true, max = 0.2 }",
        "mmlu.accuracy.chance: ",
        "remove min and max",
    ),
    (MMLU + "accuracy = { chance = false }", "mmlu.accuracy: needs min or max"),
    (MMLU + "accuracy = { chance = 0.25 }", "accuracy.chance: expected true or false, got a numb"),
    (MMLU + "accuracy = { chance = true, confidence = 1 }", "accuracy.confidence: ", "between 0"),
    (MMLU + "unparsed_rate = { chance = true }", "unparsed_rate.chance: only accuracy can be"),
    (MMLU + "normalized_gain.chance = true", "normalized_gain.chance: only accuracy can be"),
    (MMLU + '"pass@0" = 0.1', 'mmlu."pass@0": k must be a whole number from 1: pass@1'),
    (MMLU + '"pass@x" = 0.1', 'mmlu."pass@x": k must be a whole number from 1: pass@1'),
    (MMLU + '"pass^-1" = 0.1', 'mmlu."pass^-1": k must be a whole number from 1: pass^1'),
    (MMLU + '"pass@01" = 0.1', 'mmlu."pass@01": k must be'),
    (MMLU + f'"pass@{"9" * 5000}" = 0.1', "k must be a whole number"),
    (MMLU + '"pass@1" = 1.5', 'mmlu."pass@1": min = 1.5 is outside [0, 1]'),
    (MMLU + '"pass@1" = "a"', 'mmlu."pass@1": expected a number or a table'),
    (MMLU + '"pass@1".mim = 1', 'mmlu."pass@1".mim: ', "did you mean 'min'?"),
    (MMLU + 'every_subject."pass@0" = 0.1', 'mmlu.every_subject."pass@0": k must be'),
    ("version = 1\n[benchmarks.x]\npass@1 = 0.5", "line 3, column 5: ", 'needs quotes: "pass@1"'),
    ("version = 1\nbenchmarks.x.pass^2 = 0.5", "line 2, column 18: ", 'needs quotes: "pass^2"'),
    (MMLU + "regression = 0.1", "mmlu.regression: expected a table, got a number"),
    (MMLU + "regression = {}", "mmlu.regression: empty table"),
    (MMLU + "regression.alpha = 0.1", "mmlu.regression: needs max_drop or max_subject"),
    (
        MMLU + "regression = { max_drop = 0.1, alpha = 0 }",
        "mmlu.regression.alpha: alpha = 0 is not between 0 and 1",
    ),
    (MMLU + "regression = { max_drop = 0.1, alpha = 1.0 }", "alpha = 1 is not between 0 and 1"),
    (MMLU + "regression = { max_drop = 0.1, alpha = nan }", "alpha = nan is not between 0 and 1"),
    (MMLU + "regression.max_drop = 5", "mmlu.regression.max_drop: 5 is outside", "0.05 for 5 %"),
    (MMLU + "regression.max_drop = -0.1", "regression.max_drop: -0.1 is outside [0, 1]"),
    (MMLU + "regression.max_subject_drop = nan", "max_subject_drop: nan is outside [0, 1]"),
    (MMLU + "regression.max_drop = '1'", "regression.max_drop: expected a number, got a string"),
    (MMLU + "regression.max_dorp = 0.1", "regression.max_dorp: ", "did you mean 'max_drop'?"),
    (MMLU + "max_drop = 0.1", "mmlu.max_drop: ", "belongs to the table regression"),
    (MMLU + "scorers.a.alpha = 0.1", "mmlu.scorers.a.alpha: ", "belongs to the table regression"),
    (MMLU + "scorers.a.regression.alpha = 0.1", "mmlu.scorers.a.regression: needs"),
    (MMLU + "every_subject.regression.max_drop = 0.1", "regression: ", "of a whole benchmark"),
    (
        "version = 1\n[models.m.benchmarks.x.regression]\nalpha = 0.1",
        "models.m.benchmarks.x.regression: needs max_drop or max_subject_drop",
    ),
    ("version = 1\n[[benchmarks.mmlu]]\nx = 1", "benchmarks.mmlu: expected a table, got an array"),
    ("version = 1\nbenchmarks = 3", "benchmarks: expected a table, got a whole number"),
    ("version = 1\nmodels.m = 3", "models.m: expected a table, got a whole number"),
    (
        'version = 1\n[models."a\\nb: c".benchmarks.mmlu]\nacuracy = 3',
        'models."a\\nb: c".benchmarks.mmlu.acuracy: ',
        "did you mean 'accuracy'?",
    ),
    (MMLU + '"a\\u2028b\\r\\n" = 3', '"a\\u2028b\\r\\n": unknown key'),
    ("version = 1\n[benchmarks.mmlu", "line 2, at the end: Expected ']'"),
    ("version = 1\naccuracy 0.2\n", "line 2, column 10: Expected '='"),
    ("version = 1\nversion = 1\n\n", "line 2", "Cannot overwrite a value"),
    ("version = 1\na = " + "[" * 50_000, "not valid TOML"),
]


@pytest.mark.parametrize(
    ("text", "parts"),
    [pytest.param(text, parts, id=f"{i:02}") for i, (text, *parts) in enumerate(MISTAKES)],
)
def test_a_mistake_is_one_line_with_file_and_key(text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_thresholds(text, "gates/thresholds.toml")
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    table = "benchmarks.mmlu" if text.startswith(MMLU) and "not valid TOML" not in parts else ""
    assert message.startswith(f"gates/thresholds.toml: {table}")
    for part in parts:
        assert part in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# \xe9\nversion = 1\n")
    for path, text in [
        (tmp_path / "absent.toml", "no such thresholds file"),
        (tmp_path, "cannot be read"),
        (latin, "not UTF-8 text"),
    ]:
        with pytest.raises(ConfigError, match=text) as caught:
            load_thresholds(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert len(str(caught.value).splitlines()) == 1


def test_importing_the_gates_builds_no_schema() -> None:
    """A session without a thresholds file does not pay for pydantic's validators of one."""
    program = (
        "from pytest_llmeval.gates import Thresholds, parse_thresholds\n"
        "assert not Thresholds.__pydantic_complete__\n"
        "parse_thresholds('version = 1')\n"
        "assert Thresholds.__pydantic_complete__\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
