"""Parallel coordinates, upright: a row for each hyperparameter, a line for each trial, its rank in the last row.

Names stand at the left, so that they never overlap, and a narrow screen shows as many as a wide one. A line goes to the
left edge where a hyperparameter is inactive, and to the right edge of the last row if the trial failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect.history.run import Run
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import Figure, Key, Spec, decimals, name_axis
from recollect.report.names import ON_AXIS, listed, named
from recollect.report.run.axes import OFF, Axis, ends_text, value_text
from recollect.report.run.values import counted, places, shown, thinned
from recollect.report.story import Story
from recollect.report.table import Column, Table, number, word

QUESTION = "What do the best trials have in common?"
RANK = "rank of the value"
ROW = 46  # pixels
NAME = 18  # signs of a name at the left
MOST, MOST_FAILED, MOST_ROWS = 200, 50, 100  # lines of trials, of failed ones, rows of the table
AT_OFF, AT_FAILED = -0.16, 1.16
PART, MOST_BEST = 0.1, 20
EDGE = 0.12  # part of an axis at both ends, in which labels stay inside
NARROW, WIDE = 0.25, 0.5  # parts of an axis: the best trials agree where they take less and all take more
HOVER = "<b>trial %{customdata[0]}</b><br>%{customdata[1]}<extra></extra>"


def lines_figure(story: Story, axes: Sequence[Axis]) -> Figure | None:
    """Return the trials as lines through their hyperparameters; None if nothing varies."""
    run = story.run
    if not axes or not run.trials:
        return None
    best, others, failed = _groups(run)
    kept = [others[place] for place in thinned(len(others), MOST)]
    gone = [failed[place] for place in thinned(len(failed), MOST_FAILED)]
    looks = (
        (f"the other {len(others)}", kept, "grey", {"color": "@grey:0.4", "width": 1}),
        (f"failed ({len(failed)})", gone, "vermillion", {"color": "@vermillion:0.6", "width": 1.2, "dash": "4px,3px"}),
        (f"the best {len(best)}", best, "blue", {"color": "@blue", "width": 2.4}),
    )
    traces: list[Spec] = []
    keys = []
    for label, rows, colour, line in looks:
        if rows:
            keys.append(Key(label, (len(traces),), colour, str(line.get("dash", ""))))
            traces.append(_lines(run, axes, rows, line))
    names = [*(named(axis.name, NAME) for axis in axes), RANK]
    return Figure(
        QUESTION,
        _seen(story, axes, best=best, hidden=len(others) + len(failed) - len(kept) - len(gone)),
        tuple(traces),
        {
            "xaxis": {"visible": False, "range": _ends(run, axes), "fixedrange": True},
            "yaxis": {**name_axis(names), "range": [len(names) - 0.4, -0.4], "showgrid": True},
            "annotations": _labels(run, axes),
            "margin": {"b": 8},
        },
        _numbers(run, axes),
        height=20 + ROW * len(names),
        keys=tuple(reversed(keys)),
    )


def best_trials(run: Run) -> list[int]:
    """Return the best tenth of the trials that succeeded, at least one: their places in the run."""
    ranks = places(run)
    ok = np.flatnonzero(np.isfinite(ranks))
    count = min(max(1, round(PART * len(ok))), MOST_BEST)
    return sorted(ok[np.argsort(ranks[ok], kind="stable")[:count]].tolist())


def _groups(run: Run) -> tuple[list[int], list[int], list[int]]:
    best = best_trials(run)
    failed = [place for place, trial in enumerate(run.trials) if not trial.ok]
    others = [place for place in range(len(run)) if place not in {*best, *failed}]
    return best, others, failed


def _ends(run: Run, axes: Sequence[Axis]) -> list[float]:
    low = AT_OFF - 0.08 if any(axis.off for axis in axes) else -0.03
    return [low, AT_FAILED + 0.08 if len(run.succeeded) < len(run) else 1.03]


def _lines(run: Run, axes: Sequence[Axis], rows: Sequence[int], line: dict[str, Any]) -> Spec:
    """Trials as one trace, with gaps between their lines."""
    ranks = _rank_places(run)
    matrix = np.column_stack([np.nan_to_num(axis.places, nan=AT_OFF) for axis in axes])
    x: list[Any] = []
    y: list[Any] = []
    hover: list[Any] = []
    for row in rows:
        trial = run.trials[row]
        x += [*decimals(np.append(matrix[row], ranks[row]), 3), None]
        y += [*range(len(axes) + 1), None]
        texts = [_at(axis, trial.config) for axis in axes]
        value = "failed" if trial.value is None else f"value {shown(trial.value)}"
        hover += [[row + 1, text] for text in (*texts, value)] + [[row + 1, ""]]
    return {"x": x, "y": y, "customdata": hover, "mode": "lines", "line": line, "hovertemplate": HOVER}


def _at(axis: Axis, config: dict[str, Any]) -> str:
    value = value_text(config[axis.name]) if axis.name in config else "inactive"
    return f"{named(axis.name, ON_AXIS)}: {named(value, ON_AXIS)}"


def _rank_places(run: Run) -> FloatArray:
    """Return where the lines end: from 0, the best, to 1; failed trials beyond."""
    ranks = places(run)
    last = max(len(run.succeeded) - 1, 1)
    return np.where(np.isnan(ranks), AT_FAILED, (ranks - 1) / last)


def _labels(run: Run, axes: Sequence[Axis]) -> list[Spec]:
    """Values below the rows; those of the ends stay inside."""
    count = len(run.succeeded)
    rows = [(*axis.ticks, *([(AT_OFF, OFF)] if axis.off else [])) for axis in axes]
    ranks = [(0.0, "1 (best)"), (1.0, str(count))] if count > 1 else [(0.0, "1")] if count else []
    ranks += [(AT_FAILED, "failed")] if count < len(run) else []
    return [
        {
            "x": round(place, 4),
            "y": row,
            "text": text,
            "showarrow": False,
            "xanchor": "left" if 0.0 <= place < EDGE else "right" if 1.0 - EDGE < place <= 1.0 else "center",
            "yanchor": "top",
            "yshift": -3,
            "borderpad": 1,
            "bgcolor": "@page:0.8",
            "font": {"color": "@soft", "size": 11},
        }
        for row, ticks in enumerate([*rows, tuple(ranks)])
        for place, text in ticks
        if text
    ]


def _seen(story: Story, axes: Sequence[Axis], *, best: Sequence[int], hidden: int) -> str:
    if not best:
        sentence = "No trial succeeded, so there is no best one."
    elif len(best) == 1:
        texts = [_at(axis, story.run.configs[best[0]]) for axis in axes]
        sentence = f"The best trial has {listed(texts)}."
    else:
        sentence = f"The best {len(best)} of {counted(len(story.run.succeeded), 'trial')} {_common(axes, best)}."
    if hidden:
        sentence += f" {counted(hidden, 'line')} of other trials {'is' if hidden == 1 else 'are'} not drawn."
    return sentence


def _common(axes: Sequence[Axis], best: Sequence[int]) -> str:
    """Say where the best trials lie closer together than all."""
    close = []
    for axis in axes:
        own, every = (some[np.isfinite(some)] for some in (axis.places[list(best)], axis.places))
        if len(own) < 2 or 2 * len(own) < len(best) or np.ptp(every) < WIDE:
            continue
        if (np.ptp(own) <= NARROW) if axis.ordered else len(np.unique(own)) == 1:
            used = "" if len(own) == len(best) else ", where it is used"
            close.append(f"{named(axis.name)} ({ends_text(axis, own)}{used})")
    if not close:
        return "do not lie close together in any single hyperparameter"
    return f"lie close together in {listed(close)}, where all trials lie far apart"


def _numbers(run: Run, axes: Sequence[Axis]) -> Table:
    ranks = places(run)
    order = np.argsort(np.where(np.isnan(ranks), np.inf, ranks), kind="stable")[:MOST_ROWS]
    columns = [Column("trial"), Column("value"), *(Column(named(axis.name, 40), numeric=False) for axis in axes)]
    rows = []
    for row in order.tolist():
        trial = run.trials[row]
        cells = [word(value_text(trial.config[axis.name]) if axis.name in trial.config else OFF) for axis in axes]
        value = word("failed") if trial.value is None else number(trial.value, ".4g")
        rows.append((number(row + 1, ".0f"), value, *cells))
    some = f"the best {MOST_ROWS} of {len(run)}" if len(run) > MOST_ROWS else "best first"
    return Table(f"Trials, {some}", tuple(columns), (tuple(rows),))
