"""Which tasks rank configurations alike: Spearman's correlation of their models, neighbours beside each other.

Notation: ``agreement (k, k)`` correlations; nan where a model is flat.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.bench.statistics import rank_correlations
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.report.figure import Figure, Spec, decimals
from recollect.report.names import listed, named
from recollect.report.overview.grid import MOST, bar, grid_axes, grid_height, labels, thinned, unique_names
from recollect.report.overview.models import Models
from recollect.report.table import Column, Row, Table, number, word

HOVER = "<b>%{y}</b><br>%{x}<br>rank correlation %{z:.2f}<extra></extra>"
MATRIX = 12  # tasks up to which all correlations are written down


def agreement_of(models: Models) -> FloatArray:
    """Return how alike the tasks (k, k) order the common points; nan for a task whose model is flat."""
    agreement = rank_correlations(models.means)
    agreement[models.flat] = np.nan
    agreement[:, models.flat] = np.nan
    return agreement


def neighbours_first(agreement: FloatArray) -> IntArray:
    """Return an order (k,) of the tasks in which similar ones are neighbours; flat ones come last."""
    known = np.flatnonzero(~np.isnan(np.diag(agreement)))
    flat = np.flatnonzero(np.isnan(np.diag(agreement)))
    if len(known) > 2:
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        distance = 1.0 - agreement[np.ix_(known, known)]
        np.fill_diagonal(distance, 0.0)
        tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
        known = known[leaves_list(tree)]
    return np.concatenate([known, flat]).astype(np.intp)


def likeness_figure(models: Models, agreement: FloatArray, order: IntArray) -> Figure | None:
    """Return the heat map of all tasks in this order; None with fewer than two."""
    if len(order) < 2:
        return None
    chosen = order[thinned(len(order))]
    names = [models.tasks[place] for place in chosen]
    ordered = agreement[np.ix_(chosen, chosen)]
    shown = unique_names(names)
    heat: Spec = {
        "type": "heatmap",
        "x": shown,
        "y": shown,
        "z": decimals(ordered, 3),
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[0, "@vermillion"], [0.5, "@page"], [1, "@blue"]],
        "hovertemplate": HOVER,
        "colorbar": bar("rank correlation"),
    }
    return Figure(
        "Which tasks are alike?",
        _seen([models.tasks[place] for place in order], agreement[np.ix_(order, order)]),
        (heat,),
        grid_axes(shown, shown, labels(names, numbered=True), "task, numbered as the rows"),
        _numbers(names, ordered),
        height=grid_height(len(names)),
    )


def _seen(names: Sequence[str], agreement: FloatArray) -> str:
    flat = [name for name, own in zip(names, np.diag(agreement), strict=True) if np.isnan(own)]
    first, second = np.triu_indices(len(names), k=1)
    pairs = agreement[first, second]
    known = ~np.isnan(pairs)
    sentences = [
        "1: two tasks rank configurations in the same order; 0: one says nothing about the other; -1: opposite orders."
    ]
    if known.any():
        best, worst = int(np.nanargmax(pairs)), int(np.nanargmin(pairs))
        sentences.append(f"On average two tasks have {_rho(float(np.mean(pairs[known])))}.")
        if known.sum() > 1:
            sentences.append(
                f"Most alike are {named(names[first[best]])} and {named(names[second[best]])} ({_rho(pairs[best])}), "
                f"least {named(names[first[worst]])} and {named(names[second[worst]])} ({_rho(pairs[worst])})."
            )
    if len(names) > 2:
        sentences.append("Tasks that are alike stand beside each other.")
    if len(names) > MOST:
        sentences.append(f"Of the {len(names)} tasks {MOST} are shown, evenly chosen from that order.")
    if flat:
        sentences.append(f"Empty, since their values show no pattern: {listed(flat)}.")
    return " ".join(sentences)


def _rho(value: float) -> str:
    text = f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _numbers(names: Sequence[str], agreement: FloatArray) -> Table:
    """All correlations of a few tasks; of many, those of each with the most and the least similar one."""
    title = "Rank correlations of tasks"
    if len(names) <= MATRIX:
        columns = (Column("task", numeric=False), *(Column(named(name)) for name in names))
        rows: list[Row] = [
            (word(named(name)), *(number(float(value)) for value in line))
            for name, line in zip(names, agreement, strict=True)
        ]
        return Table(title, columns, (tuple(rows),))
    columns = (
        Column("task", numeric=False),
        Column("with the others, on average"),
        Column("most alike", numeric=False),
        Column("correlation with it"),
        Column("least alike", numeric=False),
        Column("correlation with it"),
    )
    return Table(title, columns, (tuple(_extremes(names, agreement, place) for place in range(len(names))),))


def _extremes(names: Sequence[str], agreement: FloatArray, place: int) -> Row:
    line = agreement[place].copy()
    line[place] = np.nan
    if np.isnan(line).all():
        return (word(named(names[place])), number(None), word(""), number(None), word(""), number(None))
    high, low = int(np.nanargmax(line)), int(np.nanargmin(line))
    return (
        word(named(names[place])),
        number(float(np.nanmean(line))),
        word(named(names[high])),
        number(float(line[high])),
        word(named(names[low])),
        number(float(line[low])),
    )
