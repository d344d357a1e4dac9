"""How regret falls with evaluations: a figure for all methods, or one for each family of methods if they are many.

The others of a benchmark are pale lines in each figure, so that families can be compared. Bands are bootstrap intervals
over tasks (`recollect.bench.figure_regret`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recollect.bench import figure_style
from recollect.bench.figure_regret import DRAWS, LEVEL, REFERENCES, bootstrap_band, grouped, regret_limits
from recollect.bench.figure_style import lines_for
from recollect.bench.study import Outcome
from recollect.bench.tables import checkpoints
from recollect.numerics.arrays import FloatArray
from recollect.report.benchmark.contest import PERCENT, REGRET_AXIS, Contest, final, last_known
from recollect.report.figure import COLOURS, DASHES, Figure, Key, Spec, decimals
from recollect.report.names import IN_HOVER, named
from recollect.report.table import Column, Table, number, word

QUESTION = "How close to the best configuration do methods get"
ALL_BANDS = "all bands"
HOVER = "<b>%{customdata[0]}</b><br>after %{x} evaluations: %{customdata[1]} %<extra></extra>"


def regret_figures(contest: Contest) -> list[Figure]:
    """Return the figures of a benchmark, each with its family's methods and the references."""
    by_name = {outcome.method: outcome for outcome in contest.outcomes}
    groups = grouped(list(by_name))
    return [_figure(contest, title, [by_name[name] for name in names]) for title, names in groups]


def _figure(contest: Contest, title: str, own: Sequence[Outcome]) -> Figure:
    low, high = regret_limits([PERCENT * outcome.adtm for outcome in contest.outcomes])
    best = _lowest(contest, own)
    inside = {outcome.method for outcome in own}
    traces: list[Spec] = [_others([outcome for outcome in contest.complete if outcome.method not in inside], low)]
    keys, bands = [], []
    for outcome, style in zip(own, _styles(own), strict=True):
        made = [*_band(contest, outcome, low=low, colour=style[0]), _line(contest, outcome, low=low, style=style)]
        if len(made) > 1 and outcome is not best:
            bands.append(len(traces))
        keys.append(Key(contest.label(outcome), tuple(range(len(traces), len(traces) + len(made))), *style))
        traces += made
    ends = {key: last_known(outcome) for key, outcome in zip(keys, own, strict=True)}
    keys.sort(key=lambda key: (np.isnan(ends[key]), ends[key]))
    return Figure(
        f"{QUESTION}: {title}?" if title else f"{QUESTION}?",
        _seen(contest, own),
        tuple(traces),
        _layout(contest, low, high),
        _numbers(contest, own),
        keys=(*keys, *([Key(ALL_BANDS, tuple(bands), on=False)] if bands else ())),
    )


