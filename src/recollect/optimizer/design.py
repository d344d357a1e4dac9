"""Initial designs (paper sections 5.2, 5.3): the points that are evaluated before a model of the new task exists.

On a finite set of candidates each point of a Latin hypercube, in order, becomes the nearest candidate that is still
free; a portfolio (SMFO) is chosen among the candidates that past runs evaluated. With ``P (k, c)`` the mean that source
i predicts for candidate c, it is built greedily: each step adds the candidate that most lowers

    sum_i min over the portfolio of P[i, c],

with ties broken uniformly. Under mean/var scaling each source is brought to [0, 1] by its own lowest and highest
observed value; unscaled and copula values are used as they are. ``P`` has at most `MAX_PREDICTIONS` entries: with many
past runs, the candidates are the best few of each, in turn, and a random sample of those that no past run evaluated.
"""

from __future__ import annotations

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, unique_rows
from recollect.optimizer.method import POINTS_WITHOUT_PAST, Method
from recollect.space.sampling import latin_hypercube, sobol, uniform
from recollect.space.space import Space
from recollect.transfer.sources import SourceData, Sources
from recollect.transfer.task_prior import PreparedTaskPrior

MAX_PREDICTIONS = 2_000_000
MIN_SOBOL_POINTS, TRIALS_PER_POINT = 3, 6  # a Sobol design takes at most every sixth trial, but at least three


def planned_design(
    method: Method, space: Space, candidates: FloatArray | None,
    *, learned: PreparedTaskPrior | Sources | None, size: int, rng: np.random.Generator,
) -> FloatArray:  # fmt: skip
    """Return the design; one that is learned continues beyond its size, in case its first points all fail."""
    if method.design.kind != "portfolio" or learned is None:
        return draw_design(method, space, candidates, size=size, rng=rng)
    longer = max(size, POINTS_WITHOUT_PAST)
    if isinstance(learned, PreparedTaskPrior):
        return prior_design(learned, space, candidates, size=longer, rng=rng)
    return learned_design(method, space, candidates, sources=learned, size=longer, rng=rng)


def draw_design(
    method: Method, space: Space, candidates: FloatArray | None, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return at most ``size`` points drawn without regard to past runs; repeated points are removed."""
    points = {"random": uniform, "sobol": default_and_sobol}.get(method.design.kind, latin_hypercube)(space, size, rng)
    points = points[unique_rows(points)]
    return points if candidates is None else nearest_candidates(candidates, points, space)


def default_and_sobol(space: Space, size: int, rng: np.random.Generator) -> FloatArray:
    """Return the default configuration, if it is legal, and points of a scrambled Sobol sequence (size, d)."""
    default = space.canonical(space.default[None])
    return np.concatenate([default[space.legal(default)], sobol(space, size, rng)])[:size]


def learned_design(
    method: Method, space: Space, candidates: FloatArray | None, sources: Sources, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return at most ``size`` points in the order in which past runs recommend them.

    Configurations that they evaluated come first; when those are used up, the other candidates follow, by prediction.
    """
    data = tuple(sources.data(i) for i in range(len(sources.tasks)))
    evaluated = _restrict(past_configurations(data), space, candidates)
    chosen, best = np.empty((0, evaluated.shape[1])), np.full(len(data), np.inf)
    most = max(size, MAX_PREDICTIONS // len(data))
    others = None if candidates is None else candidates[~_among(candidates, evaluated)]
    for rows in (evaluated[:most],) if others is None else (evaluated[:most], _sample(others, most, rng)):
        if len(chosen) < size and len(rows) > 0:
            costs = predicted_costs(sources, data, rows, by_range=method.scaling == "meanvar")
            costs = np.minimum(costs, best[:, None])  # points chosen before still count
            picked = greedy_portfolio(costs, size - len(chosen), rng)
            chosen, best = np.concatenate([chosen, rows[picked]]), costs[:, picked].min(axis=1)
    return chosen


def prior_design(
    prior: PreparedTaskPrior, space: Space, candidates: FloatArray | None, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return at most ``size`` points, the first where the prior mean is lowest, the others by `greedy_portfolio`.

    In a continuum they are points that past runs evaluated: elsewhere, a prior from few past runs promises more than it
    knows. Only if none of those lies in the space, they are reference points.
    """
    most = max(size, MAX_PREDICTIONS // len(prior.sources))
    if candidates is None:
        evaluated = past_configurations(tuple(prior.sources.data(i) for i in range(len(prior.sources))))
        rows = _restrict(evaluated, space, None)[:most]
        rows = rows if len(rows) else prior.reference[:most]
    else:
        rows = _sample(candidates, most, rng)
    return rows[greedy_portfolio(prior.functions(rows), size, rng)]


def greedy_portfolio(P: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Choose up to ``count`` columns of ``P (k, c)`` one by one, each lowering the summed minimum most."""
    best = np.full(len(P), np.inf)
    free = np.ones(P.shape[1], dtype=bool)
    chosen: list[int] = []
    for _ in range(min(count, P.shape[1])):
        reached = np.where(free, np.minimum(best[:, None], P).mean(axis=0), np.inf)
        winner = int(rng.choice(np.flatnonzero(reached == reached.min())))
        chosen.append(winner)
        free[winner] = False
        best = np.minimum(best, P[:, winner])
    return np.array(chosen, dtype=np.intp)


def predicted_costs(sources: Sources, data: tuple[SourceData, ...], C: FloatArray, *, by_range: bool) -> FloatArray:
    """Return P (k, c); ``by_range`` brings each row to [0, 1] by the source's own lowest and highest value."""
    P = sources.means(C)
    if not by_range:
        return P
    lowest = np.array([entry.y.min() for entry in data])
    width = np.array([entry.y.max() for entry in data]) - lowest
    return np.asarray((P - lowest[:, None]) / np.where(width > 0, width, 1.0)[:, None])


def past_configurations(data: tuple[SourceData, ...]) -> FloatArray:
    """Return the points (c, d) that past runs evaluated: each run's best first, then each run's second, and so on."""
    order = [np.argsort(entry.y, kind="stable") for entry in data]
    rows = np.concatenate([entry.X[by_value] for entry, by_value in zip(data, order, strict=True)])
    place = np.concatenate([np.arange(len(by_value)) for by_value in order])
    return rows[np.argsort(place, kind="stable")]


def design_size(method: Method, horizon: int, *, learned: bool) -> int:
    """Return how many trials the design takes; a portfolio without past runs becomes a Latin hypercube."""
    if method.design.kind == "portfolio" and not learned:
        return POINTS_WITHOUT_PAST
    if method.design.kind == "sobol" and method.design.points is not None:  # short runs need their trials
        return max(MIN_SOBOL_POINTS, min(method.design.points, horizon // TRIALS_PER_POINT))
    return horizon if method.design.points is None else method.design.points


def nearest_candidates(candidates: FloatArray, points: FloatArray, space: Space) -> FloatArray:
    """Replace each point by the nearest free candidate (Euclidean in the encoding, mismatch = 1)."""
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
    """Return which rows are among the others."""
    both = _present(np.concatenate([others, rows]))
    numbers = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    return np.isin(numbers[len(others) :], numbers[: len(others)])


def _sample(rows: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    """Return at most so many rows, in order; if there are more, those that are drawn."""
    return rows if len(rows) <= most else rows[np.sort(rng.permutation(len(rows))[:most])]


def _present(X: FloatArray) -> FloatArray:
    """Replace inactive entries by -1: far from active ones, at distance 0 from each other."""
    return np.where(np.isnan(X), -1.0, X)
