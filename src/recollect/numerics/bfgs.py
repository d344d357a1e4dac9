"""Bounded minimization from several starting points: L-BFGS-B one start at a time, or batched BFGS all at once.

Where the value or the gradient is not finite, a point counts as 1e25 with zero gradient.  A run of L-BFGS-B that meets
such a point ends at its best point so far; a step of batched BFGS to such a point counts as too long.

Batched BFGS minimizes one or more functions.  All runs advance in the same step: an objective that is cheap per point
but expensive per call is called only as often as the longest run needs, not as often as all runs together.  No run
depends on runs of other functions.

Each run keeps an estimate ``H (p, p)`` of the inverse Hessian.  It starts from the caller's guess, or else from what
the first step, of length one, reveals.  Coordinates at a bound stay there while the gradient pushes against it; the
others move by -H g.  The step is projected into the bounds, and shortened until the value falls by a sufficient part of
what the gradient promises.  A run that comes near a better one would end where that one ends, so it is abandoned.

Notation: ``starts (s, p)``; ``bounds (p, 2)`` with columns lower and upper; ``x (r, p)`` points of the r runs that
still move, ``f (r,)`` values, ``g (r, p)`` gradients, ``group (r,)`` the function that each run minimizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray

Objective: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]
BatchedObjective: TypeAlias = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]

NOT_FINITE = 1e25  # the value of points where the objective is not finite
VALUE_TOLERANCE = 2.220446049250313e-09  # relative decrease of the value, as in SciPy's L-BFGS-B
GRADIENT_TOLERANCE = 1e-5  # of the projected gradient, as in SciPy's L-BFGS-B
SUFFICIENT_DECREASE = 1e-4  # part of the promised decrease that a step has to achieve
SHORTEST_STEP = 1e-10  # as a part of -H g
LONGEST_FIRST_STEP = 2.0  # where H is guessed


def minimize_multistart(
    objective: Objective,
    starts: FloatArray,
    bounds: FloatArray,
    *,
    value_tolerance: float = VALUE_TOLERANCE,
    max_evaluations: int = 15000,
) -> tuple[FloatArray, float, int]:
    """Return the best point, its value, and the number of evaluations of all runs together.

    A run stops when the relative decrease of the value is within its tolerance, the projected gradient within SciPy's,
    or after ``max_evaluations``.  Starts outside the bounds are moved into them.  If no point is finite, the
    first start is returned with the value 1e25.
    """
    from scipy.optimize import Bounds, minimize

    starts, bounds = np.asarray(starts, dtype=np.float64), np.asarray(bounds, dtype=np.float64)
    if starts.ndim != 2 or starts.shape[0] == 0 or bounds.shape != (starts.shape[1], 2):
        shapes = f"{starts.shape} and {bounds.shape}"
        raise InputError(f"minimize_multistart: expected starts (s, p) with s >= 1 and bounds (p, 2), got {shapes}")
    finite = _FiniteObjective(objective)
    low, high = bounds.T
    points = np.clip(starts, low, high)
    if points.shape[1] == 0:
        return points[0], finite.value(points[0]), finite.evaluations
    box, options = Bounds(low, high), {"ftol": value_tolerance, "maxfun": max_evaluations}
    ends = [
        minimize(finite.value, point, jac=finite.gradient, method="L-BFGS-B", bounds=box, options=options)
        for point in points
    ]
    best = min(ends, key=lambda end: float(end.fun))
    return np.clip(best.x, low, high), float(best.fun), finite.evaluations  # SciPy may pass a bound by a rounding error


class _FiniteObjective:
    """The objective as SciPy calls it with the least overhead: value and gradient apart, at the same point."""

    __slots__ = ("_gradient", "_objective", "_point", "evaluations")

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._point = b""
        self._gradient: FloatArray = np.zeros(0)
        self.evaluations = 0

    def value(self, x: FloatArray) -> float:
        value, gradient = self._objective(x)
        self.evaluations += 1
        # A sum with a term that is not finite is not finite: cheaper than checking every entry.
        if not math.isfinite(value) or not math.isfinite(sum(gradient.tolist())):
            value, gradient = NOT_FINITE, np.zeros(x.size)
        self._point, self._gradient = x.tobytes(), gradient
        return value

    def gradient(self, x: FloatArray) -> FloatArray:
        if x.tobytes() != self._point:
            self.value(x)
        return self._gradient


@dataclass(slots=True)
class _Runs:
    """Runs that still move."""

    start: IntArray  # (r,) where each began, as a row of the starts
    group: IntArray
    x: FloatArray
    f: FloatArray
    g: FloatArray
    H: FloatArray  # (r, p, p)
    step: FloatArray  # (r,) the part of -H g to try next
    uninformed: BoolArray  # (r,) whether H contains no curvature yet

    def keep(self, mask: BoolArray) -> None:
        """Remove all other runs."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name)[mask])


