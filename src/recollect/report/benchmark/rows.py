"""Figures with a row for each method: the area under its curve, and what it may cost compared with ``gp``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from recollect.bench.figure_regret import LEVEL, bootstrap_band
from recollect.bench.overview import REFERENCE
from recollect.bench.study import Gap, Outcome, task_gaps, worst_gap
from recollect.report.benchmark.contest import PERCENT, REGRET_AXIS, Contest, loss
from recollect.report.figure import ROUNDED_AGAIN, Figure, Spec, decimals, name_axis, rows_height
from recollect.report.names import IN_HOVER, named
from recollect.report.table import Column, Table, number, word

AREA_HOVER = "<b>%{customdata[0]}</b><br>mean regret %{x:.2f} %<br>interval %{customdata[1]}<extra></extra>"
GAP_HOVER = "<b>%{customdata[0]}</b><br>%{customdata[1]}: %{x:+.2f} points<extra></extra>"


def area_figure(contest: Contest) -> Figure | None:
    """Return the mean regret over all evaluations of each method; None if it is known for none."""
    found = [outcome for outcome in contest.outcomes if not math.isnan(outcome.area)]
    if not found:
        return None
    found.sort(key=lambda outcome: (outcome not in contest.complete, outcome.area))
    bands = [_area_band(outcome) for outcome in found]
    return Figure(
        "Which method is good all the way?",
        _area_seen(contest, found),
        (_area_dots(contest, found, bands),),
        {
            "xaxis": {"title": {"text": f"mean {REGRET_AXIS}"}, "rangemode": "tozero", "zeroline": False},
            "yaxis": name_axis([contest.label(outcome, 24) for outcome in found]),
        },
        _area_numbers(contest, found, bands),
        height=rows_height(len(found)),
    )


def gap_figure(contest: Contest) -> Figure | None:
    """Return each task's difference from ``gp``, a row for each method; None without ``gp`` or without others."""
    reference = contest.reference
    if reference is None:
        return None
    others = [outcome for outcome in contest.outcomes if outcome is not reference]
    found = [
        (outcome, gap) for outcome in others if (gap := worst_gap(outcome, reference, contest.horizon)) is not None
    ]
    if not found:
        return None
    found.sort(key=lambda pair: (pair[0] not in contest.complete, pair[1].regret))
    return Figure(
        f"What may a method cost on a single task, compared with {REFERENCE}?",
        _gap_seen(contest, found),
        (_gap_dots(contest, found, reference), _worst_dots(contest, found)),
        {
            "xaxis": {
                "title": {"text": f"regret above that of {REFERENCE} (points)"},
                "zeroline": True,
                "zerolinecolor": "@ink",
            },
            "yaxis": name_axis([contest.label(outcome, 24) for outcome, _ in found]),
        },
        _gap_numbers(contest, found),
        height=rows_height(len(found)),
    )


def _area_dots(contest: Contest, found: Sequence[Outcome], bands: Sequence[tuple[float, float]]) -> Spec:
    areas = PERCENT * np.array([outcome.area for outcome in found])
    low, high = np.array(bands).T
    labels = [contest.label(outcome, IN_HOVER) for outcome in found]
    return {
        "x": decimals(areas, ROUNDED_AGAIN),
        "y": list(range(len(found))),
        "customdata": [[label, f"{a:.2f} to {z:.2f}"] for label, (a, z) in zip(labels, bands, strict=True)],
        "mode": "markers",
        "marker": {
            "size": 9,
            "color": [_colour(outcome) for outcome in found],
            "symbol": ["circle" if outcome in contest.complete else "circle-open" for outcome in found],
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": decimals(high - areas),
            "arrayminus": decimals(areas - low),
            "color": "@grey",
            "thickness": 1.2,
            "width": 0,
        },
        "hovertemplate": AREA_HOVER,
    }


def _area_band(outcome: Outcome) -> tuple[float, float]:
    low, high = bootstrap_band(outcome.regrets.mean(axis=1, keepdims=True))
    return PERCENT * float(low[0]), PERCENT * float(high[0])


