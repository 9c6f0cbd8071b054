"""The page needs no other file, and nothing of a run gets into it as markup or code."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.reports.formatting import HIDDEN
from pytest_llmeval.reports.html.data import report_data
from pytest_llmeval.reports.html.page import render_page
from pytest_llmeval.reports.html.plots import rows as row_plots
from pytest_llmeval.reports.html.svg import visible
from pytest_llmeval.runs import compare
from support.report_runs import HOSTILE
from support.report_runs import PROTOCOL
from support.report_runs import compared
from support.report_runs import graded
from support.report_runs import planned
from support.report_runs import prompt_of
from support.report_runs import question
from support.report_runs import run_of
from support.report_runs import sources
from support.report_runs import written

SURROGATE = "\ud800 alone"
TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens")


class Reader(HTMLParser):
    """All tags with their attributes, and the content of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag in ("script", "style"):
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside in ("script", "style"):
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
        else:
            self.text.append(data)

    def blocks(self):
        return {
            attributes["id"]: json.loads(zlib.decompress(base64.b64decode(text)))
            for attributes, text in self.scripts
            if "id" in attributes
        }


def hostile_page(text: str) -> str:
    """One text in every place that texts of a run can come to."""
    protocol = replace(PROTOCOL.with_generation(), scorer="choice")
    more = {"model": text, "answer": text, "gold": text, "finish_reason": text}
    items = [replace(question(f"item-{n}", text), subject=f"{text}{' ' * n}") for n in range(3)]
    records = [
        written(item, text, False, protocol, prompt_sha256=prompt_of(item).prompt.sha256, **more)
        for item in items
    ]
    records = [replace(record, reasoning=text, error=text) for record in records]
    records.append(compared(items[0], True, benchmark="other", **more))
    sizes = {item.subject: 1 for item in items}
    results = [
        planned(sizes, protocol, warnings=(text,)),
        planned({text: 1}, benchmark="other"),
    ]
    run = run_of(
        Path("run"),
        results,
        records,
        run=text,
        command=[text],
        usage=[[text, text, {text: 1, **dict.fromkeys(TOKENS, 1)}]],
        prices={"currency": text, "models": {text.partition("?")[0]: {"input": 1, "output": 1}}},
    )
    gate = dict.fromkeys(("id", "metric", "bound", "reason", "subject", "warning", "model"), text)
    gate |= {"benchmark": text, "scorer": text, "status": "fail", "n": 1, "measured": 0.5}
    gate |= {"interval": [0.4, 0.6], "min": 0.5, "max": None, "detectable": 0.1}
    prompts = {("mmlu", records[0].protocol, "item-0"): prompt_of(items[0], protocol)}
    comparison = {**compare(run, run).as_json(), "baseline": text}
    document = {"thresholds": text, "verdict": text, "gates": [gate]}
    data = report_data(sources(run, document, comparison=comparison, prompts=prompts))
    arm = {"name": text, "accuracy": 0.5, "interval": [0.4, 0.6]}
    position = {"position": text, "share": 0.5, "expected": 0.25, "recall": 0.5, "p_value": 1.0}
    family = {"name": text, "items": 3, "positions": [position]}
    data["results"][0]["audit"] = {"arms": [arm], "families": [family], "diagnosis": text}
    data["results"][0]["extraction"] = {text: {"answers": 3, "correct": 1}}
    return render_page(data)


@pytest.fixture(scope="module")
def harmless() -> Reader:
    return Reader(hostile_page("harmless"))


@pytest.mark.parametrize("name", [*HOSTILE, "surrogate"])
def test_hostile_texts_make_no_markup(name, harmless):
    text = {**HOSTILE, "surrogate": SURROGATE}[name][:5000]
    page = hostile_page(text)
    read = Reader(page)
    assert [tag for tag, _ in read.tags] == [tag for tag, _ in harmless.tags]
    for (_, attributes), (_, expected) in zip(read.tags, harmless.tags, strict=True):
        assert attributes.keys() == expected.keys()
        assert attributes.get("href") == expected.get("href")
    page.encode("utf-8")
    assert not HIDDEN.search(page)
    assert visible(text) in "".join(read.text)
    # The script reads the model's text, to the last bit.
    details = read.blocks()["data-0-0"]
    assert details[0]["samples"][0]["text"] == text
    assert details[0]["prompt"]["question"] == f"{text}\nAnswer:"


