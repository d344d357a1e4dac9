"""Bounded minimisation of one or more functions from several starting points at once: projected BFGS in lockstep.

All runs take each step together, so that an objective which is cheap for many points at a time, but costs much to call,
is called as often as the longest run needs it, not as often as all runs together.  No run depends on those of other
functions.

Each run keeps an estimate ``H (p, p)`` of the inverse second derivatives, which begins with a guess if the caller has
one and otherwise with what the first step, of length one, shows.  Coordinates at a bound that the slope pushes
against stay there; the others move by -H g, the step is bent back into the bounds, and shortened until the value falls
by a fair part of what the slope promises.  Where the value or a slope is not finite a step is too long.  A run that has
come near a better one would end where that one ends, and is given up.

Notation: ``x (r, p)`` points of the r runs that still move, ``f (r,)`` values, ``g (r, p)`` slopes, ``group (r,)`` the
number of the function that is minimised; ``bounds (p, 2)`` with columns lower and upper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray

Objective: TypeAlias = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]

REFUSED = 1e25
FAIR = 1e-4  # part of the promised decrease that a step has to bring
SHORTEST = 1e-10  # of a step, as a part of -H g
LONGEST = 2.0  # of the first step, where H is guessed


@dataclass(slots=True)
class _Runs:
    """Runs that still move; ``start (r,)`` is where each began, as a row of the starts.

    ``step (r,)`` is how much of -H g is tried next, ``fresh (r,)`` whether H knows nothing.
    """

    start: IntArray
    group: IntArray
    x: FloatArray
    f: FloatArray
    g: FloatArray
    H: FloatArray
    step: FloatArray
    fresh: BoolArray

    def keep(self, mask: BoolArray) -> None:
        """Forget the other runs."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name)[mask])


@dataclass(frozen=True, slots=True)
class Rules:
    """How a run begins and when it stops.

    It begins with H = ``guess`` in all directions; None: nothing is known. It stops when the relative ``decrease`` of
    the value or the projected ``slope`` is small enough (the criteria of L-BFGS-B in SciPy), when it differs from a
    better run by less than ``near`` in every coordinate, or after so many ``rounds``.
    """

    decrease: float = 2.220446049250313e-09
    slope: float = 1e-5
    near: float = 0.0
    rounds: int = 1000
    guess: float | None = None


USUAL = Rules()


def minimize_lockstep(
    objective: Objective, starts: FloatArray, bounds: FloatArray, *, group: IntArray, rules: Rules = USUAL
) -> tuple[FloatArray, FloatArray]:
    """Where each run ended ``(s, p)``, and the values there ``(s,)``.

    ``group (s,)`` says which function a start is for.  Starts outside the bounds are moved into them.  A start that is
    refused ends where it is, with the value 1e25.
    """
    if starts.ndim != 2 or group.shape != starts.shape[:1] or bounds.shape != (starts.shape[1], 2):
        came = f"{starts.shape}, {group.shape} and {bounds.shape}"
        raise InputError(f"minimize_lockstep: expected starts (s, p), group (s,) and bounds (p, 2), got {came}")
    low, high = bounds.T
    points = np.minimum(np.maximum(starts, low), high)
    values, g = _guarded(objective, points, group)
    runs = _begin(points, values, g, group, rules.guess)
    runs.keep((values < REFUSED) & (_projected(runs, low, high) > rules.slope))
    for left in reversed(range(rules.rounds)):
        if not runs.f.size:
            break
        ahead, promised = _trial(runs, low, high)
        f, g = _guarded(objective, ahead, runs.group)
        good = f <= runs.f + FAIR * np.minimum(promised, 0.0)
        fall = (runs.f - f) / np.maximum(np.maximum(np.abs(runs.f), np.abs(f)), 1.0)
        runs.step = np.where(good, _learned(runs, good, ahead, g), _shorter(runs, f, promised))
        _move(runs, good, ahead, f, g)
        settled = good & ((fall <= rules.decrease) | (_projected(runs, low, high) <= rules.slope))
        over = settled | (runs.step <= SHORTEST) | _following(runs, rules.near) | (left == 0)
        if over.any():
            points[runs.start[over]], values[runs.start[over]] = runs.x[over], runs.f[over]
            runs.keep(~over)
    return points, values


