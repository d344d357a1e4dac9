"""The best of finitely many candidates: all are scored, ties are broken at random."""

from __future__ import annotations

import numpy as np

from recollect.acquisition.improvement import Score
from recollect.numerics.arrays import FloatArray


def best_of(score: Score, candidates: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
    """Return the index of the best candidate and its score; among equals one is drawn uniformly.

    A candidate whose score is nan counts as the worst. When all tie, the choice is uniform over all of them.
    """
    values = score(candidates)
    values = np.where(np.isnan(values), -np.inf, values)
    best = float(np.max(values))
    winners = np.flatnonzero(values == best)
    return int(rng.choice(winners)), best