def _styles(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """Colour and dash pattern of each method: those of the figures of `recollect.bench`, which differ in both."""
    lines = lines_for([outcome.method for outcome in outcomes])
    names = {
        **dict(zip(figure_style.COLOURS, COLOURS, strict=True)),
        figure_style.BLACK: "ink",
        figure_style.GREY: "grey",
    }
    return [
        (names[line.colour], DASHES[figure_style.DASHES.index(line.dash)])
        for line in (lines[outcome.method] for outcome in outcomes)
    ]


def _band(contest: Contest, outcome: Outcome, *, low: float, colour: str) -> Iterator[Spec]:
    """The band of a method with more than one task."""
    if len(outcome.tasks) < 2:
        return
    bottom, top = (_floored(PERCENT * end, low) for end in bootstrap_band(outcome.regrets))
    known = np.isfinite(top)
    x = np.arange(1.0, contest.horizon + 1.0)[known]
    yield {
        "x": decimals(np.concatenate([x, x[::-1]])),
        "y": decimals(np.concatenate([top[known], bottom[known][::-1]])),
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": f"@{colour}:0.15",
        "hoverinfo": "skip",
    }


def _line(contest: Contest, outcome: Outcome, *, low: float, style: tuple[str, str]) -> Spec:
    """The line of a method; below a logarithmic axis it leaves the figure."""
    colour, dash = style
    curve = PERCENT * outcome.adtm
    label = contest.label(outcome, IN_HOVER)
    return {
        "x": list(range(1, contest.horizon + 1)),
        "y": decimals(_floored(curve, low)),
        "customdata": [[label, "?" if np.isnan(value) else f"{value:.3g}"] for value in curve],
        "mode": "lines",
        "line": {"color": f"@{colour}", "width": 2.2, **({"dash": dash} if dash else {})},
        "hovertemplate": HOVER,
    }


def _others(outcomes: Sequence[Outcome], low: float) -> Spec:
    """The methods of other figures, as one trace of pale lines with gaps between them."""
    x: list[float | None] = []
    y: list[float | None] = []
    for outcome in outcomes:
        x += [*range(1, len(outcome.adtm) + 1), None]
        y += [*decimals(_floored(PERCENT * outcome.adtm, low), 3), None]
    return {"x": x, "y": y, "mode": "lines", "line": {"color": "@pale", "width": 1}, "hoverinfo": "skip"}


def _floored(curve: FloatArray, low: float) -> FloatArray:
    """A curve (h,) that goes below a logarithmic axis where it is 0, instead of having no place there."""
    return np.maximum(curve, low / 2) if low > 0 else curve


def _layout(contest: Contest, low: float, high: float) -> Mapping[str, Any]:
    scale: dict[str, Any] = {"range": decimals([low, high])}
    if low > 0:
        scale = {"type": "log", "range": decimals(np.log10([low, high])), "dtick": "D2", "tickformat": "~g"}
    return {
        "xaxis": {"title": {"text": "evaluations"}, "range": [1, max(2, contest.horizon)]},
        "yaxis": {"title": {"text": REGRET_AXIS}, **scale},
    }


def _lowest(contest: Contest, own: Sequence[Outcome]) -> Outcome | None:
    """The method that ends lowest, of those that have all runs."""
    return min((outcome for outcome in own if outcome in contest.complete), key=final, default=None)


def _seen(contest: Contest, own: Sequence[Outcome]) -> str:
    best = _lowest(contest, own)
    if best is None:
        return "None of these methods has all runs, so their lines cannot be compared."
    able = [outcome for outcome in own if outcome in contest.complete]
    beside = [
        f"{other.method} {final(other):.2f} %" for other in able if other.method in REFERENCES and other is not best
    ]
    sentence = f"{named(best.method)} ends lowest, at {final(best):.2f} % after {contest.horizon} evaluations"
    sentence += f" ({', '.join(beside)})" if beside else ""
    early = checkpoints(contest.horizon)[0]
    if early < contest.horizon:
        first = min(able, key=lambda outcome: float(outcome.adtm[early - 1]))
        who = "it leads already" if first is best else f"{named(first.method)} leads"
        sentence += f"; after {early} {who}, at {PERCENT * float(first.adtm[early - 1]):.2f} %"
    partly = any(outcome not in contest.complete for outcome in own)
    return " ".join(
        (
            f"{sentence}.",
            *(["Names with a number of tasks were not run on all of them."] if partly else ()),
            f"Band: {LEVEL:.0%} of {DRAWS} bootstrap draws of the tasks. Pale lines: methods of other figures.",
        )
    )


def _numbers(contest: Contest, own: Sequence[Outcome]) -> Table:
    counts = checkpoints(contest.horizon)
    columns = [Column("method", numeric=False), *(Column(f"after {count}") for count in counts)]
    rows = [
        (word(contest.label(outcome)), *(number(PERCENT * float(outcome.adtm[count - 1])) for count in counts))
        for outcome in own
    ]
    return Table("Regret in % after evaluations", tuple(columns), (tuple(rows),))
