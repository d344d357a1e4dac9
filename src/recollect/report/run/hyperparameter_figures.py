"""Figures of hyperparameters: which mattered, slices, and parallel coordinates.

Slices show the value of each trial against one hyperparameter after another, side by side on one scale of values.

Parallel coordinates stand upright: a row for each hyperparameter, a line for each trial, its rank in the last row.
Names stand on the left, so they never overlap and a narrow screen shows as many as a wide one. A line goes to the left
edge where a hyperparameter is inactive, and to the right edge of the last row if the trial failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recollect._text import plural
from recollect.analysis.importance import Importance
from recollect.analysis.run_data import RunData
from recollect.analysis.run_progress import best_trials, trial_values
from recollect.report.figure import Figure, LegendKey, Mark, Spec, name_axis, rounded, rows_height, trace
from recollect.report.formatting import IN_HOVER, join_names, number_text, percent, printable, thinned
from recollect.report.run.axes import (
    FAILED_MARKER,
    INACTIVE_LABEL,
    PRUNED_MARKER,
    HyperparameterAxis,
    ValueAxis,
    best_label,
    value_axis,
)
from recollect.report.table import Table, simple_table
from recollect.runs.run import FAILED, Run, Trial

MAX_BARS = 30
IMPORTANCE_HOVER = "<b>%{customdata}</b><br>importance %{x:.1f}%<extra></extra>"
IMPORTANCE_QUESTION = "Which hyperparameters set the best trials apart?"
PED_ANOVA = (
    "Computed by Optuna's PED-ANOVA, which compares where the best trials lie with where all trials lie, one "
    "hyperparameter at a time. It sees neither what acts only in combination nor what was hardly varied, and it is "
    "rough with few trials."
)
ORDERED_QUESTION = "Where along each hyperparameter are good values?"
CHOICES_QUESTION = "Which choices gave good values?"
MAX_TRIALS, MAX_FAILED = 250, 60  # in each slice
HEIGHT, BETWEEN, MARGINS = 175, 58, 66  # pixels of a slice, between two of them, around all of them
GAP = 0.06  # share of the width between two slices
INACTIVE_POSITION = -0.32
MIN_CORRELATION, MIN_TRIALS = 0.3, 8  # from which on a rank correlation is worth mentioning
BEST_MARKER = {"color": "@blue", "size": 9, "symbol": "diamond"}
OTHER_MARKER = {"color": "@grey:0.6", "size": 6, "symbol": "circle"}
MARKS: dict[str, Mark] = {
    **{"diamond": "diamond", "circle": "point", "triangle-down": "triangle", "x-thin-open": "cross"}
}
SLICE_HOVER = "<b>trial %{customdata[0]}</b><br>%{meta[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>"


def importance_figure(importance: Importance) -> Figure:
    """Return a bar for each hyperparameter."""
    names = list(importance.shares)[:MAX_BARS]
    shares = 100.0 * np.array([importance.shares[name] for name in names])
    hover = [printable(name, IN_HOVER) for name in names]
    bars = trace(
        type="bar", orientation="h", x=rounded(shares), y=list(range(len(names))), customdata=hover,
        marker={"color": "@blue"}, width=0.6, hovertemplate=IMPORTANCE_HOVER, texttemplate="%{x:.0f}%",
        textposition="outside", cliponaxis=False,
    )  # fmt: skip
    rows = [(printable(name), 100.0 * share) for name, share in importance.shares.items()]
    left_out = f" Not assessed: {join_names(importance.unassessed)}." if importance.unassessed else ""
    (first, share), *others = importance.shares.items()
    caption = f"{printable(first)} sets the best {importance.best} of {plural(importance.trials, 'trial')} apart most, "
    caption += f"with {percent(share)} of the difference"
    if others and others[0][1] > 0:
        caption += f"; {printable(others[0][0])} follows with {percent(others[0][1])}"
    table = simple_table("Importance of hyperparameters", [("name", ""), ("importance in %", ".1f")], rows)
    x = {"title": {"text": "importance (%)"}, "range": [0, max(1.12 * shares.max(), 1.0)]}
    layout = {"xaxis": x, "yaxis": name_axis(names)}
    height, more = max(rows_height(len(names)), HEIGHT + MARGINS), f"{PED_ANOVA}{left_out}"
    return Figure(IMPORTANCE_QUESTION, f"{caption}.", (bars,), layout, table, height=height, more=more)


def slice_figures(data: RunData, axes: Sequence[HyperparameterAxis]) -> list[Figure]:
    """Return the values against hyperparameters with an order, and against choices; none if there are no values."""
    if data.run.best is None:
        return []
    figures = []
    if ordered := [axis for axis in axes if axis.ordered]:
        figures.append(_slices(data, ordered, ORDERED_QUESTION, *_trends(data.run, ordered)))
    if choices := [axis for axis in axes if not axis.ordered]:
        figures.append(_slices(data, choices, CHOICES_QUESTION, *_choices(data.run, choices)))
    return figures


def _slices(data: RunData, axes: Sequence[HyperparameterAxis], question: str, caption: str, table: Table) -> Figure:
    run = data.run
    scale = value_axis(run)
    failed = [place for place, trial in enumerate(run.trials) if trial.state is FAILED]
    keep = [*best_trials(run), *failed[:: max(1, len(failed) // MAX_FAILED)]]
    rows = thinned(len(run), MAX_TRIALS, keep=keep)
    groups = _groups(data, rows)
    traces: list[Spec] = []
    layout: dict[str, Any] = {}
    keys: dict[str, list[int]] = {label: [] for label, *_ in groups}
    height = math.ceil(len(axes) / 2) * (HEIGHT + BETWEEN) - BETWEEN
    for place, axis in enumerate(axes):
        for label, own, marker in reversed(groups):  # the best on top
            keys[label].append(len(traces))
            traces.append(_dots(data, axis, own, scale=scale, marker=marker, place=place))
        alone = place == len(axes) - 1 and place % 2 == 0  # it has its row for itself
        layout |= _slice_axes(axis, place, width=1.0 if alone else (1.0 - GAP) / 2, height=height, scale=scale)
    legend = tuple(
        LegendKey(label, tuple(keys[label]), str(marker["color"])[1:].split(":")[0], mark=MARKS[str(marker["symbol"])])
        for label, _, marker in groups
    )
    more, high = _remarks(data, axes, hidden=len(run) - len(rows)), height + MARGINS
    scaling: dict[str, Any] = {"log_axis": "yaxis" if scale.low > 0 else "", "log_on": scale.log}
    figure = Figure(question, caption, tuple(traces), layout, table, height=high, keys=legend, more=more, trials=True)
    return replace(figure, **scaling)


def _groups(data: RunData, rows: Sequence[int]) -> list[tuple[str, list[int], dict[str, Any]]]:
    best, states = set(best_trials(data.run)), data.states
    every = [
        (best_label(best), [row for row in rows if row in best], BEST_MARKER),
        ("other trials", [row for row in rows if states[row] == "finished" and row not in best], OTHER_MARKER),
        ("pruned", [row for row in rows if states[row] == "pruned" and row not in best], PRUNED_MARKER),
        ("failed", [row for row in rows if states[row] == "failed"], FAILED_MARKER),
    ]
    return [group for group in every if group[1]]


def _dots(
    data: RunData, axis: HyperparameterAxis, rows: Sequence[int], *, scale: ValueAxis, marker: Spec, place: int
) -> Spec:
    run = data.run
    values = np.nan_to_num(trial_values(run)[list(rows)], nan=scale.failed)
    suffix = str(place + 1) if place else ""
    hover = [[data.numbers[row], axis.text_in(run.trials[row].config), _outcome(run.trials[row])] for row in rows]
    x = rounded(np.nan_to_num(axis.positions[list(rows)], nan=INACTIVE_POSITION))
    where = {"x": x, "y": rounded(values, 6), "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
    text = {"meta": [printable(axis.name, IN_HOVER)], "customdata": hover}
    return {**where, **text, "mode": "markers", "marker": marker, "hovertemplate": SLICE_HOVER}


def _outcome(trial: Trial) -> str:
    return trial.state.value if trial.value is None else f"value {number_text(trial.value)}"


def _slice_axes(axis: HyperparameterAxis, place: int, *, width: float, height: int, scale: ValueAxis) -> dict[str, Any]:
    """Return the two axes of a slice; width: share of the figure."""
    row, column = divmod(place, 2)
    suffix = str(place + 1) if place else ""
    top = height - row * (HEIGHT + BETWEEN)
    left = column * (width + GAP)
    ticks = list(axis.ticks)
    if axis.sometimes_inactive:  # numbers have room for their ends only
        ticks = [*([ticks[0], ticks[-1]] if axis.ordered else ticks), (INACTIVE_POSITION, INACTIVE_LABEL)]
    value = scale.layout("" if column else "value") | ({"showticklabels": False} if column else {})
    x = trace(
        title={"text": printable(axis.name, 20), "standoff": 4}, domain=rounded([left, left + width]),
        anchor=f"y{suffix}", range=[INACTIVE_POSITION - 0.12 if axis.sometimes_inactive else -0.07, 1.07],
        tickvals=[round(at, 4) for at, _ in ticks], ticktext=[text for _, text in ticks], tickangle=0, zeroline=False,
    )  # fmt: skip
    domain = rounded([(top - HEIGHT) / height, top / height])
    y = trace(**value, **({"matches": "y"} if place else {}), domain=domain, anchor=f"x{suffix}", nticks=5)
    return {f"xaxis{suffix}": x, f"yaxis{suffix}": y}


def _trends(run: Run, axes: Sequence[HyperparameterAxis]) -> tuple[str, Table]:
    """Return Spearman's correlations of value and position as a caption and a table."""
    from scipy.stats import spearmanr

    values, correlations, rows = trial_values(run), {}, []
    for axis in axes:
        both = np.isfinite(values) & np.isfinite(axis.positions)
        x, y = axis.positions[both], values[both]
        if len(x) >= MIN_TRIALS and np.ptp(x) > 0 and np.ptp(y) > 0:
            correlations[axis.name] = float(spearmanr(x, y).statistic)
        rows.append((printable(axis.name), correlations.get(axis.name), int(np.isfinite(axis.positions).sum())))
    columns = [("name", ""), ("rank correlation with the value", ".2f"), ("trials that use it", ".0f")]
    return _trend_caption(correlations), simple_table("Hyperparameters and values", columns, rows)


