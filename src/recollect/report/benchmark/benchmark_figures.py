"""The figures of a benchmark, from the data of `bench.analysis.figure_data`.

Regret against evaluations has one figure for all methods, or one per family if there are many. Methods of other
families are pale lines, so that families can be compared. Bands are bootstrap intervals over tasks.

The critical difference diagram (Demsar, JMLR 2006) is vertical here: one row per method, so that names never overlap,
and bars on the right that join methods which the test cannot tell apart.

Regrets are shown in percent: 0 is the best configuration of a task, 100 its worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.bench.analysis import figure_data
from recollect.bench.analysis.aggregate import REFERENCE, BenchmarkResults, MethodResult, plain_method_ranks
from recollect.bench.analysis.figure_data import DifferenceFromReference, MeanRegret, RegretCurve, RegretPanel
from recollect.bench.analysis.result_tables import checkpoints
from recollect.bench.analysis.statistics import ALPHA, RankTest
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import (
    BELOW_TICKS,
    DASHES,
    PRECISE,
    Figure,
    LegendKey,
    Spec,
    colour_bar,
    name_axis,
    rounded,
    rows_height,
)
from recollect.report.formatting import IN_HOVER, IN_TEXT, ON_AXIS, join_names, printable
from recollect.report.table import Table, simple_table

PERCENT = 100.0
ALL_BANDS = "all bands"
REGRET_HOVER = "<b>%{customdata[0]}</b><br>after %{x} evaluations: %{customdata[1]}%<extra></extra>"
RANK_HOVER = "<b>%{customdata}</b><br>after %{x} evaluations: average rank %{z:.2f}<extra></extra>"
DOT_HOVER = "<b>%{customdata}</b><br>average rank %{x:.2f}<extra></extra>"
BAR_HOVER = "cannot be told apart:<br>%{customdata}<extra></extra>"
MEAN_HOVER = "<b>%{customdata[0]}</b><br>mean regret %{x:.2f}%<br>interval %{customdata[1]}<extra></extra>"
DIFFERENCE_HOVER = "<b>%{customdata[0]}</b><br>%{customdata[1]}: %{x:+.2f} points<extra></extra>"


def method_label(results: BenchmarkResults, result: MethodResult, most: int = IN_TEXT) -> str:
    """Return a method's name, with its number of tasks or repetitions if others have more."""
    missing = results.missing_text(result)
    return printable(result.method, most) + (f" ({missing})" if missing else "")


def worst_case_extremes(results: BenchmarkResults, rows: Sequence[DifferenceFromReference]) -> tuple[str, str] | None:
    """Return what the methods with the smallest and the largest worst case lose, as clauses.

    Only methods with all runs and the same number of evaluations count; None if there are none.
    """
    same_budget = results.same_budget
    comparable = [row for row in rows if row.result in same_budget]
    if not comparable:
        return None
    least, most = (choose(comparable, key=lambda row: row.worst) for choose in (min, max))
    return _worst_case_text(least), _worst_case_text(most)


def _worst_case_text(row: DifferenceFromReference) -> str:
    lost = f"loses {row.worst:.2f} points on {printable(row.worst_task)}"
    return f"{printable(row.result.method)} {lost if row.worst > 0 else 'never loses'}"


def _dots(x: npt.ArrayLike, y: Iterable[int], hover: str, data: Sequence[Any], **marker: Any) -> Spec:
    """Return a trace of markers; ``data`` fills the hover template."""
    points = {"x": rounded(x, PRECISE), "y": list(y), "mode": "markers", "marker": marker}
    return {**points, "customdata": data, "hovertemplate": hover}


def _line(x: Any, y: Any, *, hover: str = "", data: Sequence[Any] = (), **style: Any) -> Spec:
    """Return a trace of a line; nothing appears over a line without a hover template."""
    shown = {"customdata": data, "hovertemplate": hover} if hover else {"hoverinfo": "skip"}
    return {"x": x, "y": y, "mode": "lines", "line": style, **shown}


