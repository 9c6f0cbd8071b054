"""Every kind of report at three widths: nothing is outside the page, all text can be read."""

from __future__ import annotations

import pytest

from support.report_cases import CASES
from support.report_cases import write_history
from support.report_cases import write_report

WIDTHS = (1440, 1250, 1024, 390)  # from 1241 on, plots are in two columns

EXTENT = """
  const root = document.documentElement;
  return root.scrollWidth > root.clientWidth ? 1e9 : root.scrollWidth;
"""

OUTSIDE = """
  const shown = (element) => element.getClientRects().length && !element.closest(".skip, .gates thead");
  return [...document.querySelectorAll("body *")].filter(shown).filter((element) => {
    if (element.closest(".scroll, #list, #item, table") && !element.matches(".scroll, #list, #item")) return false;
    const box = element.getBoundingClientRect();
    return box.width && (box.left < -1 || box.right > document.documentElement.clientWidth + 1);
  }).map((element) => `${element.tagName}.${element.getAttribute("class")}: ${element.textContent.slice(0, 40)}`);
"""

SMALL = """
  const small = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.getClientRects().length) continue;
    const matrix = element.ownerSVGElement && element.getScreenCTM();
    const scale = matrix ? Math.hypot(matrix.a, matrix.b) : 1;
    const size = parseFloat(getComputedStyle(element).fontSize) * scale;
    if (size < 10) small.push([texts.currentNode.data, size]);
  }
  return small;
"""

FAINT = """
  const parse = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = (front, back) => front.slice(0, 3).map((v, n) => v * front[3] + back[n] * (1 - front[3])).concat(1);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((back, front) => over(front, back), [255, 255, 255, 1]);
  };
  const faint = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), back = background(element);
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const front = parse(element.ownerSVGElement ? style.fill : style.color);
    front[3] *= opacity;
    const [high, low] = [luminance(over(front, back)), luminance(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) faint.push([texts.currentNode.data.slice(0, 40), element.className, ratio]);
  }
  return faint;
"""


@pytest.fixture
def screen(chromium):
    """Setter of the width of the browser's window."""

    def resize(width: int) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    yield resize
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture
def scheme(chromium):
    """Setter of the colour scheme: light or dark."""

    def prefer(name: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    yield prefer
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def open_first_item(page) -> None:
    """Open the first item and all that is folded, so that every kind of text is in view."""
    if page.all(".row"):
        page.script("document.querySelector('.row').click()")
        page.until(lambda: page.all("#item h3"))
        page.script("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_outside_the_page_or_too_small_or_faint(
    case, tmp_path, open_page, screen, scheme
):
    file = write_report(case, tmp_path)
    screen(WIDTHS[0])
    page = open_page(file)
    open_first_item(page)
    for width in WIDTHS:
        screen(width)
        assert page.script(EXTENT) <= width
        assert page.script(OUTSIDE) == [], width
        assert page.script(SMALL) == [], width
    for name in ("light", "dark"):
        scheme(name)
        assert page.script(FAINT) == [], name
    assert page.complaints() == []


@pytest.mark.parametrize("size", [0, 1, 60])
def test_the_history_fits_every_width(size, tmp_path, chromium, screen, scheme):
    file = write_history(tmp_path, size)
    for width in WIDTHS:
        screen(width)
        chromium.get(file.as_uri())
        chromium.execute_script(
            "document.querySelectorAll('details').forEach((f) => { f.open = true })"
        )
        assert chromium.execute_script(EXTENT) <= width
        assert chromium.execute_script(OUTSIDE) == []
        assert chromium.execute_script(SMALL) == []
    for name in ("light", "dark"):
        scheme(name)
        assert chromium.execute_script(FAINT) == []
    rows = (
        "return Math.max(0, ...[...document.querySelectorAll('tr')].map((row) => row.offsetHeight))"
    )
    assert chromium.execute_script(rows) < 250


def test_a_page_without_items_reports_it(tmp_path, open_page):
    for case in ("nothing", "no results"):
        page = open_page(write_report(case, tmp_path))
        assert page.element("#items .empty").text == "No item was run."
        assert page.element(".browser").get_property("hidden")
    assert page.element(".lead").text == "Nothing was run."


def test_the_focus_is_visible_on_every_stop(tmp_path, open_page, screen):
    """Tab through the page: every stop has an outline of at least two pixels."""
    screen(1024)
    page = open_page(write_report("few subjects", tmp_path))
    stops = []
    for _ in range(80):
        page.driver.switch_to.active_element.send_keys("\ue004")  # Tab
        name, width, style = page.script(
            "const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.id || e.getAttribute('class') || e.getAttribute('href') || e.type || e.tagName,"
            " parseFloat(s.outlineWidth), s.outlineStyle]"
        )
        if name == "BODY":
            break
        assert width >= 2, name
        assert style != "none", name
        stops.append(name)
    assert stops[0] == "skip"
    assert {"scroll", "pick", "button", "f-subject", "f-text", "list"} <= set(stops)


def test_outcomes_areas_and_preferences_differ_by_more_than_colour(tmp_path, open_page):
    page = open_page(write_report("57 subjects", tmp_path))
    shapes = page.script(
        "return [0, 1, 2, 3].map((n) => new Set([...document.querySelectorAll(`svg .dot.area${n}`)]"
        ".map((e) => `${e.tagName} ${(e.getAttribute('points') ?? '').split(' ').length}`)))"
        ".map((names) => [...names].join())"
    )
    assert shapes == ["circle 1", "polygon 4", "polygon 3", "polygon 4"]
    marks = [key.text.split()[0] for key in page.all("a.key[data-outcome]")]
    assert marks == ["✓", "✗", "?", "!"]
    page = open_page(write_report("audit", tmp_path))
    names = page.script(
        "return [...document.querySelectorAll('svg .name')].map((e) => e.textContent)"
    )
    assert {"A *", "B", "C", "D *"} <= set(names)
