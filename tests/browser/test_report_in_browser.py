"""The HTML report in a real browser: filters, one item, hostile texts, no request, no complaint."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_llmeval.reports.html import html_report
from pytest_llmeval.reports.html.svg import visible
from pytest_llmeval.runs import compare
from support.report_runs import HOSTILE
from support.report_runs import PROTOCOL
from support.report_runs import graded
from support.report_runs import planned
from support.report_runs import prompt_of
from support.report_runs import question
from support.report_runs import run_of
from support.report_runs import sources
from support.report_runs import written

SUBJECTS = ("anatomy", "college_mathematics", "virology")


def compared_runs(tmp_path):
    """A baseline, and a candidate that lost four items of mathematics and won one of virology."""
    before = graded(tmp_path / "before", dict.fromkeys(SUBJECTS, "c" * 40 + "w" * 20))
    after = graded(
        tmp_path / "after",
        {
            "anatomy": "c" * 40 + "w" * 20,
            "college_mathematics": "wwww" + "c" * 36 + "w" * 20,
            "virology": "c" * 41 + "w" * 19,
        },
    )
    return before, after


@pytest.fixture
def report(tmp_path, open_page):
    def make(run, **more):
        file = tmp_path / "report.html"
        page = html_report(sources(run, **more))
        file.write_text(page, encoding="utf-8")
        return open_page(file)

    return make


@pytest.fixture
def compared_page(report, tmp_path):
    before, after = compared_runs(tmp_path)
    prompts = {
        ("mmlu", after.records[0].protocol, record.item): prompt_of(question(record.item))
        for record in after.records
    }
    comparison = compare(before, after).as_json()
    return report(after, comparison=comparison, baseline=before, prompts=prompts)


def test_newly_wrong_items_of_one_subject_are_found_and_one_is_opened(compared_page):
    page = compared_page
    page.wait_for_count("180 of 180 items")
    page.choose("subject", "college_mathematics (60)")
    page.wait_for_count("60 of 180 items")
    page.choose("flip", "newly wrong")
    page.wait_for_count("4 of 180 items")
    page.until(lambda: page.rows() == [f"college_mathematics-{n:04d}" for n in range(4)])
    page.until(lambda: page.all(".row")[2].click() or page.all("#item h3"))
    assert page.element("#item h3").text == "college_mathematics-0002"
    shown = page.element("#item").text
    assert "newly wrong" in shown
    facts = dict(
        zip(
            [element.text for element in page.all("#item dt")],
            [element.text for element in page.all("#item dd")],
            strict=True,
        )
    )
    assert facts == {"gold": "B", "baseline": "correct B", "answer": "C"}
    likelihoods = [row.text.split()[:3] for row in page.all("#item .choices tr")]
    assert [row[0] for row in likelihoods] == ["A", "B", "C", "D"]
    assert likelihoods[2][2] == "50.0"  # per cent: the share that the model was sure by
    assert "Question of college_mathematics-0002?" in shown
    assert "Example 1 of college_mathematics?" not in shown
    page.element("#item summary").click()
    assert "Example 1 of college_mathematics?" in page.element("#item").text
    assert page.complaints() == []
    assert [url for url in page.requests() if not url.startswith("file:")] == []


def test_a_click_on_a_subject_of_a_plot_shows_its_items(compared_page):
    page = compared_page
    page.script(
        "document.querySelector('.column a.pick[data-subject=virology]')"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    page.wait_for_count("60 of 180 items")
    page.element("a[data-flip=r]").click()
    page.wait_for_count("1 of 180 items")
    assert page.element("#f-subject").get_property("value") == ""


def test_a_click_on_a_count_shows_the_items_of_that_outcome(compared_page):
    page = compared_page
    page.choose("flip", "newly wrong")
    page.wait_for_count("4 of 180 items")
    page.element("a[data-outcome=w]").click()
    page.wait_for_count("63 of 180 items")
    assert page.element("#f-flip").get_property("value") == ""
    page.element("a[data-outcome=e]").click()
    page.wait_for_count("0 of 180 items")


def test_the_browser_is_used_by_keyboard_alone(compared_page):
    page = compared_page
    body = page.element("body")
    body.send_keys("/")
    assert page.script("return document.activeElement.id") == "f-text"
    page.element("#f-text").send_keys("virology-005")
    page.wait_for_count("10 of 180 items")
    page.element("#f-text").send_keys("\ue00c")  # Escape
    assert page.script("return document.activeElement.id") == "list"
    listed = page.element("#list")
    listed.send_keys("\ue015\ue015\ue015\ue013")  # down, down, down, up
    assert page.element(".row[aria-selected=true]").text.split("\n")[1] == "virology-0051"
    assert listed.get_attribute("aria-activedescendant") == "row-1"
    listed.send_keys("\ue007")  # Enter
    page.until(lambda: page.script("return document.activeElement.id") == "item")
    assert page.element("#item h3").text == "virology-0051"
    page.element("#item").send_keys("\ue00c")
    assert page.script("return document.activeElement.id") == "list"


def test_prompts_and_responses_are_searched(compared_page):
    page = compared_page
    page.element("#f-text").send_keys("question of anatomy-0007?")
    page.wait_for_count("1 of 180 items")
    page.element("button[type=reset]").click()
    page.wait_for_count("180 of 180 items")


def test_only_the_rows_in_view_are_in_the_document(report, tmp_path):
    page = report(graded(tmp_path / "run", {"anatomy": "cw" * 3000}))
    page.wait_for_count("6,000 of 6,000 items")
    assert len(page.all(".row")) < 60
    page.element("#list").send_keys("\ue010")  # End
    page.until(lambda: "anatomy-5999" in page.element("#list").text)
    assert len(page.all(".row")) < 60


@pytest.fixture
def hostile_page(report, tmp_path):
    """Harm in every place that text of a model or of data can come to."""
    protocol = replace(PROTOCOL.with_generation(), scorer="choice")
    short = {name: text[:200] for name, text in HOSTILE.items()}
    subjects = dict.fromkeys(short.values(), 1)
    items = [
        replace(question(f"item-{n}", text), subject=text) for n, text in enumerate(short.values())
    ]
    records = [
        written(
            item,
            text,
            False,
            protocol,
            answer=text,
            gold=text,
            reasoning=text,
            finish_reason=text,
            model=short["image"],
            prompt_sha256=prompt_of(item, protocol).prompt.sha256,
        )
        for item, text in zip(items, HOSTILE.values(), strict=True)
    ]
    prompts = {("mmlu", records[0].protocol, item.id): prompt_of(item, protocol) for item in items}
    gate = {
        **dict.fromkeys(("id", "benchmark", "metric", "bound", "reason"), short["svg"]),
        "model": None,
        "scorer": None,
        "subject": short["script"],
        "measured": 0.5,
        "interval": [0.4, 0.6],
        "n": 3,
        "status": "fail",
        "min": 0.6,
        "max": None,
        "detectable": 0.1,
        "warning": short["end"],
    }
    gates = {"thresholds": short["attribute"], "verdict": "fail", "gates": [gate]}
    result = planned(subjects, protocol, warnings=tuple(short.values()))
    run = run_of(
        tmp_path / "run",
        [result],
        records,
        run=short["end"],
        command=list(short.values()),
        platform=short["template"],
        usage=[[short["image"], short["svg"], {"requests": 3}]],
    )
    return report(run, gates=gates, prompts=prompts)


def test_hostile_texts_are_text(hostile_page):
    page = hostile_page
    page.wait_for_count(f"{len(HOSTILE)} of {len(HOSTILE)} items")
    assert page.element("h1").text == visible(HOSTILE["end"])
    by_item = sorted(range(len(HOSTILE)), key=lambda n: f"item-{n}")
    texts = list(HOSTILE.values())
    for place, number in enumerate(by_item):
        page.all(".row")[place].click()
        page.until(lambda number=number: page.element("#item h3").text == f"item-{number}")
        shown = page.script(
            "return [...document.querySelectorAll('#item pre')].map(pre => pre.textContent)"
        )
        text = visible(texts[number][:100_000])
        cut = len(texts[number]) > 100_000
        assert (
            any("more characters in records.jsonl" in element_text for element_text in shown) == cut
        )
        assert any(element_text.startswith(text) for element_text in shown), list(HOSTILE)[number]
        prompt = visible(texts[number][:200])
        assert f"About {prompt}.\n\n" in shown
    assert page.script("return window.hacked") is None
    assert (
        page.script("return document.querySelectorAll('img, iframe, object, style + style').length")
        == 0
    )
    assert (
        page.script("return document.querySelectorAll('[onload], [onerror], [onfocus]').length")
        == 0
    )
    assert page.complaints() == []
    assert [url for url in page.requests() if not url.startswith("file:")] == []


def test_the_pages_own_policy_stops_what_would_get_through(compared_page):
    """Even a hole in the escaping would run no script and send nothing."""
    page = compared_page
    page.script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
        "document.body.append(s);"
        "const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);"
    )
    assert page.script("return window.hacked") is None
    refused = []
    page.until(lambda: refused.extend(page.complaints()) or len(refused) >= 2)
    assert all("Content Security Policy" in line for line in refused)


def test_dark_and_light_have_contrast(compared_page):
    """Text against its background: at least 4.5 to 1 (WCAG 2.1, 1.4.3) in both schemes."""
    page = compared_page
    for scheme in ("light", "dark"):
        page.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        colours = page.script(
            "const s = getComputedStyle(document.documentElement);"
            "return ['--card', '--ink', '--soft', '--accent', '--good', '--bad', '--warn', '--good-soft',"
            " '--bad-soft', '--warn-soft'].map(n => s.getPropertyValue(n).trim())"
        )
        card, ink, soft, accent, good, bad, warn, good_soft, bad_soft, warn_soft = colours
        pairs = [(ink, card), (soft, card), (accent, card), (good, card), (bad, card), (warn, card)]
        pairs += [(good, good_soft), (bad, bad_soft), (warn, warn_soft), (ink, bad_soft)]
        for front, back in pairs:
            assert contrast(front, back) >= 4.5, (scheme, front, back)
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def contrast(first: str, other: str) -> float:
    def luminance(colour: str) -> float:
        channels = [int(part, 16) / 255 for part in re.findall("..", colour[1:])]
        red, green, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(first), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