@dataclass(frozen=True, slots=True)
class BFGSOptions:
    """How runs of batched BFGS begin and when they stop."""

    merge_distance: float = 0.0  # a run closer to a better one than this, in every coordinate, is abandoned
    max_steps: int = 1000  # after which all runs stop
    inverse_curvature: float | None = None  # diagonal of the initial H; None if nothing is known about the curvature
    value_tolerance: float = VALUE_TOLERANCE  # relative decrease of the value below which a run stops


def minimize_batched_bfgs(
    objective: BatchedObjective, starts: FloatArray, bounds: FloatArray, *, group: IntArray, options: BFGSOptions
) -> tuple[FloatArray, FloatArray]:
    """Return where each run ended ``(s, p)``, and the values there ``(s,)``.

    ``group (s,)`` says which function a start is for.  Starts outside the bounds are moved into them.  A run whose
    start is not finite ends there, with the value 1e25.
    """
    if starts.ndim != 2 or group.shape != starts.shape[:1] or bounds.shape != (starts.shape[1], 2):
        shapes = f"{starts.shape}, {group.shape} and {bounds.shape}"
        raise InputError(f"minimize_batched_bfgs: expected starts (s, p), group (s,) and bounds (p, 2), got {shapes}")
    low, high = bounds.T
    points = np.minimum(np.maximum(starts, low), high)
    values, g = _finite(objective, points, group)
    runs = _begin(points, values, g, group, options.inverse_curvature)
    runs.keep((values < NOT_FINITE) & (_projected_gradient(runs, low, high) > GRADIENT_TOLERANCE))
    for steps_left in reversed(range(options.max_steps)):
        if not runs.f.size:
            break
        x, promised = _propose(runs, low, high)
        f, g = _finite(objective, x, runs.group)
        good = f <= runs.f + SUFFICIENT_DECREASE * np.minimum(promised, 0.0)
        decrease = (runs.f - f) / np.maximum(np.maximum(np.abs(runs.f), np.abs(f)), 1.0)
        runs.step = np.where(good, _update_hessian(runs, good, x, g), _shorter_step(runs, f, promised))
        runs.f = np.where(good, f, runs.f)
        runs.x, runs.g = np.where(good[:, None], x, runs.x), np.where(good[:, None], g, runs.g)
        flat = _projected_gradient(runs, low, high) <= GRADIENT_TOLERANCE
        converged = good & ((decrease <= options.value_tolerance) | flat)
        over = converged | (runs.step <= SHORTEST_STEP) | _redundant(runs, options.merge_distance) | (steps_left == 0)
        if over.any():
            points[runs.start[over]], values[runs.start[over]] = runs.x[over], runs.f[over]
            runs.keep(~over)
    return points, values


def _finite(objective: BatchedObjective, x: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray]:
    """Values and gradients; 1e25 and zero where one of them is not finite."""
    f, g = objective(x, group)
    finite = np.isfinite(f + g.sum(axis=1))  # a sum with a term that is not finite is not finite
    return (f, g) if finite.all() else (np.where(finite, f, NOT_FINITE), np.where(finite[:, None], g, 0.0))


