"""The part of the search space that holds the past optima: their bounding box, or one that excludes outliers.

Notation: x (k, d) the encoded best points of k past runs, nan = inactive; l, u (d,) the box, in encoded units. Only
columns with an order are bounded; a column that no optimum uses keeps its full range [0, 1]. Paper section 5.3.

The slack box solves the convex quadratic program (with 1/(2k) on both sums)

    minimize  (lambda/2) ||u - l||^2 + (1/(2k)) sum_t (xi-_t + xi+_t)                                          (S)
    subject to  l_j - xi-_t <= x_tj <= u_j + xi+_t for every active x_tj,   all variables in [0, 1],

by a primal-dual interior point method. With V (2, d) = (-l, u), Xi (2, k) = (xi-, xi+), G (2, k, d) = (-x, x) and the
objective times 2k, both sides have the same form:

    minimize  k lambda ||V_0 + V_1||^2 + sum(Xi)   subject to   S = V + Xi - G >= 0 (dual M),   Xi >= 0 (dual N).

The other bounds of (S) hold automatically once l and u are moved into the range of the optima, which raises no term;
u < l would be worse than u = l. The widths u - l are unique; where their place is not, the method tends to the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError, NumericalError
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.space.columns import Interval, Steps
from recollect.space.space import Space
from recollect.validation import as_shape

INSIDE_TOLERANCE = 1e-9  # share of the range by which a point outside still counts as inside: optima are in their box
STRENGTHS = tuple(step / 100 for step in range(1, 11))  # the lambdas tried in turn
MAX_OUTSIDE = 25  # optima that may lie outside before the next lambda is tried
MAX_ITERATIONS = 60
MAX_GAP, MAX_RESIDUAL = 1e-10, 1e-6  # duality gap of (S) and gradient of its Lagrangian at which the program is solved
STEP_SHARE = 0.995  # of the way to the nearest constraint that a step may go
RIDGE = 1e-15  # added to the diagonal of the Newton system, relative to its largest entry
SNAP_DISTANCE = 1e-4  # the method ends a little beside the optima on the edge; the edge is moved to optima this close


@dataclass(frozen=True, slots=True)
class BoxRule:
    """Search where past optima lie; ``slack`` leaves outliers among them outside."""

    slack: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A box in encoded units: lower, upper (d,), read-only; -inf and inf for columns without order."""

    lower: FloatArray
    upper: FloatArray

    def contains(self, X: npt.ArrayLike) -> BoolArray:
        """Return which points (m, d) lie inside; inactive cells (nan) do."""
        X = as_shape("points", X, shape=(None, len(self.lower)))
        beyond = np.maximum(self.lower - X, X - self.upper)
        return np.asarray(~(beyond > INSIDE_TOLERANCE).any(axis=1), dtype=np.bool_)

    def ranges(self, space: Space) -> dict[str, tuple[Any, Any]]:
        """Return the value ranges (low, high), as `narrow` takes them, of the hyperparameters that the box cuts."""
        if len(space.names) != len(self.lower):
            raise InputError(f"expected a space of {len(self.lower)} hyperparameters, got {len(space.names)}")
        cut = {}
        for column, lower, upper in zip(space.columns, self.lower, self.upper, strict=True):
            if isinstance(column, Interval | Steps):
                ends = column.value(float(lower)), column.value(float(upper))
                if ends != (column.value(0.0), column.value(1.0)):
                    cut[column.name] = ends
        return cut


def past_box(space: Space, optima: npt.ArrayLike, rule: BoxRule) -> Box:
    """Return the box of the past optima (k, d) by the rule."""
    return slack_box(space, optima) if rule.slack else bounding_box(space, optima)


def bounding_box(space: Space, optima: npt.ArrayLike) -> Box:
    """Return the smallest box that holds all past optima (k, d); that of a single one is a point."""
    return _box(space, *_extent(_proper(space, optima)))


