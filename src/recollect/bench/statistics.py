"""Numbers about finished runs.

Notation: ``values (t,)`` of one run in the order of its trials, lower is better.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray


def best_so_far(values: npt.ArrayLike) -> FloatArray:
    """Return the lowest value up to each trial (t,); nan, a failed trial, never is the lowest; inf while all failed."""
    run = np.asarray(values, dtype=np.float64)
    if run.ndim != 1:
        raise InputError(f"best_so_far: expected the values (t,) of one run, got shape {run.shape}")
    return np.asarray(np.minimum.accumulate(np.where(np.isnan(run), np.inf, run)))


def random_multiple(values: npt.ArrayLike, factor: int) -> FloatArray:
    """Return the lowest value up to each of t / factor trials of a search that makes ``factor`` trials at a time.

    The paper's Random (2x), (4x), (10x) are this, computed from one run of random search (section 5.2, spec 3.3): after
    s trials they know the best of the first ``factor * s`` of it. All factors share the run, so that (2x) after 10
    trials equals random search after 20 exactly.
    """
    best = best_so_far(values)
    if factor < 1 or len(best) < factor:
        raise InputError(f"random_multiple: expected a factor from 1 to the run's {len(best)} trials, got {factor}")
    return best[factor - 1 :: factor]