def _begin(x: FloatArray, f: FloatArray, g: FloatArray, group: IntArray, curvature: float | None) -> _Runs:
    """Runs whose first step has length one, or with a given inverse curvature at most two."""
    r, p = x.shape
    length = np.maximum(np.sqrt(np.square(g).sum(axis=1)), np.finfo(np.float64).tiny)
    step = 1.0 / length if curvature is None else np.minimum(1.0, LONGEST_FIRST_STEP / (curvature * length))
    H = np.tile(np.eye(p) * (1.0 if curvature is None else curvature), (r, 1, 1))
    return _Runs(np.arange(r), group, x, f, g, H, step, np.full(r, curvature is None))


def _projected_gradient(runs: _Runs, low: FloatArray, high: FloatArray) -> FloatArray:
    """Largest component of the gradient that does not push against a bound (r,)."""
    moved = np.minimum(np.maximum(runs.x - runs.g, low), high)
    return np.asarray(np.abs(moved - runs.x).max(axis=1, initial=0.0))


def _redundant(runs: _Runs, merge_distance: float) -> BoolArray:
    """Mask (r,) of runs near a better one of the same function."""
    better = (runs.f < runs.f[:, None]) & (runs.group == runs.group[:, None])
    run, other = np.nonzero(better)
    distance = np.abs(runs.x[run] - runs.x[other]).max(axis=1, initial=0.0)
    redundant = np.zeros(runs.f.size, dtype=np.bool_)
    redundant[run[distance < merge_distance]] = True
    return redundant


def _propose(runs: _Runs, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points to try next (r, p), and the change of the value that the gradient promises there (r,)."""
    held = ((runs.x <= low) & (runs.g > 0.0)) | ((runs.x >= high) & (runs.g < 0.0))
    g = np.where(held, 0.0, runs.g)
    move = np.where(held, 0.0, (runs.H @ g[:, :, None])[:, :, 0])
    ahead = np.minimum(np.maximum(runs.x - runs.step[:, None] * move, low), high)
    return ahead, _dot(runs.g, ahead - runs.x)


def _update_hessian(runs: _Runs, good: BoolArray, x: FloatArray, g: FloatArray) -> FloatArray:
    """Update H along the good steps (the BFGS formula), and return the steps to try next (r,).

    Where the slope did not rise along a step, all that is learned is that the steps are too short.
    """
    s = x - runs.x
    y = np.where(s != 0.0, g - runs.g, 0.0)  # gradients of held coordinates say nothing about those that moved
    sy, yy = _dot(s, y), _dot(y, y)
    curved = good & (sy > 1e-10 * yy)
    safe = np.where(curved, sy, 1.0)
    runs.H *= np.where(curved & runs.uninformed, safe / np.where(curved, yy, 1.0), 1.0)[:, None, None]
    Hy = (runs.H @ y[:, :, None])[:, :, 0]
    ratio = curved / safe
    u = s * ratio[:, None]
    half = 0.5 * (1.0 + ratio * _dot(y, Hy))[:, None] * s - Hy
    outer = u[:, :, None] * half[:, None, :]
    runs.H += outer + outer.transpose(0, 2, 1)
    runs.uninformed &= ~curved
    return np.where(curved, 1.0, 2.0 * runs.step)


def _shorter_step(runs: _Runs, f: FloatArray, promised: FloatArray) -> FloatArray:
    """Steps after too small a decrease: to the minimum of the interpolating parabola, within limits (r,)."""
    rise = f - runs.f - promised
    part = np.divide(-0.5 * promised, rise, out=np.zeros(rise.size), where=rise > 0.0)
    return np.asarray(runs.step * np.minimum(np.maximum(part, 0.1), 0.5))


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("rp,rp->r", a, b))
