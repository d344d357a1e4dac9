"""Figures of finished experiments as PNG and SVG, drawn with matplotlib from `bench.analysis.figure_data`.

regret      one per benchmark. Few methods share a panel; many are shown in one panel per family, each with plain
            Bayesian optimization and random search, and the methods of the other panels as pale lines.
ranks       one for all benchmarks that have three methods of a line-up: average ranks against evaluations (paper,
            ranking figure).
weights     one per method and benchmark with runs that recorded weights: how the weights of an ensemble change (paper,
            weight-evolution figure).
difference  one per benchmark, of the methods that have all runs; if there are many methods, only of those without a
            suffix. The critical difference diagram is Demsar's (JMLR 2006): average ranks on a line, and bars below it
            that join methods which the test cannot tell apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from recollect.bench.analysis import figure_data
from recollect.bench.analysis import figure_style as style
from recollect.bench.analysis.aggregate import AverageRanks, aggregate_runs
from recollect.bench.analysis.figure_data import LineStyle
from recollect.bench.analysis.statistics import RankTest
from recollect.bench.benchmark import did_you_mean
from recollect.bench.experiment.experiment_run import CompletedRun
from recollect.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FigureKind = Literal["regret", "ranks", "weights", "difference"]
KINDS: tuple[FigureKind, ...] = get_args(FigureKind)
MAX_RANKED_METHODS = 25  # in a critical difference diagram: with more methods fewer can be told apart
REQUIREMENTS = {
    "regret": "a finished run",
    "ranks": f"runs on one benchmark of at least three of {' or of '.join(map(', '.join, figure_data.LINE_UPS))}",
    "weights": "runs that recorded their weights",
    "difference": "two methods with runs on the same tasks",
}
MAX_COLUMNS = 3
MAX_TICKS = 14  # on the scale of the diagram
ABOVE, RULE, BAR, ROW = 0.75, 0.28, 0.12, 0.2
"""Inches in the diagram: above the scale, from the scale to the first name without bars, per bar, per name."""

PARTS = {
    "new task": LineStyle("black"),
    "first past run": LineStyle("blue", 1),
    "second past run": LineStyle("vermillion", 2),
    "all other past runs": LineStyle("green", 3),
}
COUNT_STYLE = LineStyle("blue")


def draw_figures(
    runs: Sequence[CompletedRun], folder: Path, *, kinds: Sequence[FigureKind] = KINDS, benchmark: str | None = None
) -> list[Path]:
    """Draw the figures of these kinds, of one benchmark or of all, into a folder and return the files.

    Kinds for which runs are missing are skipped; InputError if nothing can be drawn.
    """
    if benchmark is not None:
        present = tuple(sorted({run.key.benchmark for run in runs}))
        if benchmark not in present:
            raise InputError(f"there are no results on the benchmark {benchmark!r}{did_you_mean(benchmark, present)}")
        runs = [run for run in runs if run.key.benchmark == benchmark]
    files: list[Path] = []
    for name, figure in _named_figures(runs, kinds):
        files += style.save(figure, folder / re.sub(r"[^\w.+-]", "_", name))
    if not files:
        raise InputError(f"figures: expected {' or '.join(REQUIREMENTS[kind] for kind in kinds)}, but there are none")
    return files


def _named_figures(runs: Sequence[CompletedRun], kinds: Sequence[FigureKind]) -> Iterator[tuple[str, Figure]]:
    experiment = aggregate_runs(runs)
    for kind in kinds:
        if kind == "ranks" and (ranked := figure_data.line_up_ranks(experiment)):
            yield kind, rank_figure(ranked)
        for name, results in experiment.benchmarks.items():
            if kind == "regret":
                yield f"{kind}-{name}", regret_figure(figure_data.regret_curves(results))
            elif kind == "difference":
                if differences := figure_data.critical_differences(results, max_methods=MAX_RANKED_METHODS):
                    yield f"{kind}-{name}", difference_figure(differences)
            elif kind == "weights":
                for method in results.methods:
                    own = [run for run in runs if run.key[:2] == (name, method)]
                    if any(map(figure_data.has_weights, own)):
                        yield f"{kind}-{name}-{method}", weight_figure(figure_data.weight_evolution(own))


def regret_figure(data: figure_data.RegretCurves) -> Figure:
    """Draw the mean regret of each method against evaluations."""
    single = len(data.panels) == 1
    labels = [curve.label for panel in data.panels for curve in panel.curves]
    layout = style.PanelLayout(*((5.6, 3.4) if single else (3.3, 2.4)), right=style.room_for(labels))
    heading = "" if single else data.benchmark
    with style.panels(len(data.panels), 2, layout, heading=heading, note=_regret_note(data)) as (figure, all_axes):
        for axes, panel in zip(all_axes, data.panels, strict=True):
            axes.set_yscale("log" if data.limits[0] > 0.0 else "linear")
            axes.set_ylim(*data.limits)
            if data.limits[0] > 0.0:
                style.plain_ticks(axes.yaxis)
            style.count_ticks(axes, 1, data.horizon, "evaluations")
            axes.set_ylabel("normalised regret")
            _draw_regret_panel(axes, panel, bands_of_references=panel is data.panels[0])
            axes.set_title(data.benchmark if single else panel.title)
    return figure


def _draw_regret_panel(axes: Axes, panel: figure_data.RegretPanel, *, bands_of_references: bool) -> None:
    steps = np.arange(1.0, len(panel.curves[0].regret) + 1.0)
    for curve in panel.curves:
        if curve.band is not None and (bands_of_references or curve.result.method not in figure_data.REFERENCES):
            style.draw_band(axes, steps, curve.band, curve.style)
    for curve in panel.curves:
        style.draw_line(axes, steps, curve.regret, curve.style)
    styles = {curve.label: curve.style for curve in panel.curves}
    style.name_ends(axes, {curve.label: curve.last_known for curve in panel.curves}, styles)
    for regret in panel.pale:
        axes.plot(steps, regret, color=style.COLOURS["pale"], linewidth=0.7, zorder=1)


def _regret_note(data: figure_data.RegretCurves) -> list[str]:
    curves = [curve for panel in data.panels for curve in panel.curves]
    methods = {curve.result.method for curve in curves}
    references = " and ".join(name for name in figure_data.REFERENCES if name in methods)
    several, low = len(data.panels) > 1, data.limits[0]
    only_first = f"; for {references} only in the first panel" if several and references else ""
    draws = f"{figure_data.BAND_LEVEL:.0%} of {figure_data.BOOTSTRAP_DRAWS} bootstrap draws of the tasks"
    leaves = f"A line that leaves the panel at the bottom has a regret of 0, or below {low:.1g}."
    return [
        f"Mean of {data.tasks} tasks: 0 is the best configuration of a task, 1 the worst.",
        f"Bands: {draws}{only_first}.",
        *(["Pale: methods of the other panels."] if several else ()),
        *([leaves] if any((curve.regret < low).any() for curve in curves) else ()),
    ]


def rank_figure(ranked: Sequence[tuple[str, Sequence[AverageRanks | None]]]) -> Figure:
    """Draw the average ranks of both line-ups on each benchmark."""
    columns = -(-len(ranked) // -(-len(ranked) // MAX_COLUMNS))  # rows of about the same length
    bands = [ranked[start : start + columns] for start in range(0, len(ranked), columns)]
    note = ["Average rank by regret among the methods", "of a panel, over runs: 1 is best."]
    names = [name for line_up in figure_data.LINE_UPS for name in line_up]
    layout = style.PanelLayout(2.3, 1.7, right=style.room_for(names))
    with style.panels(2 * columns * len(bands), columns, layout, note=note) as (figure, all_axes):
        for number, axes in enumerate(all_axes):
            row, column = divmod(number, columns)
            band, line_up = bands[row // 2], row % 2
            ranks_here = band[column][1][line_up] if column < len(band) else None
            if ranks_here is None:
                axes.remove()
            else:
                _draw_ranks(axes, band[column][0], ranks_here)
    return figure


def _draw_ranks(axes: Axes, benchmark: str, ranks: AverageRanks) -> None:
    styles, h = figure_data.line_styles(ranks.methods), ranks.ranks.shape[1]
    axes.set_ylim(0.9, len(ranks.methods) + 0.1)
    axes.set_yticks(range(1, len(ranks.methods) + 1))
    style.count_ticks(axes, 1, h, "evaluations")
    for name, curve in zip(ranks.methods, ranks.ranks, strict=True):
        style.draw_line(axes, np.arange(1.0, h + 1.0), curve, styles[name])
    style.name_ends(axes, dict(zip(ranks.methods, ranks.ranks[:, -1].tolist(), strict=True)), styles)
    axes.set_title(f"{benchmark} ({ranks.runs} runs)")
    axes.set_ylabel("average rank")


def difference_figure(data: figure_data.CriticalDifferences) -> Figure:
    """Draw which average ranks differ significantly, best on the left."""
    test = data.test
    incomplete = f"Not shown, because runs are missing: {', '.join(data.incomplete)}."
    note = [
        f"Average rank by regret after {data.evaluations} evaluations, over {test.tasks} tasks: 1 is best.",
        "Bars join methods whose ranks differ by less than the critical difference (Nemenyi, 5%).",
        *(wrap(incomplete, 90) if data.incomplete else ()),
        *([f"Not shown: {data.variants} variants, whose names have a suffix."] if data.variants else ()),
    ]
    bars, low = BAR * len(test.groups), int(np.floor(test.ranks[0]))
    below = RULE + bars + ROW * ((len(test.methods) + 1) // 2)
    side = style.room_for(test.methods) + 0.35
    layout = style.PanelLayout(3.4, ABOVE + below, left=side, right=side, top=0.0, bottom=0.0)
    with style.panels(1, 1, layout, heading=data.benchmark, note=note) as (figure, (axes,)):
        axes.set_xlim(low, int(np.ceil(max(test.ranks[-1], low + test.critical_difference))))
        axes.set_ylim(-below, ABOVE)
        axes.axis("off")
        _draw_scale(axes, test.critical_difference)
        _draw_names(axes, test, first=RULE + bars)
        _draw_bars(axes, test)
    return figure


def _draw_scale(axes: Axes, difference: float) -> None:
    low, high = axes.get_xlim()
    axes.plot([low, high], [0.0, 0.0], color="black", linewidth=0.8, clip_on=False)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if (high - low) / step <= MAX_TICKS)
    for rank in range(-(-int(low) // step) * step, int(high) + 1, step):
        axes.plot([rank, rank], [0.0, 0.06], color="black", linewidth=0.8, clip_on=False)
        axes.text(rank, 0.1, str(rank), ha="center", va="bottom")
    axes.plot([low, low + difference], [0.42, 0.42], color="black", linewidth=1.6, clip_on=False)
    for end in (low, low + difference):
        axes.plot([end, end], [0.38, 0.46], color="black", linewidth=0.8, clip_on=False)
    axes.text(low, 0.52, f"critical difference {difference:.2f}", ha="left", va="bottom")


def _draw_names(axes: Axes, test: RankTest, *, first: float) -> None:
    """Write the better half on the left, best on top, and the others on the right, worst on top."""
    half = (len(test.methods) + 1) // 2
    low, high = axes.get_xlim()
    room = 0.02 * (high - low)
    for number, (name, rank) in enumerate(zip(test.methods, test.ranks.tolist(), strict=True)):
        left = number < half
        y = -(first + ROW * (number if left else len(test.methods) - 1 - number))
        edge = low - room if left else high + room
        axes.plot([rank, rank, edge], [0.0, y, y], color="#555555", linewidth=0.6, clip_on=False, zorder=1)
        label = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
        axes.text(edge + (-room if left else room), y, label, ha="right" if left else "left", va="center")


def _draw_bars(axes: Axes, test: RankTest) -> None:
    ranks, blue = dict(zip(test.methods, test.ranks.tolist(), strict=True)), style.COLOURS["blue"]
    for number, group in enumerate(test.groups):
        y = -(0.14 + BAR * number)
        ends = [ranks[group[0]] - 0.03, ranks[group[-1]] + 0.03]
        axes.plot(ends, [y, y], color=blue, linewidth=3.0, solid_capstyle="butt", clip_on=False, zorder=3)


def weight_figure(weights: figure_data.WeightEvolution) -> Figure:
    """Draw mean weights above, and numbers of models below."""
    first = f"{weights.runs} runs. First and second: the past runs with the largest weights at each step."
    note, n = [first, "Bands: half of the runs, and 90% of them."], weights.observations
    layout = style.PanelLayout(4.6, 2.2, right=style.room_for(list(PARTS)), top=0.15)
    heading = f"{weights.method} on {weights.benchmark}"
    with style.panels(2, 1, layout, heading=heading, note=note) as (figure, (above, below)):
        from matplotlib.ticker import MaxNLocator

        above.set_ylim(0.0, 1.02)
        for part, curve in zip(PARTS.values(), weights.means.T, strict=True):
            style.draw_line(above, n, curve, part)
        style.name_ends(above, dict(zip(PARTS, weights.means[-1].tolist(), strict=True)), PARTS)
        above.set_ylabel("mean weight")
        for band in weights.count_bands:
            style.draw_band(below, n, band, COUNT_STYLE)
        style.draw_line(below, n, weights.median_count, COUNT_STYLE)
        below.set_ylim(0.0, 1.05 * float(weights.count_bands[0][1].max()))
        below.yaxis.set_major_locator(MaxNLocator(integer=True))
        below.set_ylabel("models with a weight")
        style.name_ends(below, {"median": float(weights.median_count[-1])}, {"median": COUNT_STYLE})
        for axes in (above, below):
            style.count_ticks(axes, n[0], n[-1], "observations of the new task")
    return figure
