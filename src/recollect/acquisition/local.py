"""The best candidate of a mixed, conditional space: random screening, then local search in lock-step.

Starts are the best of ``screen`` uniform draws and the best points evaluated so far, by score and by predicted mean.
All searches move together: each round draws the one-exchange neighbourhood of every search, plus moves of all its
numerical columns at once, and scores them in a single call. A search that found something better moves to the best
neighbour; one that did not halves its step (the first step is the paper's 0.2) and gives up after ``patience``
halvings. After each round only the better part of the searches goes on, so that many starts are compared
early and few are polished late. Halving steps is where this departs from the paper's search, which redraws at the same
width: it reaches higher values with fewer evaluations on continuous columns (benchmarks/acquisition.py).

Notation: ``L`` searches, ``X (L, d)`` where they stand, ``values (L,)`` their scores, ``steps (L,)`` their widths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.acquisition.improvement import Score
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.space.neighbours import gaussian_moves, one_exchange
from recollect.space.sampling import uniform, unique_rows
from recollect.space.space import Space


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Settings of the search."""

    screen: int = 1000
    starts: int = 10
    first_step: float = 0.2
    shrink: float = 0.5
    patience: int = 6
    rounds: int = 15
    survivors: int = 4
    moves: int = 8


def maximize(
    space: Space,
    score: Score,
    anchors: FloatArray,
    *,
    means: FloatArray,
    settings: LocalSearch,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the points found, best first, and their scores.

    ``anchors (n, d)`` are the evaluated points and ``means (n,)`` what the model predicts there. The list holds the
    end points of all searches followed by the screened draws, so that the caller can skip points already evaluated.
    """
    drawn = uniform(space, settings.screen, rng)
    pool = np.concatenate([drawn, anchors])
    values = _finite(score(pool))
    chosen = _starts(values, means, len(drawn), settings.starts)
    chosen = chosen[unique_rows(pool[chosen])]
    X, found = _climb(space, score, (pool[chosen], values[chosen]), settings, rng)
    everything, scores = np.concatenate([X, drawn]), np.concatenate([found, values[: len(drawn)]])
    order = np.argsort(-scores, kind="stable")
    return everything[order], scores[order]


def _finite(values: FloatArray) -> FloatArray:
    """Let a nan count as the worst score."""
    return np.where(np.isnan(values), -np.inf, values)


def _starts(values: FloatArray, means: FloatArray, drawn: int, count: int) -> IntArray:
    """Choose the best draws, the best evaluated points by score and the best evaluated points by predicted mean."""
    by_score = np.argsort(-values[:drawn], kind="stable")[:count]
    seen_by_score = drawn + np.argsort(-values[drawn:], kind="stable")[:count]
    seen_by_mean = drawn + np.argsort(means, kind="stable")[:count]
    return np.concatenate([by_score, seen_by_score, seen_by_mean])


def _climb(
    space: Space,
    score: Score,
    begin: tuple[FloatArray, FloatArray],
    settings: LocalSearch,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    X, values = begin[0].copy(), begin[1].copy()
    steps = np.full(len(X), settings.first_step)
    plateaus = np.zeros(len(X), dtype=np.intp)
    going = np.arange(len(X))
    for _ in range(settings.rounds):
        rows, owner = _neighbourhood(space, X[going], steps[going], settings.moves, rng)
        if len(rows) == 0:
            break
        best, where = _best_per_owner(_finite(score(rows)), owner, len(going))
        better = best > values[going]
        moved = going[better]
        X[moved], values[moved] = rows[where[better]], best[better]
        steps[going[~better]] *= settings.shrink
        plateaus[going[~better]] += 1
        going = going[plateaus[going] < settings.patience]
        going = _keep_better_half(going, values, settings.survivors)
        if len(going) == 0:
            break
    return X, values


def _neighbourhood(
    space: Space, X: FloatArray, steps: FloatArray, moves: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    exchanged, first = one_exchange(space, X, rng, step=steps)
    moved, second = gaussian_moves(space, X, rng, step=steps, count=moves)
    return np.concatenate([exchanged, moved]), np.concatenate([first, second])


def _best_per_owner(values: FloatArray, owner: IntArray, count: int) -> tuple[FloatArray, IntArray]:
    """Return for each of ``count`` searches the best value among its neighbours and where it stands."""
    order = np.lexsort((-values, owner))
    owners, first = np.unique(owner[order], return_index=True)
    best = np.full(count, -np.inf)
    where = np.zeros(count, dtype=np.intp)
    best[owners], where[owners] = values[order[first]], order[first]
    return best, where


def _keep_better_half(going: IntArray, values: FloatArray, survivors: int) -> IntArray:
    """Drop the worse half of the searches that still go on, down to ``survivors``."""
    keep = max(survivors, (len(going) + 1) // 2)
    if len(going) <= keep:
        return going
    return going[np.argsort(-values[going], kind="stable")[:keep]]
