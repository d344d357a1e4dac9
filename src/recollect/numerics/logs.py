"""Sums of numbers that are kept as logarithms."""

from __future__ import annotations

import numpy as np

from recollect.numerics.arrays import FloatArray


def log_sum_exp(terms: FloatArray) -> FloatArray:
    """Return the logarithm of the sum over the first axis of exp(terms), without overflow; -inf terms count as 0."""
    top = np.max(terms, axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.sum(np.exp(terms - safe), axis=0)))
