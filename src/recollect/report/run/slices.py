"""Slices: the value of each trial against one hyperparameter after the other, side by side on one scale of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect.history.run import Run
from recollect.report.figure import Figure, Key, Spec, decimals
from recollect.report.names import IN_HOVER, named
from recollect.report.run.axes import OFF, Axis, value_text
from recollect.report.run.lines import best_trials
from recollect.report.run.values import ValueAxis, counted, numbers, shown, thinned, value_axis
from recollect.report.story import Story
from recollect.report.table import Column, Table, number, word

ORDERED = "Where along each hyperparameter are good values?"
CHOICES = "Which choices gave good values?"
MOST = 250  # trials in each slice
HEIGHT, BETWEEN, BELOW = 175, 58, 66  # pixels of a slice, between two of them, around all of them
GAP = 0.06  # part of the width between two slices
AT_OFF = -0.32
TELLING, ENOUGH = 0.3, 8  # rank correlations from which on, and trials from which on, they are worth a word
HOVER = "<b>trial %{customdata[0]}</b><br>%{meta[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>"


def slices_figures(story: Story, axes: Sequence[Axis]) -> list[Figure]:
    """Return the values against hyperparameters with an order, and against choices; none if there are no values."""
    if story.run.best is None:
        return []
    numeric, choices = ([axis for axis in axes if axis.ordered is ordered] for ordered in (True, False))
    figures = []
    if numeric:
        seen, numbers_ = _trend_words(story.run, numeric), _trend_table(story.run, numeric)
        figures.append(_figure(story, numeric, ORDERED, seen=seen, table=numbers_))
    if choices:
        seen, numbers_ = _choice_words(story.run, choices), _choice_table(story.run, choices)
        figures.append(_figure(story, choices, CHOICES, seen=seen, table=numbers_))
    return figures


def _figure(story: Story, axes: Sequence[Axis], question: str, *, seen: str, table: Table) -> Figure:
    run = story.run
    scale = value_axis(run)
    rows = _chosen(run)
    groups = _groups(run, rows)
    traces: list[Spec] = []
    layout: dict[str, Any] = {}
    keys: dict[str, list[int]] = {label: [] for label, *_ in groups}
    height = math.ceil(len(axes) / 2) * (HEIGHT + BETWEEN) - BETWEEN
    for place, axis in enumerate(axes):
        for label, own, marker in reversed(groups):  # the best on top
            keys[label].append(len(traces))
            traces.append(_dots(run, axis, own, scale=scale, marker=marker, place=place))
        layout |= _frame(axis, place, columns=min(len(axes), 2), height=height, scale=scale)
    return Figure(
        question,
        " ".join([seen, *_remarks(story, axes, hidden=len(run) - len(rows))]),
        tuple(traces),
        layout,
        table,
        height=height + BELOW,
        keys=tuple(
            Key(label, tuple(keys[label]), str(marker["color"])[1:].split(":")[0]) for label, _, marker in groups
        ),
    )


def _chosen(run: Run) -> list[int]:
    failed = [place for place, trial in enumerate(run.trials) if not trial.ok]
    keep = [*best_trials(run), *failed[:: max(1, len(failed) // 60)]]
    return thinned(len(run), MOST, keep=keep)


def _groups(run: Run, rows: Sequence[int]) -> list[tuple[str, list[int], dict[str, Any]]]:
    best = set(best_trials(run))
    ok = {place for place, trial in enumerate(run.trials) if trial.ok}
    diamond = {"color": "@blue", "size": 9, "symbol": "diamond"}
    cross = {"color": "@vermillion", "size": 8, "symbol": "x-thin-open", "line": {"width": 2}}
    every = [
        (f"the best {len(best)}", [row for row in rows if row in best], diamond),
        ("other trials", [row for row in rows if row in ok - best], {"color": "@grey:0.6", "size": 6}),
        ("failed", [row for row in rows if row not in ok], cross),
    ]
    return [group for group in every if group[1]]


def _dots(run: Run, axis: Axis, rows: Sequence[int], *, scale: ValueAxis, marker: dict[str, Any], place: int) -> Spec:
    values = np.nan_to_num(numbers(run)[list(rows)], nan=scale.failed)
    suffix = str(place + 1) if place else ""
    hover = []
    for row in rows:
        trial = run.trials[row]
        at = value_text(trial.config[axis.name]) if axis.name in trial.config else "inactive"
        hover.append([row + 1, at, "failed" if trial.value is None else f"value {shown(trial.value)}"])
    return {
        "x": decimals(np.nan_to_num(axis.places[list(rows)], nan=AT_OFF)),
        "y": decimals(values, 6),
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        "meta": [named(axis.name, IN_HOVER)],
        "customdata": hover,
        "mode": "markers",
        "marker": marker,
        "hovertemplate": HOVER,
    }


def _frame(axis: Axis, place: int, *, columns: int, height: int, scale: ValueAxis) -> dict[str, Any]:
    """Return the two axes of a slice."""
    row, column = divmod(place, columns)
    suffix = str(place + 1) if place else ""
    top = height - row * (HEIGHT + BETWEEN)
    width = (1.0 - GAP * (columns - 1)) / columns
    left = column * (width + GAP)
    ticks = [axis.ticks[0], axis.ticks[-1], (AT_OFF, OFF)] if axis.off and axis.ordered else list(axis.ticks)
    ticks += [(AT_OFF, OFF)] if axis.off and not axis.ordered else []
    value = scale.layout() if column == 0 else {**scale.layout(""), "matches": "y", "showticklabels": False}
    if place:
        value["matches"] = "y"
    return {
        f"xaxis{suffix}": {
            "title": {"text": named(axis.name, 20), "standoff": 4},
            "domain": decimals([left, left + width]),
            "anchor": f"y{suffix}",
            "range": [AT_OFF - 0.12 if axis.off else -0.07, 1.07],
            "tickvals": [round(at, 4) for at, _ in ticks],
            "ticktext": [text for _, text in ticks],
            "tickangle": 0,
            "zeroline": False,
        },
        f"yaxis{suffix}": {
            **value,
            "domain": decimals([(top - HEIGHT) / height, top / height]),
            "anchor": f"x{suffix}",
            "nticks": 5,
        },
    }


def _correlations(run: Run, axes: Sequence[Axis]) -> dict[str, float]:
    """Return Spearman's correlation of value and place for hyperparameters with an order."""
    from scipy.stats import spearmanr

    values = numbers(run)
    found = {}
    for axis in axes:
        known = np.isfinite(values) & np.isfinite(axis.places)
        x, y = axis.places[known], values[known]
        if axis.ordered and len(x) >= ENOUGH and np.ptp(x) > 0 and np.ptp(y) > 0:
            found[axis.name] = float(spearmanr(x, y).statistic)
    return found