def _colour(outcome: Outcome) -> str:
    return {REFERENCE: "@ink", "random": "@grey"}.get(outcome.method, "@blue")


def _area_seen(contest: Contest, found: Sequence[Outcome]) -> str:
    fair = [outcome for outcome in found if outcome in contest.fair]
    if not fair:
        return "None of these methods has all runs, so they cannot be compared."
    best, reference = fair[0], contest.reference
    against = ""
    if reference is not None and reference is not best and not math.isnan(reference.area):
        against = f"; {REFERENCE} has {PERCENT * reference.area:.2f} %"
    partly = " Open circles lack tasks or repetitions." if any(o not in contest.complete for o in found) else ""
    return (
        f"Averaged over all evaluations (area under the curve), {named(best.method)} has the lowest regret of methods "
        f"with the same number of evaluations, {PERCENT * best.area:.2f} %{against}. Lines hold {LEVEL:.0%} of "
        f"bootstrap draws of the tasks.{partly}"
    )


def _area_numbers(contest: Contest, found: Sequence[Outcome], bands: Sequence[tuple[float, float]]) -> Table:
    columns = (Column("method", numeric=False), *map(Column, ("mean regret in %", "from", "to")))
    rows = tuple(
        (word(contest.label(outcome)), number(PERCENT * outcome.area), number(low), number(high))
        for outcome, (low, high) in zip(found, bands, strict=True)
    )
    return Table("Mean regret over all evaluations, with its interval", columns, (rows,))


def _gap_dots(contest: Contest, found: Sequence[tuple[Outcome, Gap]], reference: Outcome) -> Spec:
    x: list[float] = []
    y: list[int] = []
    hover: list[list[str]] = []
    for row, (outcome, _) in enumerate(found):
        for task, gap in task_gaps(outcome, reference, contest.horizon).items():
            x.append(decimals(PERCENT * gap, ROUNDED_AGAIN))
            y.append(row)
            hover.append([named(outcome.method, IN_HOVER), named(task, IN_HOVER)])
    return {
        "x": x,
        "y": y,
        "customdata": hover,
        "mode": "markers",
        "marker": {"color": "@blue:0.35", "size": 7, "line": {"width": 0}},
        "hovertemplate": GAP_HOVER,
    }


def _worst_dots(contest: Contest, found: Sequence[tuple[Outcome, Gap]]) -> Spec:
    return {
        "x": decimals([PERCENT * gap.regret for _, gap in found], ROUNDED_AGAIN),
        "y": list(range(len(found))),
        "customdata": [[contest.label(outcome, IN_HOVER), named(gap.task, IN_HOVER)] for outcome, gap in found],
        "mode": "markers",
        "marker": {"color": "@vermillion", "size": 10, "symbol": "diamond"},
        "hovertemplate": GAP_HOVER,
    }


def _gap_seen(contest: Contest, found: Sequence[tuple[Outcome, Gap]]) -> str:
    able = [(outcome, gap) for outcome, gap in found if outcome in contest.fair]
    if not able:
        return f"No method has all runs, so worst cases cannot be compared with {REFERENCE}."
    safest, most = (choose(able, key=lambda pair: pair[1].regret) for choose in (min, max))
    sentence = (
        f"Diamonds are worst cases after {contest.horizon} evaluations. {loss(*safest)}, the least of all methods"
    )
    if most is not safest:
        sentence += f" with the same number of evaluations; {loss(*most)}, the most"
    return sentence + ". Dots left of 0 are tasks on which a method does better."


def _gap_numbers(contest: Contest, found: Sequence[tuple[Outcome, Gap]]) -> Table:
    columns = (
        Column("method", numeric=False),
        Column("worst difference in points"),
        Column("on", numeric=False),
        Column("tasks"),
    )
    rows = tuple(
        (word(contest.label(outcome)), number(PERCENT * gap.regret), word(named(gap.task)), number(gap.tasks, ".0f"))
        for outcome, gap in found
    )
    return Table(f"Largest difference from {REFERENCE} on a task", columns, (rows,))
