"""The kernel over all pairs of rows that may correlate, prepared for being evaluated hundreds of times (spec 1.3).

Notation: N pairs of rows i > j with the same inactive columns; all other covariances are zero. Matrices are symmetric,
so each pair appears once and everything elementwise runs over vectors (N,), for s settings of the kernel at a time.
Columns in which no pair differs cannot matter: they are not ``free``. ``precision (s, f)`` is 1 / l^2 of the free
columns.

Differences are taken once, the sums over columns are matrix products, and the arrays are reused from call to call, also
by other kernels.
"""

from __future__ import annotations

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.surrogate.kernels import LARGEST_EXPONENT, KernelShape, filled, same_activity


class Scratch:
    """Arrays that are used again and again, so that few stay in the cache of a core."""

    def __init__(self) -> None:
        """Have none yet."""
        self._kept: dict[tuple[str, int], FloatArray] = {}

    def rows(self, name: str, count: int, width: int) -> FloatArray:
        """An array (count, width), with anything in it, under this name."""
        kept = self._kept.get((name, width))
        if kept is None or len(kept) < count:
            kept = self._kept[name, width] = np.zeros((count, width))
        return kept[:count]


class PairKernel:
    """``row``, ``column (N,)`` of the pairs, ``free (d,)``, and after `fill` the values ``k`` and ``w (s, N)``."""

    def __init__(self, X: FloatArray, shape: KernelShape, scratch: Scratch) -> None:
        """Take the differences of all pairs."""
        row, column = np.tril_indices(len(X), -1)
        same = same_activity(X, X, shape)
        if same is not None:
            kept = same[row, column]
            row, column = row[kept], column[kept]
        self.row: IntArray = row
        self.column: IntArray = column
        columns = np.ascontiguousarray(filled(X, shape).T)
        differences = np.array([x[row] - x[column] for x in columns]).reshape(shape.d, row.size)
        self.free: BoolArray = np.asarray(differences.any(axis=1))
        kind = shape.categorical[self.free]
        self._is_numerical, self._is_categorical = np.flatnonzero(~kind), np.flatnonzero(kind)
        self._numerical = np.square(differences[self.free & ~shape.categorical])
        self._categorical = (differences[self.free & shape.categorical] != 0.0).astype(np.float64)
        self._scratch = scratch
        self.k = self.w = scratch.rows("k", 0, row.size)

    def fill(self, amplitude: FloatArray, precision: FloatArray) -> None:
        """Put the kernel into ``k`` and a (5/3) (1 + t) exp(-t - h/2), its slope by squared distances, into ``w``."""
        k, w, t = (self._scratch.rows(name, len(precision), self.row.size) for name in "kwt")
        self.k, self.w = k, w
        np.matmul(5.0 * precision[:, self._is_numerical], self._numerical, out=t)
        np.multiply(t, 1.0 / 3.0, out=k)
        np.sqrt(t, out=t)
        np.add(t, 1.0, out=w)
        k += w  # 1 + t + t^2/3
        if self._is_categorical.size:
            t += (0.5 * precision[:, self._is_categorical]) @ self._categorical
        np.minimum(t, LARGEST_EXPONENT, out=t)
        np.negative(t, out=t)
        np.exp(t, out=t)
        t *= amplitude[:, None]
        k *= t
        t *= 5.0 / 3.0
        w *= t

    def slopes(self, G: FloatArray, precision: FloatArray) -> FloatArray:
        """Sum over pairs of G (s, N) times the derivative of the kernel by ln l (s, f); ``k`` and ``w`` are used up."""
        by_length = np.empty(precision.shape)
        self.w *= G
        by_length[:, self._is_numerical] = self.w @ self._numerical.T
        if self._is_categorical.size:
            self.k *= G
            by_length[:, self._is_categorical] = self.k @ self._categorical.T
        return np.asarray(by_length * precision)
