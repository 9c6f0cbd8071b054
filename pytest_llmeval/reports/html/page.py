"""Rendering of the content dictionary as one self-contained HTML page.

No text of the run becomes markup or code: the template engine escapes all texts, and the script
reads base64 of deflated JSON. The page's content policy allows its script and its style sheet by
hash and forbids every request, so that a fault in the escaping can neither run a script nor send
data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment
from jinja2 import StrictUndefined
from markupsafe import Markup

from pytest_llmeval.reports.formatting import capitalize
from pytest_llmeval.reports.formatting import gain_interval
from pytest_llmeval.reports.formatting import interval
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.formatting import signed
from pytest_llmeval.reports.html.items import BLOCK
from pytest_llmeval.reports.html.plots import bullet
from pytest_llmeval.reports.html.plots import drop_plot
from pytest_llmeval.reports.html.plots import outcome_bar
from pytest_llmeval.reports.html.plots import pass_curve
from pytest_llmeval.reports.html.plots import position_bars
from pytest_llmeval.reports.html.plots import radar
from pytest_llmeval.reports.html.plots import reliability
from pytest_llmeval.reports.html.plots import subject_bars
from pytest_llmeval.reports.html.plots import summary_rows
from pytest_llmeval.reports.html.svg import readable
from pytest_llmeval.reports.html.svg import visible
from pytest_llmeval.runs.comparison import ALPHA

_FEW = 12
_FEWEST = 3  # subjects of an outline
_OUTCOMES = (
    ("correct", "correct", "c"),
    ("wrong", "wrong", "w"),
    ("unparsed", "unparsed", "u"),
    ("errors", "error", "e"),
)
"""Name of a count, its class in the style sheet, and its outcome in the item browser."""
_MARKS = {"c": "✓", "w": "✗", "u": "?", "e": "!"}
"""Outcome in the item browser and its mark there."""
_ICONS = {"failed": "✗", "undecided": "?", "warned": "!", "passed": "✓", "not run": "–"}


def render_page(data: Mapping[str, Any]) -> str:
    """Return the page; equal dictionaries give equal text, which can always be encoded as UTF-8."""
    style, script = _resource("style.css"), _resource("page.js")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        fixed=partial(number, none="–"),
        signed=partial(signed, none="–"),
        percent=_percent,
        interval=partial(interval, none=""),
        readable=readable,
        capitalized=capitalize,
    )
    template = environment.from_string(_resource("page.html"))
    return template.render(
        **data,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        icons=_ICONS,
        marks=_MARKS,
        outcomes=_OUTCOMES,
        significant=ALPHA,
        bullets=[bullet(gate) for gate in data["gates"]],
        sections=[_section(number, result) for number, result in enumerate(data["results"])],
        blocks=_blocks(data),
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _finalize(value: Any) -> Any:
    """Make hidden characters of a value visible; markup from this package is not changed."""
    if value is None:
        return ""
    return visible(value) if type(value) is str else value


def _policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}';"
        f" script-src 'sha256-{digest(script)}'; base-uri 'none'; form-action 'none'"
    )


# Numbers ---------------------------------------------------------------------------------


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


# Sections --------------------------------------------------------------------------------


def _section(number: int, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the drawings of one result."""
    numbers, compared = result["numbers"], result["comparison"]
    rows = [
        _row(name, entry, compared)
        for name, entry in numbers["subjects"].items()
        if entry["answered"] or entry["errors"]
    ]
    area_of = {
        subject: place
        for place, area in enumerate(result["areas"] or ())
        for subject in area["subjects"]
    }
    ranked = sorted(rows, key=lambda row: (-(row["accuracy"] or 0), row["subject"]))
    chance = numbers["chance"]
    passes = {name: numbers.get(name) for name in ("pass@k", "pass^k")}
    audit = result["audit"] or {}
    return {
        "ran": sum(row["n"] > 0 for row in rows),
        "radar": _radar(result, rows, chance, number),
        "bars": subject_bars(ranked, chance, number, area_of) if len(rows) > 1 else None,
        "summary": _summary(result, chance),
        "outcomes": outcome_bar(
            {
                "correct": numbers["correct"],
                "wrong": numbers["wrong"],
                "unparsed": numbers["unparsed"],
                "error": numbers["errors"],
                "missing": numbers["missing"],
            }
        ),
        "drops": _drops(compared, number),
        "passes": pass_curve({n: v for n, v in passes.items() if v})
        if any(passes.values())
        else None,
        "reliability": reliability(result["calibration"]) if result["calibration"] else None,
        "positions": [
            (family["name"], family["items"], position_bars(family["positions"]))
            for family in audit.get("families", ())
            if family.get("positions")
        ],
        "arms": _arms(audit),
    }