def _checkpoint_table(title: str, labels: Sequence[str], curves: Sequence[FloatArray]) -> Table:
    """Return the table of curves (h,), one per method, after 10, 20, ... evaluations."""
    counts = checkpoints(len(curves[0]))
    columns = [("method", ""), *((f"after {count}", ".2f") for count in counts)]
    rows = zip(labels, *(([float(curve[count - 1]) for curve in curves]) for count in counts), strict=True)
    return simple_table(title, columns, rows)


def regret_figures(results: BenchmarkResults) -> list[Figure]:
    """Return the regret of each method after each evaluation."""
    data = figure_data.regret_curves(results, unit=PERCENT)
    return [_regret_figure(results, panel, data.limits) for panel in data.panels]


def _regret_figure(results: BenchmarkResults, panel: RegretPanel, limits: tuple[float, float]) -> Figure:
    low, best = limits[0], panel.lowest(results.horizon)
    labels = [method_label(results, curve.result) for curve in panel.curves]
    traces, keys, other_bands = [_pale_lines(panel, low)], [], []
    for curve, label in zip(panel.curves, labels, strict=True):
        own = [*_band(curve, low), _regret_line(results, curve, low)]
        if len(own) > 1 and curve is not best:
            other_bands.append(len(traces))
        numbers = tuple(range(len(traces), len(traces) + len(own)))
        keys.append(LegendKey(label, numbers, _colour(curve), DASHES[curve.style.dash]))
        traces += own
    order = np.argsort([curve.last_known for curve in panel.curves], kind="stable")  # nan is last
    legend = [keys[index] for index in order]
    if other_bands:
        legend.append(LegendKey(ALL_BANDS, tuple(other_bands), on=False))
    scale: Spec = {"range": rounded(limits)}
    if low > 0:
        scale = {"type": "log", "range": rounded(np.log10(limits)), "dtick": "D2", "tickformat": "~g"}
    x = {"title": {"text": "evaluations"}, "range": [1, max(2, results.horizon)]}
    layout = {"xaxis": x, "yaxis": {"title": {"text": "regret (%)"}, **scale}}
    table = _checkpoint_table("Regret in % after evaluations", labels, [curve.regret for curve in panel.curves])
    question = f"How close to the best configuration do methods get{': ' * bool(panel.title)}{panel.title}?"
    caption, more = _regret_caption(panel, results.horizon), _regret_details(panel)
    return Figure(question, caption, tuple(traces), layout, table, keys=tuple(legend), more=more)


def _colour(curve: RegretCurve) -> str:
    return "ink" if curve.style.colour == "black" else curve.style.colour


def _band(curve: RegretCurve, low: float) -> list[Spec]:
    if curve.band is None:
        return []
    bottom, top = (_above_axis_end(end, low) for end in curve.band)
    finite = np.isfinite(top)
    x = np.arange(1.0, len(top) + 1.0)[finite]
    outline = np.concatenate([x, x[::-1]]), np.concatenate([top[finite], bottom[finite][::-1]])
    return [{**_line(*map(rounded, outline), width=0), "fill": "toself", "fillcolor": f"@{_colour(curve)}:0.15"}]


def _regret_line(results: BenchmarkResults, curve: RegretCurve, low: float) -> Spec:
    label = method_label(results, curve.result, IN_HOVER)
    x, y = list(range(1, len(curve.regret) + 1)), rounded(_above_axis_end(curve.regret, low))
    texts = [[label, "?" if np.isnan(value) else f"{value:.3g}"] for value in curve.regret]
    dash = {"dash": DASHES[curve.style.dash]} if curve.style.dash else {}
    return _line(x, y, hover=REGRET_HOVER, data=texts, color=f"@{_colour(curve)}", width=2.2, **dash)


def _pale_lines(panel: RegretPanel, low: float) -> Spec:
    """Return the methods of other figures as one trace, with gaps between the lines."""
    x = [step for regret in panel.pale for step in (*range(1, len(regret) + 1), None)]
    y = [end for regret in panel.pale for end in (*rounded(_above_axis_end(regret, low), 3), None)]
    return _line(x, y, color="@pale", width=1)


def _above_axis_end(curve: FloatArray, low: float) -> FloatArray:
    """Return a curve (h,) that leaves a logarithmic axis at the bottom where it is 0, which has no logarithm."""
    return np.maximum(curve, low / 2) if low > 0 else curve