def slack_box(space: Space, optima: npt.ArrayLike, *, allowed: int = MAX_OUTSIDE) -> Box:
    """Return the box of (S) for the first lambda that leaves at most ``allowed`` optima outside, else for the last."""
    X = _proper(space, optima)
    bounded = ~space.categorical & ~np.isnan(X).all(axis=0)
    lower, upper = np.full(X.shape[1], np.nan), np.full(X.shape[1], np.nan)
    for strength in STRENGTHS:
        if bounded.any():
            lower[bounded], upper[bounded] = slack_bounds(X[:, bounded], strength)
        box = _box(space, _snapped(space, lower[None])[0], _snapped(space, upper[None])[0])
        if (~box.contains(X)).sum() <= allowed:
            break
    return box


def slack_bounds(X: FloatArray, strength: float) -> tuple[FloatArray, FloatArray]:
    """Return l, u (d,) of (S) for optima X (k, d) in [0, 1] with nan where inactive; every column needs an entry."""
    least, most = _extent(X)
    V = _solve(X, len(X) * strength).V
    ends = np.clip(np.stack((-V[0], V[1])), least, most)
    reached = slack_objective(X, ends, strength) + MAX_GAP
    for side, j in np.ndindex(*ends.shape):
        column = X[~np.isnan(X[:, j]), j]
        nearest = column[np.abs(column - ends[side, j]).argmin()]
        if abs(nearest - ends[side, j]) < SNAP_DISTANCE:
            moved = ends.copy()
            moved[side, j] = nearest
            # Optima on the edge then count as inside, unless the edge only happens to pass close by.
            if moved[0, j] <= moved[1, j] and slack_objective(X, moved, strength) <= reached:
                ends = moved
    middle = ends.mean(axis=0)
    return np.minimum(ends[0], middle), np.maximum(ends[1], middle)


def slack_objective(X: FloatArray, ends: FloatArray, strength: float) -> float:
    """Return the least value of (S) for the box ends (2, d) = (l, u): every slack as small as possible."""
    missing = np.fmax(np.fmax.reduce(np.stack((ends[0] - X, X - ends[1])), axis=2), 0.0)
    return float(strength / 2 * ((ends[1] - ends[0]) ** 2).sum() + missing.sum() / (2 * len(X)))


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Primal V, Xi, S and dual M, N variables, or a direction in them.

    Inactive entries of x impose nothing: their M stays 0 and their S stays 1.
    """

    V: FloatArray  # (2, d)
    Xi: FloatArray  # (2, k)
    S: FloatArray  # (2, k, d)
    M: FloatArray  # (2, k, d)
    N: FloatArray  # (2, k)

    def moved(self, by: _Point, share: float) -> _Point:
        """Return the point after a step of this share of the way to the first constraint, at most the whole step."""
        own, change = (np.concatenate([a.ravel() for a in (p.Xi, p.S, p.M, p.N)]) for p in (self, by))
        falling = change < 0
        t = min(1.0, share * float((own[falling] / -change[falling]).min(initial=np.inf)))
        return _Point(self.V + t * by.V, self.Xi + t * by.Xi, self.S + t * by.S, self.M + t * by.M, self.N + t * by.N)

    def gap(self) -> float:
        """Return the duality gap."""
        return float((self.M * self.S).sum() + (self.N * self.Xi).sum())

    def residuals(self, weight: float) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of the Lagrangian by V (2, d) and by Xi (2, k)."""
        return 2 * weight * self.V.sum(axis=0) - self.M.sum(axis=1), 1 - self.M.sum(axis=2) - self.N


