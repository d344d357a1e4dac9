"""A figure answers one question, which is its title. A caption below says what is seen, a table has the numbers.

Plotly draws it from plain data (``traces`` and ``layout`` of its schema), with two differences:

* A colour is written ``@blue`` or, with an opacity, ``@blue:0.2``: the names are those of ``assets/page.css``, which
  defines each of them for light and for dark pages. The page's script inserts the one that is needed.
* All texts but ``hovertemplate`` are plain: characters that plotly takes for markup are escaped here. A template may
  contain only ``<br>``, ``<b>`` and ``%{...}``: names from outside belong in ``customdata``.

Plotly's legend is not used, since many entries overflow it and no keyboard reaches it: a `LegendKey` names a line below
the figure, and is a button that switches it on and off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.report.formatting import ON_AXIS, printable
from recollect.report.html import Html, data_block, tag
from recollect.report.table import Table, scrolling_table

COLOURS = ("blue", "vermillion", "green", "pink", "orange", "sky")
DASHES = ("", "9px,3px", "2px,2px", "9px,3px,2px,3px", "5px,2px")
MARKUP = re.compile(r"<br>|</?b>|<extra></extra>")
ROW_HEIGHT, MARGINS = 23, 96  # pixels of a row in a figure with a row for each name, and of its axes
PRECISE = 8  # digits of numbers that the page itself rounds: with four, 2.5349 would become 2.535 and then 2.54
Spec: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LegendKey:
    """A button below the figure that switches traces; a trace of several keys is shown when all of them are on."""

    label: str
    traces: tuple[int, ...]
    colour: str = ""  # of the line that it names, without ``@``; empty if it names no line
    dash: str = ""  # of that line, as in plotly
    on: bool = True


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure (see the module docstring)."""

    question: str  # the title
    caption: str  # what is seen, in a sentence or two
    traces: tuple[Spec, ...]
    layout: Spec
    table: Table  # its numbers
    height: int = 380  # pixels
    keys: tuple[LegendKey, ...] = ()  # the legend, in reading order
    more: str = ""  # how to read the figure, and what it cannot show


def figure_html(figure: Figure, identity: str) -> Html:
    """Return a figure for the page. identity: unique on the page."""
    spec = {"traces": _plain(figure.traces), "layout": _plain(figure.layout), "height": figure.height}
    keys = tag("ul", {"class": "keys", "aria-label": "Lines"}, *map(_key, figure.keys)) if figure.keys else ""
    title, data = tag("h3", {"id": identity}, figure.question), data_block(spec, {"class": "spec"})
    plot = tag("div", {"class": "plot", "role": "img", "aria-label": f"{figure.question} {figure.caption}"})
    caption = tag("figcaption", {}, figure.caption, tag("p", {"class": "more"}, figure.more) if figure.more else "")
    numbers = tag("details", {}, tag("summary", {}, "Numbers of this figure"), scrolling_table(figure.table))
    return tag("figure", {"aria-labelledby": identity}, title, plot, keys, caption, numbers, data)


def trace(**values: Any) -> Spec:
    """Return a trace, or another part of plotly's data, from keyword arguments."""
    return values


def rounded(values: npt.ArrayLike, digits: int = 4) -> Any:
    """Return numbers as nested lists with this many significant digits; None for numbers that are not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{array:.{digits}g}") if np.isfinite(array) else None
    return [rounded(row, digits) for row in array]


def name_axis(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis with a row for each name, the first one on top; traces use the positions 0, 1, ... for them."""
    labels = [printable(name, ON_AXIS) for name in names]
    style = {"showgrid": False, "zeroline": False, "automargin": True, "fixedrange": True}
    return {"tickvals": list(range(len(names))), "ticktext": labels, "range": [len(names) - 0.5, -0.5], **style}


def colour_bar(title: str) -> Spec:
    """Return the scale beside a heat map."""
    return {"thickness": 10, "xpad": 6, "ypad": 0, "outlinewidth": 0, "title": {"text": title, "side": "right"}}


def rows_height(count: int) -> int:
    """Return the height of a figure with ``count`` rows."""
    return MARGINS + ROW_HEIGHT * max(count, 3)


def _plain(value: Any, key: str = "") -> Any:
    """Escape what plotly would take for markup."""
    if isinstance(value, Mapping):
        return {name: _plain(inner, name) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    if key.endswith("template"):
        if "<" in MARKUP.sub("", value):
            raise InputError(f"{key}: expected no markup but <br> and <b>, got {value!r}")
        return value
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _key(key: LegendKey) -> Html:
    state = {"aria-pressed": str(key.on).lower(), "data-traces": " ".join(map(str, key.traces))}
    line = tag("line", {"x1": 0, "y1": 5, "x2": 30, "y2": 5, "stroke-dasharray": key.dash.replace("px", "") or None})
    drawing = tag("svg", {"class": f"ink-{key.colour}", "viewBox": "0 0 30 10", "aria-hidden": "true"}, line)
    attributes = {"type": "button", "class": None if key.colour else "switch", **state}
    return tag("li", {}, tag("button", attributes, drawing if key.colour else "", tag("span", {}, key.label)))