def _regret_caption(panel: RegretPanel, horizon: int) -> str:
    best = panel.lowest(horizon)
    if best is None:
        return "None of these methods has all runs, so their lines cannot be compared."
    references = [
        f"{curve.result.method} {curve.regret[-1]:.2f}%"
        for curve in panel.curves
        if curve.complete and curve.result.method in figure_data.REFERENCES and curve is not best
    ]
    text = f"{printable(best.result.method)} ends lowest, at {best.regret[-1]:.2f}% after {horizon} evaluations"
    text += f" ({', '.join(references)})" if references else ""
    early = checkpoints(horizon)[0]
    first = panel.lowest(early)
    if early < horizon and first is not None:
        leads = "it already leads" if first is best else f"{printable(first.result.method)} leads"
        text += f"; after {early} {leads}, at {first.regret[early - 1]:.2f}%"
    return f"{text}."


def _regret_details(panel: RegretPanel) -> str:
    sentences = [f"Band: {figure_data.BAND_LEVEL:.0%} of {figure_data.BOOTSTRAP_DRAWS} bootstrap draws of the tasks."]
    if panel.pale:
        sentences.append("Pale lines: methods of other figures.")
    if not all(curve.complete for curve in panel.curves):
        sentences.append("Methods that lack runs have their number of tasks or repetitions after their name.")
    return " ".join(sentences)


def rank_figure(results: BenchmarkResults) -> Figure | None:
    """Return average ranks after each evaluation; None with fewer than two methods that can be ranked."""
    average = plain_method_ranks(results)
    if average is None:
        return None
    order = np.argsort(average.ranks[:, -1], kind="stable")
    names, ranks = [average.methods[index] for index in order], average.ranks[order]
    horizon = ranks.shape[1]
    early = checkpoints(horizon)[0]
    first = int(np.argmin(ranks[:, early - 1]))
    heat: Spec = {
        **{"type": "heatmap", "x": list(range(1, horizon + 1)), "y": list(range(len(names)))},
        "z": rounded(ranks, PRECISE),
        "customdata": [[printable(name, IN_HOVER)] * horizon for name in names],
        **{"colorscale": "Cividis", "reversescale": True, "hovertemplate": RANK_HOVER},
        "colorbar": colour_bar("average rank (1 is best)"),
    }
    caption = (
        f"After {early} evaluations {printable(names[first])} is ahead, with an average rank of "
        f"{ranks[first, early - 1]:.1f}; after {horizon} it is {printable(names[0])}, with {ranks[0, -1]:.1f}."
    )
    more = (
        f"Ranks are among {len(names)} methods with the same number of evaluations, over {average.runs} runs on "
        f"{average.tasks} tasks; equal regrets share a rank."
    )
    question, height = "Which method is ahead after how many evaluations?", rows_height(len(names))
    layout = {"xaxis": {"title": {"text": "evaluations", "standoff": BELOW_TICKS}}, "yaxis": name_axis(names)}
    table = _checkpoint_table("Average rank after evaluations", list(map(printable, names)), list(ranks))
    return Figure(question, caption, (heat,), layout, table, height=height, more=more)


def difference_figure(results: BenchmarkResults) -> Figure | None:
    """Return which average ranks differ at the end; None with fewer than two complete methods or two tasks."""
    differences = figure_data.critical_differences(results)
    if differences is None:
        return None
    test = differences.test
    axis = name_axis(test.methods)
    axis["tickvals"] = [-1, *axis["tickvals"]]
    axis["ticktext"] = ["critical difference", *axis["ticktext"]]
    axis["range"] = [len(test.methods) - 0.5, -1.7]
    groups = [[str(number) for number, group in enumerate(test.groups, 1) if name in group] for name in test.methods]
    numbers = [", ".join(own) or "none" for own in groups]
    layout = {
        "xaxis": {"title": {"text": "average rank (1 is best)"}, "domain": [0, 0.8], "zeroline": False},
        "xaxis2": {"domain": [0.84, 1], "visible": False, "range": [-0.7, max(len(test.groups), 1) - 0.3]},
        "yaxis": axis,
    }
    columns = [("method", ""), ("average rank", ".2f"), ("its groups", "")]
    rows = zip(map(printable, test.methods), test.ranks.tolist(), numbers, strict=True)
    table = simple_table("Average rank at the end, and groups that cannot be told apart", columns, rows)
    question, caption = "Which methods differ by more than chance?", _difference_caption(test)
    traces, height = (*_rank_traces(test), *_group_traces(test)), rows_height(len(test.methods) + 1)
    more = _difference_details(test, differences.incomplete)
    return Figure(question, caption, traces, layout, table, height=height, more=more)


