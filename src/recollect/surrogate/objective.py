"""The function whose minimum is the fitted model: minus log posterior of the hyperparameters, with gradient (spec 1.3).

::

    -ln p = z^T A^-1 z / 2 + ln|A| / 2 + n ln(2 pi) / 2 - ln p(a) - ln p(l) - ln p(v),   A = K + v I
    d LML / d theta = tr((alpha alpha^T - A^-1) dA/dtheta) / 2,                    alpha = A^-1 z

Notation: ``z (n,)`` standardised targets; ``theta = (ln a, ln l of the free columns, ln v)``; N pairs of rows, only
those with the same inactive columns, since all other covariances are zero.  Matrices are symmetric, so each pair
appears once and everything elementwise runs over vectors (N,).  Columns in which no pair differs cannot matter: they
are not free.

A fit evaluates this hundreds of times.  Differences of all pairs are therefore taken once, the sums over columns are
matrix-vector products, and the arrays are reused from call to call (the one place where a value is changed in place).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.surrogate.kernels import LARGEST_EXPONENT, KernelShape, inactive, same_activity
from recollect.surrogate.prior import Prior


class NegativeLogPosterior:
    """Callable ``theta (p,) -> (value, gradient (p,))``; infinite where the matrix cannot be factorised."""

    def __init__(self, X: FloatArray, z: FloatArray, *, shape: KernelShape, prior: Prior) -> None:
        """Take the differences of all pairs, once."""
        from scipy.linalg import lapack

        self._factorise: Any = lapack.dpotrf
        self._solve: Any = lapack.dpotrs
        self._invert: Any = lapack.dpotri
        self._z, self._prior = z, prior
        n = z.size
        self._row, self._column = _pairs(X, shape)
        numerical, categorical = _differences(X, self._row, self._column, shape)
        free = np.zeros(shape.d, dtype=np.bool_)
        free[~shape.categorical] = numerical.any(axis=1)
        free[shape.categorical] = categorical.any(axis=1)
        self.free: BoolArray = free
        kind = shape.categorical[free]
        self._is_numerical, self._is_categorical = np.flatnonzero(~kind), np.flatnonzero(kind)
        self._numerical = np.ascontiguousarray(numerical[numerical.any(axis=1)])
        self._categorical = np.ascontiguousarray(categorical[categorical.any(axis=1)])
        self._matrix = np.zeros((n, n))
        self._entries = self._matrix.reshape(-1)
        self._where = self._row * n + self._column  # lower triangle of a C-ordered matrix
        self._all_pairs = self._where.size == n * (n - 1) // 2
        self._t, self._k, self._w = (np.empty(self._where.size) for _ in range(3))

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at ``theta``."""
        n = self._z.size
        gradient = np.zeros(theta.size)
        amplitude, noise = math.exp(theta[0]), math.exp(theta[-1])
        precision = np.exp(-2.0 * theta[1:-1])  # 1 / l_j^2
        self._fill_kernel(amplitude, precision)
        if not self._all_pairs:
            self._entries.fill(0.0)  # a factorisation that failed may leave anything between the blocks
        self._entries[self._where] = self._k
        self._entries[:: n + 1] = amplitude + noise
        # The transpose of the C-ordered lower triangle is the upper triangle that LAPACK can factorise without a copy.
        U, info = self._factorise(self._matrix.T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            return math.inf, gradient
        alpha, _ = self._solve(U, self._z, lower=0)
        log_root = float(np.log(U.diagonal()).sum())
        fit = float(self._z @ alpha)
        inverse, _ = self._invert(U, lower=0, overwrite_c=1)
        log_prior, amplitude_slope, noise_slope = self._prior.log_density(theta[0], theta[-1])
        log_lengths, length_slopes = self._prior.lengthscale_log_density(theta[1:-1])
        value = 0.5 * fit + log_root + 0.5 * n * math.log(2.0 * math.pi) - log_prior - log_lengths
        by_noise = 0.5 * noise * float(alpha @ alpha - inverse.trace())
        gradient[-1] = -by_noise - noise_slope
        # tr(G A) = z^T alpha - n, and A is the kernel plus the noise: no further sum over pairs is needed.
        gradient[0] = by_noise - 0.5 * (fit - n) - amplitude_slope
        self._lengthscale_slopes(alpha, precision, gradient[1:-1])
        gradient[1:-1] -= length_slopes
        return value, gradient

    def _fill_kernel(self, amplitude: float, precision: FloatArray) -> None:
        """Kernel values of all pairs into ``_k``, and a (5/3) (1 + t) exp(-t - h/2) into ``_w``."""
        t, k, w = self._t, self._k, self._w
        np.matmul(5.0 * precision[self._is_numerical], self._numerical, out=t)
        np.multiply(t, 1.0 / 3.0, out=k)
        np.sqrt(t, out=t)
        np.add(t, 1.0, out=w)
        k += w  # 1 + t + t^2/3
        if self._is_categorical.size:
            t += (0.5 * precision[self._is_categorical]) @ self._categorical
        np.minimum(t, LARGEST_EXPONENT, out=t)
        np.negative(t, out=t)
        np.exp(t, out=t)
        t *= amplitude
        k *= t
        t *= 5.0 / 3.0
        w *= t

    def _lengthscale_slopes(self, alpha: FloatArray, precision: FloatArray, out: FloatArray) -> None:
        """Minus d LML / d ln l_j: pairs count twice, which cancels the factor 1/2 of the trace."""
        G = alpha.take(self._row)
        G *= alpha.take(self._column)
        G -= self._entries.take(self._where)  # A^-1, in the place of A
        self._w *= G
        out[self._is_numerical] = self._numerical @ self._w
        if self._is_categorical.size:
            G *= self._k
            out[self._is_categorical] = self._categorical @ G
        out *= -precision


def _pairs(X: FloatArray, shape: KernelShape) -> tuple[Any, Any]:
    """Rows i > j of all pairs with the same inactive columns."""
    row, column = np.tril_indices(len(X), -1)
    same = same_activity(X, X, shape)
    if same is not None:
        kept = same[row, column]
        row, column = row[kept], column[kept]
    return row, column


def _differences(X: FloatArray, row: Any, column: Any, shape: KernelShape) -> tuple[FloatArray, FloatArray]:
    """Squared differences (numerical columns, N) and mismatches (categorical columns, N)."""
    filled = np.where(inactive(X), -1.0, X).T
    numerical, categorical = filled[~shape.categorical], filled[shape.categorical]
    squared = numerical[:, row] - numerical[:, column]
    squared *= squared
    return squared, (categorical[:, row] != categorical[:, column]).astype(np.float64)
