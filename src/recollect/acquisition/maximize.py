"""Maximize a score: exhaustively over finitely many candidates, by local search over a mixed, conditional space.

Local searches start at the best of ``screen`` uniform draws and at the best points evaluated so far, by score and by
predicted mean. All searches advance together: each round draws the one-exchange neighbourhood of every search, plus
moves of all its numerical columns at once, and scores them in a single call. A search that finds something better moves
to the best neighbour. One that does not halves its step (the first step is the paper's 0.2) and stops after
``patience`` halvings. After each round only the better half of the searches continues, so many starts are compared
early and few are polished late. Halving steps is where this departs from the paper's search, which redraws at the same
width: it reaches higher values with fewer evaluations on continuous columns (benchmarks/quality/acquisition_search.py).

Notation: ``L`` searches, ``X (L, d)`` their current points, ``values (L,)`` their scores, ``steps (L,)`` their widths.
A score of nan counts as the worst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.acquisition.functions import Score
from recollect.numerics.arrays import FloatArray, IntArray, unique_rows
from recollect.space.sampling import gaussian_moves, one_exchange, uniform
from recollect.space.space import Space


def best_candidate(score: Score, candidates: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
    """Return the index of the best candidate and its score; ties are broken uniformly at random."""
    values = _finite(score(candidates))
    best = float(np.max(values))
    return int(rng.choice(np.flatnonzero(values == best))), best


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Settings of the local search."""

    screen: int = 1000  # uniform draws that are scored first
    starts: int = 10  # searches started from the draws, and from the evaluated points by score and by predicted mean
    first_step: float = 0.2  # step width of the first round, in units of the cube
    shrink: float = 0.5  # factor of the step width after a round without improvement
    patience: int = 6  # rounds without improvement before a search stops
    rounds: int = 15  # at most
    survivors: int = 4  # searches that are never halved away
    moves: int = 8  # moves of all numerical columns at once, per search and round


def maximize_score(
    space: Space, score: Score, seen: FloatArray, *, means: FloatArray, settings: LocalSearch, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return points, best first, and their scores.

    They are the end points of all searches and the screened draws, so that the caller can skip points already
    evaluated. ``seen (n, d)`` are the evaluated points and ``means (n,)`` what the model predicts there.
    """
    drawn = uniform(space, settings.screen, rng)
    pool = np.concatenate([drawn, seen])
    values = _finite(score(pool))
    drawn_values, seen_values = np.split(values, [len(drawn)])
    first_of = [np.argsort(by, kind="stable")[: settings.starts] for by in (-drawn_values, -seen_values, means)]
    chosen = np.concatenate([first_of[0], len(drawn) + first_of[1], len(drawn) + first_of[2]])
    chosen = chosen[unique_rows(pool[chosen])]
    ends, end_values = _climb(space, score, pool[chosen], values[chosen], settings=settings, rng=rng)
    points, scores = np.concatenate([ends, drawn]), np.concatenate([end_values, drawn_values])
    order = np.argsort(-scores, kind="stable")
    return points[order], scores[order]


def _finite(values: FloatArray) -> FloatArray:
    """Replace nan by the worst score."""
    return np.where(np.isnan(values), -np.inf, values)


def _climb(
    space: Space, score: Score, X: FloatArray, values: FloatArray, *, settings: LocalSearch, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Move the searches, in place, to where they end."""
    steps = np.full(len(X), settings.first_step)
    plateaus = np.zeros(len(X), dtype=np.intp)
    running = np.arange(len(X))
    for _ in range(settings.rounds):
        exchanged, first = one_exchange(space, X[running], rng, step=steps[running])
        moved, second = gaussian_moves(space, X[running], rng, step=steps[running], count=settings.moves)
        rows = np.concatenate([exchanged, moved])
        if len(rows) == 0:
            break
        best, where = _best_per_owner(_finite(score(rows)), np.concatenate([first, second]), len(running))
        better = best > values[running]
        X[running[better]], values[running[better]] = rows[where[better]], best[better]
        steps[running[~better]] *= settings.shrink
        plateaus[running[~better]] += 1
        running = running[plateaus[running] < settings.patience]
        keep = max(settings.survivors, (len(running) + 1) // 2)  # the better half
        if len(running) > keep:
            running = running[np.argsort(-values[running], kind="stable")[:keep]]
        if len(running) == 0:
            break
    return X, values


def _best_per_owner(values: FloatArray, owner: IntArray, count: int) -> tuple[FloatArray, IntArray]:
    """Return for each of ``count`` searches the best value among its neighbours and that neighbour's index."""
    order = np.lexsort((-values, owner))
    owners, first = np.unique(owner[order], return_index=True)
    best = np.full(count, -np.inf)
    where = np.zeros(count, dtype=np.intp)
    best[owners], where[owners] = values[order[first]], order[first]
    return best, where
