"""A figure answers one question, which is its title; a sentence under it says what is seen, a table has the numbers.

The drawing is plotly's, given as plain data (``traces`` and ``layout`` of plotly's schema). Two things are different:

* A colour is written ``@blue`` or, with an opacity, ``@blue:0.2``: the names are those of ``assets/page.css``, which
  has each of them for light and for dark pages. The page's script puts in the one that is needed.
* All texts but ``hovertemplate`` are plain: signs that plotly takes for markup are escaped here. A template may hold
  ``<br>``, ``<b>`` and ``%{...}`` only: names from outside belong into ``customdata``.

Figures have no legend of plotly's, which many entries overflow and no keyboard reaches: a `Key` names a line below the
figure, and is a button that switches it on and off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.report.html import Child, Html, data_block, tag
from recollect.report.names import ON_AXIS, named
from recollect.report.table import Table, frame

COLOURS = ("blue", "vermillion", "green", "pink", "orange", "sky")
DASHES = ("", "9px,3px", "2px,2px", "9px,3px,2px,3px", "5px,2px")
MARKUP = re.compile(r"<br>|</?b>|<extra></extra>")
ROW, AROUND = 23, 96  # pixels for a row of a figure with a row for each name, and for its axes
Spec: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """A button below the figure that switches traces; a trace of several keys is shown when all of them are on.

    colour, without ``@``, and dash, as in plotly: how the line looks that it names; none for one that names no line.
    """

    label: str
    traces: tuple[int, ...]
    colour: str = ""
    dash: str = ""
    on: bool = True


@dataclass(frozen=True, slots=True)
class Figure:
    """See the head of the module. height: in pixels; keys: in the order in which they are to be read."""

    question: str
    seen: str
    traces: tuple[Spec, ...]
    layout: Spec
    numbers: Table
    height: int = 380
    keys: tuple[Key, ...] = ()


def figure_html(figure: Figure, identity: str) -> Html:
    """Return a figure for the page. identity: not used for anything else on the page."""
    spec = {
        "traces": [_plain(trace) for trace in figure.traces],
        "layout": _plain(figure.layout),
        "height": figure.height,
    }
    keys = tag("ul", {"class": "keys", "aria-label": "Lines"}, *map(_key, figure.keys)) if figure.keys else ""
    return tag(
        "figure",
        {"aria-labelledby": identity},
        tag("h3", {"id": identity}, figure.question),
        tag("div", {"class": "plot", "role": "img", "aria-label": f"{figure.question} {figure.seen}"}),
        keys,
        tag("figcaption", {}, figure.seen),
        tag("details", {}, tag("summary", {}, "Numbers of this figure"), frame(figure.numbers)),
        data_block(spec, {"class": "spec"}),
    )


ROUNDED_AGAIN = 8
"""Significant digits of numbers that the page itself rounds: with few, 2.5349 would be 2.535 and then 2.54."""


def decimals(values: npt.ArrayLike, digits: int = 4) -> Any:
    """Return numbers as nested lists with so many significant digits; None where there is no finite one."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{array:.{digits}g}") if np.isfinite(array) else None
    return [decimals(row, digits) for row in array]


def name_axis(names: Sequence[str]) -> dict[str, Any]:
    """Return an axis with a row for each name, the first one on top; traces use the places 0, 1, ... for them."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [named(name, ON_AXIS) for name in names],
        "range": [len(names) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
    }


def rows_height(count: int) -> int:
    """Return the height of a figure with so many rows."""
    return AROUND + ROW * max(count, 3)


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


def _key(key: Key) -> Html:
    state = {"aria-pressed": str(key.on).lower(), "data-traces": " ".join(map(str, key.traces))}
    children: list[Child] = [tag("span", {}, key.label)]
    if key.colour:
        dash = {"stroke-dasharray": key.dash.replace("px", "") or None}
        line = tag("line", {"x1": 0, "y1": 5, "x2": 30, "y2": 5, **dash})
        children.insert(
            0, tag("svg", {"class": f"ink-{key.colour}", "viewBox": "0 0 30 10", "aria-hidden": "true"}, line)
        )
    return tag(
        "li", {}, tag("button", {"type": "button", "class": None if key.colour else "switch", **state}, *children)
    )