def _rank_traces(test: RankTest) -> list[Spec]:
    count, end = len(test.methods), float(test.ranks[0] + test.critical_difference)
    limit = _line(rounded([end, end]), [-1, count - 0.5], color="@grey", width=1.5, dash="2px,3px")
    scale = {
        **_line(rounded([test.ranks[0], end]), [-1, -1], color="@ink", width=3),
        "mode": "lines+markers",
        "marker": {"color": "@ink", "size": 11, "symbol": "line-ns-open"},
    }
    names = [printable(name, IN_HOVER) for name in test.methods]
    return [limit, scale, _dots(test.ranks, range(count), DOT_HOVER, names, color="@blue", size=9)]


def _group_traces(test: RankTest) -> list[Spec]:
    """Return a bar over the rows of each group of methods that cannot be told apart."""
    bars: list[Spec] = []
    for number, group in enumerate(test.groups):
        rows = [test.methods.index(name) for name in group]
        texts = [f"{printable(group[0], IN_HOVER)} to {printable(group[-1], IN_HOVER)}"] * len(rows)
        bar = _line([number] * len(rows), rows, hover=BAR_HOVER, data=texts, color="@vermillion", width=5)
        bars.append({**bar, "xaxis": "x2"})
    return bars


def _difference_caption(test: RankTest) -> str:
    best, *others = test.methods
    group = next((group for group in test.groups if best in group), (best,))
    worse = [name for name in others if name not in group]
    within = f"{len(group) - 1} of {len(others)} others are within the critical difference"
    behind = f"; {join_names(worse)} {'are' if len(worse) > 1 else 'is'} further behind" if worse else ""
    return (
        f"{printable(best)} has the lowest average rank, {test.ranks[0]:.2f}; {within} of "
        f"{test.critical_difference:.2f}{behind}."
    )


def _difference_details(test: RankTest, incomplete: Sequence[str]) -> str:
    p = "< 0.001" if test.p < 0.001 else f"= {test.p:.2g}"
    friedman = "differ significantly" if test.p < ALPHA else "do not differ significantly"
    return (
        f"Bars on the right join methods that cannot be told apart (Nemenyi's test, {ALPHA:.0%}). Over {test.tasks} "
        f"tasks the ranks as a whole {friedman} (Friedman's test, p {p})."
        + (f" Not shown, because tasks or repetitions are missing: {join_names(incomplete)}." if incomplete else "")
    )


def mean_regret_figure(results: BenchmarkResults) -> Figure | None:
    """Return the mean regret of each method over all evaluations; None if it is known for none."""
    rows = figure_data.mean_regrets(results, unit=PERCENT)
    if not rows:
        return None
    colours = [{REFERENCE: "@ink", "random": "@grey"}.get(row.result.method, "@blue") for row in rows]
    symbols = ["circle" if row.complete else "circle-open" for row in rows]
    marker = {"size": 9, "color": colours, "symbol": symbols}
    hover = [[method_label(results, row.result, IN_HOVER), f"{row.low:.2f} to {row.high:.2f}"] for row in rows]
    dots = _dots([row.mean for row in rows], range(len(rows)), MEAN_HOVER, hover, **marker)
    above, below = rounded([row.high - row.mean for row in rows]), rounded([row.mean - row.low for row in rows])
    style = {"type": "data", "symmetric": False, "color": "@grey", "thickness": 1.2, "width": 0}
    traces = ({**dots, "error_x": {**style, "array": above, "arrayminus": below}},)
    x = {"title": {"text": "mean regret (%)"}, "rangemode": "tozero", "zeroline": False}
    layout = {"xaxis": x, "yaxis": name_axis([method_label(results, row.result, ON_AXIS) for row in rows])}
    columns = [("method", ""), ("mean regret in %", ".2f"), ("from", ".2f"), ("to", ".2f")]
    numbers = [(method_label(results, row.result), row.mean, row.low, row.high) for row in rows]
    table = simple_table("Mean regret over all evaluations, with its interval", columns, numbers)
    question, caption = "Which method is good all the way?", _mean_caption(results, rows)
    incomplete = "" if all(row.complete for row in rows) else " Open circles: tasks or repetitions are missing."
    more = f"Lines: {figure_data.BAND_LEVEL:.0%} of bootstrap draws of the tasks.{incomplete}"
    return Figure(question, caption, traces, layout, table, height=rows_height(len(rows)), more=more)