def _guarded(objective: Objective, x: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray]:
    """Values and slopes; 1e25 and zero where one of them is not finite."""
    f, g = objective(x, group)
    finite = np.isfinite(f + g.sum(axis=1))  # a sum with a term that is not finite is not finite
    return (f, g) if finite.all() else (np.where(finite, f, REFUSED), np.where(finite[:, None], g, 0.0))


def _begin(x: FloatArray, f: FloatArray, g: FloatArray, group: IntArray, guess: float | None) -> _Runs:
    """Runs whose first step has length one, or with a guess at most two."""
    r, p = x.shape
    length = np.maximum(np.sqrt(np.square(g).sum(axis=1)), np.finfo(np.float64).tiny)
    step = 1.0 / length if guess is None else np.minimum(1.0, LONGEST / (guess * length))
    H = np.tile(np.eye(p) * (1.0 if guess is None else guess), (r, 1, 1))
    return _Runs(np.arange(r), group, x, f, g, H, step, np.full(r, guess is None))


def _projected(runs: _Runs, low: FloatArray, high: FloatArray) -> FloatArray:
    """The largest component of the slope that does not push against a bound (r,)."""
    moved = np.minimum(np.maximum(runs.x - runs.g, low), high)
    return np.asarray(np.abs(moved - runs.x).max(axis=1, initial=0.0))


def _following(runs: _Runs, near: float) -> BoolArray:
    """Which runs are near a better one of the same function (r,)."""
    better = (runs.f < runs.f[:, None]) & (runs.group == runs.group[:, None])
    one, other = np.nonzero(better)
    distance = np.abs(runs.x[one] - runs.x[other]).max(axis=1, initial=0.0)
    following = np.zeros(runs.f.size, dtype=np.bool_)
    following[one[distance < near]] = True
    return following


def _trial(runs: _Runs, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points to try next (r, p), and the change of the value that the slope promises there (r,)."""
    held = ((runs.x <= low) & (runs.g > 0.0)) | ((runs.x >= high) & (runs.g < 0.0))
    g = np.where(held, 0.0, runs.g)
    move = np.where(held, 0.0, (runs.H @ g[:, :, None])[:, :, 0])
    ahead = np.minimum(np.maximum(runs.x - runs.step[:, None] * move, low), high)
    return ahead, _dot(runs.g, ahead - runs.x)


def _learned(runs: _Runs, good: BoolArray, x: FloatArray, g: FloatArray) -> FloatArray:
    """Learn the second derivatives along the good steps (the BFGS formula), and return the steps to try next (r,).

    Where the slope did not rise along a step, there is nothing to learn but that the steps are too short.
    """
    s = x - runs.x
    y = np.where(s != 0.0, g - runs.g, 0.0)  # what held coordinates feel says nothing about those that moved
    sy, yy = _dot(s, y), _dot(y, y)
    curved = good & (sy > 1e-10 * yy)
    safe = np.where(curved, sy, 1.0)
    runs.H *= np.where(curved & runs.fresh, safe / np.where(curved, yy, 1.0), 1.0)[:, None, None]
    Hy = (runs.H @ y[:, :, None])[:, :, 0]
    ratio = curved / safe
    u = s * ratio[:, None]
    half = 0.5 * (1.0 + ratio * _dot(y, Hy))[:, None] * s - Hy
    outer = u[:, :, None] * half[:, None, :]
    runs.H += outer + outer.transpose(0, 2, 1)
    runs.fresh &= ~curved
    return np.where(curved, 1.0, 2.0 * runs.step)


def _shorter(runs: _Runs, f: FloatArray, promised: FloatArray) -> FloatArray:
    """Where steps brought too little: to the minimum of the parabola through what is known, within limits (r,)."""
    rise = f - runs.f - promised
    part = np.divide(-0.5 * promised, rise, out=np.zeros(rise.size), where=rise > 0.0)
    return np.asarray(runs.step * np.minimum(np.maximum(part, 0.1), 0.5))


def _move(runs: _Runs, good: BoolArray, x: FloatArray, f: FloatArray, g: FloatArray) -> None:
    """Take the good steps."""
    runs.x = np.where(good[:, None], x, runs.x)
    runs.f = np.where(good, f, runs.f)
    runs.g = np.where(good[:, None], g, runs.g)


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("rp,rp->r", a, b))