def _trend_caption(correlations: dict[str, float]) -> str:
    name = max(correlations, key=lambda name: abs(correlations[name]), default="")
    if not name:
        return "There are too few trials to say how values change with a single hyperparameter."
    if abs(correlations[name]) < MIN_CORRELATION:
        return f"No single hyperparameter orders the values: all rank correlations are below {MIN_CORRELATION:g}."
    way = "rise" if correlations[name] > 0 else "fall"
    return f"Values {way} most clearly with growing {printable(name)} (rank correlation {correlations[name]:+.2f})."


def _choices(run: Run, axes: Sequence[HyperparameterAxis]) -> tuple[str, Table]:
    """Return the median values of choices as a caption and a table."""
    medians = {axis.name: _choice_medians(run, axis) for axis in axes}
    columns = [("name", ""), ("choice", ""), ("median value", ".4g"), ("trials", ".0f")]
    rows = [(printable(name), choice, *pair) for name, choices in medians.items() for choice, pair in choices.items()]
    return _choice_caption(medians), simple_table("Choices and values", columns, rows)


def _choice_medians(run: Run, axis: HyperparameterAxis) -> dict[str, tuple[float, int]]:
    """Return the median value of each choice and its number of trials; the best choice first."""
    values = trial_values(run)
    medians: dict[str, tuple[float, int]] = {}
    for position in np.unique(axis.positions[np.isfinite(axis.positions)]):
        own = values[(axis.positions == position) & np.isfinite(values)]
        if len(own):
            medians[axis.text_at(position)] = (float(np.median(own)), len(own))
    return dict(sorted(medians.items(), key=lambda pair: pair[1][0], reverse=run.direction == "maximize"))


