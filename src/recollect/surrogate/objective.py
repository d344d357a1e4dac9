"""The function whose minimum is the fitted model: minus log posterior of the hyperparameters, with gradient.

::

    -ln p = z^T A^-1 z / 2 + ln|A| / 2 + n ln(2 pi) / 2 - ln p(a) - ln p(l) - ln p(v),   A = K + v I
    d LML / d theta = tr((alpha alpha^T - A^-1) dA/dtheta) / 2,                    alpha = A^-1 z

Notation: ``z (n,)`` standardised targets; ``theta (s, p)``, rows ``(ln a, ln l of the free columns, ln v)``; pairs of
rows as in ``pairs``.

A fit evaluates this hundreds of times, so several settings, also for several sets of data, are evaluated at once, which
shares the cost of calling NumPy, and the arrays are reused from call to call (the one place where a value is changed in
place). How settings are put together never depends on those for other sets of data, so that neither do the values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.surrogate.pairs import PairKernel, Pairs, Parts, Scratch
from recollect.surrogate.prior import Prior

AT_ONCE = 24_000  # pairs of rows times settings: their arrays stay in the cache of a core


class NegativeLogPosterior:
    """Callable ``theta (s, p) -> (values (s,), gradients (s, p))``; infinite where a matrix cannot be factorised."""

    def __init__(
        self, sets: Sequence[Pairs], targets: Sequence[FloatArray], *, prior: Prior, scratch: Scratch | None = None
    ) -> None:
        """Take sets of data that have the same pairs and free columns, and their standardised targets.

        ``scratch`` may be shared by objectives that are called in turn.
        """
        from scipy.linalg import lapack

        first = sets[0]
        if len({(pairs.n, pairs.row.size, pairs.free.tobytes()) for pairs in sets}) > 1:
            raise InputError("NegativeLogPosterior: expected sets of data with the same pairs and free columns")
        self._lapack: Any = lapack
        self._targets, self._prior = targets, prior
        self._scratch = scratch or Scratch()
        self._pairs, self._kernel = first, PairKernel(sets, self._scratch)
        self.free: BoolArray = first.free
        self._where = first.row * first.n + first.column  # lower triangle of a C-ordered matrix
        self._most = max(1, AT_ONCE // max(1, self._where.size))

    def __call__(self, theta: FloatArray, numbers: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Values and gradients at the rows of ``theta``; ``numbers (s,)``, rising, say which set each is for."""
        ends = [len(theta)] if numbers is None else np.searchsorted(numbers, np.arange(1, len(self._targets) + 1))
        done = [self._at_once(theta[rows], parts) for rows, parts in self._portions(ends)]
        if len(done) == 1:
            return done[0]
        return np.concatenate([value for value, _ in done]), np.concatenate([gradient for _, gradient in done])

    def _portions(self, ends: Sequence[int] | IntArray) -> Iterator[tuple[slice, Parts]]:
        """Which rows to evaluate at once, and which of those are for which set; ``ends`` are the ends of sets' rows.

        Only the rows of a set that are too many alone are divided.
        """
        first, parts, begin = 0, list[tuple[int, slice]](), 0
        for number, end in enumerate(ends):
            while begin < end:
                until = min(int(end), begin + self._most)
                if parts and until - first > self._most:
                    yield slice(first, begin), parts
                    first, parts = begin, []
                parts.append((number, slice(begin - first, until - first)))
                begin = until
        if parts:
            yield slice(first, begin), parts

    def _at_once(self, theta: FloatArray, parts: Parts) -> tuple[FloatArray, FloatArray]:
        n = self._pairs.n
        amplitude, noise = np.exp(theta[:, 0]), np.exp(theta[:, -1])
        precision = np.exp(-2.0 * theta[:, 1:-1])  # 1 / l_j^2
        self._kernel.fill(amplitude, precision, parts)
        entries = self._matrices(amplitude + noise)
        alpha, roots, traces = self._inverted(entries, parts)
        fit = np.empty(len(theta))
        for number, rows in parts:
            fit[rows] = alpha[rows] @ self._targets[number]
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
        gradient[:, 1:-1] = -self._kernel.slopes(G, precision, parts) - length_slopes
        refused = np.isinf(roots[:, 0])
        value[refused], gradient[refused] = math.inf, 0.0
        return value, gradient

    def _matrices(self, diagonal: FloatArray) -> FloatArray:
        """The lower triangles of A, each matrix (n, n) as a row."""
        n = self._pairs.n
        entries = self._scratch.rows("A", diagonal.size, n**2)
        if not self._pairs.complete:
            entries.fill(0.0)  # a factorisation that failed may leave anything between the blocks
        entries[:, self._where] = self._kernel.k
        entries[:, :: n + 1] = diagonal[:, None]
        return entries

    def _inverted(self, entries: FloatArray, parts: Parts) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Put A^-1 in the place of A; return alpha and the diagonal of the factor (s, n), and the traces of A^-1 (s,).

        The factor is infinite where there is none.
        """
        n = self._pairs.n
        alpha, roots = np.zeros((len(entries), n)), np.full((len(entries), n), math.inf)
        for number, rows in parts:
            for i, row in enumerate(entries[rows], start=rows.start):
                # The transpose of the C-ordered lower triangle is the upper one: LAPACK factorises it without a copy.
                U, info = self._lapack.dpotrf(row.reshape(n, n).T, lower=0, clean=0, overwrite_a=1)
                if info == 0:
                    roots[i] = row[:: n + 1]
                    alpha[i], _ = self._lapack.dpotrs(U, self._targets[number], lower=0)
                    self._lapack.dpotri(U, lower=0, overwrite_c=1)
        return alpha, roots, entries[:, :: n + 1].sum(axis=1)
