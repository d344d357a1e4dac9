"""Figures over the trials of a run: how fast good values were found, and how much each past run had to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect._text import plural
from recollect.analysis.run_data import PairedRun, RunData
from recollect.analysis.run_progress import CLOSE, Expectation, best_values, expectation, trial_values, trials_to_reach
from recollect.analysis.source_usefulness import WeightHistory
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.report.figure import COLOURS, Figure, LegendKey, Spec, rounded, trace
from recollect.report.formatting import IN_HOVER, join_names, number_text, percent, printable, thinned
from recollect.report.run.axes import FAILED_MARKER, ValueAxis, value_axis
from recollect.report.table import Table, simple_table
from recollect.runs.run import Run, State

QUESTION = "Did it find good values sooner than without transfer?"
QUESTION_ALONE = "How soon were good values found?"
MAX_ROWS, MAX_TRIALS, MAX_FAILED = 40, 300, 100  # rows of the table; trials that are drawn
HOVER = "<b>trial %{x}</b><br>value %{customdata}<extra></extra>"
BEST_HOVER = "<b>after %{x} trials</b><br>best value %{customdata}<extra></extra>"
FAILED_HOVER = "<b>trial %{x}</b><br>failed<extra></extra>"
BASELINE_HOVER = "<b>after %{x} trials</b><br>without transfer, as far as known: %{customdata}<extra></extra>"
DASH = "9px,3px"


def progress_figure(data: RunData) -> Figure | None:
    """Return the best value over trials, beside what is expected without transfer; None without any value."""
    run, paired = data.run, data.paired
    if run.best is None:
        return None
    expected = None if paired is not None else expectation(data)
    beside = None if paired is None else best_values(paired.run)[: len(run)]
    axis = value_axis(run, beside)
    traces: list[Spec] = []
    keys: list[LegendKey] = []

    def draw(label: str, *own: Spec, colour: str, dash: str = "") -> None:
        keys.append(LegendKey(label, tuple(range(len(traces), len(traces) + len(own))), colour, dash))
        traces.extend(own)

    if expected is not None:
        how = " without transfer" if expected.without_transfer else ""
        label = f"{plural(len(expected.origins), 'past run')}{how}, scaled to this task"
        draw(label, _band(expected), _baseline(expected.median), colour="grey", dash=DASH)
    if paired is not None and beside is not None:
        which = f"{printable(paired.problem, 40)}, {printable(paired.method, 30)}"
        draw(f"the same task without transfer ({which})", _baseline(beside), colour="grey", dash=DASH)
    draw("single trials", _trials(run), colour="sky")
    if data.failed:
        draw("failed trials", _failed_trials(run, axis), colour="vermillion")
    draw("best value so far", _best_line(run), colour="blue")
    caption, more = _caption(data, expected, beside)
    layout = {
        "xaxis": {"title": {"text": "trials"}, "range": [0.5, len(run) + 0.5]},
        "yaxis": axis.layout(f"value ({'lower' if run.direction == 'minimize' else 'higher'} is better)"),
        "margin": {"r": 24},
    }
    question = QUESTION_ALONE if expected is None and paired is None else QUESTION
    table = _number_table(run, expected, beside)
    return Figure(question, caption, tuple(traces), layout, table, keys=tuple(reversed(keys)), more=more)


def _best_line(run: Run) -> Spec:
    """The best value so far, as steps: a point for each improvement, and the end."""
    best = best_values(run)
    changed = np.flatnonzero(np.isfinite(best) & (np.append(np.nan, best[:-1]) != best))
    rows = np.unique(np.append(changed, len(best) - 1))
    line, marker = {"color": "@blue", "width": 2.6, "shape": "hv"}, {"color": "@blue", "size": 5}
    return _values(best, rows, mode="lines+markers", line=line, marker=marker, hovertemplate=BEST_HOVER)


def _trials(run: Run) -> Spec:
    values = trial_values(run)
    ok = np.flatnonzero(np.isfinite(values))
    ok = ok[thinned(len(ok), MAX_TRIALS)]
    return _values(values, ok, mode="markers", marker={"color": "@sky:0.75", "size": 6}, hovertemplate=HOVER)


def _failed_trials(run: Run, axis: ValueAxis) -> Spec:
    every = [place + 1 for place, trial in enumerate(run.trials) if trial.state is State.FAILED]
    failed = [every[place] for place in thinned(len(every), MAX_FAILED)]
    y = [rounded(axis.failed, 6)] * len(failed)
    return trace(x=failed, y=y, mode="markers", marker=FAILED_MARKER, hovertemplate=FAILED_HOVER)


def _band(expected: Expectation) -> Spec:
    x = np.arange(1.0, len(expected.median) + 1.0)
    outline = np.concatenate([expected.better, expected.worse[::-1]])
    style = {"mode": "lines", "line": {"width": 0}, "fill": "toself", "fillcolor": "@grey:0.15", "hoverinfo": "skip"}
    return trace(x=rounded(np.concatenate([x, x[::-1]]), 6), y=rounded(outline, 6), **style)


def _baseline(values: FloatArray) -> Spec:
    line = {"color": "@grey", "width": 2, "dash": DASH, "shape": "hv"}
    rows = np.flatnonzero(np.isfinite(values))
    return _values(values, rows, mode="lines", line=line, hovertemplate=BASELINE_HOVER)


def _values(values: FloatArray, rows: IntArray, **style: Any) -> Spec:
    """Return a trace of the values (n,) of some trials."""
    texts = [number_text(value) for value in values[rows].tolist()]
    return trace(x=(rows + 1).tolist(), y=rounded(values[rows], 6), customdata=texts, **style)


def _caption(data: RunData, expected: Expectation | None, beside: FloatArray | None) -> tuple[str, str]:
    """Return what is seen, and how to read it."""
    run = data.run
    assert run.best is not None
    when = run.trials.index(run.best) + 1
    caption = f"The best value, {number_text(run.best.value)}, was found in trial {when} of {len(run)}."
    hidden = max(len(run.succeeded) - MAX_TRIALS, 0) + max(data.failed - MAX_FAILED, 0)
    not_drawn = f" {hidden:,} single trials are not drawn." if hidden else ""
    if data.paired is not None and beside is not None:
        return f"{caption}{not_drawn} {_comparison(run, data.paired, beside)}", ""
    if expected is None:
        return f"{caption}{not_drawn}", ""
    first = f"Of its first {plural(expected.length, 'trial')}, it" if expected.length < len(run) else "It"
    that = "their best" if expected.length < len(run) else "that"
    typical = int(np.ceil(np.median(expected.needed)))
    return (
        f"{caption} {first} needed {expected.own_needed} to come within {percent(CLOSE)} of {that}; half of "
        f"{plural(len(expected.origins), 'past run')} needed {typical} or more for the same.",
        "Distances are relative to each run's own range of values. Dashed line: median of these past runs. Band: their "
        "middle half. Both are scaled to the range of values of this run: they show how fast past runs improved, not "
        f"which values they would have found here. {_origin_text(expected)}{not_drawn}",
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
        f"{printable(paired.method, 30)}) had {number_text(last)} after {plural(len(beside), 'trial')}; {reached}. "
        "This compares one run of each, so chance plays a part."
    )


def _number_table(run: Run, expected: Expectation | None, beside: FloatArray | None) -> Table:
    lines = {"best value": best_values(run)} | ({} if beside is None else {"without transfer": beside})
    if expected is not None:
        parts = {"better quarter": expected.better, "median": expected.median, "worse quarter": expected.worse}
        lines |= {f"past runs, scaled: {part}": line for part, line in parts.items()}
    shown = thinned(len(run), MAX_ROWS)
    rows = [(row + 1, *(float(line[row]) if row < len(line) else None for line in lines.values())) for row in shown]
    return simple_table("Best value after trials", [("trials", ",.0f"), *((name, ".4g") for name in lines)], rows)


WEIGHT_QUESTION = "Who decided what was tried?"
TARGET_LABEL = "this task"
MAX_STEPS = 120  # of more trials, several are averaged to one step
OPACITIES = {"ink": 0.45, "grey": 0.15}  # 0.8 for other colours
WEIGHT_HOVER = "<b>%{customdata[0]}</b><br>%{customdata[1]}: %{y:.1f} % of the weight<extra></extra>"


def weight_figure(history: WeightHistory) -> Figure:
    """Return the weights over trials as a stacked area: this task, the largest past runs by name, the rest."""
    means = history.means
    shown = [task for task in history.sources[: len(COLOURS)] if means[task] > 0]
    layers = np.column_stack([history.target, history.source_weights[:, : len(shown)]])
    layers = np.column_stack([layers, np.clip(1.0 - layers.sum(axis=1), 0.0, None)])
    rest = len(history.sources) - len(shown)
    labels = [TARGET_LABEL, *(printable(task, IN_HOVER) for task in shown), f"the rest ({plural(rest, 'past run')})"]
    colours = ["ink", *COLOURS[: len(shown)], "grey"]
    if rest == 0 or not layers[:, -1].any():
        labels, colours, layers = labels[:-1], colours[:-1], layers[:, :-1]
    x, steps, averages = _steps(history.trials, layers)
    areas = [
        _weight_area(x, steps, 100.0 * layer, label=label, colour=colour)
        for layer, label, colour in zip(averages.T, labels, colours, strict=True)
    ]
    layout = {
        "xaxis": {"title": {"text": "trials"}, "range": [float(history.trials[0]) - 0.5, history.trials[-1] + 0.5]},
        "yaxis": {"title": {"text": "weight (%)"}, "range": [0, 100]},
        "margin": {"r": 24},
    }
    columns = [("trials", ""), *((label, ".1f") for label in labels)]
    rows = [(name, *weights) for name, weights in zip(steps, (100.0 * averages).tolist(), strict=True)]
    table = simple_table("Weight in % at each step", columns, rows)
    keys = tuple(map(LegendKey, labels, ((place,) for place in range(len(labels))), colours))
    more = _weight_details(history, averaged=len(x) < len(history.trials))
    return Figure(WEIGHT_QUESTION, _weight_caption(history), tuple(areas), layout, table, keys=keys, more=more)


def _steps(trials: IntArray, layers: FloatArray) -> tuple[FloatArray, list[str], FloatArray]:
    """Return the middle, the name and the mean weights of each step: a trial, or several if there are too many."""
    parts = np.array_split(np.arange(len(trials)), min(len(trials), MAX_STEPS))
    x = np.array([trials[part].mean() for part in parts])
    ends = [(len(part), trials[part[0]], trials[part[-1]]) for part in parts]
    names = [f"trial {first}" if count == 1 else f"trials {first} to {last}" for count, first, last in ends]
    return x, names, np.array([layers[part].mean(axis=0) for part in parts])


def _weight_area(x: FloatArray, steps: Sequence[str], y: FloatArray, *, label: str, colour: str) -> Spec:
    """A layer; its steps are as wide as a trial, also the first and the last."""
    return trace(
        x=rounded(np.concatenate([[x[0] - 0.5], x, [x[-1] + 0.5]]), 6),
        y=rounded(np.concatenate([y[:1], y, y[-1:]])),
        customdata=[[label, name] for name in (steps[0], *steps, steps[-1])],
        mode="lines", stackgroup="weights", line={"color": f"@{colour}", "width": 0.5, "shape": "hvh"},
        fillcolor=f"@{colour}:{OPACITIES.get(colour, 0.8)}", hovertemplate=WEIGHT_HOVER,
    )  # fmt: skip


def _weight_caption(history: WeightHistory) -> str:
    past, means = 1.0 - float(history.target.mean()), history.means
    largest = [f"{printable(task)} ({percent(means[task])})" for task in history.sources[:3] if means[task] >= 0.01]
    most = f", most of it {join_names(largest)}" if largest else ""
    suggestions = plural(len(history.trials), "suggestion")
    return f"In {suggestions} that weighed past runs, they had {percent(past)} of the weight on average{most}."


def _weight_details(history: WeightHistory, *, averaged: bool) -> str:
    times = {0: "never", 1: "once"}.get(history.target_only, f"{history.target_only} times")
    sentences = [f"This task's own model decided alone {times}."]
    if averaged:
        sentences.append(f"Neighbouring trials are averaged to {MAX_STEPS} steps.")
    if before := int(history.trials[0]) - 1:
        first = "The first trial was" if before == 1 else f"The first {before} trials were"
        sentences.append(f"{first} chosen without weights.")
    return " ".join(sentences)
