"""Initial designs (paper sections 5.2, 5.3): the points that are evaluated before a model of the new task exists.

On a finite set of candidates each point of a Latin hypercube, in order, becomes the nearest candidate that is not taken
yet; a portfolio is chosen among the candidates that past runs evaluated.
"""

from __future__ import annotations

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.optimizer.method import WITHOUT_PAST, Method
from recollect.space.sampling import latin_hypercube, uniform, unique_rows
from recollect.space.space import Space
from recollect.transfer.portfolio import LARGEST, greedy_portfolio, predicted_costs, tried_before
from recollect.transfer.sources import Sources


def draw_design(
    method: Method, space: Space, candidates: FloatArray | None, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return at most ``size`` points drawn without looking at past runs; repeated points are removed."""
    draw = uniform if method.design.kind == "random" else latin_hypercube
    points = draw(space, size, rng)
    points = points[unique_rows(points)]
    return points if candidates is None else snap_to(candidates, points, space)


def learned_design(
    method: Method,
    space: Space,
    candidates: FloatArray | None,
    *,
    sources: Sources,
    size: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return at most ``size`` points in the order in which past runs recommend them.

    What they tried comes first; when that is used up, the other candidates follow, by prediction alone.
    """
    data = tuple(sources.data(i) for i in range(len(sources.tasks)))
    tried = _restrict(tried_before(data), space, candidates)
    chosen, best = np.empty((0, tried.shape[1])), np.full(len(data), np.inf)
    for pool in (tried,) if candidates is None else (tried, candidates[~_among(candidates, tried)]):
        rows = pool[: max(size, LARGEST // len(data))]
        if len(chosen) < size and len(rows) > 0:
            costs = predicted_costs(sources, data, rows, by_range=method.scaling == "meanvar")
            costs = np.minimum(costs, best[:, None])  # what was chosen before still counts
            picked = greedy_portfolio(costs, size - len(chosen), rng)
            chosen, best = np.concatenate([chosen, rows[picked]]), costs[:, picked].min(axis=1)
    return chosen


def design_size(method: Method, horizon: int, *, learned: bool) -> int:
    """Return how many trials the design takes; a portfolio without past runs becomes a Latin hypercube."""
    if method.design.kind == "portfolio" and not learned:
        return WITHOUT_PAST
    return horizon if method.design.points is None else method.design.points


def snap_to(candidates: FloatArray, points: FloatArray, space: Space) -> FloatArray:
    """Replace each point by the nearest candidate not yet taken (Euclidean in the encoding, mismatch = 1)."""
    grid = _present(candidates)
    free = np.ones(len(candidates), dtype=bool)
    taken: list[int] = []
    for point in points[: len(candidates)]:
        gap = np.where(space.categorical, grid != _present(point), grid - _present(point))
        distance = np.sum(np.square(gap), axis=1)
        nearest = int(np.argmin(np.where(free, distance, np.inf)))
        free[nearest] = False
        taken.append(nearest)
    return candidates[taken]


def _restrict(rows: FloatArray, space: Space, candidates: FloatArray | None) -> FloatArray:
    """Keep the rows that may be suggested, each once."""
    inside = np.all(np.isnan(rows) | space.categorical | ((rows >= 0.0) & (rows <= 1.0)), axis=1)
    rows = space.canonical(rows[inside])
    rows = rows[space.legal(rows)]
    rows = rows[unique_rows(rows)]
    return rows if candidates is None else rows[_among(rows, candidates)]


def _among(rows: FloatArray, others: FloatArray) -> BoolArray:
    """Say of each row whether it is one of the others."""
    both = _present(np.concatenate([others, rows]))
    known = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    return np.isin(known[len(others) :], known[: len(others)])


def _present(X: FloatArray) -> FloatArray:
    """Mark inactive entries by -1, so that they are far from active ones and at distance 0 from each other."""
    return np.where(np.isnan(X), -1.0, X)
