"""A figure answers one question, which is its title. A caption below says what is seen, a table has the numbers.

Plotly draws it from plain data (``traces`` and ``layout`` of its schema), with three differences:

* A colour is written ``@blue`` or, with an opacity, ``@blue:0.2``: the names are those of ``assets/page.css``, which
  defines each of them for light and for dark pages. The page's script inserts the one that is needed.
* All texts but ``hovertemplate`` are plain: characters that plotly takes for markup are escaped here. A template may
  contain only ``<br>``, ``<b>`` and ``%{...}``: names from outside belong in ``customdata``.
* The matrix ``z`` of a heat map may be packed (`packed`), which makes a map of a thousand tasks a tenth as large.

Plotly's legend is not used, since many entries overflow it and no keyboard reaches it: a `LegendKey` shows the mark
that it names below the figure, and is a button that switches it on and off.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.report.formatting import ON_AXIS, printable
from recollect.report.html import Child, Html, data_block, tag
from recollect.report.table import Table, scrolling_table

COLOURS = ("blue", "vermillion", "green", "pink", "orange", "sky")
DASHES = ("", "9px,3px", "2px,2px", "9px,3px,2px,3px", "5px,2px")
MARKUP = re.compile(r"<br>|</?b>|<extra></extra>")
ROW_HEIGHT, MARGINS = 23, 96  # pixels of a row in a figure with a row for each name, and of its axes
TITLE_FONT = {"color": "@soft", "size": 12}
BELOW_TICKS = 22  # pixels between an axis and its title, where plotly does not see the labels of a heat map
PRECISE = 8  # digits of numbers that the page itself rounds: with four, 2.5349 would become 2.535 and then 2.54
Spec: TypeAlias = Mapping[str, Any]
Mark: TypeAlias = Literal["line", "point", "cross", "diamond", "triangle", "star", "bar", "area"]


@dataclass(frozen=True, slots=True)
class LegendKey:
    """A button below the figure that switches traces; a trace of several keys is shown when all of them are on."""

    label: str
    traces: tuple[int, ...]
    colour: str = ""  # of the mark that it names, without ``@``; empty if it names none
    dash: str = ""  # of a line, as in plotly
    on: bool = True
    mark: Mark = "line"  # that is drawn in the figure


@dataclass(frozen=True, slots=True)
class FigureView:
    """Another drawing that the reader can choose in the same figure."""

    label: str
    traces: tuple[Spec, ...]
    layout: Spec


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure (see the module docstring)."""

    question: str  # the title
    caption: str  # what is seen, in a sentence
    traces: tuple[Spec, ...]
    layout: Spec
    table: Table  # its numbers
    height: int = 380  # pixels
    keys: tuple[LegendKey, ...] = ()  # the legend, in reading order
    more: str = ""  # how to read the figure, what it cannot show, and what to do with it
    views: tuple[FigureView, ...] = ()  # drawings to choose from, the first one as in traces and layout
    log_axis: str = ""  # the axis that can be switched between linear and logarithmic, such as "yaxis"
    log_on: bool = False  # whether it is logarithmic at first
    square: bool = False  # as high as wide, at most 600 pixels; ``height`` is not used
    wide: bool = False  # over the whole width of the page
    trials: bool = False  # customdata starts with the number of a trial, which a click opens
    numbers_shown: bool = False  # whether the table is open at first: of a low figure beside a high one
    brush: Spec | None = None  # for parallel coordinates: see ``brushing`` in assets/figures.js


def figure_html(figure: Figure, identity: str) -> Html:
    """Return a figure for the page. identity: unique on the page."""
    keys = tag("ul", {"class": "keys", "aria-label": "Key"}, *map(_key, figure.keys)) if figure.keys else ""
    head = tag("div", {"class": "head"}, tag("h3", {"id": identity}, figure.question), _tools(figure))
    label = {"role": "img", "aria-label": f"{figure.question} {figure.caption}"}
    hold = tag("svg", {"class": "hold", "width": 1, "height": figure.height, "aria-hidden": "true"})
    plot = tag("div", {"class": "plot square" if figure.square else "plot", **label}, "" if figure.square else hold)
    more = tag("p", {}, figure.more)
    details = [tag("details", {"class": "more"}, tag("summary", {}, "More"), more)] if figure.more else []
    opened = {"open": figure.numbers_shown}
    numbers = tag("details", opened, tag("summary", {}, "Numbers of this figure"), scrolling_table(figure.table))
    brushes, selected = _brush_controls(figure)
    foot = tag("div", {"class": "foot"}, *details, brushes, numbers, selected)
    parts = (
        head,
        plot,
        keys,
        tag("figcaption", {}, figure.caption),
        foot,
        data_block(_spec(figure), {"class": "spec"}),
    )
    return tag("figure", {"aria-labelledby": identity, "class": "wide" if figure.wide else None}, *parts)


def _spec(figure: Figure) -> dict[str, Any]:
    """Return what the page's script needs to draw a figure."""
    spec: dict[str, Any] = {"traces": _plain(figure.traces), "layout": _plain(figure.layout), "height": figure.height}
    if figure.views:
        spec["views"] = [{"traces": _plain(view.traces), "layout": _plain(view.layout)} for view in figure.views]
    if figure.brush is not None:
        spec["brush"] = figure.brush
    flags = {"square": figure.square, "trials": figure.trials, "log": figure.log_axis}
    return spec | {name: value for name, value in flags.items() if value}


