"""The function whose minimum is the fitted model: minus log posterior of the hyperparameters, with gradient (spec 1.3).

::

    -ln p = z^T A^-1 z / 2 + ln|A| / 2 + n ln(2 pi) / 2 - ln p(a) - ln p(l) - ln p(v),   A = K + v I
    d LML / d theta = tr((alpha alpha^T - A^-1) dA/dtheta) / 2,                    alpha = A^-1 z

Notation: ``z (n,)`` standardised targets; ``theta (s, p)``, rows ``(ln a, ln l of the free columns, ln v)``; pairs of
rows as in ``pairs``.

A fit evaluates this hundreds of times, so several settings are evaluated at once, which shares the cost of calling
NumPy, and the arrays are reused from call to call (the one place where a value is changed in place).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.pairs import PairKernel, Scratch
from recollect.surrogate.prior import Prior

AT_ONCE = 24_000  # pairs of rows times settings: their arrays stay in the cache of a core


class NegativeLogPosterior:
    """Callable ``theta (s, p) -> (values (s,), gradients (s, p))``; infinite where a matrix cannot be factorised."""

    def __init__(
        self, X: FloatArray, z: FloatArray, *, shape: KernelShape, prior: Prior, scratch: Scratch | None = None
    ) -> None:
        """Take the differences of all pairs, once; ``scratch`` may be shared by objectives that are called in turn."""
        from scipy.linalg import lapack

        self._lapack: Any = lapack
        self._z, self._prior = z, prior
        n = z.size
        self._scratch = scratch or Scratch()
        self._pairs = PairKernel(X, shape, self._scratch)
        self.free: BoolArray = self._pairs.free
        self._where = self._pairs.row * n + self._pairs.column  # lower triangle of a C-ordered matrix
        self._all_pairs = self._where.size == n * (n - 1) // 2
        self._most = max(1, AT_ONCE // max(1, self._where.size))

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and gradients at the rows of ``theta``."""
        parts = [self._at_once(theta[begin : begin + self._most]) for begin in range(0, len(theta), self._most)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([value for value, _ in parts]), np.concatenate([gradient for _, gradient in parts])

    def _at_once(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        n = self._z.size
        amplitude, noise = np.exp(theta[:, 0]), np.exp(theta[:, -1])
        precision = np.exp(-2.0 * theta[:, 1:-1])  # 1 / l_j^2
        self._pairs.fill(amplitude, precision)
        entries = self._matrices(amplitude + noise)
        alpha, roots, traces = self._inverted(entries)
        fit = alpha @ self._z
        log_prior, amplitude_slope, noise_slope = self._prior.log_density(theta[:, 0], theta[:, -1])
        log_lengths, length_slopes = self._prior.lengthscale_log_density(theta[:, 1:-1])
        value = 0.5 * fit + np.log(roots).sum(axis=1) + 0.5 * n * math.log(2.0 * math.pi) - log_prior - log_lengths
        gradient = np.empty(theta.shape)
        by_noise = 0.5 * noise * (np.square(alpha).sum(axis=1) - traces)
        gradient[:, -1] = -by_noise - noise_slope
        # tr(G A) = z^T alpha - n, and A is the kernel plus the noise: no further sum over pairs is needed.
        gradient[:, 0] = by_noise - 0.5 * (fit - n) - amplitude_slope
        G = alpha.take(self._pairs.row, axis=1)
        G *= alpha.take(self._pairs.column, axis=1)
        G -= entries.take(self._where, axis=1)  # A^-1, in the place of A
        # Pairs count twice, which cancels the factor 1/2 of the trace.
        gradient[:, 1:-1] = -self._pairs.slopes(G, precision) - length_slopes
        refused = np.isinf(roots[:, 0])
        value[refused], gradient[refused] = math.inf, 0.0
        return value, gradient

    def _matrices(self, diagonal: FloatArray) -> FloatArray:
        """The lower triangles of A, each matrix (n, n) as a row."""
        entries = self._scratch.rows("A", diagonal.size, self._z.size**2)
        if not self._all_pairs:
            entries.fill(0.0)  # a factorisation that failed may leave anything between the blocks
        entries[:, self._where] = self._pairs.k
        entries[:, :: self._z.size + 1] = diagonal[:, None]
        return entries

    def _inverted(self, entries: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Put A^-1 in the place of A; return alpha and the diagonal of the factor (s, n), and the traces of A^-1 (s,).

        The factor is infinite where there is none.
        """
        n = self._z.size
        alpha, roots = np.zeros((len(entries), n)), np.full((len(entries), n), math.inf)
        for i, row in enumerate(entries):
            # The transpose of the C-ordered lower triangle is the upper one, which LAPACK factorises without a copy.
            U, info = self._lapack.dpotrf(row.reshape(n, n).T, lower=0, clean=0, overwrite_a=1)
            if info == 0:
                roots[i] = row[:: n + 1]
                alpha[i], _ = self._lapack.dpotrs(U, self._z, lower=0)
                self._lapack.dpotri(U, lower=0, overwrite_c=1)
        return alpha, roots, entries[:, :: n + 1].sum(axis=1)