def _mean_caption(results: BenchmarkResults, rows: Sequence[MeanRegret]) -> str:
    same_budget = results.same_budget
    best = next((row for row in rows if row.result in same_budget), None)
    if best is None:
        return "None of these methods has all runs, so they cannot be compared."
    reference = next((row for row in rows if row.result is results.reference and row is not best), None)
    against = f"; {REFERENCE} has {reference.mean:.2f}%" if reference else ""
    return (
        f"Averaged over all evaluations (area under the curve), {printable(best.result.method)} has the lowest regret "
        f"of the methods with the same number of evaluations, {best.mean:.2f}%{against}."
    )


def difference_from_reference_figure(results: BenchmarkResults) -> Figure | None:
    """Return each method's differences from ``gp`` by task; None without ``gp`` or without other methods."""
    rows = figure_data.differences_from_reference(results, unit=PERCENT)
    if not rows:
        return None
    x = {"title": {"text": f"regret minus {REFERENCE}'s (points)"}, "zeroline": True, "zerolinecolor": "@ink"}
    layout = {"xaxis": x, "yaxis": name_axis([method_label(results, row.result, ON_AXIS) for row in rows])}
    columns = [("method", ""), ("worst difference in points", ".2f"), ("on", ""), ("tasks", ".0f")]
    names, tasks = [method_label(results, row.result) for row in rows], [printable(row.worst_task) for row in rows]
    cells = zip(names, [row.worst for row in rows], tasks, [len(row.by_task) for row in rows], strict=True)
    table = simple_table(f"Largest difference from {REFERENCE} on a task", columns, cells)
    question = f"How much can a method lose on a single task, compared with {REFERENCE}?"
    caption, traces = _worst_case_caption(results, rows), _worst_case_traces(results, rows)
    more = (
        f"Diamonds are worst cases after {results.horizon} evaluations. Dots to the left of 0 are tasks on which a "
        f"method is better than {REFERENCE}."
    )
    return Figure(question, caption, traces, layout, table, height=rows_height(len(rows)), more=more)


def _worst_case_traces(results: BenchmarkResults, rows: Sequence[DifferenceFromReference]) -> tuple[Spec, Spec]:
    points = [(number, row, task) for number, row in enumerate(rows) for task in row.by_task]
    x, y = [row.by_task[task] for _, row, task in points], [number for number, *_ in points]
    hover = [[printable(row.result.method, IN_HOVER), printable(task, IN_HOVER)] for _, row, task in points]
    tasks = _dots(x, y, DIFFERENCE_HOVER, hover, color="@blue:0.35", size=7, line={"width": 0})
    x, y = [row.worst for row in rows], list(range(len(rows)))
    hover = [[method_label(results, row.result, IN_HOVER), printable(row.worst_task, IN_HOVER)] for row in rows]
    return tasks, _dots(x, y, DIFFERENCE_HOVER, hover, color="@vermillion", size=10, symbol="diamond")


def _worst_case_caption(results: BenchmarkResults, rows: Sequence[DifferenceFromReference]) -> str:
    extremes = worst_case_extremes(results, rows)
    if extremes is None:
        return f"No method has all runs, so worst cases cannot be compared with {REFERENCE}."
    least, most = extremes
    text = f"{least}, the least of all methods"
    text += f" with the same number of evaluations; {most}, the most" if most != least else ""
    return f"{text}."
