"""Minus log posterior of the hyperparameters of a multi-task Gaussian process, with gradient.

::

    A[n, m] = B[i, j] k(x_n, x_m) + [n = m] u_i,   n a row of task i, m one of task j,   B = W W^T + diag(v)
    -ln p   = z^T A^-1 z / 2 + ln|A| / 2 + N ln(2 pi) / 2 - ln p(W) - sum_i (ln p(v_i) + ln p(u_i)) - ln p(l)
    d LML   = tr(G dA) / 2,  G = alpha alpha^T - A^-1,  alpha = A^-1 z
            = <Q, dB>,       Q[i, j] = sum of G[n, m] k(x_n, x_m) / 2 over the rows n of task i and m of task j

so that d LML / d W = 2 Q W and d LML / d v_i = Q_ii, whatever the number of tasks, after one pass over the pairs.

Prior: v has the density of a single process's amplitude and u that of its noise, for every task.  The entries of W are
normal with standard deviation 1/2 around ``alike``.  The first keeps a model with few observations of a task from being
certain about it; the second lets the others speak for it from its first observation on, when its likelihood cannot
tell like from unlike tasks.  Without the two, predictions after 1 to 5 observations are far worse.

Notation: t tasks, r columns of W, N rows of all tasks together, ``task (N,)`` their tasks; k the product kernel with
amplitude 1.  ``theta = (ln l of the free columns, W row by row, ln v, ln u)``.  As for a single process, pairs of rows
appear once, and columns in which no pair differs are not free.  For one task and r = 0 this is ``objective``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.pairs import PairKernel, Pairs, Scratch
from recollect.surrogate.prior import Prior

SPREAD = 0.5  # standard deviation of the entries of W before seeing data


def alike(t: int, r: int) -> FloatArray:
    """The mean of W ``(t, r)`` before seeing data: one function in common to all tasks, and no other."""
    W = np.zeros((t, r))
    W[:, :1] = 1.0
    return W


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the hyperparameters are in ``theta``: ``free`` length scales, ``t`` tasks, ``r`` columns of W."""

    free: int
    t: int
    r: int

    @property
    def size(self) -> int:
        """Length of theta."""
        return self.free + self.t * (self.r + 2)

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Views of ``ln l (free,)``, ``W (t, r)``, ``ln v (t,)`` and ``ln u (t,)``."""
        own = self.free + self.t * self.r
        W = theta[self.free : own].reshape(self.t, self.r)
        return theta[: self.free], W, theta[own : own + self.t], theta[own + self.t :]

    def bounds(self, prior: Prior) -> FloatArray:
        """Bounds ``(p, 2)`` of theta; those of the amplitude hold for v and for the squares of W."""
        amplitude, *lengths, noise = prior.log_bounds(self.free)
        largest = math.exp(0.5 * amplitude[1])
        rows = [*lengths, *[(-largest, largest)] * (self.t * self.r), *[amplitude] * self.t, *[noise] * self.t]
        return np.array(rows, dtype=np.float64)

    def draw_starts(self, count: int, prior: Prior, *, rng: np.random.Generator) -> FloatArray:
        """Random starting points ``(count, p)``: l, W, v and u as of the prior."""
        lengths = prior.draw_starts(count, self.free, rng=rng)[:, 1:-1]
        tasks = prior.draw_starts(count * self.t, 0, rng=rng).reshape(count, self.t, 2)
        W = alike(self.t, self.r) + SPREAD * rng.standard_normal((count, self.t, self.r))
        return np.hstack((lengths, W.reshape(count, self.t * self.r), tasks[:, :, 0], tasks[:, :, 1]))


class MultiTaskObjective:
    """Callable ``theta (p,) -> (value, gradient (p,))``; infinite where the matrix cannot be factorised."""

    def __init__(self, X: FloatArray, z: FloatArray, task: IntArray, *, shape: KernelShape, prior: Prior, rank: int):
        """Take the differences of all pairs, once, for W with ``rank`` columns."""
        from scipy.linalg import lapack

        self._lapack: Any = lapack
        self._z, self._task, self._prior = z, task, prior
        n, t = z.size, int(task.max()) + 1
        self._pairs = Pairs(X, shape)
        self._kernel = PairKernel([self._pairs], Scratch())
        row, column = self._pairs.row, self._pairs.column
        self.free: BoolArray = self._pairs.free
        self.layout = Layout(int(self.free.sum()), t, rank)
        self._block = task[row] * t + task[column]  # place of the pair's tasks in B
        self._matrix = np.zeros((n, n))
        self._entries = self._matrix.reshape(-1)
        self._where = row * n + column  # lower triangle of a C-ordered matrix
        self._b = np.empty(row.size)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at ``theta``."""
        n = self._z.size
        log_lengths, W, log_own, log_noise = self.layout.split(theta)
        gradient = np.zeros(theta.size)
        own, noise = np.exp(log_own), np.exp(log_noise)
        B = W @ W.T + np.diag(own)
        precision = np.exp(-2.0 * log_lengths)  # 1 / l_j^2
        self._fill_matrix(precision, B, noise)
        # The transpose of the C-ordered lower triangle is the upper triangle that LAPACK can factorise without a copy.
        U, info = self._lapack.dpotrf(self._matrix.T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            return math.inf, gradient
        alpha, _ = self._lapack.dpotrs(U, self._z, lower=0)
        value = 0.5 * float(self._z @ alpha) + float(np.log(U.diagonal()).sum()) + 0.5 * n * math.log(2.0 * math.pi)
        inverse, _ = self._lapack.dpotri(U, lower=0, overwrite_c=1)
        by_noise = 0.5 * np.bincount(self._task, alpha * alpha - inverse.diagonal(), minlength=own.size)
        by_lengths, Q = self._pair_slopes(alpha, precision)
        Q.flat[:: own.size + 1] += by_noise  # k(x, x) = 1
        likelihood = (by_lengths, 2.0 * Q @ W, Q.diagonal() * own, by_noise * noise)
        log_prior, prior = self.log_prior(theta)
        for part, slopes, more in zip(self.layout.split(gradient), likelihood, prior, strict=True):
            part[:] = -slopes - more
        return value - log_prior, gradient

    def log_prior(self, theta: FloatArray) -> tuple[float, tuple[FloatArray, ...]]:
        """Log density of the prior at ``theta``, up to a constant, and its derivatives, split as theta is."""
        log_lengths, W, log_own, log_noise = self.layout.split(theta)
        of_lengths, length_slopes = self._prior.lengthscale_log_density(log_lengths[None])
        densities, own_slopes, noise_slopes = self._prior.log_density(log_own, log_noise)
        total = float(of_lengths[0] + densities.sum())
        if not self._prior.use_priors:
            return total, (length_slopes[0], np.zeros(W.shape), own_slopes, noise_slopes)
        distance = (W - alike(*W.shape)) / SPREAD
        total -= 0.5 * float(np.square(distance).sum())
        return total, (length_slopes[0], -distance / SPREAD, own_slopes, noise_slopes)

    def _fill_matrix(self, precision: FloatArray, B: FloatArray, noise: FloatArray) -> None:
        """A into ``_matrix``, and B_ij of each pair into ``_b``."""
        self._kernel.fill(np.ones(1), precision[None])
        B.reshape(-1).take(self._block, out=self._b, mode="clip")
        if not self._pairs.complete:
            self._entries.fill(0.0)  # a factorisation that failed may leave anything between the blocks
        self._entries[self._where] = self._b * self._kernel.k[0]
        self._entries[:: self._z.size + 1] = (B.diagonal() + noise)[self._task]

    def _pair_slopes(self, alpha: FloatArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
        """d LML / d ln l, and Q without the diagonal of G; pairs count twice, which cancels the factor 1/2."""
        t = self.layout.t
        G = alpha.take(self._pairs.row)
        G *= alpha.take(self._pairs.column)
        G -= self._entries.take(self._where)  # A^-1, in the place of A
        halves = np.bincount(self._block, G * self._kernel.k[0], minlength=t * t).reshape(t, t)
        G *= self._b
        return self._kernel.slopes(G[None], precision[None])[0], np.asarray(0.5 * (halves + halves.T), dtype=np.float64)
