"""The predicted value over two hyperparameters, with the trials: one view for each pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect.analysis.response_surface import MAX_AXES, ResponseSurface, response_surfaces
from recollect.analysis.run_data import RunData
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import Figure, FigureView, LegendKey, Spec, colour_bar, rounded, trace
from recollect.report.formatting import IN_HOVER, compact_number, number_text, printable, thinned
from recollect.report.run.axes import FAILED_MARKER, PRUNED_MARKER, HyperparameterAxis, round_log_values
from recollect.report.table import Table, Values, simple_table

QUESTION = "Where do two hyperparameters together give good values?"
MORE = (
    "A Gaussian process of this run's trials alone predicts the value; all other hyperparameters are as in the best "
    "configuration. Far from trials it is a guess."
)
HOVER, LOG_HOVER = "predicted value %{z:.4g}<extra></extra>", "predicted value 10^%{z:.2f}<extra></extra>"
TRIAL_HOVER = "<b>trial %{customdata[0]}</b><br>%{customdata[1]}<extra></extra>"
MAX_TRIALS, LOG_RATIO = 300, 20.0
CONTOURS, LOG_TICKS = 14, 5  # LOG_TICKS: at most
MARKERS: dict[str, dict[str, Any]] = {
    "finished": {"color": "@ink:0.7", "size": 5, "symbol": "circle", "line": {"color": "@card", "width": 1}},
    "pruned": PRUNED_MARKER,
    "failed": FAILED_MARKER,
}
BEST = {"color": "@orange", "size": 14, "symbol": "star", "line": {"color": "@ink", "width": 1}}


def contour_figure(data: RunData, axes: Sequence[HyperparameterAxis], importance: Sequence[str]) -> Figure | None:
    """Return the surfaces of the most important numbers that every trial uses; None if there are no two of them."""
    usable = {axis.name: axis for axis in axes if axis.ordered and not axis.sometimes_inactive}
    rank = {name: place for place, name in enumerate(importance)}
    names = sorted(usable, key=lambda name: rank.get(name, len(rank)))[:MAX_AXES]
    surfaces = response_surfaces(data, names)
    if not surfaces:
        return None
    views = tuple(_view(data, surface, usable) for surface in surfaces)
    first = surfaces[0]
    row, column = np.unravel_index(_best_cell(data, first), first.values.shape)
    where = " and ".join(
        f"{printable(name)} = {usable[name].text_at(float(first.positions[place]))}"
        for name, place in ((first.first, column), (first.second, row))
    )
    caption = f"The best predicted value of this view, {number_text(float(first.values[row, column]))}, is at {where}."
    states = [state for state in MARKERS if state in data.states]
    marks: dict[str, Any] = {"finished": "point", "pruned": "triangle", "failed": "cross"}
    colours = {"finished": "ink", "pruned": "orange", "failed": "vermillion"}
    keys = (
        LegendKey("best trial", (1 + len(states),), "orange", mark="star"),
        *(
            LegendKey(f"{state} trials", (place,), colours[state], mark=marks[state])
            for place, state in enumerate(states, start=1)
        ),
    )
    return Figure(
        QUESTION, caption, views[0].traces, views[0].layout, _table(data, surfaces, usable), height=440,
        keys=tuple(keys), more=MORE, views=views if len(views) > 1 else (), trials=True,
    )  # fmt: skip


def _best_cell(data: RunData, surface: ResponseSurface) -> int:
    return int(np.argmin(surface.values) if data.run.direction == "minimize" else np.argmax(surface.values))


def _view(data: RunData, surface: ResponseSurface, axes: dict[str, HyperparameterAxis]) -> FigureView:
    one, other = axes[surface.first], axes[surface.second]
    colours = [[0, "@blue"], [1, "@card"]]
    values = surface.values
    log = bool(values.min() > 0 and values.max() > LOG_RATIO * values.min())
    bar = {**colour_bar("predicted value"), **(log_ticks(values) if log else {"nticks": 6})}
    z = rounded(np.log10(values) if log else values, 5)
    hover = {"hovertemplate": LOG_HOVER if log else HOVER}
    map_ = trace(
        type="contour", x=rounded(surface.positions), y=rounded(surface.positions), z=z, colorbar=bar,
        ncontours=CONTOURS, colorscale=colours, reversescale=data.run.direction == "maximize",
        line={"width": 0.5, "color": "@rule"}, **hover,
    )  # fmt: skip
    states = [state for state in MARKERS if state in data.states]
    dots = [_dots(data, state, one, other) for state in states]
    return FigureView(
        f"{printable(surface.first, 24)} and {printable(surface.second, 24)}",
        (map_, *dots, _best(data, one, other)),
        {"xaxis": _axis(one), "yaxis": _axis(other), "margin": {"r": 8}},
    )


def log_ticks(values: FloatArray) -> dict[str, Any]:
    """Return round ticks for a logarithmic colour bar, none so close to its ends that plotly would hide the label."""
    low, high = math.log10(values.min()), math.log10(values.max())
    margin = (high - low) / CONTOURS
    shown = round_log_values(low + margin, high - margin, most=LOG_TICKS)
    return {"tickvals": rounded(np.log10(shown), 5), "ticktext": list(map(compact_number, shown))}


def _axis(axis: HyperparameterAxis) -> dict[str, Any]:
    ticks = axis.ticks
    return {
        "title": {"text": printable(axis.name, IN_HOVER)}, "tickvals": [round(at, 4) for at, _ in ticks],
        "ticktext": [text for _, text in ticks], "range": [-0.03, 1.03], "zeroline": False, "showgrid": False,
    }  # fmt: skip


def _dots(data: RunData, state: str, one: HyperparameterAxis, other: HyperparameterAxis) -> Spec:
    rows = [row for row, own in enumerate(data.states) if own == state]
    rows = [rows[place] for place in thinned(len(rows), MAX_TRIALS)]
    hover = [[data.numbers[row], _text(data, row)] for row in rows]
    x, y = rounded(one.positions[rows]), rounded(other.positions[rows])
    return trace(x=x, y=y, mode="markers", marker=MARKERS[state], customdata=hover, hovertemplate=TRIAL_HOVER)


def _best(data: RunData, one: HyperparameterAxis, other: HyperparameterAxis) -> Spec:
    assert data.run.best is not None
    row = data.run.trials.index(data.run.best)
    x, y = rounded(one.positions[[row]]), rounded(other.positions[[row]])
    hover = [[data.numbers[row], f"the best one: {_text(data, row)}"]]
    return trace(x=x, y=y, mode="markers", marker=BEST, customdata=hover, hovertemplate=TRIAL_HOVER)


def _text(data: RunData, row: int) -> str:
    trial = data.run.trials[row]
    return trial.state.value if trial.value is None else f"value {number_text(trial.value)}"


def _table(data: RunData, surfaces: Sequence[ResponseSurface], axes: dict[str, HyperparameterAxis]) -> Table:
    rows: list[Values] = []
    for surface in surfaces:
        row, column = np.unravel_index(_best_cell(data, surface), surface.values.shape)
        one, other = (
            f"{printable(name, IN_HOVER)} = {axes[name].text_at(float(surface.positions[place]))}"
            for name, place in ((surface.first, column), (surface.second, row))
        )
        low, high = float(surface.values.min()), float(surface.values.max())
        rows.append((one, other, low, high, float(surface.values[row, column])))
    columns = [("first", ""), ("second", ""), ("lowest prediction", ".4g"), ("highest", ".4g"), ("best", ".4g")]
    return simple_table("Best predictions over two hyperparameters", columns, rows)
