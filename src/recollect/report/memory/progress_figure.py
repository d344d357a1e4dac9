"""Several tasks in one figure: how fast each found good values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect._text import plural
from recollect.analysis.headline import median_trials
from recollect.analysis.memory_tasks import StoredTask
from recollect.analysis.run_progress import CLOSE
from recollect.analysis.task_curves import TaskCurve, curve_quartiles, task_curves
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import COLOURS, DASHES, Figure, FigureView, LegendKey, Spec, rounded, trace
from recollect.report.formatting import IN_HOVER, number_text, printable, thinned
from recollect.report.table import Table, simple_table

QUESTION = "How fast did the tasks find good values?"
MAX_NAMED, MAX_LINES, MAX_POINTS, MAX_ROWS = 18, 150, 120, 100
HOVER = "<b>%{customdata[0]}</b><br>after %{customdata[1]} trials: %{customdata[2]}<extra></extra>"
MORE = (
    "Scaled, 1 is the worst and 0 the best value that a task has seen: this compares courses, not results. The other "
    "view shows the values as they are."
)


def task_progress_figure(tasks: Sequence[StoredTask]) -> Figure | None:
    """Return the best value over trials of all tasks; None if fewer than two can be drawn."""
    every = task_curves(tasks)
    if len(every) < 2:
        return None
    curves = [every[place] for place in thinned(len(every), MAX_LINES)]
    named = len(curves) <= MAX_NAMED
    scaled = [_line(curve, curve.scaled, place, named=named) for place, curve in enumerate(curves)]
    plain = [_line(curve, curve.best, place, named=named) for place, curve in enumerate(curves)]
    summary = [] if named else _summary(curve_quartiles(every))
    keys = _keys(curves) if named else _summary_keys(len(curves))
    longest = max(len(curve.best) for curve in curves)
    x = {"title": {"text": "trials"}, "range": [1, max(longest, 2)]}
    views = (
        FigureView("scaled to each task's range", (*scaled, *summary), {"xaxis": x, "yaxis": _share_axis(curves)}),
        FigureView(
            "values as they are", (*plain, *_hidden(summary)), {"xaxis": x, "yaxis": {"title": {"text": "value"}}}
        ),
    )
    positive = all(np.nanmin(curve.best) > 0 for curve in curves)
    needed = [int(np.flatnonzero(curve.scaled <= CLOSE)[0]) + 1 for curve in every]
    when = plural(median_trials(np.array(needed, dtype=np.float64)), "trial")
    caption = f"Half of the {len(every):,} tasks needed {when} or more to come within {CLOSE:.0%} of their best."
    hidden = f" {len(curves)} of {len(every)} tasks are drawn." if len(curves) < len(every) else ""
    return Figure(
        QUESTION, caption, views[0].traces, views[0].layout, _table(every, needed), keys=keys, more=f"{MORE}{hidden}",
        views=views, log_axis="yaxis" if positive else "", height=420, wide=True,
    )  # fmt: skip


def _share_axis(curves: Sequence[TaskCurve]) -> dict[str, Any]:
    highest = max(float(np.nanmax(curve.scaled)) for curve in curves)
    return {"title": {"text": "distance to its best (share of its range)"}, "range": [-0.02 * highest, 1.04 * highest]}


def _line(curve: TaskCurve, values: FloatArray, place: int, *, named: bool) -> Spec:
    rows = np.flatnonzero(np.isfinite(values))
    rows = rows[thinned(len(rows), MAX_POINTS, keep=[0, len(rows) - 1])]
    name = printable(curve.task.name, IN_HOVER)
    hover = [[name, int(row) + 1, number_text(float(curve.best[row]))] for row in rows]
    colour, dash = _style(place)
    line = (
        {"color": f"@{colour}", "width": 2, "dash": dash or "solid"} if named else {"color": "@grey:0.35", "width": 1}
    )
    x, y = (rows + 1).tolist(), rounded(values[rows], 5)
    return trace(x=x, y=y, mode="lines", line={**line, "shape": "hv"}, customdata=hover, hovertemplate=HOVER)


def _style(place: int) -> tuple[str, str]:
    return COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]


def _keys(curves: Sequence[TaskCurve]) -> tuple[LegendKey, ...]:
    return tuple(
        LegendKey(printable(curve.task.name, IN_HOVER), (place,), *_style(place)) for place, curve in enumerate(curves)
    )


def _summary(quartiles: FloatArray) -> list[Spec]:
    x = np.arange(1.0, quartiles.shape[1] + 1.0)
    outline = {
        "x": rounded(np.concatenate([x, x[::-1]]), 6),
        "y": rounded(np.concatenate([quartiles[0], quartiles[2][::-1]])),
    }
    band = {
        **outline,
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": "@blue:0.2",
        "hoverinfo": "skip",
    }
    line = {"color": "@blue", "width": 3, "shape": "hv"}
    return [band, trace(x=rounded(x, 6), y=rounded(quartiles[1]), mode="lines", line=line, hoverinfo="skip")]


def _hidden(summary: Sequence[Spec]) -> list[Spec]:
    return [{**spec, "x": [None], "y": [None]} for spec in summary]


def _summary_keys(lines: int) -> tuple[LegendKey, ...]:
    return (
        LegendKey("median of all tasks", (lines + 1,), "blue"),
        LegendKey("middle half", (lines,), "blue", mark="area"),
        LegendKey("single tasks", tuple(range(lines)), "grey"),
    )


def _table(curves: Sequence[TaskCurve], needed: Sequence[int]) -> Table:
    rows = [
        (printable(curve.task.name), float(curve.best[-1]), count, len(curve.best))
        for curve, count in list(zip(curves, needed, strict=True))[:MAX_ROWS]
    ]
    columns = [("task", ""), ("best value", ".4g"), (f"trials until within {CLOSE:.0%}", ".0f"), ("trials", ".0f")]
    return simple_table("Progress of tasks", columns, rows)
