"""How much past runs can slow the search down at worst (paper section 4.4).

In every iteration there is a chance that all base models are dropped; then plain Bayesian optimization decides, on all
observations so far. Its convergence guarantees hold, stretched by how rarely that happens.

Notation: ``past`` k base models, ``horizon`` H evaluations in all, ``n`` observations so far.
"""

from __future__ import annotations

import numpy as np

from recollect.transfer.weights import as_count


def probability_all_dropped(n: int, *, horizon: int, past: int) -> float:
    """Least probability that all base models are dropped after n observations: (n/H)^k, and 1 from n = H on.

    It is reached when every base model ranks better than the target in every resample; otherwise more are dropped.
    """
    n = as_count("n", n, least=0)
    horizon = as_count("horizon", horizon, least=1)
    past = as_count("past", past, least=0)
    return float(min(1.0, n / horizon) ** past)


def slowdown_factor(horizon: int, past: int) -> float:
    """Worst-case factor by which ``past`` base models slow Bayesian optimization down: 1 / mean over h of (h/H)^k.

    Theorem: with dilution "probabilistic", the expected share of iterations h = 1..H that use the target model alone is
    at least the average of (h/H)^k, so that the search needs at most the reciprocal times as many evaluations as plain
    Bayesian optimization to give the same guarantee on simple regret. The factor lies between 1 (no past runs) and H.
    """
    horizon = as_count("horizon", horizon, least=1)
    past = as_count("past", past, least=0)
    return float(1.0 / np.mean((np.arange(1, horizon + 1) / horizon) ** past))
