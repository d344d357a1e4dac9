"""What the model predicted for each trial when it was suggested, beside what was seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.analysis.run_data import RunData
from recollect.numerics.arrays import FloatArray, IntArray

MIN_PREDICTIONS = 3  # fewer say nothing about a model
DEVIATIONS = 2.0  # standard deviations around the prediction in which about 95 % of all values are to be


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predicted means and standard deviations, and observed values, of m trials (m,), in the user's units."""

    trials: IntArray  # trial numbers
    means: FloatArray
    stds: FloatArray
    values: FloatArray

    @property
    def within(self) -> int:
        """The number of values that were at most two standard deviations from the prediction."""
        return int(np.count_nonzero(np.abs(self.values - self.means) <= DEVIATIONS * self.stds))


def predictions(data: RunData) -> Predictions | None:
    """Return the predictions that were recorded for trials that succeeded; None if they are too few."""
    rows = [
        (number, *note.expected, trial.value)
        for number, note, trial in zip(data.numbers, data.notes, data.run.trials, strict=True)
        if note is not None and note.expected is not None and trial.ok and trial.value is not None
    ]
    if len(rows) < MIN_PREDICTIONS:
        return None
    trials, means, stds, values = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    return Predictions(trials.astype(np.intp), means, stds, values)
