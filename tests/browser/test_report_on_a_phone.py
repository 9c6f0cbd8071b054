"""The HTML report on a phone: all of a gate is in view, and every text of a drawing can be read."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from pytest_llmeval.catalog.mmlu import TEST_ROWS
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.reports.html import html_report
from pytest_llmeval.reports.html.history import history_html
from pytest_llmeval.reports.terminal.history import Point
from pytest_llmeval.reports.terminal.history import Series
from pytest_llmeval.runs import compare
from support.report_runs import graded
from support.report_runs import sources

GATES = """
version = 1
[benchmarks.mmlu]
accuracy = { min = 0.9, confidence = 0.95 }
macro_accuracy = 0.1
max_errors = 0
[benchmarks.mmlu.every_subject]
accuracy = 0.1
[benchmarks.mmlu.regression]
max_drop = 0.01
max_subject_drop = 0.05
[benchmarks.absent]
accuracy = 0.5
"""

SIZES = (
    "const found = [];"
    "for (const text of document.querySelectorAll('svg text')) {"
    "  if (!text.getClientRects().length || !text.textContent) continue;"
    "  const scale = Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b);"
    "  found.push([text.textContent, parseFloat(getComputedStyle(text).fontSize) * scale]);"
    "}"
    "return found;"
)
OUTSIDE = (
    "const found = [];"
    "for (const one of document.querySelectorAll('.gates td, .gates bdi, svg text')) {"
    "  const box = one.getBoundingClientRect();"
    "  if (box.width && (box.left < 0 || box.right > innerWidth)) found.push(one.textContent);"
    "}"
    "return found;"
)


@pytest.fixture
def phone(chromium):
    """The browser as one of 390 by 844."""
    screen = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    yield chromium
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture(params=["few", "mmlu"])
def phone_page(request, tmp_path, open_page, phone):
    """A report with gates, comparison and subjects."""
    names = sorted(TEST_ROWS) if request.param == "mmlu" else ["anatomy", "astronomy", "virology"]
    letters = {name: "c" * (30 + n % 20) + "w" * (30 - n % 20) for n, name in enumerate(names)}
    before = graded(tmp_path / "before", letters)
    after = graded(tmp_path / "after", letters | {names[0]: "w" * 40 + "c" * 20})
    comparison = compare(before, after)
    verdicts = judge(
        parse_thresholds(GATES),
        after.results(),
        ["demo"],
        ["mmlu"],
        comparison.for_gates(),
    )
    document = {
        "thresholds": "thresholds.toml",
        "verdict": "fail",
        "gates": [asdict(verdict) for verdict in verdicts],
    }
    file = tmp_path / "report.html"
    made = sources(after, gates=document, comparison=comparison.as_json(), baseline=before)
    file.write_text(html_report(made), encoding="utf-8")
    return open_page(file)


def test_a_gate_shows_value_bound_and_reason(phone_page):
    page = phone_page
    assert page.script("return innerWidth") == 390
    assert page.script("return document.documentElement.scrollWidth") == 390
    first = page.element(".gates tbody tr").text
    for part in ("failed", "≥ 0.9 (95 % interval)", "interval is outside the bound"):
        assert part in first
    measured = page.element(".gates tbody td[data-label=measured]")
    assert 0.4 < float(measured.text) < 0.7
    assert page.script(OUTSIDE) == []


def test_texts_of_drawings_have_ten_pixels(phone_page):
    sizes = phone_page.script(SIZES)
    assert len(sizes) > 20
    assert [entry for entry in sizes if entry[1] < 10] == []


def test_each_drawing_is_shown_once(phone_page):
    """And on a wide page the other one of the two."""
    page = phone_page
    shown = (
        "return [...document.querySelectorAll('svg.plot')].filter(e => e.getClientRects().length)"
    )
    classes = page.script(f"{shown}.map(e => e.getAttribute('class'))")
    assert classes
    assert not any("wide-only" in names for names in classes)
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    wide = page.script(f"{shown}.map(e => e.getAttribute('class'))")
    assert len(wide) == len(classes)
    assert not any("phone-only" in names for names in wide)


def test_the_history_of_runs(tmp_path, phone):
    points = tuple(
        Point(f"run-{n}", f"2026-03-0{n}T10:00:00", "demo", 0.6 + n / 50, (0.5, 0.8), 368, "pass")
        for n in range(1, 6)
    )
    series = Series("starter[cloze]", "cloze", "f", "d", None, "accuracy", points)
    file = tmp_path / "history.html"
    file.write_text(history_html("History", [series]), encoding="utf-8")
    phone.get(file.as_uri())
    sizes = phone.execute_script(SIZES)
    assert len(sizes) > 4
    assert [entry for entry in sizes if entry[1] < 10] == []
    assert phone.execute_script(OUTSIDE) == []
