"""The first points to try: a portfolio learned from past runs alone, before anything is known of the new task (SMFO).

Candidates are configurations that past runs evaluated. With ``P (k, c)`` the mean that past run i predicts for
candidate c, the portfolio is built greedily (paper section 5.3): each step adds what most lowers

    sum_i min over the portfolio of P[i, c],

ties drawn uniformly. Under mean/var scaling each past run is brought to [0, 1] by its own lowest and highest observed
value; unscaled and copula values are taken as they are.

``P`` has at most `LARGEST` entries: with many past runs, the candidates are the best few of each, in turn.
"""

from __future__ import annotations

import numpy as np

from recollect.numerics.arrays import FloatArray, IntArray
from recollect.transfer.sources import SourceData, Sources

LARGEST = 2_000_000


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
    """Return P (k, c); ``by_range`` brings each row to [0, 1] by the past run's own lowest and highest value."""
    P = sources.means(C)
    if not by_range:
        return P
    lowest = np.array([entry.y.min() for entry in data])
    width = np.array([entry.y.max() for entry in data]) - lowest
    return np.asarray((P - lowest[:, None]) / np.where(width > 0, width, 1.0)[:, None])


def tried_before(data: tuple[SourceData, ...]) -> FloatArray:
    """Return what past runs evaluated (c, d): each run's best first, then each run's second, and so on."""
    order = [np.argsort(entry.y, kind="stable") for entry in data]
    rows = np.concatenate([entry.X[by_value] for entry, by_value in zip(data, order, strict=True)])
    place = np.concatenate([np.arange(len(by_value)) for by_value in order])
    return rows[np.argsort(place, kind="stable")]
