"""The part of the search space that held the past optima: their bounding box, or one that lets outliers go.

Notation: x (k, d) the encoded best points of k past runs, nan = inactive; l, u (d,) the box, in encoded units. Only
columns with an order are bounded; a column that no optimum uses keeps its full range [0, 1]. Paper section 5.3.

The slack box solves the convex quadratic program (with 1/(2k) on both sums)

    minimise  (lambda/2) ||u - l||^2 + (1/(2k)) sum_t (xi-_t + xi+_t)                                          (S)
    subject to  l_j - xi-_t <= x_tj <= u_j + xi+_t for every active x_tj,   all variables in [0, 1],

by a primal-dual interior point method. With V (2, d) = (-l, u), Xi (2, k) = (xi-, xi+), G (2, k, d) = (-x, x) and the
objective times 2k, both sides have the same form:

    minimise  k lambda ||V_0 + V_1||^2 + sum(Xi)   subject to   S = V + Xi - G >= 0 (dual M),   Xi >= 0 (dual N).

The other bounds of (S) hold by themselves once l and u are moved into the range of the optima, which raises no term;
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

TOLERANCE = 1e-9
"""How far outside, as a share of the range, a point still counts as inside: an optimum is always in its own box."""

STRENGTHS = tuple(step / 100 for step in range(1, 11))
"""The lambdas tried in turn."""

ALLOWED = 25
"""How many optima may lie outside before the next lambda is tried."""

ITERATIONS = 60
GAP, RESIDUAL = 1e-10, 1e-6
"""The program is solved when the duality gap of (S) and the gradient of its Lagrangian are no larger than these."""

BACK = 0.995
"""Share of the way to the nearest constraint that a step may go."""

RIDGE = 1e-15
"""What is added to the diagonal of the Newton system, relative to its largest entry."""

EDGE = 1e-4
"""An interior point method ends a little beside the optima that hold the box; from this close they are looked for."""


@dataclass(frozen=True, slots=True)
class BoxRule:
    """Search where past optima were; ``slack`` leaves outliers among them outside."""

    slack: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A box in encoded units: lower, upper (d,), read-only; -inf and inf for columns without order."""

    lower: FloatArray
    upper: FloatArray

    def contains(self, X: npt.ArrayLike) -> BoolArray:
        """Return which points (m, d) lie inside; inactive cells (nan) do."""
        X = _matrix(X, len(self.lower), "points")
        beyond = np.maximum(self.lower - X, X - self.upper)
        return np.asarray(~(beyond > TOLERANCE).any(axis=1), dtype=np.bool_)

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
    """Return the box that the rule makes of the past optima (k, d)."""
    return slack_box(space, optima) if rule.slack else bounding_box(space, optima)


def bounding_box(space: Space, optima: npt.ArrayLike) -> Box:
    """Return the smallest box that holds all past optima (k, d); that of a single one is a point."""
    return _box(space, *_extent(_proper(space, optima)))


def slack_box(space: Space, optima: npt.ArrayLike, *, allowed: int = ALLOWED) -> Box:
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
    reached = slack_objective(X, ends, strength) + GAP
    for side, j in np.ndindex(*ends.shape):
        column = X[~np.isnan(X[:, j]), j]
        nearest = column[np.abs(column - ends[side, j]).argmin()]
        if abs(nearest - ends[side, j]) < EDGE:
            moved = ends.copy()
            moved[side, j] = nearest
            # So that the optima on the edge count as inside, unless the edge only happens to pass close by.
            if moved[0, j] <= moved[1, j] and slack_objective(X, moved, strength) <= reached:
                ends = moved
    middle = ends.mean(axis=0)
    return np.minimum(ends[0], middle), np.maximum(ends[1], middle)


def slack_objective(X: FloatArray, ends: FloatArray, strength: float) -> float:
    """Return the least value of (S) that the box ends (2, d) = (l, u) allows: every slack as small as it can be."""
    missing = np.fmax(np.fmax.reduce(np.stack((ends[0] - X, X - ends[1])), axis=2), 0.0)
    return float(strength / 2 * ((ends[1] - ends[0]) ** 2).sum() + missing.sum() / (2 * len(X)))


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Primal V (2, d), Xi (2, k), S (2, k, d) and dual M (2, k, d), N (2, k) variables, or a direction to move them.

    Inactive entries of x impose nothing: their M stays 0 and their S stays 1.
    """

    V: FloatArray
    Xi: FloatArray
    S: FloatArray
    M: FloatArray
    N: FloatArray

    def moved(self, by: _Point, share: float) -> _Point:
        """Return the point after a step, of this share of the way to the first constraint, at most the whole step."""
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
    for _ in range(ITERATIONS):
        gap = at.gap()
        residual = max(float(np.abs(part).max()) for part in at.residuals(weight))
        if gap <= GAP * 2 * k and residual <= RESIDUAL * max(1.0, weight):
            return at
        ahead = _direction(at, weight, np.zeros_like(S), np.zeros_like(Xi))
        centre = (at.moved(ahead, 1.0).gap() / gap) ** 3 * gap / pairs
        step = _direction(at, weight, np.where(on, centre - ahead.M * ahead.S, 0.0), centre - ahead.N * ahead.Xi)
        at = at.moved(step, BACK)
    raise NumericalError(
        f"the slack box of {k} past optima was not found in {ITERATIONS} steps: gap {gap:.1e}, residual {residual:.1e}"
    )


def _direction(at: _Point, weight: float, aim_S: FloatArray, aim_Xi: FloatArray) -> _Point:
    """Return the Newton step towards M S = aim_S (2, k, d), N Xi = aim_Xi (2, k) and no residual."""
    D, E = at.M / at.S, at.N / at.Xi
    to_M, to_N = aim_S / at.S - at.M, aim_Xi / at.Xi - at.N
    by_V, by_Xi = at.residuals(weight)
    rhs_V, rhs_Xi = to_M.sum(axis=1) - by_V, to_M.sum(axis=2) + to_N - by_Xi
    q = D.sum(axis=2) + E
    # Xi is eliminated. Off the diagonal the Schur complement is -W, on it the row sums of W and what E adds: written so
    # because the difference of sums of D, which grow without bound, would lose all digits.
    d = D.shape[2]
    W = np.einsum("skd,ske->sde", D / q[:, :, None], D) * (1 - np.eye(d))
    K = np.tile(2 * weight * np.eye(d), (2, 2))
    for side, own in enumerate((slice(d), slice(d, 2 * d))):
        K[own, own] += np.diag(W[side].sum(axis=1) + (D[side] * (E / q)[side][:, None]).sum(axis=0)) - W[side]
    # Where the place of a width is not unique K becomes singular; what is added bends steps, not where they lead.
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
    X = _matrix(optima, len(space.names), "past optima")
    if len(X) == 0:
        raise InputError("expected the best points of at least one past run, got none: without them there is no box")
    if np.isinf(X).any():
        raise InputError("past optima must be finite, or nan where a hyperparameter is inactive, got inf")
    return _snapped(space, X)


def _snapped(space: Space, X: FloatArray) -> FloatArray:
    """Return X with floats in [0, 1] and integers at the centre of their cell, whatever is active."""
    return np.stack([column.snap(x) for column, x in zip(space.columns, X.T.copy(), strict=True)], axis=1)


def _matrix(X: npt.ArrayLike, d: int, what: str) -> FloatArray:
    matrix: FloatArray = np.asarray(X, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != d:
        raise InputError(f"expected {what} of shape (n, {d}), got shape {matrix.shape}")
    return matrix
