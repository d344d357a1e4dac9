"""Inputs of the networks: numerical columns, then a one-hot block for every categorical column.

Notation: ``X (n, d)`` encoded configurations, numerical columns in the unit cube or a little outside, categorical ones
integer codes 0..m-1, nan (or any value <= -1) = inactive; ``sizes (d,)`` the number of distinct values of a column.

Inactive is -1 everywhere.  For a categorical column that is its whole block: a row of zeros and one -1 would need a
place of its own for "inactive", and a row of zeros would put an inactive entry next to every choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.surrogate.kernels import INACTIVE, inactive


@dataclass(frozen=True, slots=True, eq=False)
class OneHot:
    """From ``(n, d)`` to ``(n, width)``; the order of columns is kept among the numerical and the categorical ones."""

    categorical: BoolArray
    sizes: IntArray

    def __post_init__(self) -> None:
        """Check that every categorical column has at least one choice."""
        if self.sizes.shape != self.categorical.shape or np.any(self.sizes[self.categorical] < 1):
            raise InputError(
                f"OneHot: expected a number of values >= 1 for each of {self.categorical.size} columns, "
                f"got {self.sizes.tolist()}"
            )

    @property
    def width(self) -> int:
        """Number of columns after the encoding."""
        return int((~self.categorical).sum() + self.sizes[self.categorical].sum())

    def encode(self, X: FloatArray) -> FloatArray:
        """``X (n, d)`` as ``(n, width)`` without nan."""
        if X.ndim != 2 or X.shape[1] != self.categorical.size:
            raise InputError(f"OneHot: expected inputs of shape (n, {self.categorical.size}), got {X.shape}")
        absent = inactive(X)
        blocks = [np.where(absent, INACTIVE, X)[:, ~self.categorical]]
        for j in np.flatnonzero(self.categorical):
            block = (X[:, j, None] == np.arange(self.sizes[j])).astype(np.float64)
            unknown = ~absent[:, j] & (block.sum(axis=1) == 0.0)
            if unknown.any():
                raise InputError(
                    f"OneHot: expected codes 0..{self.sizes[j] - 1} in column {j}, got {X[unknown, j][0]} "
                    f"in row {int(np.flatnonzero(unknown)[0])}"
                )
            block[absent[:, j]] = INACTIVE
            blocks.append(block)
        return np.hstack(blocks)
