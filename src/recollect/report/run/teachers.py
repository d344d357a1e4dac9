"""What each past run was worth: how well its space fits, how well it orders this task, what became of its best.

Rank agreement: of all pairs of this run's trials with different values, the share that the past run's model puts in the
right order; a coin has one half. The models are those that the method used: they come from the cache of fits.

The place of its best configuration is that of its value if it was tried here; otherwise of what a model of this task
predicts for it, among what that model predicts for the trials.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recollect.errors import NumericalError, RecollectWarning
from recollect.history.run import Run
from recollect.numerics.arrays import FloatArray
from recollect.optimizer.method import Method
from recollect.optimizer.past import PastRun, fit_past, gather
from recollect.report.run.weights import Weighed
from recollect.report.story import Story
from recollect.space.align import Alignment, align
from recollect.space.identity import row_key
from recollect.space.space import Space
from recollect.surrogate.kernels import KernelShape
from recollect.transfer.fitting import fit_sources
from recollect.transfer.ranking import misranked_counts
from recollect.transfer.sources import SourceData, SourceFit

QUICK = SourceFit(restarts=2, most=400, most_for_fit=150)
"""How this task is modelled to place configurations that it has not tried."""

MOST_PAIRED = 2000
"""Trials whose pairs are compared: the pairs of more do not fit into memory, and tell nothing more."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a configuration among the trials that succeeded, 1 is best; None if it was tried and failed."""

    place: int | None
    tried: bool


@dataclass(frozen=True, slots=True, eq=False)
class Teacher:
    """A past run as this run saw it; None where nothing is known.

    overlap: the share of its values that could be taken over as they are; done: what had to be done to the others;
    agreement: see above; weight: in the last suggestion, mean: in all; dropped: how often, and of how many times.
    """

    task: str
    trials: int | None
    overlap: float | None
    done: str
    agreement: float | None = None
    weight: float | None = None
    mean: float | None = None
    state: str = ""
    dropped: tuple[int, int] | None = None
    best: Place | None = None


def teachers(story: Story, method: Method, found: Weighed | None) -> list[Teacher]:
    """Return all past runs, the one with most weight first."""
    assert story.space is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)  # of runs that are of no use: the table says so
        past = gather(story.past, story.space, story.run.direction, method)
    agreements = _agreements(story, method, past)
    places = _places(story, past)
    known = [
        _teacher(entry, found, agreement=agreements[number], best=places[number]) for number, entry in enumerate(past)
    ]
    absent = set() if found is None else set(found.tasks) - {entry.task for entry in past}
    for task in sorted(absent):
        known.append(_with_weights(Teacher(task, None, None, "it is not in this memory"), found))
    return sorted(known, key=lambda teacher: (-(teacher.weight or 0.0), -(teacher.mean or 0.0), teacher.task))


def overlap(alignment: Alignment, columns: int) -> float:
    """Return the share of values of past configurations that could be taken over as they are."""
    lost = sum(alignment.dropped.values())
    changed = sum(sum(counts.values()) for counts in (alignment.filled, alignment.ignored, alignment.outside))
    every = (len(alignment.kept) + lost) * columns
    return max(0.0, 1.0 - (lost * columns + changed) / every) if every else 0.0


def _teacher(entry: PastRun, found: Weighed | None, *, agreement: float | None, best: Place | None) -> Teacher:
    aligned = entry.alignment
    share = overlap(aligned, aligned.X.shape[1])
    plain = Teacher(entry.task, entry.trials, share, str(aligned) or "nothing", agreement=agreement, best=best)
    return _with_weights(plain, found)


def _with_weights(teacher: Teacher, found: Weighed | None) -> Teacher:
    if found is None:
        return teacher
    task, weight = teacher.task, 0.0
    dropped_now = False
    if task in found.tasks:
        column = found.tasks.index(task)
        weight, dropped_now = float(found.past[-1, column]), bool(found.dropped[-1, column])
    return replace(
        teacher,
        weight=weight,
        mean=found.means.get(task, 0.0),
        state="dropped" if dropped_now else "kept",
        dropped=found.times_dropped(task),
    )


def _agreements(story: Story, method: Method, past: tuple[PastRun, ...]) -> list[float | None]:
    assert story.space is not None
    agreements: list[float | None] = [None] * len(past)
    X, y = _encoded(story.run, story.space)
    sources = fit_past(past, story.space, method) if len(y) > 1 else None
    if sources is None:
        return agreements
    X, y = X[:MOST_PAIRED], y[:MOST_PAIRED]
    times = np.unique(y, return_counts=True)[1]
    tied = int(np.sum(times * (times - 1))) // 2
    pairs = len(y) * (len(y) - 1) // 2 - tied
    if pairs == 0:
        return agreements
    # A pair in the wrong order counts twice, a pair of equal values once (see belief.unproven).
    wrong = (misranked_counts(sources.means(X), None, y) - tied) / 2.0
    used = [number for number, entry in enumerate(past) if entry.used]
    for number, share in zip(used, (1.0 - wrong / pairs).tolist(), strict=True):
        agreements[number] = float(np.clip(share, 0.0, 1.0))
    return agreements


def _places(story: Story, past: tuple[PastRun, ...]) -> list[Place | None]:
    """Return the place of each past run's best configuration."""
    assert story.space is not None
    runs = {id(entry): run for entry, run in zip(past, story.past, strict=True)}
    rows = [_best_row(runs[id(entry)], entry.alignment) for entry in past]
    X, y = _encoded(story.run, story.space)
    tried = {row_key(x): float(value) for x, value in zip(X, y, strict=True)}
    failed = {row_key(x) for x in align(story.space, [t.config for t in story.run.trials if not t.ok]).X}
    open_ = [number for number, x in enumerate(rows) if x is not None and row_key(x) not in tried]
    predicted = _predicted(story.space, X, y, [rows[number] for number in open_])
    places: list[Place | None] = [None] * len(rows)
    for number, x in enumerate(rows):
        if x is None:
            continue
        if (key := row_key(x)) in tried:
            places[number] = Place(1 + int(np.count_nonzero(y < tried[key])), tried=True)
        elif key in failed:
            places[number] = Place(None, tried=True)
        elif predicted is not None:
            places[number] = Place(predicted[open_.index(number)], tried=False)
    return places


def _best_row(run: Run, alignment: Alignment) -> FloatArray | None:
    """Return the encoding of a past run's best configuration, None if it has no place in the space."""
    if len(run.succeeded) == 0:
        return None
    row = np.flatnonzero(alignment.kept == int(np.argmin(run.y)))
    return np.asarray(alignment.X[row[0]]) if len(row) else None


def _predicted(space: Space, X: FloatArray, y: FloatArray, rows: Sequence[FloatArray | None]) -> list[int] | None:
    """Return the places of configurations by a model of this task, None where it cannot tell."""
    if len(y) < 2 or y.min() == y.max() or not rows:
        return None
    shape = KernelShape(np.asarray(space.categorical), space.conditional)
    try:
        model = fit_sources([SourceData("", X, y)], shape=shape, settings=QUICK, cache=None, jobs=1)
        ours, theirs = model.means(X)[0], model.means(np.array(rows))[0]
    except NumericalError:
        return None
    return [1 + int(np.count_nonzero(ours < value)) for value in theirs.tolist()]


def _encoded(run: Run, space: Space) -> tuple[FloatArray, FloatArray]:
    """Return the trials that succeeded and have a place in the space: X (m, d), y (m,), lower is better."""
    aligned = align(space, [trial.config for trial in run.succeeded])
    return aligned.X, run.y[aligned.kept]
