"""Groups of subjects in the report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.catalog.mmlu import TEST_ROWS
from pytest_llmeval.metrics import wilson_interval
from pytest_llmeval.reports.html import html_report
from pytest_llmeval.reports.html.result import areas_of
from support.report_runs import PROTOCOL
from support.report_runs import compared
from support.report_runs import graded
from support.report_runs import only_result
from support.report_runs import planned
from support.report_runs import question
from support.report_runs import run_of
from support.report_runs import sources
from support.report_runs import written


def test_the_areas_of_mmlu_have_all_its_subjects():
    areas = areas_of(TEST_ROWS)
    assert areas is not None
    assert {name: len(subjects) for name, subjects in areas.items()} == {
        "STEM": 18,
        "Humanities": 13,
        "Social sciences": 12,
        "Other": 14,
    }
    assert areas_of(["anatomy", "virology", "cooking"]) is None
    assert areas_of(["miscellaneous"]) is areas_of([]) is None


def test_an_area_is_over_its_items(tmp_path):
    run = graded(
        tmp_path, {"astronomy": "c" * 8 + "w" * 2, "virology": "c", "machine_learning": "ww"}
    )
    stem, other = only_result(run)["areas"]
    assert (stem["name"], stem["accuracy"]) == ("STEM", pytest.approx(8 / 12))
    assert (other["name"], other["accuracy"]) == ("Other", 1.0)


def test_several_answers_to_an_item_make_an_area_no_surer(tmp_path):
    """As everywhere else: five equal answers count as one."""
    protocol = replace(PROTOCOL, ask="text", scorer="choice", samples=5)
    records = [
        written(question(f"{subject}-{n}"), "", n % 2 == 0, protocol, sample=sample)
        for subject in ("astronomy", "machine_learning", "virology")
        for n in range(10)
        for sample in range(5)
    ]
    sizes = {"astronomy": 10, "machine_learning": 10, "virology": 10}
    stem, other = only_result(run_of(tmp_path, [planned(sizes, protocol)], records))["areas"]
    assert stem["interval"] == pytest.approx(wilson_interval(10, 20))
    assert other["interval"] == pytest.approx(wilson_interval(5, 10))


def test_only_subjects_that_ran_are_drawn_and_counted(tmp_path):
    sizes = {f"subject_{n:02d}": 20 for n in range(57)}
    ran = list(sizes)[:3]
    records = [
        compared(question(f"{subject}-{n:04d}"), n % 2 == 0) for subject in ran for n in range(20)
    ]
    page = html_report(sources(run_of(tmp_path, [planned(sizes)], records)))
    assert "mean of 3 of 57 subjects" in page
    assert "accuracy of 3 subjects around a circle" in page
    assert "accuracy of 3 subjects with 95 % intervals" in page
    assert "accuracy of 57 subjects" not in page
    assert "no answers" not in page


def test_two_subjects_that_ran_make_no_circle(tmp_path):
    sizes = {"anatomy": 20, "virology": 20, "nutrition": 20, "astronomy": 20}
    records = [
        compared(question(f"{subject}-{n:04d}"), n % 2 == 0)
        for subject in ("anatomy", "astronomy")
        for n in range(20)
    ]
    page = html_report(sources(run_of(tmp_path, [planned(sizes)], records)))
    assert "round a circle" not in page
    assert "mean of 2 of 4 subjects" in page
