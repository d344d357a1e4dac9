"""Bounded minimisation from several starting points: L-BFGS-B with analytic gradients.

Notation: ``starts (s, p)``, ``bounds (p, 2)`` with columns lower and upper; the objective maps ``x (p,)`` to its value
and gradient ``(p,)``.  Where the value or a slope is not finite the point counts as 1e25 with zero gradient;
a run that meets such a point ends at the best one it had before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

Objective: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]

REFUSED = 1e25


def minimize_multistart(
    objective: Objective,
    starts: FloatArray,
    bounds: FloatArray,
    *,
    decrease: float = 2.220446049250313e-09,
    slope: float = 1e-5,
    evaluations: int = 15000,
) -> tuple[FloatArray, float, int]:
    """Best point found, its value, and the number of evaluations of all runs together.

    A run stops when the relative ``decrease`` of the value or the projected ``slope`` is small enough (SciPy's
    defaults), or after so many ``evaluations``.  Starts outside the bounds are moved into them.  When every point is
    refused, the answer is the first start with the value 1e25.
    """
    starts, bounds = np.asarray(starts, dtype=np.float64), np.asarray(bounds, dtype=np.float64)
    if starts.ndim != 2 or starts.shape[0] == 0 or bounds.shape != (starts.shape[1], 2):
        raise InputError(
            f"minimize_multistart: expected starts (s, p) with s >= 1 and bounds (p, 2), "
            f"got {starts.shape} and {bounds.shape}"
        )
    guarded = _Guarded(objective)
    points = np.clip(starts, bounds[:, 0], bounds[:, 1])
    if points.shape[1] == 0:
        return points[0], guarded.value(points[0]), guarded.evaluations
    options = {"ftol": decrease, "gtol": slope, "maxfun": evaluations}
    ends = [_descend(guarded, point, bounds, options) for point in points]
    best, lowest = min(ends, key=lambda end: end[1])
    return best, lowest, guarded.evaluations


class _Guarded:
    """The objective the way SciPy calls it with the least overhead: value and slope apart, at the same point."""

    __slots__ = ("_objective", "_point", "_slope", "evaluations")

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._point = b""
        self._slope: FloatArray = np.zeros(0)
        self.evaluations = 0

    def value(self, x: FloatArray) -> float:
        value, slope = self._objective(x)
        self.evaluations += 1
        # Any sum with a term that is not finite is not finite: cheaper than asking every slope.
        if not math.isfinite(value) or not math.isfinite(sum(slope.tolist())):
            value, slope = REFUSED, np.zeros(x.size)
        self._point, self._slope = x.tobytes(), slope
        return value

    def slope(self, x: FloatArray) -> FloatArray:
        if x.tobytes() != self._point:
            self.value(x)
        return self._slope


def _descend(
    guarded: _Guarded, start: FloatArray, bounds: FloatArray, options: dict[str, float]
) -> tuple[FloatArray, float]:
    """One run of L-BFGS-B: where it ended, and the value there."""
    from scipy.optimize import Bounds, minimize

    box = Bounds(bounds[:, 0], bounds[:, 1])
    end = minimize(guarded.value, start, jac=guarded.slope, method="L-BFGS-B", bounds=box, options=options)
    return np.clip(end.x, bounds[:, 0], bounds[:, 1]), float(end.fun)  # SciPy may pass a bound by a rounding error
