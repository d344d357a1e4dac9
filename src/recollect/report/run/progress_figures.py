"""Figures over the trials of a run: how fast good values were found, and how much each past run had to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recollect._text import plural
from recollect.analysis.headline import median_trials
from recollect.analysis.run_data import PairedRun, RunData
from recollect.analysis.run_progress import CLOSE, Expectation, best_values, expectation, trial_values, trials_to_reach
from recollect.analysis.trial_records import TrialRecord
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.report.figure import Figure, LegendKey, Spec, rounded, trace
from recollect.report.formatting import number_text, percent, printable, thinned
from recollect.report.run.axes import FAILED_MARKER, PRUNED_MARKER, ValueAxis, value_axis
from recollect.report.table import Table, simple_table
from recollect.runs.run import FAILED, Run

QUESTION = "Did it find good values sooner than without transfer?"
QUESTION_ALONE = "How soon were good values found?"
MAX_ROWS, MAX_TRIALS, MAX_FAILED = 40, 300, 100  # rows of the table; trials that are drawn
HOVER = "<b>trial %{customdata[0]}</b><br>value %{customdata[1]}<extra></extra>"
BEST_HOVER = "<b>up to trial %{customdata[0]}</b><br>best value %{customdata[1]}<extra></extra>"
FAILED_HOVER = "<b>trial %{customdata[0]}</b><br>failed<extra></extra>"
PRUNED_HOVER = "<b>trial %{customdata[0]}</b><br>pruned; last reported value %{customdata[1]}<extra></extra>"
BASELINE_HOVER = (
    "<b>after %{customdata[0]} trials</b><br>without transfer, as far as known: %{customdata[1]}<extra></extra>"
)
DASH = "9px,3px"
ONE_OF_EACH = "This compares one run of each, so chance plays a part."


def progress_figure(data: RunData) -> Figure | None:
    """Return the best value over trials, beside what is expected without transfer; None without any value."""
    run, paired = data.run, data.paired
    if run.best is None:
        return None
    expected = None if paired is not None else expectation(data)
    beside = None if paired is None else best_values(paired.run)[: len(run)]
    pruned = [record for record in data.records if record.state == "pruned" and record.value is not None]
    others = np.array([record.value for record in pruned], dtype=np.float64)
    axis = value_axis(run, others if beside is None else np.concatenate([beside, others]))
    marks = [*_without_transfer(paired, expected, beside), *_own_marks(data, pruned, axis)]
    traces: list[Spec] = []
    keys: list[LegendKey] = []
    for key, own in marks:
        keys.append(replace(key, traces=tuple(range(len(traces), len(traces) + len(own)))))
        traces.extend(own)
    caption, more = _caption(data, expected, beside)
    layout = {
        "xaxis": {"title": {"text": "trial"}, "range": [-0.5, data.numbers[-1] + 0.5]},
        "yaxis": axis.layout(f"value ({'lower' if run.direction == 'minimize' else 'higher'} is better)"),
        "margin": {"r": 24},
    }
    return Figure(
        QUESTION_ALONE if expected is None and paired is None else QUESTION, caption, tuple(traces), layout,
        _number_table(run, expected, beside), keys=tuple(reversed(keys)), more=more, trials=True,
        log_axis="yaxis" if axis.low > 0 else "", log_on=axis.log,
    )  # fmt: skip


def _without_transfer(
    paired: PairedRun | None, expected: Expectation | None, beside: FloatArray | None
) -> list[tuple[LegendKey, list[Spec]]]:
    """What the run is compared with, as a key and its traces."""
    if expected is not None:
        how = " without transfer" if expected.without_transfer else ""
        label = f"{plural(len(expected.origins), 'past run')}{how}, scaled to this task"
        return [(LegendKey(label, (), "grey", DASH), [_band(expected), _baseline(expected.median)])]
    if paired is None or beside is None:
        return []
    which = f"{printable(paired.problem, 40)}, {printable(paired.method, 30)}"
    return [(LegendKey(f"the same task without transfer ({which})", (), "grey", DASH), [_baseline(beside)])]


def _own_marks(data: RunData, pruned: Sequence[TrialRecord], axis: ValueAxis) -> list[tuple[LegendKey, list[Spec]]]:
    """The trials of the run as keys and their traces, the best value last."""
    marks = [(LegendKey("single trials", (), "sky", mark="point"), [_trials(data)])]
    if pruned:
        marks.append((LegendKey("pruned trials", (), "orange", mark="triangle"), [_pruned_trials(pruned)]))
    if data.failed:
        marks.append((LegendKey("failed trials", (), "vermillion", mark="cross"), [_failed_trials(data, axis)]))
    return [*marks, (LegendKey("best value so far", (), "blue"), [_best_line(data)])]


def _best_line(data: RunData) -> Spec:
    """The best value so far, as steps: a point for each improvement, and the end."""
    best = best_values(data.run)
    changed = np.flatnonzero(np.isfinite(best) & (np.append(np.nan, best[:-1]) != best))
    rows = np.unique(np.append(changed, len(best) - 1))
    line, marker = {"color": "@blue", "width": 2.6, "shape": "hv"}, {"color": "@blue", "size": 5}
    numbers = np.array(data.numbers)
    return _values(best, rows, numbers, mode="lines+markers", line=line, marker=marker, hovertemplate=BEST_HOVER)


def _trials(data: RunData) -> Spec:
    values = trial_values(data.run)
    ok = np.array([state == "finished" for state in data.states], dtype=np.bool_)
    rows = np.flatnonzero(np.isfinite(values) & ok)
    rows = rows[thinned(len(rows), MAX_TRIALS)]
    marker = {"color": "@sky:0.75", "size": 6}
    return _values(values, rows, np.array(data.numbers), mode="markers", marker=marker, hovertemplate=HOVER)


def _failed_trials(data: RunData, axis: ValueAxis) -> Spec:
    every = [number for number, trial in zip(data.numbers, data.run.trials, strict=True) if trial.state is FAILED]
    failed = [every[place] for place in thinned(len(every), MAX_FAILED)]
    hover = {"customdata": [[number] for number in failed], "hovertemplate": FAILED_HOVER}
    return trace(x=failed, y=[rounded(axis.failed, 6)] * len(failed), mode="markers", marker=FAILED_MARKER, **hover)


def _pruned_trials(pruned: Sequence[TrialRecord]) -> Spec:
    shown = [pruned[place] for place in thinned(len(pruned), MAX_TRIALS)]
    x, y = [record.number for record in shown], rounded([record.value or 0.0 for record in shown], 6)
    hover = {"customdata": [[record.number, number_text(record.value)] for record in shown]}
    return trace(x=x, y=y, mode="markers", marker=PRUNED_MARKER, hovertemplate=PRUNED_HOVER, **hover)


def _band(expected: Expectation) -> Spec:
    x = np.arange(0.0, len(expected.median))
    outline = np.concatenate([expected.better, expected.worse[::-1]])
    style = {"mode": "lines", "line": {"width": 0}, "fill": "toself", "fillcolor": "@grey:0.15", "hoverinfo": "skip"}
    return trace(x=rounded(np.concatenate([x, x[::-1]]), 6), y=rounded(outline, 6), **style)


def _baseline(values: FloatArray) -> Spec:
    line = {"color": "@grey", "width": 2, "dash": DASH, "shape": "hv"}
    rows = np.flatnonzero(np.isfinite(values))
    texts = [[int(row) + 1, number_text(value)] for row, value in zip(rows, values[rows].tolist(), strict=True)]
    style = {"mode": "lines", "line": line, "hovertemplate": BASELINE_HOVER}
    return trace(x=rows.tolist(), y=rounded(values[rows], 6), customdata=texts, **style)


def _values(values: FloatArray, rows: IntArray, numbers: IntArray, **style: Any) -> Spec:
    """Return a trace of the values (n,) of some trials."""
    own = numbers[rows].tolist()
    texts = [[number, number_text(value)] for number, value in zip(own, values[rows].tolist(), strict=True)]
    return trace(x=own, y=rounded(values[rows], 6), customdata=texts, **style)


def _caption(data: RunData, expected: Expectation | None, beside: FloatArray | None) -> tuple[str, str]:
    """Return what is seen, and how to read it."""
    run = data.run
    assert run.best is not None
    when = data.numbers[run.trials.index(run.best)]
    caption = f"The best value, {number_text(run.best.value)}, was found in trial {when}."
    hidden = max(len(run.succeeded) - MAX_TRIALS, 0) + max(data.failed - MAX_FAILED, 0)
    not_drawn = f"{hidden:,} single trials are not drawn." if hidden else ""
    if data.paired is not None and beside is not None:
        return _comparison(run, data.paired, beside), f"{ONE_OF_EACH} {not_drawn}".strip()
    if expected is None:
        return caption, not_drawn
    cut = expected.length < len(run)
    own = f"Of its first {plural(expected.length, 'trial')}, it needed {expected.own_needed}"
    own = own if cut else f"It needed {plural(expected.own_needed, 'trial')}"
    that = "their best" if cut else "its best"
    return (
        f"{own} to come within {percent(CLOSE)} of {that}; half of "
        f"{plural(len(expected.origins), 'past run')} needed {median_trials(expected.needed)} or more for the same.",
        "Distances are relative to each run's own range of values. Dashed line: median of these past runs. Band: their "
        "middle half. Both are scaled to the range of values of this run: they show how fast past runs improved, not "
        f"which values they would have found here. {_origin_text(expected)} {not_drawn}".strip(),
    )


def _origin_text(expected: Expectation) -> str:
    """Say how the past runs were tuned."""
    counts = Counter(expected.origins)
    if expected.without_transfer:
        return "These past runs were tuned without transfer."
    if set(counts) == {"unknown"}:
        return "It is unknown whether these past runs were tuned with transfer."
    parts = [f"{counts[how]} {how}" for how in ("with transfer", "without transfer", "unknown") if counts[how]]
    return f"How they were tuned: {', '.join(parts)}. So this is not purely what to expect without transfer."


def _comparison(run: Run, paired: PairedRun, beside: FloatArray) -> str:
    last = float(beside[-1])
    if not np.isfinite(last):
        return "The same task without transfer had no value in as many trials."
    when = trials_to_reach(run, last)
    reached = "this run never reached it" if when is None else f"this run reached it after {plural(when, 'trial')}"
    return (
        f"The same task without transfer (problem {printable(paired.problem, 40)}, method "
        f"{printable(paired.method, 30)}) had {number_text(last)} after {plural(len(beside), 'trial')}; {reached}."
    )


def _number_table(run: Run, expected: Expectation | None, beside: FloatArray | None) -> Table:
    lines = {"best value": best_values(run)} | ({} if beside is None else {"without transfer": beside})
    if expected is not None:
        parts = {"better quarter": expected.better, "median": expected.median, "worse quarter": expected.worse}
        lines |= {f"past runs, scaled: {part}": line for part, line in parts.items()}
    shown = thinned(len(run), MAX_ROWS)
    rows = [(row + 1, *(float(line[row]) if row < len(line) else None for line in lines.values())) for row in shown]
    return simple_table("Best value after trials", [("trials", ",.0f"), *((name, ".4g") for name in lines)], rows)
