"""The kernel over all pairs of rows that may correlate, prepared for being evaluated hundreds of times.

Notation: N pairs of rows i > j with the same inactive columns; all other covariances are zero. Matrices are symmetric,
so each pair appears once and everything elementwise runs over vectors (N,), for s settings of the kernel at a time.
Columns in which no pair differs cannot matter: they are not ``free``. ``precision (s, f)`` is 1 / l^2 of the free
columns.

Differences are taken once, the sums over columns are matrix products, and the arrays are reused from call to call, also
by other kernels. Settings for several sets of data are evaluated at once if the sets have the same pairs and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.surrogate.kernels import LARGEST_EXPONENT, KernelShape, filled, same_activity

Parts: TypeAlias = Sequence[tuple[int, slice]]  # the number of a set, and which settings are for it
ONE: Parts = ((0, slice(None)),)


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


class Pairs:
    """The pairs of rows of ``X (n, d)``, nan = inactive, as ``row`` and ``column (N,)``, and how they differ.

    ``free (d,)``; of the free columns, ``numerical (f,)`` and ``categorical (f',)`` are positions, ``squares (f, N)``
    squared differences and ``unequal (f', N)`` 1 where labels differ.
    """

    def __init__(self, X: FloatArray, shape: KernelShape) -> None:
        """Take the differences of all pairs."""
        self.n = len(X)
        row, column = np.tril_indices(self.n, -1)
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
        self.numerical, self.categorical = np.flatnonzero(~kind), np.flatnonzero(kind)
        self.squares = np.square(differences[self.free & ~shape.categorical])
        self.unequal = (differences[self.free & shape.categorical] != 0.0).astype(np.float64)

    @property
    def complete(self) -> bool:
        """Whether all pairs may correlate."""
        return self.row.size == self.n * (self.n - 1) // 2


class PairKernel:
    """The kernel on sets with the same pairs and free columns; after `fill` the values ``k`` and ``w (s, N)``."""

    def __init__(self, sets: Sequence[Pairs], scratch: Scratch) -> None:
        """Work on these sets."""
        self._sets, self._scratch = sets, scratch
        self._width = sets[0].row.size
        self.k = self.w = scratch.rows("k", 0, self._width)

    def fill(self, amplitude: FloatArray, precision: FloatArray, parts: Parts = ONE) -> None:
        """Put the kernel into ``k`` and a (5/3) (1 + t) exp(-t - h/2), its slope by squared distances, into ``w``."""
        k, w, t = (self._scratch.rows(name, len(precision), self._width) for name in "kwt")
        self.k, self.w = k, w
        first = self._sets[0]
        scaled = 5.0 * precision.take(first.numerical, axis=1)  # in C order, or a row's product depends on the others
        for number, rows in parts:
            np.matmul(scaled[rows], self._sets[number].squares, out=t[rows])
        np.multiply(t, 1.0 / 3.0, out=k)
        np.sqrt(t, out=t)
        np.add(t, 1.0, out=w)
        k += w  # 1 + t + t^2/3
        if first.categorical.size:
            halves = 0.5 * precision.take(first.categorical, axis=1)
            for number, rows in parts:
                t[rows] += halves[rows] @ self._sets[number].unequal
        np.minimum(t, LARGEST_EXPONENT, out=t)
        np.negative(t, out=t)
        np.exp(t, out=t)
        t *= amplitude[:, None]
        k *= t
        t *= 5.0 / 3.0
        w *= t

    def slopes(self, G: FloatArray, precision: FloatArray, parts: Parts = ONE) -> FloatArray:
        """Sum over pairs of G (s, N) times the derivative of the kernel by ln l (s, f); ``k`` and ``w`` are used up."""
        by_length = np.empty(precision.shape)
        first = self._sets[0]
        self.w *= G
        for number, rows in parts:
            by_length[rows, first.numerical] = self.w[rows] @ self._sets[number].squares.T
        if first.categorical.size:
            self.k *= G
            for number, rows in parts:
                by_length[rows, first.categorical] = self.k[rows] @ self._sets[number].unequal.T
        return np.asarray(by_length * precision)
