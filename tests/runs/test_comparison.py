"""Like is compared with like, and what differs is named with both values."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import ConfigError
from pytest_llmeval.runs import MismatchError
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import leaderboards
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import save_baseline
from pytest_llmeval.runs.comparison import ABSENT
from pytest_llmeval.runs.comparison import describe_differences
from pytest_llmeval.runs.comparison import differing_fields
from support.stored_runs import PLAIN
from support.stored_runs import together

ITEMS = {"art-0": "c", "art-1": "c", "law-0": "w", "law-1": "c"}


def test_two_runs_are_paired_item_by_item(make_run):
    run_comparison = compare(
        make_run("a", ITEMS), make_run("b", {**ITEMS, "art-0": "w", "law-0": "c"})
    )
    (comparison,) = run_comparison.comparisons
    assert comparison.newly_wrong == ("art-0",)
    assert comparison.newly_right == ("law-0",)
    assert comparison.complete
    assert run_comparison.comparable(comparison)
    assert run_comparison.for_gates() == {("demo", "mmlu", "letter"): comparison}
    assert (run_comparison.only_baseline, run_comparison.only_candidate) == ((), ())


def test_missing_items_extra_items_and_errors_are_distinguished(make_run):
    baseline = make_run("a", {"art-0": "c", "art-1": "c", "art-2": "c"}, not_run=("art-3",))
    candidate = make_run("b", {"art-0": "c", "art-1": "e", "art-3": "c"}, not_run=("art-2",))
    (comparison,) = compare(baseline, candidate).comparisons
    assert comparison.overall.items == 1
    assert comparison.only_baseline == ("art-2",)
    assert comparison.only_candidate == ("art-3",)
    assert (comparison.errors_baseline, comparison.errors_candidate) == (0, 1)
    assert not comparison.complete


def test_samples_are_compared_by_their_number(make_run):
    run_comparison = compare(
        make_run("a", {"art-0": "ccc", "art-1": "www"}),
        make_run("b", {"art-0": "ccw", "art-1": "wcw"}),
    )
    (comparison,) = run_comparison.comparisons
    assert comparison.overall.baseline == comparison.overall.candidate == 0.5
    assert comparison.newly_wrong == ("art-0",)
    assert comparison.newly_right == ("art-1",)


def test_left_out_records_do_not_count(make_run):
    run = make_run("b", ITEMS)
    out = tuple(replace(record, left_out=record.item == "art-0") for record in run.records)
    (comparison,) = compare(make_run("a", ITEMS), replace(run, records=out)).comparisons
    assert comparison.only_baseline == ("art-0",)


# Other protocols and data -----------------------------------------------------------------


def test_other_dates_in_the_chat_template_are_refused_where_it_is_used(make_run, tmp_path):
    """A model whose template writes no date has the same prompt under any."""
    chat = PLAIN.with_chat()
    dates = {"demo": "2024-07-26"}, {"demo": "2026-11-30"}, {}
    first, other, none = (
        make_run(f"{number}", ITEMS, chat, template_dates=day) for number, day in enumerate(dates)
    )
    with pytest.raises(MismatchError, match="date in the chat template '2024-07-26' against '2026"):
        compare(first, other)
    assert compare(first, other, allow_mismatch=True).mismatches
    for candidate in (first, none):
        assert compare(first, candidate).comparisons
    save_baseline(first, tmp_path / "one.json")
    with pytest.raises(MismatchError, match="date in the chat template"):
        compare(load_baseline(str(tmp_path / "one.json"), tmp_path), other)
    plain = (make_run(f"p{n}", ITEMS, template_dates=day) for n, day in enumerate(dates[:2]))
    assert compare(*plain).comparisons


def test_dates_of_every_model_are_compared(make_run):
    """The first model's are the same, the second's are not."""
    runs = [
        make_run(name, ITEMS, PLAIN.with_chat(), ("a", "b"), template_dates={"a": "x", "b": day})
        for name, day in (("one", "x"), ("other", "y"))
    ]
    with pytest.raises(MismatchError, match="'x' against 'y'"):
        compare(*runs)


def test_five_shots_and_none_are_refused_with_both_values(make_run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    five = replace(PLAIN, name="five", shots=5, shots_used="0a1b")
    with pytest.raises(MismatchError) as caught:
        compare(make_run("a", ITEMS, five), make_run("b", ITEMS))
    assert str(caught.value) == (
        "a and b cannot be compared: mmlu[letter]: name 'five' against 'plain';"
        " shots 5 against 0; draw 'first of the pool, without copies' against None;"
        " shots_used '0a1b' against ''"
    )


def test_a_long_text_is_shown_where_it_differs(make_run):
    long = "The following are multiple choice questions (with answers) about"
    first, other = (
        replace(PLAIN, template=replace(PLAIN.template, description=describe))
        for describe in (lambda s: f"{long} {s}.\n\n", lambda s: f"{long} the {s}.\n\n")
    )
    with pytest.raises(MismatchError, match=r"template\.description '?…") as caught:
        compare(make_run("a", ITEMS, first), make_run("b", ITEMS, other))
    message = str(caught.value)
    assert "probe subject" in message or "probe_subject" in message
    assert "about the probe" in message
    assert "The following" not in message
    assert "\n" not in message


def test_other_data_is_refused(make_run):
    with pytest.raises(MismatchError, match=r"mmlu\[letter\]: data '1a2b' against '3c4d'$"):
        compare(make_run("a", ITEMS, data="1a2b"), make_run("b", ITEMS, data="3c4d"))


def test_another_name_of_the_same_protocol_is_no_difference(make_run):
    run_comparison = compare(
        make_run("a", ITEMS), make_run("b", ITEMS, replace(PLAIN, name="mine"))
    )
    assert run_comparison.mismatches == ()


def test_allowed_differences_give_numbers_without_a_verdict(make_run):
    five = replace(PLAIN, shots=5)
    runs = make_run("a", ITEMS, five), make_run("b", {**ITEMS, "art-0": "w"})
    run_comparison = compare(*runs, allow_mismatch=True)
    (comparison,) = run_comparison.comparisons
    assert comparison.overall.drop == 0.25
    assert not run_comparison.comparable(comparison)
    assert [mismatch.text for mismatch in run_comparison.mismatches] == [
        "shots 5 against 0",
        "draw 'first of the pool, without copies' against None",
    ]
    (reason,) = run_comparison.for_gates().values()
    assert reason == (
        "protocols or data differ (shots 5 against 0; draw 'first of the pool, without copies'"
        " against None): no verdict"
    )


def test_a_mismatch_touches_its_own_result_alone(make_run, tmp_path):
    other = make_run("a", ITEMS, benchmark="arc")
    five = replace(PLAIN, shots=5)
    run_comparison = compare(
        together(tmp_path / "a", make_run("a", ITEMS, five), other),
        together(tmp_path / "b", make_run("b", ITEMS), other),
        allow_mismatch=True,
    )
    verdicts = {
        comparison.benchmark: run_comparison.comparable(comparison)
        for comparison in run_comparison.comparisons
    }
    assert verdicts == {"mmlu": False, "arc": True}


def test_edited_documents_of_equal_fields_are_still_refused(make_run):
    run = make_run("b", ITEMS)
    variant = {**run.manifest["results"][0]["ways"][0], "fingerprint": "f" * 16}
    result = {**run.manifest["results"][0], "ways": [variant]}
    records = tuple(replace(record, protocol="f" * 16) for record in run.records)
    edited = replace(run, manifest={**run.manifest, "results": [result]}, records=records)
    with pytest.raises(MismatchError, match=r"protocol fingerprint '[0-9a-f]{16}' against 'ffff"):
        compare(make_run("a", ITEMS), edited)


def test_an_item_of_another_subject_is_no_pair(make_run):
    run = make_run("b", ITEMS, data="other")
    moved = tuple(
        replace(record, subject="law") if record.item == "art-0" else record
        for record in run.records
    )
    subjects = {"art": 1, "law": 3}
    manifest = {**run.manifest, "results": [{**run.manifest["results"][0], "subjects": subjects}]}
    with pytest.raises(MismatchError, match="item 'art-0' is of 'art' and of 'law'"):
        compare(
            make_run("a", ITEMS),
            replace(run, manifest=manifest, records=moved),
            allow_mismatch=True,
        )


# Models -----------------------------------------------------------------------------------


def sides(run_comparison):
    return [
        (comparison.baseline, comparison.candidate) for comparison in run_comparison.comparisons
    ]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (("old",), ("new",), [("old", "new")]),
        (("old",), ("new", "old"), [("old", "new"), ("old", "old")]),
        (("old", "new"), ("new",), [("new", "new")]),
        (("old", "older"), ("new",), [("old", "new"), ("older", "new")]),
        (("a", "b"), ("b", "a"), [("b", "b"), ("a", "a")]),
        (("a", "b"), ("b", "c"), [("b", "b")]),
    ],
)
def test_models_are_paired_by_name_or_with_the_only_one(make_run, left, right, expected):
    run_comparison = compare(make_run("a", ITEMS, models=left), make_run("b", ITEMS, models=right))
    assert sides(run_comparison) == expected


def test_models_that_have_no_partner_are_named(make_run):
    run_comparison = compare(
        make_run("a", ITEMS, models=("one", "two")), make_run("b", ITEMS, models=("two", "three"))
    )
    assert run_comparison.only_baseline == ("one: mmlu[letter]",)
    assert run_comparison.only_candidate == ("three: mmlu[letter]",)


def test_several_models_without_a_name_in_common(make_run):
    with pytest.raises(ConfigError, match=r"no model in common: m1, m2 against m3, m4; several"):
        compare(
            make_run("a", ITEMS, models=("m1", "m2")), make_run("b", ITEMS, models=("m3", "m4"))
        )


def test_two_baselines_for_one_model_decide_no_gate(make_run):
    run_comparison = compare(
        make_run("a", ITEMS, models=("old", "older")), make_run("b", ITEMS, models=("new",))
    )
    (reason,) = run_comparison.for_gates().values()
    assert "has several models, none of them new" in reason


def test_results_that_only_one_run_has(make_run, tmp_path):
    both = together(tmp_path / "a", make_run("a", ITEMS), make_run("a", ITEMS, benchmark="arc"))
    run_comparison = compare(both, make_run("b", ITEMS))
    assert (run_comparison.only_baseline, run_comparison.only_candidate) == (("arc[letter]",), ())
    with pytest.raises(ConfigError, match=r"in common: arc\[letter\] against mmlu\[letter\]$"):
        compare(make_run("a", ITEMS, benchmark="arc"), make_run("b", ITEMS))
    cloze = replace(PLAIN, scorer="cloze")
    with pytest.raises(ConfigError, match=r"in common: mmlu\[letter\] against mmlu\[cloze\]$"):
        compare(make_run("a", ITEMS), make_run("b", ITEMS, cloze))


# Fields -----------------------------------------------------------------------------------


def test_differing_fields_by_path():
    first = {"shots": 5, "decoding": None, "template": {"name": "x", "choices": ["A", "B"]}}
    other = {"shots": 5, "decoding": {"stop": []}, "template": {"choices": ("A", "C")}, "new": 1}
    assert differing_fields(first, other) == [
        ("decoding", None, {"stop": []}),
        ("new", ABSENT, 1),
        ("template.name", "x", ABSENT),
        ("template.choices", ["A", "B"], ("A", "C")),
    ]
    assert describe_differences([("new", ABSENT, 1)]) == "new (absent) against 1"


def test_no_line_lists_a_hundred_fields():
    text = describe_differences([(f"f{n}", 0, 1) for n in range(100)])
    assert text.startswith("f0 0 against 1; f1 0 against 1; ")
    assert text.endswith("; and 92 more fields")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=6,
)
DOCUMENT = st.dictionaries(st.sampled_from("xyz"), JSON)


@given(first=DOCUMENT, other=DOCUMENT)
def test_fields_differ_exactly_where_documents_do(first, other):
    differences = differing_fields(first, other)
    assert (differences == []) == (
        json.dumps(first, sort_keys=True) == json.dumps(other, sort_keys=True)
    )
    assert [path for path, _, _ in differences] == [
        path for path, _, _ in sorted(differences, key=lambda entry: entry[0].count("."))
    ]
    assert {path for path, _, _ in differences} == {
        path for path, _, _ in differing_fields(other, first)
    }


# Leaderboard -----------------------------------------------------------------------------------


def many(wrong: int) -> dict[str, str]:
    return {f"art-{n}": "w" if n < wrong else "c" for n in range(100)}


def test_a_leaderboard_is_sorted_and_tested_against_the_best(make_run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runs = [make_run(name, many(wrong)) for name, wrong in (("a", 20), ("b", 10), ("c", 40))]
    (table,) = leaderboards(runs)
    assert [standing.run for standing in table.standings] == ["b", "a", "c"]
    best, second, last = table.standings
    assert best.against_best is None
    assert second.against_best.drop == pytest.approx(0.1)
    assert last.against_best.newly_wrong == 30
    # Two tests: the smaller p counts twice, the larger once (Holm).
    assert last.against_best.adjusted == pytest.approx(2 * last.against_best.p_value)
    assert second.against_best.adjusted == second.against_best.p_value
    assert second.against_best.p_value == pytest.approx(2 * 0.5**10)


def test_an_incomplete_run_is_never_the_best(make_run):
    broken = make_run("a", {**many(0), "art-0": "e"})
    (table,) = leaderboards([broken, make_run("b", many(50)), make_run("c", many(60))])
    assert [standing.result.counts.error for standing in table.standings] == [0, 0, 1]
    assert table.standings[-1].against_best.items == 99
    (table,) = leaderboards([broken, broken])
    assert [standing.against_best for standing in table.standings] == [None, None]


def test_a_part_of_the_items_is_never_the_best(make_run):
    whole = make_run("a", many(50))
    easy = {item: letter for item, letter in many(50).items() if letter == "c"}
    (table,) = leaderboards([make_run("b", easy, not_run=tuple(many(0))), whole])
    assert [standing.result.accuracy for standing in table.standings] == [0.5, 1.0]
    assert table.standings[1].against_best.drop == 0
    assert not table.same_items
    (table,) = leaderboards([whole, whole])
    assert table.same_items


def test_a_leaderboard_has_a_row_per_model_and_a_table_per_result(make_run, tmp_path):
    both = together(tmp_path / "a", make_run("a", ITEMS), make_run("a", ITEMS, benchmark="arc"))
    tables = leaderboards([both, make_run("b", ITEMS, models=("x", "y"))])
    assert [(each.benchmark, len(each.standings)) for each in tables] == [("mmlu", 3), ("arc", 1)]


def test_a_leaderboard_has_a_table_for_every_comparable_group(make_run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runs = [
        make_run("a", ITEMS),
        make_run("b", ITEMS, data="other"),
        make_run("c", ITEMS),
        make_run("d", ITEMS, data="other"),
        make_run("e", ITEMS, data="third"),
    ]
    tables = leaderboards(runs)
    assert [[row.run for row in table.standings] for table in tables] == [
        ["a", "c"],
        ["b", "d"],
        ["e"],
    ]
    assert [table.apart for table in tables] == [
        "",
        "not comparable with a: data '0123abcd' against 'other'",
        "not comparable with a: data '0123abcd' against 'third'",
    ]
    assert not any(table.mismatches for table in tables)
    (table,) = leaderboards(runs[:2], allow_mismatch=True)
    assert [mismatch.text for mismatch in table.mismatches] == [
        "b: data '0123abcd' against 'other'"
    ]


def test_nothing_paired_is_no_difference(make_run):
    run_comparison = compare(
        make_run("a", {"art-0": "c"}, not_run=("art-1",)),
        make_run("b", {"art-1": "c"}, not_run=("art-0",)),
    )
    (comparison,) = run_comparison.comparisons
    assert comparison.overall.drop is None
    assert comparison.overall.items == 0
    assert comparison.only_baseline == ("art-0",)
