"""How much each past run said in each suggestion: the weights that were noted on the trials.

Notation: m trials whose suggestion weighed past runs, k past runs that were ever named there. Weights below half a
percent are not noted one by one: they are part of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.report.figure import COLOURS, Figure, Key, Spec, decimals
from recollect.report.names import IN_HOVER, listed, named
from recollect.report.run.values import counted, percent
from recollect.report.story import Story
from recollect.report.table import Column, Table, number, word

QUESTION = "Who decided what was tried?"
THIS = "this task"
MOST = 120  # steps of the figure; of more trials, several make a step
FILLS = {"ink": 0.45, "grey": 0.15}  # opacities; the others have more
HOVER = "<b>%{customdata[0]}</b><br>%{customdata[1]}: %{y:.1f} % of the weight<extra></extra>"


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """Weights of m suggestions.

    trials (m,) their numbers, from 1; target (m,); tasks: past runs, the one with most weight first; past (m, k);
    dropped (m, k); since (k,): from which of the m on a past run took part.
    """

    trials: IntArray
    target: FloatArray
    tasks: tuple[str, ...]
    past: FloatArray
    dropped: BoolArray
    since: IntArray

    @property
    def means(self) -> dict[str, float]:
        """The mean weight of each past run."""
        return dict(zip(self.tasks, self.past.mean(axis=0).tolist(), strict=True))

    @property
    def alone(self) -> int:
        """In how many suggestions this task's own model decided alone."""
        return int(np.count_nonzero(self.target >= 1.0))

    def times_dropped(self, task: str) -> tuple[int, int]:
        """Return how often a past run was dropped, and of how many times."""
        if task not in self.tasks:
            return 0, len(self.trials)
        column = self.tasks.index(task)
        return int(self.dropped[:, column].sum()), len(self.trials) - int(self.since[column])


def weighed(story: Story) -> Weighed | None:
    """Return the weights of a run, None if none were noted."""
    numbered = enumerate(story.notes, start=1)
    noted = [(trial, note) for trial, note in numbered if note is not None and note.target is not None]
    if not noted:
        return None
    names = list(dict.fromkeys(task for _, note in noted for task in (*note.past, *sorted(note.dropped))))
    columns = {task: column for column, task in enumerate(names)}
    past, dropped = np.zeros((len(noted), len(names))), np.zeros((len(noted), len(names)), dtype=np.bool_)
    named_ = np.zeros_like(dropped)
    for row, (_, note) in enumerate(noted):
        for task, weight in note.past.items():
            past[row, columns[task]] = weight
        dropped[row, [columns[task] for task in note.dropped]] = True
        named_[row, [columns[task] for task in (*note.past, *note.dropped)]] = True
    order = np.argsort(-past.mean(axis=0), kind="stable")
    return Weighed(
        trials=np.array([trial for trial, _ in noted], dtype=np.intp),
        target=np.array([note.target for _, note in noted], dtype=np.float64),
        tasks=tuple(names[column] for column in order),
        past=past[:, order],
        dropped=dropped[:, order],
        since=named_[:, order].argmax(axis=0),
    )


def weight_figure(found: Weighed) -> Figure:
    """Return the weights over trials as a stacked area: this task, the largest past runs by name, the rest."""
    shown = [task for task in found.tasks[: len(COLOURS)] if found.means[task] > 0]
    layers = np.column_stack([found.target, found.past[:, : len(shown)]])
    layers = np.column_stack([layers, np.clip(1.0 - layers.sum(axis=1), 0.0, None)])
    rest = len(found.tasks) - len(shown)
    labels = [THIS, *(named(task, IN_HOVER) for task in shown), f"the rest ({counted(rest, 'past run')})"]
    colours = ["ink", *COLOURS[: len(shown)], "grey"]
    if rest == 0 or not layers[:, -1].any():
        labels, colours, layers = labels[:-1], colours[:-1], layers[:, :-1]
    x, steps, means = _steps(found.trials, layers)
    traces = [
        _area(x, steps, 100.0 * layer, label=label, colour=colour)
        for layer, label, colour in zip(means.T, labels, colours, strict=True)
    ]
    return Figure(
        QUESTION,
        _seen(found, averaged=len(x) < len(found.trials)),
        tuple(traces),
        {
            "xaxis": {"title": {"text": "trials"}, "range": [float(found.trials[0]) - 0.5, found.trials[-1] + 0.5]},
            "yaxis": {"title": {"text": "weight (%)"}, "range": [0, 100]},
            "margin": {"r": 24},
        },
        _numbers(labels, steps, means),
        keys=tuple(map(Key, labels, ((place,) for place in range(len(labels))), colours)),
    )


def _steps(trials: IntArray, layers: FloatArray) -> tuple[FloatArray, list[str], FloatArray]:
    """Return the middle, the name and the mean weights of each step: a trial, or several if they are too many."""
    parts = np.array_split(np.arange(len(trials)), min(len(trials), MOST))
    x = np.array([trials[part].mean() for part in parts])
    names = [
        f"trial {trials[part[0]]}" if len(part) == 1 else f"trials {trials[part[0]]} to {trials[part[-1]]}"
        for part in parts
    ]
    return x, names, np.array([layers[part].mean(axis=0) for part in parts])


def _area(x: FloatArray, steps: Sequence[str], y: FloatArray, *, label: str, colour: str) -> Spec:
    """A layer; its steps are as wide as a trial, also the first and the last."""
    ends = np.concatenate([[x[0] - 0.5], x, [x[-1] + 0.5]])
    names = [steps[0], *steps, steps[-1]]
    return {
        "x": decimals(ends, 6),
        "y": decimals(np.concatenate([y[:1], y, y[-1:]])),
        "customdata": [[label, name] for name in names],
        "mode": "lines",
        "stackgroup": "weights",
        "line": {"color": f"@{colour}", "width": 0.5, "shape": "hvh"},
        "fillcolor": f"@{colour}:{FILLS.get(colour, 0.8)}",
        "hovertemplate": HOVER,
    }


def _seen(found: Weighed, *, averaged: bool) -> str:
    count = len(found.trials)
    past = 1.0 - float(found.target.mean())
    sentence = (
        f"In {counted(count, 'suggestion')} that weighed past runs they had {percent(past)} of the weight on average"
    )
    largest = [f"{named(task)} ({percent(found.means[task])})" for task in found.tasks[:3] if found.means[task] >= 0.01]
    sentence += f", most of all {listed(largest)}" if largest else ""
    times = {0: "never", 1: "once"}.get(found.alone, f"{found.alone} times")
    sentence += f". This task's own model {times} decided alone."
    if averaged:
        sentence += f" Neighbouring trials are averaged, so that there are {MOST} steps."
    before = int(found.trials[0]) - 1
    first = "The first trial was" if before == 1 else f"The first {before} trials were"
    return sentence + (f" {first} chosen without weights." if before else "")


def _numbers(labels: Sequence[str], steps: Sequence[str], means: FloatArray) -> Table:
    columns = (Column("trials", numeric=False), *map(Column, labels))
    rows = []
    for name, values in zip(steps, means.tolist(), strict=True):
        rows.append((word(name), *(number(100.0 * value, ".1f") for value in values)))
    return Table("Weight in % at each step", columns, (tuple(rows),))