@settings(max_examples=15)
@given(
    # Without letters, which may be read as an answer, and the page of a right answer is another.
    text=st.text(
        st.characters(exclude_categories=("Lu", "Ll", "Lo", "Nd", "So")), min_size=1, max_size=40
    )
    | st.sampled_from(["\x00", "\ud83d", "{%", "]]>", "--!>", "\u2028"])
)
def test_any_text_makes_no_markup(harmless, text):
    read = Reader(hostile_page(text))
    assert [tag for tag, _ in read.tags] == [tag for tag, _ in harmless.tags]


def test_the_page_makes_no_requests_by_policy(harmless):
    for tag, attributes in harmless.tags:
        assert tag not in ("img", "link", "iframe", "object", "embed", "base")
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "srcset", "action", "style", "xlink:href"} & attributes.keys(), tag
        assert attributes.get("href", "#").startswith("#")
    (policy,) = (
        attributes["content"]
        for tag, attributes in harmless.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    run = [text for attributes, text in harmless.scripts if "type" not in attributes]
    assert len(run) == 2  # the style sheet and the script
    for text in run:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_same_run_gives_the_same_page(tmp_path):
    run = graded(tmp_path, {"art": "cwc", "law": "cc"})
    assert render_page(report_data(sources(run))) == render_page(report_data(sources(run)))


def drawings(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_drawings_are_well_formed_and_named(tmp_path):
    subjects = {
        name: "c" * n + "w" * 9 for n, name in enumerate(("anatomy", "astronomy", "virology"))
    }
    before, after = (
        graded(tmp_path / "a", subjects),
        graded(tmp_path / "b", subjects | {"anatomy": "w" * 9}),
    )
    comparison = compare(before, after).as_json()
    page = render_page(report_data(sources(after, comparison=comparison)))
    names = [drawing.get("aria-label") for drawing in drawings(page)]
    assert names == [
        "outcomes",
        *["accuracy of 3 subjects around a circle"] * 2,  # for a wide page, and for a phone
        *["accuracy of 3 subjects with 95 % intervals"] * 2,
        *["accuracy, macro accuracy and gain"] * 2,
        "share of right answers over confidence",
        *["drop against the baseline in 3 subjects"] * 2,
    ]


def test_many_subjects_without_areas_have_no_radar(tmp_path):
    run = graded(tmp_path, {f"subject_{n}": "cw" for n in range(13)})
    assert "round a circle" not in render_page(report_data(sources(run)))


def test_a_run_of_errors_alone_has_a_page(tmp_path):
    records = [
        compared(question(f"art-{n}"), False, outcome="error", error="refused", logprobs=())
        for n in range(3)
    ]
    page = render_page(report_data(sources(run_of(tmp_path, [planned({"art": 3})], records))))
    assert "no accuracy: 3 errors" in page


def test_a_run_of_nothing_has_a_page(tmp_path):
    page = render_page(report_data(sources(run_of(tmp_path, [planned({"art": 3})], []))))
    assert "3 not run" in page


VALUES = st.floats(0, 1)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=8), VALUES)
def test_bars_are_as_long_as_the_accuracy(rows, chance):
    entries = [
        {"subject": f"s{n}", "accuracy": sorted(row)[1], "interval": sorted(row)[::2]}
        | {"n": 10, "errors": 0, "baseline": row[0]}
        for n, row in enumerate(rows)
    ]
    both = drawings(row_plots.subject_bars(entries, chance, 0, {}))
    for drawing, layout in zip(both, (row_plots._WIDE, row_plots._NARROW), strict=True):
        lengths = [float(box.get("width")) for box in drawing.iter("rect")]
        unit = layout.right - layout.left
        for entry, length in zip(entries, lengths, strict=True):
            assert length == pytest.approx(entry["accuracy"] * unit, abs=0.01)


def test_the_audits_positions_and_arms_are_drawn(tmp_path):
    run = graded(tmp_path, {"art": "cw"})
    data = report_data(sources(run))
    positions = [
        {"position": label, "share": share, "expected": 0.25, "recall": share, "p_value": p}
        for label, share, p in (
            ("A", 0.7, 0.0001),
            ("B", 0.1, 0.5),
            ("C", 0.1, 1.0),
            ("D", 0.1, 1.0),
        )
    ]
    arms = [{"name": "original", "accuracy": 0.5, "interval": [0.1, 0.9], "items": 2, "correct": 1}]
    data["results"][0]["audit"] = {
        "arms": arms,
        "families": [{"name": "cyclic", "items": 2, "positions": positions}],
        "diagnosis": "prefers position A",
    }
    page = render_page(data)
    assert "Answers by position (cyclic)" in page
    assert "A: 70.0% of answers, 25.0% expected" in page
    assert "The model prefers position A." in page
