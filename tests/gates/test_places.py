"""Lines of gates in the thresholds file, in any style of TOML."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.gates.locations import key_lines
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import aggregate
from support.paths import REPOSITORY

SUITE = REPOSITORY / "thresholds.toml"


def lines_of(text: str, **more) -> dict[str, int | None]:
    """Id of every verdict on a run in which one of two items of every subject is right."""
    items = [
        ItemOutcomes(subject, (outcome,))
        for subject in ("art", "law")
        for outcome in ("correct", "wrong")
    ]
    sizes = {"art": 2, "law": 2}
    result = aggregate(
        items,
        model="demo",
        benchmark="mmlu",
        scorer="letter",
        protocol="p",
        chance=0.25,
        sizes=sizes,
    )
    verdicts = judge(parse_thresholds(text), [result], ["demo"], ["mmlu"], **more)
    return {verdict.id: verdict.line for verdict in verdicts}


def test_gates_in_tables_of_their_own():
    text = """\
version = 1

[benchmarks.mmlu]
accuracy = 0.9
# a comment, and an empty line

"pass@1" = 0.5
[benchmarks.mmlu.every_subject]
error_rate = 0.1
[benchmarks.mmlu.subjects."law"]
accuracy = { min = 0.9 }
[benchmarks.mmlu.regression]
max_drop = 0.3
max_subject_drop = 0.6
[benchmarks.absent]
accuracy = 0.5
"""
    assert lines_of(text, comparisons={}) == {
        "mmlu::accuracy": 4,
        "mmlu::pass@1": 7,
        "mmlu::every_subject::art::error_rate": 9,
        "mmlu::every_subject::law::error_rate": 9,
        "mmlu::subjects.law::accuracy": 11,
        "mmlu::regression::max_drop": 13,
        "mmlu::regression::every_subject::max_subject_drop": 14,
        "absent": 15,
    }
    assert lines_of(text)["mmlu::regression"] == 12


def test_dotted_keys_inline_tables_and_windows_line_ends():
    text = """\
version = 1
benchmarks.mmlu.accuracy = 0.9
benchmarks.mmlu.scorers = { letter = { max_errors = 0, every_subject = { accuracy = 0.1 } } }
"""
    for written in (text, text.replace("\n", "\r\n")):
        assert lines_of(written) == {
            "mmlu::accuracy": 2,
            "mmlu::scorers.letter::max_errors": 3,
            "mmlu::scorers.letter::every_subject::art::accuracy": 3,
            "mmlu::scorers.letter::every_subject::law::accuracy": 3,
        }


def test_the_gate_of_a_model_is_located_at_its_table():
    text = """\
version = 1
[benchmarks.mmlu]
accuracy = 0.9
max_errors = 0
[models.demo.benchmarks.mmlu]
accuracy = 0.8
"""
    assert lines_of(text) == {"mmlu::accuracy": 6, "mmlu::max_errors": 4}


# JSON writes a character beyond these as two surrogates, which TOML refuses.
TEXTS = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=8)
KEYS = TEXTS | st.sampled_from(["a", "b", "[x]", "#", '"', "'''", "a.b", "\n"])
VALUES = st.recursive(
    st.integers(0, 9)
    | TEXTS
    | st.sampled_from(['"""', "[benchmarks]", "a = 1", "#", "'"])
    | st.lists(TEXTS, max_size=3),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")


def paths(value, base=()):
    for key, inner in value.items():
        yield (*base, key)
        if isinstance(inner, dict):
            yield from paths(inner, (*base, key))


def write(table, base, lines, expected):
    """TOML of nested tables, with comments; texts over several lines, arrays over several."""
    for key, value in table.items():
        if isinstance(value, dict):
            continue
        expected[(*base, key)] = len(lines) + 1
        if isinstance(value, list):
            lines += [
                f"{quoted(key)} = [ # [no.header]",
                *(f"{quoted(element)}," for element in value),
                "]",
            ]
        elif isinstance(value, str):
            lines += [f'{quoted(key)} = """', "[no.header]", f'{quoted(value)[1:-1]}"""']
        else:
            lines += [f"{quoted(key)} = {value} # [no.header]", ""]
    for key, value in table.items():
        if isinstance(value, dict):
            inner = (*base, key)
            expected[inner] = len(lines) + 1
            lines.append(f"[{'.'.join(map(quoted, inner))}]")
            write(value, inner, lines, expected)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_all_keys_of_any_file_are_found_where_they_were_written(table):
    lines: list[str] = []
    expected: dict[tuple[str, ...], int] = {}
    write(table, (), lines, expected)
    text = "\n".join(lines)
    places = key_lines(text)
    assert places == expected
    assert set(places) == set(paths(tomllib.loads(text)))


@pytest.mark.parametrize("file", [SUITE], ids=["thresholds.toml"])
def test_the_suites_own_gates(file):
    text = file.read_text(encoding="utf-8")
    lines = text.split("\n")
    places = key_lines(text)
    assert set(places) == set(paths(tomllib.loads(text)))
    for keys, line in places.items():
        assert keys[-1] in lines[line - 1]
