"""Figures of single trials: when and where they ran, what they reported on the way, how values are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect._text import plural
from recollect.analysis.predictions import DEVIATIONS, predictions
from recollect.analysis.run_data import RunData
from recollect.analysis.trial_records import STATES, RecordState, TrialRecord
from recollect.analysis.trial_timeline import Timeline, TrialSpan, timeline, value_distribution
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import Figure, LegendKey, Spec, name_axis, rounded, rows_height, trace
from recollect.report.formatting import duration_text, number_text, percent, thinned
from recollect.report.run.axes import ValueAxis, value_axis
from recollect.report.table import Table, simple_table

STATE_COLOURS: dict[RecordState, str] = {
    "finished": "blue",
    "failed": "vermillion",
    "pruned": "orange",
    "running": "sky",
}
MAX_SPANS, MAX_CURVES, MAX_POINTS, MAX_ROWS = 2000, 150, 100, 100
TIMELINE_HOVER = "<b>trial %{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<extra></extra>"
MAX_PREDICTIONS = 300  # that are drawn
PREDICTION_HOVER = (
    "<b>trial %{customdata[0]}</b><br>expected %{customdata[1]} \N{PLUS-MINUS SIGN} %{customdata[2]}"
    "<br>value %{customdata[3]}<extra></extra>"
)
PREDICTION_DETAILS = (
    "Each prediction was made when its trial was suggested, from past runs and the results until then; the first ones "
    "show what past runs expected of this task. About 95% of the values are inside if the model knows how sure it can "
    "be; from those outside it learned most."
)
UNITS = ((1e-3, "milliseconds"), (1.0, "seconds"), (60.0, "minutes"), (3600.0, "hours"), (86400.0, "days"))


def timeline_figure(data: RunData) -> Figure | None:
    """Return the trials as bars along time, a row for each worker; None if their times are unknown."""
    lanes = timeline(data.records)
    if lanes is None:
        return None
    total = max(span.end for span in lanes.spans)
    size, unit = next(((size, unit) for size, unit in reversed(UNITS) if total >= size), UNITS[0])
    spans = [lanes.spans[place] for place in thinned(len(lanes.spans), MAX_SPANS)]
    states = [state for state in STATES if any(span.record.state == state for span in spans)]
    bars = [
        _bars([span for span in spans if span.record.state == state], state, size=size, total=total) for state in states
    ]
    keys = tuple(
        LegendKey(f"{state} trials", (place,), STATE_COLOURS[state], mark="area") for place, state in enumerate(states)
    )
    x = {"title": {"text": f"{unit} since the first trial started"}, "rangemode": "tozero", "exponentformat": "none"}
    layout = {"xaxis": x, "yaxis": name_axis(lanes.lanes), "barmode": "overlay", "margin": {"r": 24}}
    height = rows_height(len(lanes.lanes))
    table, caption = _timeline_table(lanes), _timeline_caption(lanes, total)
    question = "Which worker ran what, and when?"
    more = (
        ""
        if lanes.by_worker
        else "Which worker ran a trial was not recorded: there are as many rows as trials ran at once."
    )
    return Figure(
        question, caption, tuple(bars), layout, table, height=height, keys=keys, more=more, trials=True, wide=True
    )


def _bars(spans: Sequence[TrialSpan], state: RecordState, *, size: float, total: float) -> Spec:
    """The trials of one state; places are as exact as a screen can show them."""
    digits = 4 - int(np.ceil(np.log10(max(total / size, 1e-6))))
    starts = np.round([span.start / size for span in spans], digits)
    lengths = np.round([(span.end - span.start) / size for span in spans], digits)
    hover = [[span.record.number, state, duration_text(span.end - span.start)] for span in spans]
    return trace(
        type="bar", orientation="h", y=[span.lane for span in spans], base=rounded(starts, 6),
        x=rounded(lengths, 6), width=0.7, customdata=hover,
        marker={"color": f"@{STATE_COLOURS[state]}:0.85", "line": {"color": "@card", "width": 0.5}},
        hovertemplate=TIMELINE_HOVER,
    )  # fmt: skip


def _timeline_caption(lanes: Timeline, total: float) -> str:
    caption = f"{plural(len(lanes.spans), 'trial')} in {duration_text(total)}"
    caption += f" on {plural(lanes.workers, 'worker')}" if lanes.by_worker else ""
    if len(lanes.lanes) > max(lanes.workers, 1):
        caption += f", up to {len(lanes.lanes)} at once"
    return f"{caption}, busy {percent(lanes.busy)} of the time."


def _timeline_table(lanes: Timeline) -> Table:
    rows = []
    for place, name in enumerate(lanes.lanes):
        own = [span for span in lanes.spans if span.lane == place]
        rows.append((name, len(own), round(sum(span.end - span.start for span in own), 3)))
    return simple_table("Trials by worker", [("worker", ""), ("trials", ",.0f"), ("busy, s", ",.1f")], rows)


CURVE_HOVER = "<b>trial %{customdata[0]}</b><br>step %{x}: %{customdata[1]}<extra></extra>"


def intermediate_figure(data: RunData) -> Figure | None:
    """Return what trials reported on the way, a line for each; None if nothing was reported."""
    reporting = [record for record in data.records if record.reports]
    if all(len(record.reports) < 2 for record in reporting):
        return None
    best = data.run.best
    number = None if best is None else data.numbers[data.run.trials.index(best)]
    shown = [reporting[place] for place in thinned(len(reporting), MAX_CURVES)]
    own = [record for record in reporting if record.number == number]
    groups: list[tuple[str, list[TrialRecord], dict[str, Any]]] = [
        ("finished", [r for r in shown if r.state == "finished"], {"color": "@grey:0.5", "width": 1.2}),
        ("running", [r for r in shown if r.state == "running"], {"color": "@sky", "width": 1.6}),
        ("pruned", [r for r in shown if r.state == "pruned"], {"color": "@orange", "width": 1.6, "dash": "4px,3px"}),
        (
            "failed",
            [r for r in shown if r.state == "failed"],
            {"color": "@vermillion", "width": 1.6, "dash": "2px,2px"},
        ),
        ("the best trial", own, {"color": "@blue", "width": 2.8}),
    ]
    groups = [group for group in groups if group[1]]
    traces = tuple(_curves(records, line) for _, records, line in groups)
    keys = tuple(
        LegendKey(label, (place,), line["color"][1:].split(":")[0], str(line.get("dash", "")))
        for place, (label, _, line) in enumerate(groups)
    )
    pruned = sum(record.state == "pruned" for record in reporting)
    caption = f"{plural(len(reporting), 'trial')} reported values on the way; {pruned or 'none'} of them were pruned."
    columns = [("trial", ".0f"), ("state", ""), ("reports", ".0f"), ("last step", ".0f"), ("last value", ".4g")]
    rows = [(r.number, r.state, len(r.reports), r.reports[-1][0], r.reports[-1][1]) for r in shown[:MAX_ROWS]]
    positive = all(value > 0 for record in shown for _, value in record.reports)
    return Figure(
        "How did trials develop?", caption, traces,
        {"xaxis": {"title": {"text": "step"}}, "yaxis": {"title": {"text": "intermediate value"}}},
        simple_table("Intermediate values", columns, rows), keys=keys, trials=True,
        log_axis="yaxis" if positive else "",
        more=f"{len(shown)} of {len(reporting)} are drawn." if len(shown) < len(reporting) else "",
    )  # fmt: skip


def _curves(records: Sequence[TrialRecord], line: dict[str, Any]) -> Spec:
    """The reports of several trials as one trace, with gaps between their lines."""
    x, y, hover = list[Any](), list[Any](), list[Any]()
    for record in records:
        points = [record.reports[place] for place in thinned(len(record.reports), MAX_POINTS)]
        x += [*(step for step, _ in points), None]
        y += [*rounded([value for _, value in points], 6), None]
        hover += [*([record.number, number_text(value)] for _, value in points), [record.number, ""]]
    marker = {"color": line["color"], "size": 4}  # a trial that was pruned at its first report has no line
    style = {"mode": "lines+markers", "line": line, "marker": marker, "hovertemplate": CURVE_HOVER}
    return trace(x=x, y=y, customdata=hover, **style)


EDF_HOVER = "<b>%{y:.0f}%</b> of these trials are at or below %{x:.4g}<extra></extra>"
MIN_VALUES = 4


def prediction_figure(data: RunData) -> Figure | None:
    """Return what the model expected of each trial beside what was seen; None without predictions."""
    found = predictions(data)
    if found is None:
        return None
    rows, axis = thinned(len(found.trials), MAX_PREDICTIONS), value_axis(data.run)
    numbers = found.trials[rows]
    means, stds, values = (column[rows] for column in (found.means, found.stds, found.values))
    shown = list(zip(numbers.tolist(), means.tolist(), stds.tolist(), values.tolist(), strict=True))
    texts = [[number, number_text(mean), number_text(std), number_text(value)] for number, mean, std, value in shown]
    style = {"x": numbers.tolist(), "customdata": texts, "hovertemplate": PREDICTION_HOVER}
    traces = (
        _expected(means, stds, axis, style),
        trace(y=rounded(values, 6), mode="markers", marker={"color": "@blue", "size": 7}, **style),
    )
    keys = (
        LegendKey("value", (1,), "blue", mark="point"),
        LegendKey(f"expected, \N{PLUS-MINUS SIGN} {DEVIATIONS:.0f} standard deviations", (0,), "grey", mark="bar"),
    )
    columns = [("trial", ".0f"), ("expected", ".4g"), ("standard deviation", ".3g"), ("value", ".4g")]
    layout = {"xaxis": {"title": {"text": "trial"}}, "yaxis": axis.layout("value"), "margin": {"r": 24}}
    caption = f"{found.within} of {plural(len(found.trials), 'value')} were within two standard deviations of what"
    return Figure(
        "Were the values as expected?", f"{caption} the model expected.", traces, layout,
        simple_table("Expected and observed values", columns, shown), keys=keys, more=PREDICTION_DETAILS, trials=True,
    )  # fmt: skip


def _expected(means: FloatArray, stds: FloatArray, axis: ValueAxis, style: Spec) -> Spec:
    """The predictions as bars, as far as they are on the axis."""
    centres = np.clip(means, axis.low, axis.high)
    ends = [np.clip(means + sign * DEVIATIONS * stds, axis.low, axis.high) for sign in (-1.0, 1.0)]
    bars = {
        "type": "data", "symmetric": False, "array": rounded(ends[1] - centres, 5),
        "arrayminus": rounded(centres - ends[0], 5), "color": "@grey:0.6", "thickness": 3, "width": 0,
    }  # fmt: skip
    marker = {"color": "@grey", "size": 9, "symbol": "line-ew-open", "line": {"width": 2}}
    return trace(y=rounded(centres, 6), mode="markers", error_y=bars, marker=marker, **style)


def distribution_figure(data: RunData) -> Figure | None:
    """Return the empirical distribution of values: of all trials, of the first and of the second half."""
    run, half = data.run, len(data.run) // 2
    parts = {
        "all trials": value_distribution(run),
        "the first half": value_distribution(run, 0, half),
        "the second half": value_distribution(run, half),
    }
    if any(len(values) < MIN_VALUES for values, _ in parts.values()):
        return None
    styles = {
        "all trials": ("ink", ""),
        "the first half": ("orange", "2px,2px"),
        "the second half": ("blue", "9px,3px"),
    }
    high = float(parts["all trials"][0][-1])
    traces = tuple(_steps(*parts[label], *styles[label], high=high) for label in parts)
    keys = tuple(LegendKey(label, (place,), *styles[label]) for place, label in enumerate(parts))
    medians = {label: float(np.median(values)) for label, (values, _) in parts.items()}
    first, second = medians["the first half"], medians["the second half"]
    caption = (
        f"The median value went from {number_text(first)} in the first half to {number_text(second)} in the second."
    )
    scale = value_axis(run)
    quantiles = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    rows = [(100 * q, *(float(np.quantile(values, q)) for values, _ in parts.values())) for q in quantiles]
    table = simple_table("Quantiles of the values", [("share, %", ".0f"), *((label, ".4g") for label in parts)], rows)
    layout = {
        "xaxis": scale.horizontal_layout(),
        "yaxis": {"title": {"text": "trials at or below it (%)"}, "range": [0, 101]},
    }
    return Figure(
        "How are the values distributed?", caption, traces, layout, table, keys=keys,
        log_axis="xaxis" if scale.low > 0 else "", log_on=scale.log,
        more="Empirical distribution functions. A tuner that learns moves the second half towards better values.",
    )  # fmt: skip


def _steps(values: FloatArray, shares: FloatArray, colour: str, dash: str, *, high: float) -> Spec:
    """A distribution function: from 0 at its lowest value to 1 at the highest of all."""
    rows = thinned(len(values), 400)
    line = {"color": f"@{colour}", "width": 2, "dash": dash or "solid", "shape": "hv"}
    x, y = np.concatenate([values[:1], values[rows], [high]]), np.concatenate([[0.0], shares[rows], [1.0]])
    return trace(x=rounded(x, 6), y=rounded(100.0 * y, 5), mode="lines", line=line, hovertemplate=EDF_HOVER)
