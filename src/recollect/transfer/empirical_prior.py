"""The empirical Gaussian process: prior mean and covariance of a task's function by EM (Lin, Ament et al., 2026).

The functions f_i of k past tasks are independent draws of one Gaussian process. At M inducing points Z it has the mean
``mu (M,)`` and the covariance ``Sigma (M, M)``, which are free. Between them the kernel K interpolates with the weights
``w(x) = K(x, Z) K(Z, Z)^-1``. Past run i has the values ``z (n,)`` at points with the weights ``W (n, M)``::

    z = W f + e,    e ~ N(0, R + noise I),    R = diag(k(x, x) - w(x) K(Z, Z) w(x)^T), what interpolation leaves open

Maximum likelihood by expectation-maximization, in closed form, from mu = 0 and Sigma = K(Z, Z)::

    E   f_i | z_i ~ N(m_i, P_i),   G = Sigma W^T (W Sigma W^T + R + noise I)^-1,   m_i = mu + G (z_i - W mu),
        P_i = Sigma - G W Sigma
    M   mu = mean_i m_i,   Sigma = [sum_i (P_i + (m_i - mu)(m_i - mu)^T) + K(Z, Z)] / (k + 1),
        noise = mean over all observations of (z - W m_i)^2 + diag(W P_i W^T)

The kernel in the update of Sigma is one more task, of which nothing was observed: with few past runs the estimate stays
between what they show and the kernel, and never becomes singular. The posterior means m_i are the past tasks'
functions, estimated with the help of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recollect.numerics.arrays import FloatArray, KernelShape, unique_rows
from recollect.numerics.linalg import cholesky, single_threaded, solve_lower, solve_posdef
from recollect.surrogate.kernels import Hyperparameters, covariance, cross_covariance
from recollect.transfer.past_functions import PastFunctions, Tabulated

STEPS = 5  # of expectation-maximization
MAX_INDUCING = 256
NUGGET = 1e-6  # on the diagonal of K(Z, Z)
FIRST_NOISE, LEAST_NOISE = 0.05, 1e-4  # variances
LEAST_EIGENVALUE = 1e-6  # of Sigma, relative to the largest; directions with less are left out


class Observed(NamedTuple):
    """One past run: weights ``W (n, M)``, values ``z (n,)``, and the variances ``(n,)`` that interpolation leaves."""

    W: FloatArray
    z: FloatArray
    residual: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class EMEstimate:
    """Mean ``(M,)``, covariance ``(M, M)``, posterior means of the k past tasks ``(k, M)``, variance of the noise."""

    mean: FloatArray
    covariance: FloatArray
    tasks: FloatArray
    noise: float


def expectation_maximization(runs: list[Observed], K: FloatArray, steps: int = STEPS) -> EMEstimate:
    """Estimate the moments of the tasks' functions at inducing points with the kernel ``K (M, M)``."""
    M, count = len(K), sum(len(run.z) for run in runs)
    mean, S, noise = np.zeros(M), K, FIRST_NOISE
    tasks = np.zeros((len(runs), M))
    for _ in range(steps):
        explained, error = np.zeros((M, M)), 0.0  # sum of Sigma - P_i; sum of squares that remain
        for i, (W, z, residual) in enumerate(runs):
            between = W @ S
            latent = between @ W.T
            L = cholesky(latent + np.diag(residual + noise), 1.0)[0]
            half = solve_lower(L, between)
            tasks[i] = mean + half.T @ solve_lower(L, (z - W @ mean)[:, None])[:, 0]
            explained += half.T @ half
            error += float(np.square(z - W @ tasks[i]).sum() + np.trace(latent) - np.square(half @ W.T).sum())
        mean = tasks.mean(axis=0)
        gaps = tasks - mean
        S = (len(runs) * S - explained + gaps.T @ gaps + K) / (len(runs) + 1)
        S = 0.5 * (S + S.T)
        noise = max(error / count, LEAST_NOISE)
    return EMEstimate(mean, S, tasks, noise)


class EmpiricalPrior:
    """Mean and covariance of a new task's function anywhere in the space; immutable."""

    def __init__(self, past: PastFunctions, *, shape: KernelShape, hyper: Hyperparameters) -> None:
        """Estimate them from the observations of the past runs; ``hyper`` are those of the interpolating kernel."""
        self._shape, self._hyper = shape, hyper
        self._inducing = inducing_points(past)
        K = covariance(self._inducing, self._inducing, shape=shape, hyper=hyper)
        K.flat[:: len(K) + 1] += NUGGET
        with single_threaded():
            self._factor = cholesky(K, 1.0)[0]
            runs = []
            for i in range(len(past.sources)):
                points, z = past.observations(i)
                W = self._interpolate(points)
                runs.append(Observed(W, z, np.maximum(1.0 - np.sum(W * (W @ K), axis=1), 0.0)))
            self.estimate = expectation_maximization(runs, K)
            values, vectors = np.linalg.eigh(self.estimate.covariance)
            large = values > LEAST_EIGENVALUE * values[-1]
            rows = np.vstack((self.estimate.mean, (vectors[:, large] * np.sqrt(values[large])).T))
            self._rows = solve_posdef(self._factor, rows.T).T
            self._task_rows = solve_posdef(self._factor, self.estimate.tasks.T).T
        self._moments = Tabulated(self._evaluate, past.reference)

    def functions(self, X: FloatArray) -> FloatArray:
        """Return the past tasks' functions ``(k, m)`` at ``X (m, d)``."""
        return np.asarray(self._task_rows @ self._kernel(X).T)

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean ``(m,)`` and features ``(r, m)``, the products of which are the covariance."""
        values = self._moments(X)
        return values[0], values[1:]

    def _evaluate(self, X: FloatArray) -> FloatArray:
        """Return the mean and, below it, the features."""
        return np.asarray(self._rows @ self._kernel(X).T)

    def _kernel(self, X: FloatArray) -> FloatArray:
        return cross_covariance(X, self._inducing, shape=self._shape, hyper=self._hyper)

    def _interpolate(self, X: FloatArray) -> FloatArray:
        """Return the weights ``(m, M)`` of the inducing points."""
        return np.asarray(solve_posdef(self._factor, self._kernel(X).T).T)


def inducing_points(past: PastFunctions) -> FloatArray:
    """Return the points ``(M, d)`` that past runs evaluated, each once; of more than `MAX_INDUCING`, a sample."""
    rows = np.concatenate([past.sources.data(i).X for i in range(len(past.sources))])
    rows = rows[unique_rows(rows)]
    if len(rows) <= MAX_INDUCING:
        return rows
    return rows[np.sort(np.random.default_rng(len(rows)).permutation(len(rows))[:MAX_INDUCING])]
