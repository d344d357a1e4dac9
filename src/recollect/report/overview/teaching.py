"""Which tasks taught which: the weights of past runs behind the suggestions of each task, averaged over its trials.

`recollect.minimize` notes on each trial the weights of past runs that were at least half a percent; smaller ones count
as nothing here. Tasks that came from elsewhere, or whose method weighs nothing, have no such notes.

Notation: ``weights (l, t)`` of t teachers behind the suggestions for l learners, from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import FloatArray, IntArray
from recollect.report.figure import Figure, Spec, decimals
from recollect.report.names import listed, named
from recollect.report.overview.grid import MOST, bar, grid_axes, grid_height, labels, thinned, unique_names
from recollect.report.overview.reading import Told
from recollect.report.table import Column, Row, Table, number, word

HOVER = "<b>%{y}</b><br>learned from %{x}<br>average weight %{z:.1f} %<extra></extra>"
NOTICED = 0.01  # average weight from which one task is said to have taught another
NAMED = 3  # teachers of a task that are written down


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """Who taught whom. own (l,): average weight of a learner's own model; dropped (t,): share of suggestions without.

    Teachers are in the order of all that they taught, the most influential first. trials (l,): with noted weights.
    """

    learners: tuple[str, ...]
    teachers: tuple[str, ...]
    weights: FloatArray
    own: FloatArray
    dropped: FloatArray
    trials: IntArray


def gather_lessons(tasks: Sequence[Told]) -> Lessons | None:
    """Return what is noted on the trials of all tasks; None if nothing is."""
    learners = [told for told in tasks if told.notes]
    names = dict.fromkeys(name for told in learners for note in told.notes for name in [*note.past, *note.dropped])
    if not names:
        return None
    places = {name: place for place, name in enumerate(names)}
    weights = np.zeros((len(learners), len(names)))
    dropped, asked = np.zeros(len(names)), np.zeros(len(names))
    for row, told in zip(weights, learners, strict=True):
        for note in told.notes:
            for name, weight in note.past.items():
                row[places[name]] += weight / len(told.notes)
            for name in note.dropped:
                dropped[places[name]] += 1
        mentioned = {name for note in told.notes for name in [*note.past, *note.dropped]}
        for name in mentioned:
            asked[places[name]] += len(told.notes)
    order = np.argsort(-weights.sum(axis=0), kind="stable")
    every = list(names)
    return Lessons(
        tuple(told.task for told in learners),
        tuple(every[place] for place in order),
        weights[:, order],
        np.array([np.mean([note.target for note in told.notes]) for told in learners]),
        (dropped / asked)[order],
        np.array([len(told.notes) for told in learners], dtype=np.intp),
    )


def teaching_figure(lessons: Lessons, order: Sequence[str]) -> Figure:
    """Return the heat map of weights; order: tasks in the order in which the rows are to be."""
    wanted = {name: place for place, name in enumerate(order)}
    every = sorted(range(len(lessons.learners)), key=lambda row: wanted.get(lessons.learners[row], len(wanted)))
    rows = [every[place] for place in thinned(len(every))]
    learners = [lessons.learners[row] for row in rows]
    heat: Spec = {
        "type": "heatmap",
        "x": unique_names(lessons.teachers[:MOST]),
        "y": unique_names(learners),
        "z": decimals(100.0 * lessons.weights[rows, :MOST], 3),
        "zmin": 0,
        "colorscale": [[0, "@page"], [1, "@blue"]],
        "hovertemplate": HOVER,
        "colorbar": bar("average weight, %"),
    }
    return Figure(
        "Which tasks taught which?",
        _seen(lessons),
        (heat,),
        grid_axes(heat["y"], heat["x"], labels(learners, numbered=False), "past task, the most influential first"),
        _learner_table(lessons, every),
        height=grid_height(len(learners)),
    )


def teacher_table(lessons: Lessons) -> Table:
    """Return what each past task gave to others."""
    columns = (
        Column("past task", numeric=False),
        Column("column above"),
        Column("tasks taught", hint=f"with an average weight of at least {NOTICED:.0%}"),
        Column("average weight there, %"),
        Column("most on", numeric=False),
        Column("weight there, %"),
        Column("dropped, %", hint="share of the suggestions in which it was left out as misleading"),
    )
    rows = tuple(_teacher_row(lessons, place) for place in range(len(lessons.teachers)))
    notes = (
        f"A task is taught by a past task whose weight behind its suggestions is at least {NOTICED:.0%} on average.",
    )
    return Table("What did past tasks give to others?", columns, (rows,), notes)


def _teacher_row(lessons: Lessons, place: int) -> Row:
    given = lessons.weights[:, place]
    taught = given[given >= NOTICED]
    most = int(np.argmax(given))
    anything = given[most] > 0
    return (
        word(named(lessons.teachers[place])),
        number(place + 1, "d"),
        number(len(taught), "d"),
        number(100 * float(taught.mean()) if len(taught) else None, ".1f"),
        word(named(lessons.learners[most]) if anything else ""),
        number(100 * float(given[most]) if anything else None, ".1f"),
        number(100 * float(lessons.dropped[place]), ".0f"),
    )


def _learner_table(lessons: Lessons, rows: Sequence[int]) -> Table:
    columns = (
        Column("task", numeric=False),
        Column("trials with known weights"),
        Column("weight of its own model, %"),
        Column("weight of past tasks, %"),
        Column("most from", numeric=False),
    )
    made = []
    for row in rows:
        first = [
            place for place in np.argsort(-lessons.weights[row], kind="stable")[:NAMED] if lessons.weights[row, place]
        ]
        teachers = [f"{named(lessons.teachers[place])} ({lessons.weights[row, place]:.0%})" for place in first]
        made.append(
            (
                word(named(lessons.learners[row])),
                number(int(lessons.trials[row]), "d"),
                number(100 * float(lessons.own[row]), ".1f"),
                number(100 * float(1 - lessons.own[row]), ".1f"),
                word(", ".join(teachers)),
            )
        )
    return Table("What each task learned from", columns, (tuple(made),))


def _seen(lessons: Lessons) -> str:
    learner, teacher = np.unravel_index(int(np.argmax(lessons.weights)), lessons.weights.shape)
    largest = float(lessons.weights[learner, teacher])
    counts = (lessons.weights >= NOTICED).sum(axis=0)
    silent = int((counts == 0).sum())
    count = len(lessons.learners)
    sentences = [
        f"On average past tasks had {1 - float(lessons.own.mean()):.0%} of the weight behind suggestions"
        + (f", over {count} tasks whose weights are known." if count > 1 else f" for {named(lessons.learners[0])}.")
    ]
    if largest > 0:
        widest = int(np.argmax(counts))
        sentences.append(
            f"The strongest single influence is {named(lessons.teachers[teacher])} on "
            f"{named(lessons.learners[learner])} ({largest:.0%})"
            + (
                f"; {named(lessons.teachers[widest])} taught most tasks ({counts[widest]})."
                if counts.max() > 1
                else "."
            )
        )
    if max(lessons.weights.shape) > MOST:
        sentences.append(
            f"At most {MOST} tasks and {MOST} past tasks are shown, of past tasks the most influential ones."
        )
    if silent:
        idle = [name for name, taught in zip(lessons.teachers, counts, strict=True) if taught == 0]
        sentences.append(f"Weighed, but below {NOTICED:.0%} everywhere: {listed(idle)}.")
    return " ".join(sentences)
