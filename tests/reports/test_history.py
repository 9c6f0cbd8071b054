"""Runs over time: lines through what may be compared, marked and harmless."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console
from rich.text import Text

from pytest_llmeval.cli import main
from pytest_llmeval.reports.html.history import history_html
from pytest_llmeval.reports.terminal.history import history_parts
from pytest_llmeval.reports.terminal.history import make_series
from pytest_llmeval.reports.terminal.history import sparkline
from pytest_llmeval.runs import save_baseline
from support.judged_runs import items
from support.judged_runs import judged
from support.judged_runs import write_documents
from support.stored_runs import PLAIN
from support.stored_runs import make_run
from support.stored_runs import store

GATE = "[benchmarks.mmlu]\naccuracy = 0.5\n"


def subjects(right: int) -> dict[str, str]:
    return {"art": "c" * right + "w" * (10 - right), "law": "c" * right + "w" * (10 - right)}


def history(tmp_path, *rights: int, **more):
    return [
        judged(
            *(tmp_path, subjects(right)),
            thresholds=GATE,
            name=f"run-{number}",
            started=f"2026-11-{number + 1:02d}T10:00:00+00:00",
            **more,
        )
        for number, right in enumerate(rights)
    ]


def put(tmp_path, runs, rights):
    for run, right in zip(runs, rights, strict=True):
        store(
            make_run(
                tmp_path, run.path.name, items(subjects(right)), started=run.manifest["started"]
            )
        )
        write_documents(run)


def shown(runs, series, problems=()) -> list[str]:
    console = Console(width=100, file=None, highlight=False)
    with console.capture() as capture:
        for part in history_parts(runs, series, problems):
            console.print(part, soft_wrap=isinstance(part, Text))
    return capture.get().splitlines()


def test_sparklines_span_the_range():
    assert sparkline([0, 0.5, 1], 0, 1) == "▁▅█"
    assert sparkline([0.3, 0.3], 0.3, 0.3) == "▅▅"


def test_metrics_over_time_with_bounds_and_verdicts(tmp_path):
    series = make_series(history(tmp_path, 3, 6, 9), {"run-1": "last-release"})
    assert [line.metric for line in series] == ["accuracy", "macro_accuracy", "normalized_gain"]
    accuracy, _, gain = series
    assert [point.value for point in accuracy.points] == [0.3, 0.6, 0.9]
    assert [point.verdict for point in accuracy.points] == ["fail", "pass", "pass"]
    assert [point.baseline for point in accuracy.points] == [None, "last-release", None]
    assert (accuracy.bound.min, accuracy.bound.max) == (0.5, None)
    assert gain.bound is None
    for point, of in zip(gain.points, accuracy.points, strict=True):
        assert point.interval == pytest.approx([(x - 0.25) / 0.75 for x in of.interval])


def test_other_protocols_are_other_lines(tmp_path):
    runs = history(tmp_path, 3) + history(tmp_path, 6, protocol=replace(PLAIN, name="x", shots=3))
    accuracy = [line for line in make_series(runs, {}) if line.metric == "accuracy"]
    assert [(line.protocol, len(line.points)) for line in accuracy] == [("plain", 1), ("x", 1)]


def test_a_run_with_errors_has_no_point(tmp_path):
    runs = [
        *history(tmp_path, 3),
        judged(tmp_path, {"art": "ccce"}, thresholds=None, name="broken"),
    ]
    (line,) = [course for course in make_series(runs, {}) if course.metric == "accuracy"]
    assert [point.run for point in line.points] == ["run-0"]
    assert any("broken" in text and "mmlu[letter] -" in text for text in shown(runs, [line]))


def test_a_part_of_the_items_is_reported(tmp_path):
    run = judged(tmp_path, {"art": "cccw"}, thresholds=None, not_run=("art-0009",))
    lines = shown([run], make_series([run], {}))
    assert any("only 4 of 5 answers" in line for line in lines)


def test_several_samples_draw_pass_at_k(tmp_path):
    run = make_run(tmp_path, "run", {"art-0": "ccw", "art-1": "wwc"})
    store(run)
    from pytest_llmeval.runs.judging import read_judged_run

    metrics = [line.metric for line in make_series([read_judged_run(run.path)], {})]
    assert metrics == ["accuracy", "normalized_gain", "pass@2", "pass^2"]


def test_the_command_lists_draws_and_marks(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    runs, rights = history(tmp_path / "runs", 3, 9), (3, 9)
    put(tmp_path / "runs", runs, rights)
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text("{")
    kept = make_run(tmp_path / "runs", "run-0", items(subjects(3)), started="2026")
    save_baseline(kept, tmp_path / "kept" / "last-release.json")
    (tmp_path / "kept" / "other.json").write_text("[1]")
    page = tmp_path / "history.html"
    arguments = ["--html", str(page), "--baselines", str(tmp_path / "kept")]
    assert main(["history", str(tmp_path / "runs"), *arguments]) == 0
    out = capsys.readouterr().out
    assert "run-0 (baseline last-release)" in out
    assert re.search(
        r"mmlu\[letter\] accuracy \(plain \w{8}, data 0123abcd\) ▁█ 0.3000 … 0.9000 \(bound >= 0.5\)",
        out,
    )
    assert re.search(r"2026-11-01 10:00\s+run-0.*fail", out)
    assert "broken/run.json cannot be read" in " ".join(out.split())
    assert f"wrote {page}" in out
    assert "baseline last-release" in page.read_text()


def test_a_folder_without_runs_is_a_mistake(tmp_path, capsys):
    assert main(["history", str(tmp_path)]) == 4
    assert capsys.readouterr().err == f"llmeval: {tmp_path} contains no runs\n"


class Page(HTMLParser):
    """The elements of a page, and every attribute that could load or run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.acting: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        names = ("src", "href", "srcset", "data", "action", "style", "xlink:href")
        self.acting += [(tag, n) for n, _ in attributes if n in names or n.startswith("on")]


