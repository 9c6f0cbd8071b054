"""SVG elements as text, with escaped contents.

Colours are classes of the page's style sheet, so that plots follow the light or dark scheme. There
are no style attributes, which the page's content policy forbids.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from unicodedata import east_asian_width

from markupsafe import Markup
from markupsafe import escape

from pytest_llmeval.reports.formatting import HIDDEN
from pytest_llmeval.reports.formatting import shorten

Value = str | float | int | None

PHONE = 340
"""Width of drawings for phones, in CSS pixels, so that text has its full size there."""

WIDE = 640
"""Maximum width of drawings for wide pages, which show two columns of at least 0.87 of it."""


def tag(name: str, *inside: str, **attributes: Value) -> Markup:
    """Return an element; the attribute ``cls`` becomes ``class``, and ``_`` in names becomes ``-``.

    The content is escaped unless it is markup. Attributes that are None are left out.
    """
    text = Markup("").join(
        Markup(' {}="{}"').format(_name(key), _value(value))
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(escape(_visible_unless_markup(part)) for part in inside)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), text, content)


def drawing(
    width: float,
    height: float,
    label: str,
    *parts: str,
    cls: str = "plot",
    stretched: bool = False,
) -> Markup:
    """Return a drawing with an accessible name; ``stretched`` fits it to the available space."""
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        preserveAspectRatio="none" if stretched else None,
        cls=cls,
    )


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, cls=cls)


def text(x: float, y: float, content: str, cls: str = "", **more: Value) -> Markup:
    return tag("text", content, x=x, y=y, cls=cls or None, **more)


def circle(x: float, y: float, r: float, cls: str, title: str = "") -> Markup:
    return tag("circle", *([tag("title", title)] if title else []), cx=x, cy=y, r=r, cls=cls)


def mark(x: float, y: float, r: float, shape: int, cls: str, title: str = "") -> Markup:
    """Return a dot of one of four shapes: circle, square, triangle, diamond (``shape`` modulo 4)."""
    shape %= 4
    if shape == 0:
        return circle(x, y, r, cls, title)
    a, b = 0.9 * r, 1.3 * r
    corners = (
        [(-a, -a), (a, -a), (a, a), (-a, a)],
        [(0, -b), (b, r), (-b, r)],
        [(0, -b), (b, 0), (0, b), (-b, 0)],
    )[shape - 1]
    points = " ".join(f"{_value(x + dx)},{_value(y + dy)}" for dx, dy in corners)
    return tag("polygon", *([tag("title", title)] if title else []), points=points, cls=cls)


def box(x: float, y: float, width: float, height: float, cls: str, title: str = "") -> Markup:
    inside = [tag("title", title)] if title else []
    return tag("rect", *inside, x=x, y=y, width=max(0.0, width), height=height, rx=2, cls=cls)


def polyline(points: Iterable[tuple[float, float]], cls: str, closed: bool = False) -> Markup:
    joined = " ".join(f"{_value(x)},{_value(y)}" for x, y in points)
    return tag("polygon" if closed else "polyline", points=joined, cls=cls)


def pick(inside: str, result: int, subject: str) -> Markup:
    """Return a link that shows a subject's items in the item browser."""
    return tag("a", inside, href="#items", cls="pick", data_result=result, data_subject=subject)


def readable(subject: str) -> str:
    """Return a subject's name without underscores: ``college mathematics``."""
    return shorten(subject.replace("_", " "), 44)


def columns(text: str) -> int:
    """Return the width of a text in columns; wide East Asian characters have two."""
    return sum(map(_columns, text))


def fit(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` columns, with an ellipsis if it is shortened."""
    ends = list(accumulate(map(_columns, text)))
    if not ends or ends[-1] <= limit:
        return text
    return f"{text[: bisect_right(ends, limit - 1)]}…"


def _columns(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1


def _name(key: str) -> str:
    return "class" if key == "cls" else key.replace("_", "-")


def _value(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return _visible_unless_markup(str(value))


def _visible_unless_markup(value: str) -> str:
    return value if isinstance(value, Markup) else visible(value)


def visible(text: str) -> str:
    """Replace hidden characters by symbols: ``␛`` or ``⟨U+202E⟩``."""
    return HIDDEN.sub(_sign, text)


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
