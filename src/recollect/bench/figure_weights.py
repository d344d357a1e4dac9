"""How the weights of an ensemble change while a run goes on (paper, weight-evolution figure).

Above, means over runs: the weight of the new task's model, of the past run that weighs most, of the second, and of all
others together; which one weighs most is decided for each run and step before the mean is taken. Below, how many models
have a weight: median and quantiles over runs.

Notation: r runs, n observations of the new task when the weights were computed; weights (r, n, 5) as in
`recollect.bench.results`, nan where there were none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.bench.figure_style import (
    BLACK,
    COLOURS,
    DASHES,
    HEAD,
    Layout,
    Line,
    add_heading,
    add_note,
    count_ticks,
    draw_band,
    draw_line,
    foot,
    house_style,
    name_ends,
    panels,
    room_for,
)
from recollect.bench.results import WEIGHTS, Finished
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {
    "new task": Line(BLACK),
    "first past run": Line(COLOURS[0], DASHES[1]),
    "second past run": Line(COLOURS[1], DASHES[2]),
    "all other past runs": Line(COLOURS[2], DASHES[3]),
}
BANDS = ((0.05, 0.95), (0.25, 0.75))


def weight_figure(runs: Sequence[Finished]) -> Figure:
    """Draw both panels for the runs of one method on one benchmark that have kept their weights."""
    n, weights = stacked_weights(runs)
    benchmark, method = runs[0].key.benchmark, runs[0].key.method
    note = [
        f"{len(weights)} runs. First and second: the past runs with the largest weights at each step.",
        "Bands: half of the runs, and 90% of them.",
    ]
    layout = Layout(4.6, 2.2, right=room_for(list(PARTS)), top=0.15, head=HEAD, foot=foot(note))
    with house_style():
        figure, (above, below) = panels(2, 1, layout)
        _draw_parts(above, n, weights)
        _draw_counts(below, n, weights[:, :, 4])
        for axes in (above, below):
            count_ticks(axes, n[0], n[-1], "observations of the new task")
        add_heading(figure, f"{method} on {benchmark}")
        add_note(figure, note)
    return figure


def stacked_weights(runs: Sequence[Finished]) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of observations with weights in any run, and the weights (r, n, 5) there."""
    kept = [run.weights for run in runs if run.weights is not None and np.isfinite(run.weights).any()]
    if not kept or len({run.key[:2] for run in runs}) != 1:
        found = sorted({f"{run.key.method} on {run.key.benchmark}" for run in runs})
        raise InputError(f"weight_figure: expected runs of one method on one benchmark with weights, got {found}")
    weights = np.full((len(kept), max(map(len, kept)), WEIGHTS), np.nan)
    for row, own in zip(weights, kept, strict=True):
        row[: len(own)] = own
    known = np.flatnonzero(np.isfinite(weights).all(axis=2).any(axis=0))
    return known.astype(np.float64), weights[:, known]


def _draw_parts(axes: Axes, n: FloatArray, weights: FloatArray) -> None:
    axes.set_ylim(0.0, 1.02)
    means = np.nanmean(weights, axis=0)
    for (_, line), curve in zip(PARTS.items(), means.T, strict=False):
        draw_line(axes, n, curve, line)
    name_ends(axes, dict(zip(PARTS, means[-1].tolist(), strict=False)), PARTS)
    axes.set_ylabel("mean weight")


def _draw_counts(axes: Axes, n: FloatArray, counts: FloatArray) -> None:
    from matplotlib.ticker import MaxNLocator

    line = Line(COLOURS[0])
    for low, high in BANDS:
        draw_band(axes, n, tuple(np.nanquantile(counts, [low, high], axis=0)), line)
    median = np.nanmedian(counts, axis=0)
    draw_line(axes, n, median, line)
    axes.set_ylim(0.0, 1.05 * float(np.nanquantile(counts, BANDS[0][1], axis=0).max()))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("models with a weight")
    name_ends(axes, {"median": float(median[-1])}, {"median": line})