def _choice_caption(medians: dict[str, dict[str, tuple[float, int]]]) -> str:
    several = {name: list(choices.items()) for name, choices in medians.items() if len(choices) > 1}
    if not several:
        return "No two choices of the same hyperparameter succeeded."
    name, choices = max(several.items(), key=lambda pair: abs(pair[1][0][1][0] - pair[1][-1][1][0]))
    (best, (low, times)), (worst, (high, others)) = choices[0], choices[-1]
    return (
        f"For {printable(name)}, {best} has the best median value, {number_text(low)} ({plural(times, 'trial')}), and "
        f"{worst} the worst, {number_text(high)} ({plural(others, 'trial')})."
    )


def _remarks(data: RunData, axes: Sequence[HyperparameterAxis], *, hidden: int) -> str:
    remarks = []
    if data.failed or data.pruned:
        above = "above" if data.run.direction == "minimize" else "below"
        remarks.append(f"Crosses {above} all values are failed trials, triangles pruned ones.")
    if any(axis.sometimes_inactive for axis in axes):
        off = f"\N{LEFT DOUBLE QUOTATION MARK}{INACTIVE_LABEL}\N{RIGHT DOUBLE QUOTATION MARK}"
        remarks.append(f"Trials at {off} do not use the hyperparameter.")
    if hidden:
        remarks.append(f"{hidden:,} of {len(data.run):,} trials are not drawn.")
    return " ".join(remarks)