def _tools(figure: Figure) -> Html:
    """Return what the reader can do with a figure: choose a view, switch the scale, save it."""
    tools = []
    if figure.views:
        options = [tag("option", {"value": place}, view.label) for place, view in enumerate(figure.views)]
        tools.append(tag("select", {"aria-label": f"{figure.question} Choose what is drawn"}, *options))
    button = {"type": "button", "class": "button"}
    if figure.log_axis:
        tools.append(
            tag("button", {**button, "data-log": True, "aria-pressed": str(figure.log_on).lower()}, "Log axis")
        )
    for form in ("png", "svg"):
        label = {"aria-label": f"Save this figure as {form.upper()}"}
        tools.append(tag("button", {**button, "data-image": form, **label}, form.upper()))
    return tag("div", {"class": "tools"}, *tools)


def _brush_controls(figure: Figure) -> tuple[Child, Child]:
    """Return what selects trials, and what says how many are selected."""
    if figure.brush is None:
        return "", ""
    clear = tag("button", {"type": "button", "class": "button", "data-clear": True}, "Select all trials")
    summary = tag("summary", {}, "Select ranges")
    rows = tag("div", {"class": "brushes"})
    return tag("details", {}, summary, rows, clear), tag("output", {"class": "brush-state", "aria-live": "polite"})


def trace(**values: Any) -> Spec:
    """Return a trace, or another part of plotly's data, from keyword arguments."""
    return values


def rounded(values: npt.ArrayLike, digits: int = 4) -> Any:
    """Return numbers as nested lists with this many significant digits; None for numbers that are not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{array:.{digits}g}") if np.isfinite(array) else None
    return [rounded(row, digits) for row in array]


def packed(matrix: npt.ArrayLike) -> str:
    """Return a matrix of numbers from -1.27 to 1.27 as bytes, to two decimals; others are empty."""
    array = np.asarray(matrix, dtype=np.float64)
    hundredths = np.where(np.isfinite(array), np.rint(100.0 * array), -128.0).astype(np.int8)
    return b64encode(hundredths.tobytes()).decode()


def name_axis(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis with a row for each name, the first one on top; traces use the positions 0, 1, ... for them."""
    labels = [printable(name, ON_AXIS) for name in names]
    style = {"showgrid": False, "zeroline": False, "automargin": True, "fixedrange": True}
    return {"tickvals": list(range(len(names))), "ticktext": labels, "range": [len(names) - 0.5, -0.5], **style}


def colour_bar(title: str) -> Spec:
    """Return the scale above a heat map; its title stands on top of it, where it is never cut off."""
    place = {"orientation": "h", "y": 1.03, "yanchor": "bottom", "thickness": 10, "xpad": 6, "ypad": 0}
    heading = {"text": title, "side": "top", "font": TITLE_FONT}
    return {**place, "outlinewidth": 0, "ticklabelposition": "outside top", "title": heading}


def rows_height(count: int) -> int:
    """Return the height of a figure with ``count`` rows."""
    return MARGINS + ROW_HEIGHT * max(count, 3)


def _plain(value: Any, key: str = "") -> Any:
    """Escape what plotly would take for markup."""
    if value is None or isinstance(value, (float, int)):  # nearly always
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(inner, key) for inner in value]
    if isinstance(value, Mapping):
        return {name: _plain(inner, name) for name, inner in value.items()}
    if not isinstance(value, str):
        return value
    if key.endswith("template"):
        if "<" in MARKUP.sub("", value):
            raise InputError(f"{key}: expected no markup but <br> and <b>, got {value!r}")
        return value
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _key(key: LegendKey) -> Html:
    state = {"aria-pressed": str(key.on).lower(), "data-traces": " ".join(map(str, key.traces))}
    drawing = tag("svg", {"class": f"ink-{key.colour}", "viewBox": "0 0 26 12", "aria-hidden": "true"}, _mark(key))
    attributes = {"type": "button", "class": None if key.colour else "switch", **state}
    return tag("li", {}, tag("button", attributes, drawing if key.colour else "", tag("span", {}, key.label)))


def _mark(key: LegendKey) -> Html:
    """Return the mark of a key as it is drawn in the figure."""
    if key.mark == "point":
        return tag("circle", {"class": "filled", "cx": 13, "cy": 6, "r": 4})
    if key.mark == "area":
        return tag("rect", {"class": "filled", "x": 4, "y": 1, "width": 18, "height": 10})
    paths = {
        "cross": "M9 2 L17 10 M17 2 L9 10",
        "diamond": "M13 0 L19 6 L13 12 L7 6 Z",
        "triangle": "M7 1 L19 1 L13 11 Z",
        "star": "M13 0 L14.6 4.1 L19 4.4 L15.6 7.2 L16.7 11.5 L13 9.1 L9.3 11.5 L10.4 7.2 L7 4.4 L11.4 4.1 Z",
        "bar": "M13 0 L13 12 M9 6 L17 6",
    }
    if key.mark in paths:
        return tag("path", {"d": paths[key.mark], "class": None if key.mark in ("cross", "bar") else "filled"})
    return tag("line", {"x1": 0, "y1": 6, "x2": 26, "y2": 6, "stroke-dasharray": key.dash.replace("px", "") or None})
