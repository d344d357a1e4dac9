"""Losses of all resamples at once, as one array."""

from __future__ import annotations

import numpy as np

from recollect.transfer.weighting import ranking


def bootstrap_losses(pairs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Count misranked pairs of m models in S resamples: ``pairs (m, n, n)``, ``counts (S, n)`` -> (S, m)."""
    losses = np.empty((len(pairs), len(counts)), dtype=ranking._exact_dtype(counts.shape[1]))
    ranking._fill(losses, pairs, counts)
    return losses.T