def _trend_words(run: Run, axes: Sequence[Axis]) -> str:
    found = _correlations(run, axes)
    strongest = max(found, key=lambda name: abs(found[name]), default="")
    if not strongest:
        return "There are too few trials to say how values change with a single hyperparameter."
    if abs(found[strongest]) < TELLING:
        return f"None of them orders the values by itself: all rank correlations are below {TELLING:g}."
    way = "rise" if found[strongest] > 0 else "fall"
    return f"Values {way} most clearly with growing {named(strongest)} (rank correlation {found[strongest]:+.2f})."


def _trend_table(run: Run, axes: Sequence[Axis]) -> Table:
    found = _correlations(run, axes)
    columns = (
        Column("name", numeric=False),
        Column("rank correlation with the value"),
        Column("trials that use it"),
    )
    rows = tuple(
        (word(named(axis.name)), number(found.get(axis.name)), number(int(np.isfinite(axis.places).sum()), ".0f"))
        for axis in axes
    )
    return Table("Hyperparameters and values", columns, (rows,))


def _medians(run: Run, axis: Axis) -> dict[str, tuple[float, int]]:
    """Return the median value of each choice, and of how many trials; the best choice first."""
    values = numbers(run)
    found: dict[str, tuple[float, int]] = {}
    for place in np.unique(axis.places[np.isfinite(axis.places)]):
        own = values[(axis.places == place) & np.isfinite(values)]
        if len(own):
            found[axis.text(place)] = (float(np.median(own)), len(own))
    best_first = run.direction == "minimize"
    return dict(sorted(found.items(), key=lambda pair: pair[1][0], reverse=not best_first))


def _choice_words(run: Run, axes: Sequence[Axis]) -> str:
    found = {axis.name: _medians(run, axis) for axis in axes}
    several = {name: list(medians.items()) for name, medians in found.items() if len(medians) > 1}
    if not several:
        return "No two choices of the same hyperparameter were tried with success."
    name, medians = max(several.items(), key=lambda pair: abs(pair[1][0][1][0] - pair[1][-1][1][0]))
    (best, (low, times)), (worst, (high, others)) = medians[0], medians[-1]
    return (
        f"Of {named(name)}, {best} has the best median value, {shown(low)} ({counted(times, 'trial')}), {worst} the "
        f"worst, {shown(high)} ({counted(others, 'trial')})."
    )


def _choice_table(run: Run, axes: Sequence[Axis]) -> Table:
    columns = (Column("name", numeric=False), Column("choice", numeric=False), Column("median value"), Column("trials"))
    rows = tuple(
        (word(named(axis.name)), word(choice), number(median, ".4g"), number(count, ".0f"))
        for axis in axes
        for choice, (median, count) in _medians(run, axis).items()
    )
    return Table("Choices and values", columns, (rows,))


def _remarks(story: Story, axes: Sequence[Axis], *, hidden: int) -> list[str]:
    remarks = []
    if len(story.run.succeeded) < len(story.run):
        remarks.append(f"Crosses {'above' if story.run.direction == 'minimize' else 'below'} all values failed.")
    if any(axis.off for axis in axes):
        remarks.append(f"Trials at \N{LEFT DOUBLE QUOTATION MARK}{OFF}\N{RIGHT DOUBLE QUOTATION MARK} do not use it.")
    if hidden:
        remarks.append(f"Of {len(story.run):,} trials, {hidden:,} are not drawn.")
    return remarks
