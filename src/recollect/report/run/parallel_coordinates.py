"""Parallel coordinates: a row for each hyperparameter, a line for each trial, its rank in the last row.

They stand upright, with names on the left, so names never overlap and a narrow screen shows as many as a wide one. A
line goes to the left edge where a hyperparameter is inactive, and to the right edge of the last row if the trial
failed. Dragging along a row selects trials, in the figure and in the table of all trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect._text import plural
from recollect.analysis.run_data import RunData
from recollect.analysis.run_progress import best_trials, value_ranks
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import Figure, LegendKey, Spec, name_axis, rounded, trace
from recollect.report.formatting import ON_AXIS, join_names, number_text, printable, thinned
from recollect.report.run.axes import INACTIVE_LABEL, HyperparameterAxis, best_label
from recollect.report.table import Table, simple_table
from recollect.runs.run import Config, Run, Trial

COORDINATES_QUESTION = "What do the best trials have in common?"
RANK_LABEL = "rank of the value"
ROW_HEIGHT = 60  # pixels
NAME_LENGTH = 18  # characters of a name on the left
MAX_LINES, MAX_RARE_LINES, MAX_TABLE_ROWS = (
    200,
    50,
    100,
)  # lines of trials, of failed and pruned ones, rows of the table
OFF_POSITION, FAILED_POSITION = -0.16, 1.16
EDGE = 0.12  # share of an axis at both ends, in which labels stay inside
NARROW, WIDE = 0.25, 0.5  # shares of an axis: the best trials agree where they span less and all trials span more
STEPS = 21  # positions along an axis whose values the sliders can name
COORDINATES_HOVER = "<b>trial %{customdata[0]}</b><br>%{customdata[1]}<extra></extra>"
PALE = {"color": "@pale:0.6", "width": 0.8}
MORE = (
    "Drag along a row, or open \N{LEFT DOUBLE QUOTATION MARK}Select ranges\N{RIGHT DOUBLE QUOTATION MARK}, to select "
    "trials: the others turn pale, and the table of all trials shows the selection. A click on a selected row ends it."
)


@dataclass(frozen=True, slots=True)
class _Group:
    """Trials that are drawn alike: rows of the run."""

    label: str
    rows: list[int]
    line: dict[str, Any]


def parallel_coordinates_figure(data: RunData, axes: Sequence[HyperparameterAxis]) -> Figure | None:
    """Return the trials as lines through their hyperparameters; None if nothing varies."""
    run = data.run
    if not axes or not run.trials:
        return None
    best = best_trials(run)
    groups, hidden = _groups(data, best)
    names = [*(printable(axis.name, NAME_LENGTH) for axis in axes), RANK_LABEL]
    matrix = _positions(run, axes)
    low = OFF_POSITION - 0.08 if any(axis.sometimes_inactive for axis in axes) else -0.03
    high = FAILED_POSITION + 0.08 if data.failed or data.pruned else 1.03
    lines = [_lines(data, axes, matrix, group) for group in groups]
    nothing = _lines(data, axes, matrix, _Group("", [], PALE))
    keys = [
        LegendKey(group.label, (place,), group.line["color"][1:].split(":")[0], str(group.line.get("dash", "")))
        for place, group in enumerate(groups, start=1)
    ]
    layout = {
        "xaxis": {"visible": False, "range": [low, high], "fixedrange": True},
        "yaxis": {**name_axis(names), "range": [len(names) - 0.4, -0.4], "showgrid": True},
        "annotations": _labels(run, axes),
        "margin": {"b": 12},
        "dragmode": False,
    }
    caption, table = _caption(run, axes, best), _trial_table(data, axes)
    drawn = f" {plural(hidden, 'line')} of other trials {'is' if hidden == 1 else 'are'} not drawn." if hidden else ""
    return Figure(
        COORDINATES_QUESTION, caption, (nothing, *lines), layout, table, height=20 + ROW_HEIGHT * len(names),
        keys=tuple(reversed(keys)), more=f"{MORE}{drawn}", trials=True, wide=True,
        brush=_brush(data, axes, matrix, groups),
    )  # fmt: skip


def _groups(data: RunData, best: Sequence[int]) -> tuple[list[_Group], int]:
    """Return what is drawn, the best on top, and how many trials are not drawn."""
    states, chosen = data.states, set(best)
    rows = {
        state: [row for row, own in enumerate(states) if own == state and row not in chosen]
        for state in ("finished", "pruned", "failed")
    }
    most = {"finished": MAX_LINES, "pruned": MAX_RARE_LINES, "failed": MAX_RARE_LINES}
    drawn = {state: [own[place] for place in thinned(len(own), most[state])] for state, own in rows.items()}
    rare = {"width": 1.2, "dash": "4px,3px"}
    groups = [
        _Group(f"the other {len(rows['finished'])}", drawn["finished"], {"color": "@grey:0.4", "width": 1}),
        _Group(f"pruned ({len(rows['pruned'])})", drawn["pruned"], {"color": "@orange:0.7", **rare, "dash": "2px,2px"}),
        _Group(f"failed ({len(rows['failed'])})", drawn["failed"], {"color": "@vermillion:0.6", **rare}),
        _Group(best_label(best), list(best), {"color": "@blue", "width": 2.4}),
    ]
    hidden = sum(len(rows[state]) - len(drawn[state]) for state in rows)
    return [group for group in groups if group.rows], hidden


def _positions(run: Run, axes: Sequence[HyperparameterAxis]) -> FloatArray:
    """Return the positions (n, a + 1) of all trials on the axes and in the last row; nan where one is inactive."""
    ranks = value_ranks(run)
    ends = np.where(np.isnan(ranks), FAILED_POSITION, (ranks - 1) / max(len(run.succeeded) - 1, 1))
    return np.column_stack([*(axis.positions for axis in axes), ends])


def _lines(data: RunData, axes: Sequence[HyperparameterAxis], matrix: FloatArray, group: _Group) -> Spec:
    """Trials as one trace, with gaps between their lines."""
    x, y, hover = list[Any](), list[Any](), list[Any]()
    for row in group.rows:
        trial, number = data.run.trials[row], data.numbers[row]
        x += [*rounded(np.nan_to_num(matrix[row], nan=OFF_POSITION), 3), None]
        y += [*range(len(axes) + 1), None]
        hover += [[number, text] for text in (*(_setting(axis, trial.config) for axis in axes), _outcome(trial), "")]
    return {
        "x": x,
        "y": y,
        "customdata": hover,
        "mode": "lines",
        "line": group.line,
        "hovertemplate": COORDINATES_HOVER,
    }


def _brush(
    data: RunData, axes: Sequence[HyperparameterAxis], matrix: FloatArray, groups: Sequence[_Group]
) -> dict[str, Any]:
    """Return what the page needs to select trials by ranges."""
    steps = np.linspace(0.0, 1.0, STEPS)
    count = max(len(data.run.succeeded), 1)
    texts = [[axis.text_at(float(step)) for step in steps] for axis in axes]
    texts.append([str(round(1 + step * (count - 1))) for step in steps])
    return {
        "numbers": list(data.numbers),
        "positions": rounded(matrix.T, 3),
        "lines": [[data.numbers[row] for row in group.rows] for group in groups],
        "names": [*(printable(axis.name, NAME_LENGTH) for axis in axes), RANK_LABEL],
        "texts": texts,
        "limits": [OFF_POSITION, FAILED_POSITION],
    }


def _outcome(trial: Trial) -> str:
    return trial.state.value if trial.value is None else f"value {number_text(trial.value)}"


def _setting(axis: HyperparameterAxis, config: Config) -> str:
    return f"{printable(axis.name, ON_AXIS)}: {printable(axis.text_in(config), ON_AXIS)}"


def _labels(run: Run, axes: Sequence[HyperparameterAxis]) -> list[Spec]:
    """Values below the rows; those at the ends stay inside."""
    count = len(run.succeeded)
    off = [(OFF_POSITION, INACTIVE_LABEL)]
    rows = [(*axis.ticks, *(off if axis.sometimes_inactive else [])) for axis in axes]
    ranks = [(0.0, "1 (best)"), (1.0, str(count))] if count > 1 else [(0.0, "1")] if count else []
    ranks += [(FAILED_POSITION, "no value")] if count < len(run) else []
    style = {"showarrow": False, "yanchor": "top", "yshift": -3, "borderpad": 1, "bgcolor": "@card"}
    font, labels = {"color": "@soft", "size": 11}, []
    for row, ticks in enumerate([*rows, tuple(ranks)]):
        for place, text in (tick for tick in ticks if tick[1]):
            anchor = "left" if 0.0 <= place < EDGE else "right" if 1.0 - EDGE < place <= 1.0 else "center"
            labels.append(trace(x=round(place, 4), y=row, text=text, xanchor=anchor, **style, font=font))
    return labels


def _caption(run: Run, axes: Sequence[HyperparameterAxis], best: Sequence[int]) -> str:
    if not best:
        return "No trial succeeded, so there is no best one."
    if len(best) == 1:
        return f"The best trial has {join_names([_setting(axis, run.configs[best[0]]) for axis in axes])}."
    return f"The best {len(best)} of {plural(len(run.succeeded), 'trial')} {_similarities(axes, best)}."


def _similarities(axes: Sequence[HyperparameterAxis], best: Sequence[int]) -> str:
    """Say where the best trials lie closer together than all trials."""
    close = []
    for axis in axes:
        own, every = (some[np.isfinite(some)] for some in (axis.positions[list(best)], axis.positions))
        if len(own) < 2 or 2 * len(own) < len(best) or np.ptp(every) < WIDE:
            continue
        if (np.ptp(own) <= NARROW) if axis.ordered else len(np.unique(own)) == 1:
            used = "" if len(own) == len(best) else ", where it is used"
            close.append(f"{printable(axis.name)} ({axis.range_text(own)}{used})")
    if not close:
        return "do not lie close together in any single hyperparameter"
    return f"lie close together in {join_names(close)}, where all trials lie far apart"


def _trial_table(data: RunData, axes: Sequence[HyperparameterAxis]) -> Table:
    run = data.run
    ranks = value_ranks(run)
    order = np.argsort(np.where(np.isnan(ranks), np.inf, ranks), kind="stable")[:MAX_TABLE_ROWS]
    columns = [("trial", ".0f"), ("value", ".4g"), *((printable(axis.name, 40), "") for axis in axes)]
    rows = []
    for row in order.tolist():
        trial = run.trials[row]
        settings = [axis.text_in(trial.config, INACTIVE_LABEL) for axis in axes]
        rows.append((data.numbers[row], trial.state.value if trial.value is None else trial.value, *settings))
    some = f"the best {MAX_TABLE_ROWS} of {len(run)}" if len(run) > MAX_TABLE_ROWS else "best first"
    return simple_table(f"Trials, {some}", columns, rows)
