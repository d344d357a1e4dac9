"""Maximize a score with a known gradient over a mixed, conditional space.

Quasi-random points, points around the best evaluated ones and the evaluated points themselves are scored. Searches
start at the best of each kind, and at others drawn in proportion to their acquisition values (roulette). Each search
alternates between two moves until neither helps:

1. batched BFGS over the floats and the finer integers, in units of the score's own scales, after which integers take
   the nearest value;
2. the best one-exchange of a discrete column.

A search never ends below its start. Choices and activity stay as they are during the first move.

Notation: ``X (L, d)`` the current points of L searches, ``values (L,)`` their scores. A score of nan
counts as the worst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.acquisition.functions import Score, SmoothScore
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, row_keys, unique_rows
from recollect.numerics.bfgs import BFGSOptions, minimize_batched_bfgs
from recollect.space.sampling import gaussian_moves, one_exchange, sobol
from recollect.space.space import Space

COARSE = 8  # columns with at most this many values move by exchanges only
SHORTEST_SCALE, LONGEST_SCALE = 1e-3, 2.0  # of a column, in units of the cube
ACQUISITION_BFGS = BFGSOptions(merge_distance=0.05, max_steps=40, value_tolerance=1e-5)
LOCAL_STEPS = (0.1, 0.01)  # widths of the moves around the best points


@dataclass(frozen=True, slots=True)
class GradientSearch:
    """Settings of the search."""

    screen: int = 1024  # quasi-random points that are scored first
    best: int = 3  # searches that start at the best of them, and as many around the best evaluated points
    roulette: int = 4  # searches that start at others of them, drawn by acquisition value
    moves: int = 24  # points around each of the best evaluated ones, for each step width
    rounds: int = 4  # alternations at most
    bfgs: BFGSOptions = ACQUISITION_BFGS


def maximize_by_gradient(
    space: Space, smooth: SmoothScore, seen: FloatArray,
    *, means: FloatArray, settings: GradientSearch, rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return points, best first, and their scores.

    They are the end points of all searches and the screened points, so that the caller can skip points already
    evaluated. ``seen (n, d)`` are the evaluated points and ``means (n,)`` what the model predicts there.
    """
    drawn = sobol(space, settings.screen, rng)
    top = seen[np.argsort(means, kind="stable")[: settings.best]]
    near = [gaussian_moves(space, top, rng, step=step, count=settings.moves)[0] for step in LOCAL_STEPS]
    local = np.concatenate([top, *near])
    values, local_values = _finite(smooth.score(drawn)), _finite(smooth.score(local))
    starts = _starts(values, settings, rng)
    local_starts = np.argsort(-local_values, kind="stable")[: settings.best]
    X = np.concatenate([drawn[starts], local[local_starts]])
    reached = np.concatenate([values[starts], local_values[local_starts]])
    first = unique_rows(X)
    X, reached = _alternate(space, smooth, X[first], reached[first], settings=settings, rng=rng)
    points, scores = np.concatenate([X, drawn]), np.concatenate([reached, values])
    order = np.argsort(-scores, kind="stable")
    return points[order], scores[order]


def _starts(values: FloatArray, settings: GradientSearch, rng: np.random.Generator) -> IntArray:
    """Return the best points, and others drawn without replacement in proportion to exp(values)."""
    order = np.argsort(-values, kind="stable")
    best, others = order[: settings.best], order[settings.best :]
    # The largest of values plus Gumbel noise are such a draw.
    drawn = others[np.argsort(-(values[others] + rng.gumbel(size=len(others))), kind="stable")[: settings.roulette]]
    return np.concatenate([best, drawn])


def _finite(values: FloatArray) -> FloatArray:
    """Replace nan by the worst score."""
    return np.where(np.isnan(values), -np.inf, values)


def _alternate(
    space: Space, smooth: SmoothScore, X: FloatArray, values: FloatArray,
    *, settings: GradientSearch, rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Move the searches, in place, to where they end."""
    discrete = bool((space.varying & (space.sizes > 0)).any())
    moving = np.arange(len(X))
    for number in range(settings.rounds):
        ascended = _ascend(space, smooth, X[moving], settings.bfgs, relax=number == 0)
        _accept(space, smooth.score, X, values, Y=ascended, owner=moving)
        if not discrete:
            break
        Y, owner = one_exchange(space, X[moving], rng, step=LOCAL_STEPS[0], discrete_only=True)
        improved = _accept(space, smooth.score, X, values, Y=Y, owner=moving[owner])
        moving = np.unique(moving[owner][improved])
        if len(moving) == 0:
            break
    return X, values


def _accept(space: Space, score: Score, X: FloatArray, values: FloatArray, Y: FloatArray, owner: IntArray) -> BoolArray:
    """Replace each search's point by the best legal one of those offered to it; return which rows of Y were better."""
    scores = np.full(len(Y), -np.inf)
    legal = space.legal(Y)
    if legal.any():
        scores[legal] = _finite(score(Y[legal]))
    better = scores > values[owner]
    for row in np.flatnonzero(better):
        if scores[row] > values[owner[row]]:
            X[owner[row]], values[owner[row]] = Y[row], scores[row]
    return better


def _ascend(space: Space, smooth: SmoothScore, X: FloatArray, options: BFGSOptions, *, relax: bool) -> FloatArray:
    """Return where gradients lead from X (L, d); with ``relax``, integers with many values move as well."""
    moves = space.varying & ~space.categorical & ((space.sizes == 0) | (relax & (space.sizes > COARSE)))
    columns = np.flatnonzero(moves)
    if columns.size == 0 or len(X) == 0:
        return X
    scales = np.clip(smooth.scales[columns], SHORTEST_SCALE, LONGEST_SCALE)
    fixed = X.copy()
    fixed[:, columns] = np.where(np.isnan(X[:, columns]), np.nan, 0.0)
    groups = unique_rows(fixed)
    numbers = {key: number for number, key in enumerate(row_keys(fixed[groups]))}
    group = np.array([numbers[key] for key in row_keys(fixed)], dtype=np.intp)
    order = np.argsort(group, kind="stable")
    inactive = np.isnan(fixed[groups][:, columns])

    def objective(U: FloatArray, number: IntArray) -> tuple[FloatArray, FloatArray]:
        points = fixed[groups][number]
        points[:, columns] = np.where(inactive[number], np.nan, U * scales)
        values, gradients = smooth.evaluate(points)
        return -values, np.where(inactive[number], 0.0, -gradients[:, columns] * scales)

    bounds = np.column_stack((np.zeros(columns.size), 1.0 / scales))
    starts = np.where(np.isnan(X[:, columns]), 0.0, X[:, columns] / scales)[order]
    ends, _ = minimize_batched_bfgs(objective, starts, bounds, group=group[order], options=options)
    Y = X.copy()
    Y[order[:, None], columns] = np.where(inactive[group[order]], np.nan, np.clip(ends * scales, 0.0, 1.0))
    return space.repair(space.canonical(Y))
