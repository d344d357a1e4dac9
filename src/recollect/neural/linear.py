"""Bayesian linear regression on given features: evidence of many tasks at once, posterior of one.

::

    y = Phi v + eps,   v ~ N(0, I / alpha),   eps ~ N(0, I / beta),   r = beta / alpha
    K = I + r Phi^T Phi = L L^T,   e = L^-1 Phi^T y
    -ln p(y) = -n/2 ln beta + beta/2 (|y|^2 - r |e|^2) + sum ln L_jj + n/2 ln 2 pi
    mean(x) = r e^T L^-1 phi(x),   variance(x) = |L^-1 phi(x)|^2 / alpha

Notation: ``Phi (n, D)`` features, ``y (n,)``; ``m = r K^-1 Phi^T y (D,)`` the posterior mean of v; t tasks at once have
one more axis in front.

``|y|^2 - r |e|^2`` is a small difference of large numbers where the fit is good.  It equals the sum of squares
``|y - Phi m|^2 + |m|^2 / r``, which is minimal at m: rounding errors of m count in second order only, and the
derivatives are those with m held fixed::

    by Phi       -beta (y - Phi m) m^T + r Phi K^-1
    by ln alpha   alpha/2 |m|^2 - (D - tr K^-1)/2
    by ln beta    beta/2 |y - Phi m|^2 + (D - tr K^-1)/2 - n/2

All of this is in double precision, and in NumPy.  In single precision K, whose eigenvalues start at 1 while r goes up
to 1e9, could not be factorised.  And in JAX a batched factorisation waits for the pool of threads it runs on: two at a
time, from two stacks of tasks or from two Python threads, block each other for ever on a machine with two cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recollect.errors import NumericalError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.numerics.linalg import solve_lower

VARIANCE_FLOOR = 1e-10  # as for Gaussian processes; targets are of order one


class Evidence(NamedTuple):
    """Sum of ``-ln p(y)`` over t tasks, and its derivatives: ``(t, n, D)``, ``(t,)`` and ``(t,)``."""

    value: float
    by_features: FloatArray
    by_log_alpha: FloatArray
    by_log_beta: FloatArray


def negative_log_evidence(
    Phi: FloatArray, y: FloatArray, *, rows: IntArray, log_alpha: FloatArray, log_beta: FloatArray
) -> Evidence:
    """Evidence for ``Phi (t, n, D)`` and ``y (t, n)``; of task i all but the first ``rows[i]`` rows are zero in both.

    Where numbers overflow the value is not finite, or ``NumericalError`` is raised.
    """
    D = Phi.shape[2]
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    r = (beta / alpha)[:, None, None]
    transposed = Phi.transpose(0, 2, 1)
    K = np.eye(D) + r * (transposed @ Phi)
    half_log_determinant, inverse = _factorized(K)
    m = r * (inverse @ (transposed @ y[:, :, None]))
    residual = y[:, :, None] - Phi @ m
    by_features = r * (Phi @ inverse) - (beta[:, None, None] * residual) * m.transpose(0, 2, 1)
    misfit, size = 0.5 * beta * _squares(residual), 0.5 * alpha * _squares(m)
    explained = 0.5 * (D - np.trace(inverse, axis1=1, axis2=2))
    value = misfit + size + half_log_determinant - 0.5 * rows * (log_beta - math.log(2.0 * math.pi))
    return Evidence(float(value.sum()), by_features, size - explained, misfit + explained - 0.5 * rows)


def _factorized(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``sum ln L_jj (t,)`` and the inverses ``(t, D, D)`` of t matrices.

    A loop, because it takes a third of the time of NumPy's batched functions, which know nothing of symmetry.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    inverse, diagonal = np.empty_like(K), np.empty(K.shape[:2])
    for i, matrix in enumerate(K):
        L, info = dpotrf(matrix.T, lower=1, clean=1)
        if info != 0:
            raise NumericalError("negative_log_evidence: I + r Phi^T Phi could not be factorised; is Phi not finite?")
        diagonal[i] = L.diagonal()
        inverse[i], _ = dpotri(L, lower=1, overwrite_c=1)  # the lower triangle; the upper one stays zero
    inverse[:, np.arange(K.shape[1]), np.arange(K.shape[1])] *= 0.5
    return np.log(diagonal).sum(axis=1), inverse + inverse.transpose(0, 2, 1)


def _squares(columns: FloatArray) -> FloatArray:
    """Sum of squares of each of ``(t, n, 1)``."""
    return np.asarray(np.einsum("tni,tni->t", columns, columns))


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Posterior of one task: ``weights (D,)`` is m, ``root (D, D)`` the lower factor of Phi^T Phi + I / r."""

    alpha: float
    beta: float
    weights: FloatArray
    root: FloatArray

    def mean(self, Phi: FloatArray) -> FloatArray:
        """Posterior mean ``(n,)`` at features ``(n, D)``."""
        return np.asarray(Phi @ self.weights)

    def variance(self, Phi: FloatArray) -> FloatArray:
        """Variance of the latent function ``(n,)``; the noise 1 / beta is not part of it."""
        V = solve_lower(self.root, Phi.T)  # L = sqrt(r) root, hence |L^-1 phi|^2 / alpha = |root^-1 phi|^2 / beta
        variance: FloatArray = np.maximum(np.einsum("ij,ij->j", V, V) / self.beta, VARIANCE_FLOOR)
        return variance


def make_head(Phi: FloatArray, y: FloatArray, *, alpha: float, beta: float) -> Head:
    """Posterior given features ``(n, D)`` and targets ``(n,)``.

    By the QR factors of Phi on top of I / sqrt(r): K itself would square a condition number that may be 1e6.
    """
    D = Phi.shape[1]
    tall = np.vstack((Phi, math.sqrt(alpha / beta) * np.eye(D)))
    if not (np.isfinite(tall).all() and np.isfinite(y).all()):
        raise NumericalError(f"make_head: expected finite features {Phi.shape} and targets {y.shape}, got nan or inf")
    Q, R = np.linalg.qr(tall)
    signs = np.where(R.diagonal() < 0.0, -1.0, 1.0)
    root = np.asfortranarray((signs[:, None] * R).T)
    weights = _solve_upper(root, signs * (Q[: len(y)].T @ y))
    if not np.isfinite(weights).all():
        raise NumericalError(f"make_head: the weights are not finite (alpha {alpha:.3g}, beta {beta:.3g}, n {len(y)})")
    return Head(alpha, beta, weights, root)


def _solve_upper(root: FloatArray, b: FloatArray) -> FloatArray:
    """``root^-T b`` for a lower factor."""
    from scipy.linalg.lapack import dtrtrs

    solution, _ = dtrtrs(root, b, lower=1, trans=1)
    return np.asarray(solution)
