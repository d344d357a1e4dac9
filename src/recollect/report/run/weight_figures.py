"""Figures of what past runs had to say in each suggestion: weights by past run, and how much the past counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from recollect._text import plural
from recollect.analysis.source_usefulness import PriorHistory, WeightHistory
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.report.figure import COLOURS, Figure, LegendKey, Spec, rounded, trace
from recollect.report.formatting import IN_HOVER, join_names, percent, printable
from recollect.report.table import simple_table

WEIGHT_QUESTION, RUNS_QUESTION = "Who decided what was tried?", "Which past runs counted?"
PRIOR_QUESTION = "How much did the past count?"
TARGET_LABEL = "this task"
OWN_LABEL, ALIKE_LABEL, REVERSED_LABEL = "past runs say nothing", "like past runs", "past runs, reversed"
MAX_STEPS = 120  # of more trials, several are averaged to one step
WEIGHT_HOVER = "<b>%{customdata[0]}</b><br>%{customdata[1]}: %{y:.1f}% of the weight<extra></extra>"
PRIOR_HOVER = "<b>%{customdata[0]}</b><br>%{customdata[1]}: probability %{y:.1f}%<extra></extra>"


PRIOR_DETAILS = (
    "Past runs give an expectation of this task before its first result. Three explanations of the results are weighed "
    "by how probable they make them: this task is like past runs; it is their reverse, so what was good is bad here; "
    "or past runs say nothing about where good values are, and only this task's own results do. "
    "What to do with it: where the past counts much, past runs save trials, and the table below says which ones. Where "
    "it counts little, the search went on as without past runs; if that surprises you, check whether the past runs "
    "measured the same thing."
)
PRIOR_WEIGHTS = (
    "The prediction adds up the functions of past runs, each times its coefficient. The coloured part is how much the "
    "past counts; it is divided by the magnitudes of the coefficients, so a past run that is used reversed counts, too."
)


def weight_figure(history: WeightHistory, *, prior: bool = False) -> Figure:
    """Return the weights over trials as a stacked area: this task, the largest past runs by name, the rest.

    prior: the method has a prior from past runs.
    """
    means = history.means
    shown = [task for task in history.sources[: len(COLOURS)] if means[task] > 0]
    layers = np.column_stack([history.target, history.source_weights[:, : len(shown)]])
    layers = np.column_stack([layers, np.clip(1.0 - layers.sum(axis=1), 0.0, None)])
    rest = len(history.sources) - len(shown)
    labels = [TARGET_LABEL, *(printable(task, IN_HOVER) for task in shown), f"the rest ({plural(rest, 'past run')})"]
    colours = ["grey", *COLOURS[: len(shown)], "pale"]
    if rest == 0 or not layers[:, -1].any():
        labels, colours, layers = labels[:-1], colours[:-1], layers[:, :-1]
    more = [PRIOR_WEIGHTS] if prior else _vote_details(history)
    figure = _stacked(history.trials, layers, dict(zip(labels, colours, strict=True)), more, axis="weight")
    return replace(figure, question=RUNS_QUESTION if prior else WEIGHT_QUESTION, caption=_weight_caption(history))


def prior_figure(history: PriorHistory) -> Figure:
    """Return how much the past counted over trials, as probabilities that add up to 1."""
    layers = np.column_stack([history.own, history.alike, history.reversed])
    colours = {OWN_LABEL: "grey", ALIKE_LABEL: "blue", REVERSED_LABEL: "vermillion"}
    figure = _stacked(history.trials, layers, colours, [PRIOR_DETAILS], axis="probability", hover=PRIOR_HOVER)
    past, last = float(history.past.mean()), float(history.past[-1])
    caption = f"Past runs had {percent(past)} of the weight on average, and {percent(last)} in the last suggestion."
    return replace(figure, question=PRIOR_QUESTION, caption=caption)


def _stacked(
    trials: IntArray, layers: FloatArray, colours: Mapping[str, str], more: Sequence[str],
    *, axis: str, hover: str = WEIGHT_HOVER,
) -> Figure:  # fmt: skip
    """Return layers (m, l) over m trials as areas, each with its label and colour; axis: what they are."""
    x, steps, averages = _steps(trials, layers)
    areas = [
        _weight_area(x, steps, 100.0 * layer, label=label, colour=colour, hover=hover)
        for layer, (label, colour) in zip(averages.T, colours.items(), strict=True)
    ]
    layout = {
        "xaxis": {"title": {"text": "trial"}, "range": [float(trials[0]) - 0.5, trials[-1] + 0.5]},
        "yaxis": {"title": {"text": f"{axis} (%)"}, "range": [0, 100]},
        "margin": {"r": 24},
    }
    columns = [("trials", ""), *((label, ".1f") for label in colours)]
    rows = [(name, *shares) for name, shares in zip(steps, (100.0 * averages).tolist(), strict=True)]
    table = simple_table(f"{axis.capitalize()} in % at each step", columns, rows)
    keys = tuple(LegendKey(label, (place,), colours[label], mark="area") for place, label in enumerate(colours))
    averaged = [f"Neighbouring trials are averaged to {MAX_STEPS} steps."] if len(x) < len(trials) else []
    text = " ".join([*more, *averaged, *_before(trials)])
    return Figure("", "", tuple(areas), layout, table, keys=keys, more=text)


def _steps(trials: IntArray, layers: FloatArray) -> tuple[FloatArray, list[str], FloatArray]:
    """Return the middle, the name and the mean weights of each step: a trial, or several if there are too many."""
    parts = np.array_split(np.arange(len(trials)), min(len(trials), MAX_STEPS))
    x = np.array([trials[part].mean() for part in parts])
    ends = [(len(part), trials[part[0]], trials[part[-1]]) for part in parts]
    names = [f"trial {first}" if count == 1 else f"trials {first} to {last}" for count, first, last in ends]
    return x, names, np.array([layers[part].mean(axis=0) for part in parts])


def _weight_area(x: FloatArray, steps: Sequence[str], y: FloatArray, *, label: str, colour: str, hover: str) -> Spec:
    """A layer; its steps are as wide as a trial, also the first and the last."""
    return trace(
        x=rounded(np.concatenate([[x[0] - 0.5], x, [x[-1] + 0.5]]), 6),
        y=rounded(np.concatenate([y[:1], y, y[-1:]])),
        customdata=[[label, name] for name in (steps[0], *steps, steps[-1])],
        mode="lines", stackgroup="weights", line={"color": f"@{colour}", "width": 0.5, "shape": "hvh"},
        fillcolor=f"@{colour}", hovertemplate=hover,
    )  # fmt: skip


def _weight_caption(history: WeightHistory) -> str:
    past, means = 1.0 - float(history.target.mean()), history.means
    largest = [f"{printable(task)} ({percent(means[task])})" for task in history.sources[:3] if means[task] >= 0.01]
    most = f", most of it {join_names(largest)}" if largest else ""
    suggestions = plural(len(history.trials), "suggestion")
    return f"In {suggestions} that weighed past runs, they had {percent(past)} of the weight on average{most}."


def _vote_details(history: WeightHistory) -> list[str]:
    times = {0: "never", 1: "once"}.get(history.target_only, f"{history.target_only} times")
    return [
        "Each suggestion is a vote: every past run and this task's own model propose, and the area of a colour is its "
        f"weight in the vote. This task's own model decided alone {times}.",
        "What to do with it: where one past run leads, compare its task with this one; where this task's own model "
        "leads, past runs have no more to say.",
    ]


def _before(trials: IntArray) -> list[str]:
    if (before := int(trials[0])) == 0:
        return []
    return [f"{'The first trial was' if before == 1 else f'The first {before} trials were'} chosen without weights."]
