"""How tasks progressed, side by side: the best value so far, as it is and scaled to each task's own range.

Scaled, a curve falls from 1 (the worst value of the task) to 0 (its best): values of different tasks have no common
scale, but their courses can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.analysis.memory_tasks import StoredTask
from recollect.analysis.run_progress import best_values, trial_values
from recollect.numerics.arrays import FloatArray

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, eq=False)
class TaskCurve:
    """The best value up to each trial (n,) of a task; nan before the first success."""

    task: StoredTask
    best: FloatArray  # in the user's units
    scaled: FloatArray  # from 1 to 0


def task_curves(tasks: Sequence[StoredTask]) -> list[TaskCurve]:
    """Return the curves of all tasks whose values differ."""
    curves = []
    for task in tasks:
        values, best = trial_values(task.run), best_values(task.run)
        finite = values[np.isfinite(values)]
        if len(finite) > 1 and finite.min() < finite.max():
            low, high = float(finite.min()), float(finite.max())
            good, bad = (low, high) if task.run.direction == "minimize" else (high, low)
            span = bad / 2 - good / 2  # of halves, so that it does not overflow
            curves.append(TaskCurve(task, best, (best / 2 - good / 2) / span))
    return curves


def curve_quartiles(curves: Sequence[TaskCurve]) -> FloatArray:
    """Return quartiles (3, t) of the scaled curves over trials, as far as half of the tasks go."""
    lengths = sorted(len(curve.scaled) for curve in curves)
    length = lengths[(len(lengths) - 1) // 2]
    padded = np.ones((len(curves), length))  # 1 before the first success
    for row, curve in zip(padded, curves, strict=True):
        part = curve.scaled[:length]
        row[: len(part)] = np.where(np.isfinite(part), part, 1.0)
        row[len(part) :] = 0.0  # a task that ended had found its best
    return np.asarray(np.quantile(padded, QUARTILES, axis=0))
