"""What a model of a run's trials predicts over two hyperparameters, the others as in the best configuration.

The model is a Gaussian process of this run's trials alone. Values that span orders of magnitude are modelled as
logarithms. Notation: positions (g,) from 0 to 1 along each hyperparameter, values (g, g) by row (second) and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from recollect.analysis.run_data import RunData
from recollect.analysis.run_progress import LARGEST_VALUE
from recollect.errors import NumericalError
from recollect.numerics.arrays import FloatArray
from recollect.runs.run import sign_of
from recollect.space.alignment import align
from recollect.transfer.source_fitting import fit_sources
from recollect.transfer.sources import SourceData, SourceFit

FIT = SourceFit(restarts=2, max_observations=400, max_fit_observations=150)
MIN_TRIALS, GRID, MAX_AXES = 10, 25, 4  # trials from which on there is a model, points per axis, hyperparameters
LOG_RATIO = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class ResponseSurface:
    """The predictions over two hyperparameters."""

    first: str
    second: str
    positions: FloatArray  # (g,)
    values: FloatArray  # (g, g), in the user's units


def response_surfaces(data: RunData, names: Sequence[str]) -> list[ResponseSurface]:
    """Return the surfaces of all pairs of these hyperparameters, which must be numbers that every trial uses."""
    run, space = data.run, data.space
    if space is None or run.best is None or len(names) < 2:
        return []
    aligned = align(space, [trial.config for trial in run.succeeded])
    every = np.array([trial.value for trial in run.succeeded], dtype=np.float64)
    values = np.clip(every[aligned.kept], -LARGEST_VALUE, LARGEST_VALUE)
    if len(values) < MIN_TRIALS or values.min() == values.max():
        return []
    log = bool(values.min() > 0 and values.max() > LOG_RATIO * values.min())
    targets = np.log(values) if log else values
    centre, scale = float(np.median(targets)), float(targets.max() / 2 - targets.min() / 2)  # does not overflow
    own = SourceData("", aligned.X, sign_of(run.direction) * (targets - centre) / scale)
    best = aligned.X[int(np.argmin(own.y))]
    positions = np.linspace(0.0, 1.0, GRID)
    surfaces = []
    try:
        model = fit_sources([own], shape=space.kernel_shape, settings=FIT, cache=None, jobs=1)
        for first, second in combinations(names[:MAX_AXES], 2):
            points = np.tile(best, (GRID * GRID, 1))
            points[:, space.names.index(first)] = np.tile(positions, GRID)
            points[:, space.names.index(second)] = np.repeat(positions, GRID)
            predicted = centre + scale * sign_of(run.direction) * model.means(points)[0]
            grid = (np.exp(predicted) if log else predicted).reshape(GRID, GRID)
            surfaces.append(ResponseSurface(first, second, positions, grid))
    except NumericalError:
        return []
    return surfaces
