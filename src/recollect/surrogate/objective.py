"""The function whose minimum is the fitted model: minus log posterior of the hyperparameters, with gradient (spec 1.3).

::

    -ln p = z^T A^-1 z / 2 + ln|A| / 2 + n ln(2 pi) / 2 - ln p(a) - ln p(l) - ln p(v),   A = K + v I
    d LML / d theta = tr((alpha alpha^T - A^-1) dA/dtheta) / 2,                    alpha = A^-1 z

Notation: ``z (n,)`` standardised targets; ``theta = (ln a, ln l of the free columns, ln v)``; pairs of rows as in
``pairs``.

A fit evaluates this hundreds of times, so the arrays are reused from call to call (the one place where a value is
changed in place).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.pairs import PairKernel
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
        self._pairs = PairKernel(X, shape)
        self.free: BoolArray = self._pairs.free
        self._matrix = np.zeros((n, n))
        self._entries = self._matrix.reshape(-1)
        self._where = self._pairs.row * n + self._pairs.column  # lower triangle of a C-ordered matrix
        self._all_pairs = self._where.size == n * (n - 1) // 2

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at ``theta``."""
        n = self._z.size
        gradient = np.zeros(theta.size)
        amplitude, noise = math.exp(theta[0]), math.exp(theta[-1])
        precision = np.exp(-2.0 * theta[1:-1])  # 1 / l_j^2
        self._pairs.fill(amplitude, precision)
        if not self._all_pairs:
            self._entries.fill(0.0)  # a factorisation that failed may leave anything between the blocks
        self._entries[self._where] = self._pairs.k
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
        G = alpha.take(self._pairs.row)
        G *= alpha.take(self._pairs.column)
        G -= self._entries.take(self._where)  # A^-1, in the place of A
        # Pairs count twice, which cancels the factor 1/2 of the trace.
        gradient[1:-1] = -self._pairs.slopes(G, precision) - length_slopes
        return value, gradient