def _solve(X: FloatArray, weight: float) -> _Point:
    """Solve min weight ||V_0 + V_1||^2 + sum(Xi) by Mehrotra's predictor and corrector; weight = k lambda."""
    (k, d), on = X.shape, np.stack((~np.isnan(X),) * 2)
    # The whole cube, with some slack: strictly inside all constraints.
    V, Xi = np.stack((np.zeros(d), np.ones(d))), np.full((2, k), 0.5)
    S = np.where(on, V[:, None, :] + Xi[:, :, None] - np.stack((-X, X)), 1.0)
    at = _Point(V, Xi, S, np.where(on, 0.5 / d, 0.0), np.full((2, k), 0.5))
    pairs = on.sum() + 2 * k
    for _ in range(MAX_ITERATIONS):
        gap = at.gap()
        residual = max(float(np.abs(part).max()) for part in at.residuals(weight))
        if gap <= MAX_GAP * 2 * k and residual <= MAX_RESIDUAL * max(1.0, weight):
            return at
        ahead = _direction(at, weight, np.zeros_like(S), np.zeros_like(Xi))
        centre = (at.moved(ahead, 1.0).gap() / gap) ** 3 * gap / pairs
        step = _direction(at, weight, np.where(on, centre - ahead.M * ahead.S, 0.0), centre - ahead.N * ahead.Xi)
        at = at.moved(step, STEP_SHARE)
    state = f"gap {gap:.1e}, residual {residual:.1e}"
    raise NumericalError(f"no slack box of {k} past optima was found in {MAX_ITERATIONS} steps: {state}")


def _direction(at: _Point, weight: float, aim_S: FloatArray, aim_Xi: FloatArray) -> _Point:
    """Return the Newton step towards M S = aim_S (2, k, d), N Xi = aim_Xi (2, k) and no residual."""
    D, E = at.M / at.S, at.N / at.Xi
    to_M, to_N = aim_S / at.S - at.M, aim_Xi / at.Xi - at.N
    by_V, by_Xi = at.residuals(weight)
    rhs_V, rhs_Xi = to_M.sum(axis=1) - by_V, to_M.sum(axis=2) + to_N - by_Xi
    q = D.sum(axis=2) + E
    # Xi is eliminated. Off the diagonal the Schur complement is -W, on it the row sums of W plus the part of E. This
    # form avoids the difference of sums of D, which grow without bound and would lose all digits.
    d = D.shape[2]
    W = np.einsum("skd,ske->sde", D / q[:, :, None], D) * (1 - np.eye(d))
    K = np.tile(2 * weight * np.eye(d), (2, 2))
    for side, own in enumerate((slice(d), slice(d, 2 * d))):
        K[own, own] += np.diag(W[side].sum(axis=1) + (D[side] * (E / q)[side][:, None]).sum(axis=0)) - W[side]
    # Where the place of a width is not unique K becomes singular; the ridge changes the steps, not the solution.
    K += RIDGE * K.max() * np.eye(2 * d)
    rhs = rhs_V - (D * (rhs_Xi / q)[:, :, None]).sum(axis=1)
    V = np.linalg.solve(K, rhs.ravel()).reshape(2, d)
    Xi = (rhs_Xi - (D * V[:, None, :]).sum(axis=2)) / q
    S = np.where(D > 0, V[:, None, :] + Xi[:, :, None], 0.0)
    return _Point(V, Xi, S, to_M - D * S, to_N - E * Xi)


def _extent(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest entry of every column, nan where there is none."""
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def _box(space: Space, lower: FloatArray, upper: FloatArray) -> Box:
    """Return the box with these bounds in the ordered columns; nan stands for the full range."""
    bounds = []
    for bound, end, nowhere in ((lower, 0.0, -np.inf), (upper, 1.0, np.inf)):
        whole = np.where(space.categorical, nowhere, np.where(np.isnan(bound), end, bound))
        whole.setflags(write=False)
        bounds.append(whole)
    return Box(*bounds)


def _proper(space: Space, optima: npt.ArrayLike) -> FloatArray:
    """Return the optima as proper codes: a past optimum outside the range counts as one at its end."""
    X = as_shape("past optima", optima, shape=(None, len(space.names)))
    if len(X) == 0:
        raise InputError("expected the best points of at least one past run, got none: there is no box without them")
    if np.isinf(X).any():
        raise InputError("past optima must be finite, or nan where a hyperparameter is inactive, got inf")
    return _snapped(space, X)


def _snapped(space: Space, X: FloatArray) -> FloatArray:
    """Return X with floats in [0, 1] and integers at the centre of their cell, whatever is active."""
    return np.stack([column.snap(x) for column, x in zip(space.columns, X.T.copy(), strict=True)], axis=1)
