"""Heat maps of tasks: which rank configurations alike, and which past tasks influenced which.

Columns have only numbers, so that nothing overlaps on a narrow screen: those of the rows if both are the same tasks,
otherwise those of a table. Pointing at a cell shows both names. Notation: ``similarity (k, k)`` rank correlations of
tasks; nan where a model is flat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from recollect.analysis.source_usefulness import TransferMatrix
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.report.figure import BELOW_TICKS, Figure, colour_bar, packed, rounded, rows_height, trace
from recollect.report.formatting import IN_HOVER, ON_AXIS, join_names, printable, thinned
from recollect.report.table import Table, link_cell, simple_table

SIMILARITY_HOVER = "<b>%{y}</b><br>%{x}<br>rank correlation %{z:.2f}<extra></extra>"
TRANSFER_HOVER = "<b>%{y}</b><br>learned from %{x}<br>mean weight %{z:.1f}%<extra></extra>"
SCALE = "1: two tasks rank configurations in the same order; 0: one says nothing about the other; -1: opposite orders."
MAX_TASKS = 1000  # rows and columns of the map of similarities, which is square and at most 600 pixels wide
MAX_MATRIX_TASKS = 150  # rows and columns of the map of weights
MAX_LABELS = 15  # rows of a square map that have a name beside them
MAX_MATRIX = 12  # tasks up to which the table has all correlations
MIN_WEIGHT = 0.01  # mean weight from which on a past task counts as having influenced another
MAX_SOURCES_NAMED = 3
MAX_SHOWN_ROWS = 8  # of a table that is open at first
MAX_LABELLED_ROWS, MAX_HEIGHT = 22, 600  # rows that have a name beside them; pixels
MIN_ROWS = 7  # rows that a heat map has room for at least, so that the title of its scale fits
ALL_NUMBERED, MAX_NUMBERS = 10, 5  # columns up to which all are numbered, and how many numbers there are beyond
STEPS = (5, 10, 20, 50)
CORRELATION = ("correlation with it", ".2f")


def similarity_figure(tasks: Sequence[str], similarity: FloatArray, order: IntArray) -> Figure | None:
    """Return the heat map of all tasks in this order; None with fewer than two."""
    if len(order) < 2:
        return None
    modelled = order[~np.isnan(np.diag(similarity))[order]]
    modelled = modelled if len(modelled) > 1 else order
    chosen = modelled[thinned(len(modelled), MAX_TASKS)]
    names = [tasks[place] for place in chosen]
    matrix = similarity[np.ix_(chosen, chosen)]
    shown = unique_names(names)
    colours = [[0, "@vermillion"], [0.5, "@card"], [1, "@blue"]]
    sentences = [SCALE, "Point at a cell for its two tasks."]
    if len(order) > 2:
        sentences.append("Similar tasks are neighbours.")
    if len(modelled) > MAX_TASKS:
        sentences.append(f"{MAX_TASKS} of the {len(modelled)} tasks are shown, spread evenly over that order.")
    if flat := [tasks[place] for place in order if np.isnan(similarity[place, place])]:
        sentences.append(f"Without a place, since their values show no pattern: {join_names(flat)}.")
    style = {"hovertemplate": SIMILARITY_HOVER, "colorbar": colour_bar("rank correlation")}
    smooth = {"zsmooth": "fast"} if len(names) > MAX_MATRIX_TASKS else {}  # a picture instead of a million cells
    z = packed(matrix)
    heat = trace(type="heatmap", x=shown, y=shown, z=z, zmin=-1, zmax=1, colorscale=colours, **style, **smooth)
    caption = _similarity_caption([tasks[place] for place in order], similarity[np.ix_(order, order)])
    layout, table, more = _square_axes(shown, names), _similarity_table(names, matrix), " ".join(sentences)
    return Figure("Which tasks are alike?", caption, (heat,), layout, table, square=True, more=more)


def transfer_figure(matrix: TransferMatrix, order: Sequence[str]) -> Figure:
    """Return the heat map of weights; order: tasks in the order of the rows."""
    places = {name: place for place, name in enumerate(order)}
    every = sorted(range(len(matrix.tasks)), key=lambda row: places.get(matrix.tasks[row], len(places)))
    rows = [every[place] for place in thinned(len(every), MAX_MATRIX_TASKS)]
    tasks = [matrix.tasks[row] for row in rows]
    x, y = unique_names(matrix.sources[:MAX_MATRIX_TASKS]), unique_names(tasks)
    labels = [printable(name, ON_AXIS) for name in tasks]
    sentences = []
    if max(matrix.weights.shape) > MAX_MATRIX_TASKS:
        sentences.append(
            f"At most {MAX_MATRIX_TASKS} tasks and the {MAX_MATRIX_TASKS} most influential past tasks are shown."
        )
    counts = (matrix.weights >= MIN_WEIGHT).sum(axis=0)
    if counts.max() > 1:
        widest = int(np.argmax(counts))
        sentences.append(f"{printable(matrix.sources[widest])} influenced most tasks ({counts[widest]}).")
    largest = zip(matrix.sources, matrix.weights.max(axis=0), strict=True)
    if idle := [name for name, weight in largest if weight < MIN_WEIGHT]:
        sentences.append(f"Weighed, but below {MIN_WEIGHT:.0%} everywhere: {join_names(idle)}.")
    z, colours = rounded(100.0 * matrix.weights[rows, :MAX_MATRIX_TASKS], 3), [[0, "@card"], [1, "@blue"]]
    style = {"hovertemplate": TRANSFER_HOVER, "colorbar": colour_bar("mean weight, %")}
    heat = trace(type="heatmap", x=x, y=y, z=z, zmin=0, colorscale=colours, **style)
    caption, height, more = _transfer_caption(matrix), _grid_height(len(tasks)), " ".join(sentences)
    layout, table = _grid_axes(y, x, labels, "past task, by influence"), _task_table(matrix, every)
    shown = len(tasks) <= MAX_SHOWN_ROWS
    question = "Which tasks learned from which?"
    return Figure(question, caption, (heat,), layout, table, height=height, more=more, numbers_shown=shown)


def source_influence_table(matrix: TransferMatrix, urls: Mapping[str, str | None] = MappingProxyType({})) -> Table:
    """Return what each past task contributed to others; urls: their pages, by name."""
    columns = [
        *(("past task", ""), ("column above", "d"), ("tasks influenced", "d"), ("mean weight there, %", ".1f")),
        *(("most on", ""), ("weight there, %", ".1f"), ("dropped, %", ".0f")),
    ]
    rows = []
    for place, source in enumerate(matrix.sources):
        weights = matrix.weights[:, place]
        influenced = weights[weights >= MIN_WEIGHT]
        most = int(np.argmax(weights))
        largest = float(weights[most]) or None
        mean = 100 * float(influenced.mean()) if len(influenced) else None
        on = (printable(matrix.tasks[most]), 100 * largest) if largest else ("", None)
        drop_rate = 100 * float(matrix.drop_rates[place])
        rows.append((link_cell(source, urls.get(source)), place + 1, len(influenced), mean, *on, drop_rate))
    note = (
        f"A past task influences a task if its mean weight behind the suggestions is at least {MIN_WEIGHT:.0%}. "
        "Dropped: share of the suggestions from which it was dropped as misleading."
    )
    return simple_table("What did past tasks contribute to others?", columns, rows, note)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names as shown when pointed at; those that look the same once shortened get a number."""
    shown = [printable(name, IN_HOVER) for name in names]
    counts, seen = Counter(shown), Counter[str]()
    unique = []
    for text in shown:
        seen[text] += 1
        unique.append(text if counts[text] == 1 else f"{text} [{seen[text]}]")
    return unique