def _row(name: str, entry: Mapping[str, Any], compared: Mapping[str, Any] | None) -> dict[str, Any]:
    before = None if compared is None else compared["subjects"].get(name)
    return {
        "subject": name,
        "accuracy": entry["accuracy"],
        "interval": entry["wilson95"],
        "n": entry["answered"],
        "errors": entry["errors"],
        "baseline": None if before is None else before["baseline"],
    }


def _radar(
    result: Mapping[str, Any], rows: list[dict[str, Any]], chance: float | None, number: int
) -> Markup | None:
    """Return the subjects by area if they have areas, else all of them if they are few."""
    if result["areas"]:
        by_name = {row["subject"]: row for row in rows}
        groups = [
            (area["name"], [by_name[name] for name in area["subjects"] if name in by_name])
            for area in result["areas"]
        ]
    elif len(rows) <= _FEW:
        groups = [("", rows)]
    else:
        return None
    measured = sum(row["accuracy"] is not None for row in rows)
    return radar(groups, chance, number) if measured >= _FEWEST else None


def _summary(result: Mapping[str, Any], chance: float | None) -> Markup | None:
    numbers, compared = result["numbers"], result["comparison"]
    if numbers["accuracy"] is None:
        return None
    before = compared and compared["overall"]["baseline"]
    rows = [
        _value("micro (all answers)", numbers["accuracy"], numbers["wilson95"], before, "micro")
    ]
    if len(numbers["subjects"]) > 1:
        means = [d["baseline"] for d in (compared or {"subjects": {}})["subjects"].values()]
        defined = [mean for mean in means if mean is not None]
        before = sum(defined) / len(defined) if defined else None
        interval = numbers["macro_interval95"]
        rows.append(
            _value("macro (mean of subjects)", numbers["macro_accuracy"], interval, before, "macro")
        )
    for place, area in enumerate(result["areas"] or ()):
        if area["accuracy"] is not None:
            values = (area["accuracy"], area["interval"], area["baseline"])
            rows.append(_value(area["name"], *values, f"area{place}", place))
    if numbers["normalized_gain"] is not None and chance is not None and chance < 1:
        ends = gain_interval(numbers["wilson95"], chance)
        rows.append(_value("gain over chance", numbers["normalized_gain"], ends, None, "gain"))
    return summary_rows(rows, chance)


def _value(
    name: str,
    value: float,
    interval: Sequence[float] | None,
    baseline: float | None,
    cls: str,
    shape: int = 0,
) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "interval": interval,
        "baseline": baseline,
        "cls": cls,
        "shape": shape,
    }


def _drops(compared: Mapping[str, Any] | None, number: int) -> Markup | None:
    if compared is None or len(compared["subjects"]) < 2:
        return None
    rows = [
        {
            "subject": name,
            **difference,
            "significant": compared["comparable"] and difference["adjusted"] <= ALPHA,
        }
        for name, difference in compared["subjects"].items()
        if difference["items"]
    ]
    rows.sort(key=lambda row: (-row["drop"], row["subject"]))
    return drop_plot(rows, number) if rows else None


def _arms(audit: Mapping[str, Any]) -> Markup | None:
    arms = audit.get("arms", ())
    if not arms:
        return None
    rows = [_value(a["name"], a["accuracy"], a["interval"], None, "micro") for a in arms]
    return summary_rows(rows, None)


# Data for the script ---------------------------------------------------------------------


def _blocks(data: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Return (id, content) of the data blocks: base64 of deflated JSON, which cannot end a block."""
    indices = [
        {
            "name": result["name"],
            "model": result["numbers"]["model"],
            "chat": result["protocol"]["chat"],
            "ties": result["protocol"]["ties"],
            "details_of": result["details_of"],
            "block": BLOCK,
            **result["items"],
        }
        for result in data["results"]
    ]
    blocks = [("data-index", indices), ("data-shots", data["shots"])]
    for index, result in enumerate(data["results"]):
        for place, block in enumerate(result["details"] or ()):
            blocks.append((f"data-{index}-{place}", block))
    return [(name, _packed(value)) for name, value in blocks]


def _packed(value: Any) -> Markup:
    # ASCII, so that lone surrogates are preserved.
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii"))
