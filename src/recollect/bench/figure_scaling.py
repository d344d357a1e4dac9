"""Fitting time against past runs, and weighting time against resamples (paper, appendix on scaling).

Lines are means over repetitions, dots single measurements; both axes of the last two panels are logarithmic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.bench.figure_style import (
    COLOURS,
    DASHES,
    HEAD,
    Layout,
    Line,
    add_heading,
    add_note,
    draw_line,
    foot,
    house_style,
    name_ends,
    panels,
    plain_ticks,
    room_for,
)
from recollect.bench.measurements import Kind, Measurement
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES: dict[tuple[Kind, str], tuple[str, Line]] = {
    ("online", "tstr-ei"): ("TST-R", Line(COLOURS[2], DASHES[3])),
    ("online", "rgpe-mean"): ("RGPE", Line(COLOURS[0])),
    ("online", "mtgp"): ("multi-task GP", Line(COLOURS[1], DASHES[1])),
    ("once", "rgpe-mean"): ("past runs, one by one", Line(COLOURS[0], DASHES[2], 0.9)),
    ("once", "mtgp"): ("past runs, together", Line(COLOURS[1], DASHES[2], 0.9)),
    ("many", "tstr-ei"): ("TST-R", Line(COLOURS[2], DASHES[3])),
    ("many", "rgpe-mean"): ("RGPE", Line(COLOURS[0])),
    ("resamples", "rgpe-mean"): ("RGPE", Line(COLOURS[0])),
}
PANELS: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("fitting with few past runs", "past runs", ("online", "once")),
    ("fitting with many past runs", "past runs", ("many",)),
    ("weights of RGPE alone", "resamples", ("resamples",)),
)


def scaling_figure(title: str, rows: Sequence[Measurement]) -> Figure:
    """Draw the measurements: one panel for each question that has any."""
    shown = [(head, x, kinds) for head, x, kinds in PANELS if any(row.key.kind in kinds for row in rows)]
    if not shown:
        raise InputError("scaling_figure: expected at least one measurement, got none")
    note = ["Seconds of one core. Dots: single measurements; lines: their means."]
    if any(row.key.kind == "once" for row in rows):
        note.append("Thin lines: fitting the past runs, once, before the new task begins.")
    labels = [f"{label} (to 10)" for label, _ in LINES.values()]
    with house_style():
        figure, made = panels(len(shown), 1, Layout(4.6, 1.9, right=room_for(labels), head=HEAD, foot=foot(note)))
        for axes, (head, x, kinds) in zip(made, shown, strict=True):
            _draw_panel(axes, [row for row in rows if row.key.kind in kinds])
            if "online" not in kinds:
                axes.set_xscale("log")
                plain_ticks(axes.xaxis)
            axes.set_title(head)
            axes.set_xlabel(f"number of {x}")
            axes.set_ylabel("seconds")
        add_heading(figure, title)
        add_note(figure, note)
    return figure


def _draw_panel(axes: Axes, rows: Sequence[Measurement]) -> None:
    seconds = [row.seconds for row in rows]
    axes.set_yscale("log")
    axes.set_ylim(0.6 * min(seconds), 1.6 * max(seconds))
    plain_ticks(axes.yaxis)
    present = [key for key in LINES if any((row.key.kind, row.key.method) == key for row in rows)]
    last = max(row.key.x for row in rows)
    ends, lines = {}, {}
    for key in present:
        label, line = LINES[key]
        own = [row for row in rows if (row.key.kind, row.key.method) == key]
        x, means = mean_seconds(own)
        dots = [(row.key.x, row.seconds) for row in own]
        axes.plot(*zip(*dots, strict=True), ".", color=line.colour, markersize=2.5, alpha=0.5)
        draw_line(axes, x, means, line)
        label += f" (to {x[-1]:,.0f})" if x[-1] < last else ""
        ends[label], lines[label] = float(means[-1]), line
    first = min(row.key.x for row in rows)
    axes.set_xlim(first, max(last, first + 1))
    name_ends(axes, ends, lines)


def mean_seconds(rows: Sequence[Measurement]) -> tuple[FloatArray, FloatArray]:
    """Return the sizes, growing, and the mean over repetitions at each."""
    sizes = sorted({row.key.x for row in rows})
    means = [np.mean([row.seconds for row in rows if row.key.x == size]) for size in sizes]
    return np.array(sizes, dtype=np.float64), np.array(means)