def _grid_axes(rows: Sequence[str], columns: Sequence[str], labels: Sequence[str], title: str) -> dict[str, Any]:
    """Return the axes of a heat map; rows, columns: from `unique_names`; labels: of the rows; title: of the columns."""
    small = {"showticklabels": False, "ticks": ""} if len(rows) > MAX_LABELLED_ROWS else {}
    step = 1 if len(columns) <= ALL_NUMBERED else next(step for step in STEPS if len(columns) <= MAX_NUMBERS * step)
    places = range(step - 1, len(columns), step)
    common = {"type": "category", "showgrid": False, "zeroline": False, "fixedrange": True}
    y = trace(tickvals=rows, ticktext=labels, range=[len(rows) - 0.5, -0.5], automargin=True, **common, **small)
    x = trace(
        tickvals=[columns[place] for place in places], ticktext=[str(place + 1) for place in places],
        range=[-0.5, len(columns) - 0.5], tickangle=0, title={"text": title, "standoff": BELOW_TICKS}, **common,
    )  # fmt: skip
    return {"yaxis": y, "xaxis": x}


def _square_axes(shown: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return the axes of a square map; many tasks have no names beside it, since they could not be read."""
    style = {"type": "category", "showgrid": False, "zeroline": False, "ticks": ""}
    if len(names) > MAX_LABELS:
        hidden = {**style, "showticklabels": False}
        return {"xaxis": hidden, "yaxis": {**hidden, "autorange": "reversed"}, "margin": {"l": 8, "r": 8, "b": 8}}
    y = {**style, "autorange": "reversed", "tickvals": list(shown), "ticktext": [printable(name, 14) for name in names]}
    return {"xaxis": {**style, "showticklabels": False}, "yaxis": y, "margin": {"r": 8, "b": 8}}


def _grid_height(rows: int) -> int:
    """Return a height at which a few rows can be read, and many still fit on a screen."""
    return min(rows_height(max(rows, MIN_ROWS)), MAX_HEIGHT)


def _similarity_caption(names: Sequence[str], similarity: FloatArray) -> str:
    first, second = np.triu_indices(len(names), k=1)
    pairs = similarity[first, second]
    known = ~np.isnan(pairs)
    if not known.any():
        return "No two tasks can be compared."

    def pair(place: int) -> str:
        both = f"{printable(names[first[place]])} and {printable(names[second[place]])}"
        return f"{both} ({_correlation_text(pairs[place])})"

    caption = f"The mean rank correlation of two tasks is {_correlation_text(float(np.mean(pairs[known])))}"
    if known.sum() > 1:
        caption += f"; most alike are {pair(int(np.nanargmax(pairs)))}, least {pair(int(np.nanargmin(pairs)))}"
    return f"{caption}."


def _correlation_text(value: float) -> str:
    text = f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _similarity_table(names: Sequence[str], similarity: FloatArray) -> Table:
    """Return all correlations of a few tasks; of many, those of each with the most and the least similar one."""
    columns = [("task", ""), *((printable(name), ".2f") for name in names)]
    rows = [(printable(name), *line) for name, line in zip(names, similarity.tolist(), strict=True)]
    if len(names) > MAX_MATRIX:
        extremes = [("most alike", ""), CORRELATION, ("least alike", ""), CORRELATION]
        columns = [("task", ""), ("mean with the others", ".2f"), *extremes]
        rows = [_extremes(names, similarity, place) for place in range(len(names))]
    return simple_table("Rank correlations of tasks", columns, rows)


def _extremes(names: Sequence[str], similarity: FloatArray, place: int) -> tuple[Any, ...]:
    line = similarity[place].copy()
    line[place] = np.nan
    task = printable(names[place])
    if np.isnan(line).all():
        return (task, None, "", None, "", None)
    high, low = int(np.nanargmax(line)), int(np.nanargmin(line))
    mean = float(np.nanmean(line))
    return (task, mean, printable(names[high]), float(line[high]), printable(names[low]), float(line[low]))


def _task_table(matrix: TransferMatrix, order: Sequence[int]) -> Table:
    columns = [
        *(("task", ""), ("trials with known weights", "d"), ("weight of its own model, %", ".1f")),
        *(("weight of past tasks, %", ".1f"), ("most from", "")),
    ]
    rows = []
    for row in order:
        weights, own = matrix.weights[row], float(matrix.target_weights[row])
        largest = [place for place in np.argsort(-weights, kind="stable")[:MAX_SOURCES_NAMED] if weights[place]]
        most_from = [f"{printable(matrix.sources[place])} ({weights[place]:.0%})" for place in largest]
        task, trials = printable(matrix.tasks[row]), int(matrix.trials[row])
        rows.append((task, trials, 100 * own, 100 * (1 - own), ", ".join(most_from)))
    return simple_table("What each task learned from", columns, rows)


def _transfer_caption(matrix: TransferMatrix) -> str:
    count = len(matrix.tasks)
    over = f", over {count} tasks with known weights" if count > 1 else f" for {printable(matrix.tasks[0])}"
    past = 1 - float(matrix.target_weights.mean())
    caption = f"On average, past tasks had {past:.0%} of the weight behind suggestions{over}"
    task, source = np.unravel_index(int(np.argmax(matrix.weights)), matrix.weights.shape)
    largest = float(matrix.weights[task, source])
    if largest > 0:
        names = f"{printable(matrix.sources[source])} on {printable(matrix.tasks[task])}"
        caption += f"; the strongest influence is {names} ({largest:.0%})"
    return f"{caption}."