HOSTILE = (
    "</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}\u202e\x00&amp;\x1b"
)


def test_the_page_shows_names_as_text_and_loads_nothing(tmp_path):
    runs = history(tmp_path, 3, 6, models=(HOSTILE,), benchmark="mmlu")
    page = history_html(HOSTILE, make_series(runs, {"run-0": HOSTILE}))
    parsed = Page(page)
    assert not {"script", "img", "link", "iframe"} & set(parsed.tags)
    assert not parsed.acting
    assert "\x00" not in page
    assert "\u202e" not in page
    assert page.count("&lt;script&gt;") >= 2


def test_the_charts_are_well_formed_and_inside_their_frame(tmp_path):
    page = history_html("x", make_series(history(tmp_path, 0, 10, 5), {"run-0": "kept"}))
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 3
    for chart in charts:
        root = ET.fromstring(chart)
        _, _, width, height = map(float, root.get("viewBox").split())
        for element in root.iter():
            for name, value in element.attrib.items():
                if name in ("x1", "x2", "cx", "x"):
                    assert 0 <= float(value) <= width
                if name in ("y1", "y2", "cy", "y"):
                    assert 0 <= float(value) <= height
        assert len([e for e in root.iter() if "dot" in e.get("class", "")]) == 3
        assert len([e for e in root.iter("circle") if e.get("class") == "kept"]) == 1
    assert sum('class="bound"' in chart for chart in charts) == 1


def test_lines_that_are_not_drawn_together_do_not_look_alike(tmp_path):
    runs = history(tmp_path, 3) + history(tmp_path, 6, data="89abcdef")
    series = make_series(runs, {})
    listed = [line for line in shown(runs, series) if "] accuracy (" in line]
    assert [line.partition("data ")[2][:8] for line in listed] == ["0123abcd", "89abcdef"]
    assert "data 89abcdef" in history_html("History", series)


def test_models_of_one_run_are_no_course_of_time(tmp_path):
    runs = history(tmp_path, 3, 6, models=("one", "two"))
    series = [line for line in make_series(runs, {}) if line.metric == "accuracy"]
    assert [line.title for line in series] == [
        "mmlu[letter] accuracy of one",
        "mmlu[letter] accuracy of two",
    ]
    assert [[point.run for point in line.points] for line in series] == [["run-0", "run-1"]] * 2
    assert "mmlu[letter] accuracy of two" in history_html("History", series)


def test_a_renamed_protocol_is_the_same_line(tmp_path):
    other = replace(PLAIN, name="renamed")
    runs = history(tmp_path, 3) + history(tmp_path, 6, protocol=other)
    accuracy = make_series(runs, {})[0]
    assert [point.value for point in accuracy.points] == [0.3, 0.6]
    assert accuracy.protocol == "renamed"
