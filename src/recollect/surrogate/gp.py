"""A fitted Gaussian process: an immutable value that predicts, also each training target from all others.

Notation: ``X (n, d)`` training inputs with nan for inactive entries, ``y (n,)`` targets, ``z = (y - m) / s`` the
standardized ones, ``A = K + noise I = L L^T``, ``alpha = A^-1 z``.  Predictions are in the units of ``y``::

    mean = m + s k_*^T alpha,      variance = s^2 max(k(x, x) - k_*^T A^-1 k_*, 1e-10)   [+ s^2 noise]

Leave-one-out predictions are those of n refits in closed form.  Each refit leaves one point out, keeps the
hyperparameters, and standardizes its own n - 1 targets; m_-k and s_-k are their mean and standard deviation::

    g_k   = y_k - ([A^-1 y]_k - m_-k [A^-1 1]_k) / [A^-1]_kk
    var_k = s_-k^2 / [A^-1]_kk                                     (of an observation: noise included)

The fold's standard deviation cancels in the mean; its mean does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, KernelShape
from recollect.numerics.linalg import (
    append_cholesky,
    cholesky,
    inv_posdef,
    single_threaded,
    solve_lower,
    solve_posdef,
)
from recollect.surrogate.kernels import (
    Hyperparameters,
    covariance,
    cross_covariance,
    cross_covariance_and_slope,
    distance_gradient,
)
from recollect.surrogate.scaling import normalize, restore, square, standardize

VARIANCE_FLOOR = 1e-10  # of the latent variance of standardized targets


class Posterior(Protocol):
    """What a decision needs of a model of the new task's function, whatever the model; a `GP` is one."""

    @property
    def X(self) -> FloatArray:
        """Evaluated points (n, d), nan = inactive."""

    def mean(self, X: FloatArray, /) -> FloatArray:
        """Return the posterior mean (m,)."""

    def predict(self, X: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return the posterior mean and variance (m,) of the latent function."""

    def condition(self, X_new: FloatArray, y_new: FloatArray, /) -> Self:
        """Return the model after more observations."""


@runtime_checkable
class SmoothPosterior(Posterior, Protocol):
    """A model that knows the gradients of its predictions; a `GP` is one."""

    @property
    def lengthscales(self) -> FloatArray:
        """Distances (d,) over which predictions change."""

    def predict_with_gradient(self, X: FloatArray, /) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the posterior mean and variance (m,), and their gradients (m, d) by the inputs."""


@dataclass(frozen=True, slots=True, eq=False)
class GP:
    """Posterior of a Gaussian process; create one with `fit_gp` or `make_gp`."""

    X: FloatArray  # (n, d) training inputs, nan = inactive
    y: FloatArray  # (n,) targets as observed
    z: FloatArray  # (n,) standardized targets
    shape: KernelShape
    hyper: Hyperparameters  # for standardized targets
    m: float  # mean of the targets
    s: float  # standard deviation of the targets
    L: FloatArray  # (n, n) lower Cholesky factor of the training matrix
    alpha: FloatArray  # (n,) A^-1 z
    jitter: float  # what had to be added to the diagonal of the training matrix
    log_prior: float = 0.0  # log prior density of the hyperparameters, if they were fitted
    across: FloatArray | None = None  # (n,) amplitudes between this function and those that the rows observe, if others

    @property
    def n(self) -> int:
        """Number of training points."""
        return self.y.size

    @property
    def lengthscales(self) -> FloatArray:
        """Length scales (d,)."""
        return self.hyper.lengthscales

    @property
    def log_marginal_likelihood(self) -> float:
        """Log marginal likelihood of the standardized targets."""
        return log_marginal_likelihood(self.z, self.alpha, self.L)

    @property
    def log_posterior(self) -> float:
        """What `fit_gp` maximizes: log marginal likelihood plus log prior."""
        return self.log_marginal_likelihood + self.log_prior

    def mean(self, X: npt.ArrayLike) -> FloatArray:
        """Return the posterior mean ``(m,)``."""
        with single_threaded():
            return restore(self._with_rows(X) @ self.alpha, self.m, self.s)

    def predict(self, X: npt.ArrayLike, *, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return posterior mean and variance ``(m,)`` of the function, or of an observation with ``include_noise``."""
        with single_threaded():
            k = self._with_rows(X)
            mean = restore(k @ self.alpha, self.m, self.s)
            V = solve_lower(self.L, k.T, overwrite=True).T  # in the memory of k
            variance = self.hyper.amplitude - np.einsum("ij,ij->i", V, V)
        np.maximum(variance, VARIANCE_FLOOR, out=variance)
        if include_noise:
            variance += self.hyper.noise
        return mean, variance * square(self.s)

    def predict_with_gradient(self, X: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return posterior mean and variance ``(m,)`` of the function, and their gradients ``(m, d)`` by the inputs.

        Gradients are zero by categorical columns and, for the variance, where it is at its floor; by inactive columns
        they are zero as well, because rows with other inactive columns do not matter.
        """
        X = checked_inputs(X, self.shape.d)
        with single_threaded():
            k, w = cross_covariance_and_slope(X, self.X, shape=self.shape, hyper=self.hyper)
            if self.across is not None:
                k *= self.across / self.hyper.amplitude
                w *= self.across / self.hyper.amplitude
            V = solve_lower(self.L, k.T)
            beta = solve_lower(self.L, V, transposed=True).T
            mean_slopes, variance_slopes = (
                distance_gradient(w * c, X, self.X, shape=self.shape, hyper=self.hyper) for c in (self.alpha, beta)
            )
            mean = restore(k @ self.alpha, self.m, self.s)
        variance = self.hyper.amplitude - np.einsum("nm,nm->m", V, V)
        variance_slopes[variance <= VARIANCE_FLOOR] = 0.0
        scale = square(self.s)
        return mean, scale * np.maximum(variance, VARIANCE_FLOOR), self.s * mean_slopes, -2.0 * scale * variance_slopes

    def joint(self, X: npt.ArrayLike, *, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return the posterior mean ``(m,)`` and covariance ``(m, m)``: symmetric, with nothing clipped."""
        X = checked_inputs(X, self.shape.d)
        with single_threaded():
            k = self._with_rows(X)
            mean = restore(k @ self.alpha, self.m, self.s)
            V = solve_lower(self.L, k.T)
            spread = covariance(X, X, shape=self.shape, hyper=self.hyper) - V.T @ V
        spread = 0.5 * (spread + spread.T)
        if include_noise:
            spread.flat[:: len(X) + 1] += self.hyper.noise
        return mean, spread * square(self.s)

    def covariance(self, A: npt.ArrayLike, B: npt.ArrayLike) -> FloatArray:
        """Return the posterior covariance ``(a, b)`` of the function between points A and B, with nothing clipped."""
        A, B = checked_inputs(A, self.shape.d), checked_inputs(B, self.shape.d)
        with single_threaded():
            V, W = (solve_lower(self.L, self._with_rows(points).T) for points in (A, B))
            return (covariance(A, B, shape=self.shape, hyper=self.hyper) - V.T @ W) * square(self.s)

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike) -> GP:
        """Return the model after more data, with the same hyperparameters and the same standardization."""
        if np.size(y_new) == 0:
            return self
        X_new, y_new = checked_data(X_new, y_new)
        with single_threaded():
            B = self._with_rows(X_new, covariance)
            C = covariance(X_new, X_new, shape=self.shape, hyper=self.hyper)
            C.flat[:: len(X_new) + 1] += self.hyper.noise
            L, jitter = append_cholesky(self.L, B, C)
            z = np.concatenate((self.z, normalize(y_new, self.m, self.s)))
            alpha = solve_posdef(L, z)
        X, y = np.concatenate((self.X, X_new)), np.concatenate((self.y, y_new))
        across = None if self.across is None else np.append(self.across, np.full(len(y_new), self.hyper.amplitude))
        return replace(self, X=X, y=y, z=z, L=L, alpha=alpha, jitter=max(self.jitter, jitter), across=across)

    def _with_rows(self, X: npt.ArrayLike, kernel: Callable[..., FloatArray] = cross_covariance) -> FloatArray:
        """Return the prior covariance ``(m, n)`` of the function at X with what the training rows observe."""
        X = checked_inputs(X, self.shape.d)
        if self.across is None:
            return kernel(X, self.X, shape=self.shape, hyper=self.hyper)
        k = kernel(X, self.X, shape=self.shape, hyper=replace(self.hyper, amplitude=1.0))
        k *= self.across
        return k

    def loo(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance ``(n,)`` of every target, predicted from all others.

        When all targets are equal, or there is only one, the mean is ``y`` itself; with a single target the variance is
        that of the prior.
        """
        n, y = self.n, self.y
        z, m, s = standardize(y)  # in standardized units nothing cancels between large numbers
        with single_threaded():
            spread = 1.0 / inv_posdef(self.L).diagonal()
            solved = solve_posdef(self.L, np.column_stack((z, np.ones(n))))
        variance = np.array([square(float(s_k)) for s_k in _others_std(y, z, s)]) * spread
        if n == 1 or (y == y[0]).all():
            return y.copy(), variance
        others = (z.sum() - z) / (n - 1)
        return restore(z - (solved[:, 0] - others * solved[:, 1]) * spread, m, s), variance


def log_marginal_likelihood(z: FloatArray, alpha: FloatArray, L: FloatArray) -> float:
    """Return the log marginal likelihood of standardized targets ``z (n,)``, with ``alpha = (L L^T)^-1 z``."""
    half_log_determinant = float(np.log(L.diagonal()).sum())
    return -0.5 * float(z @ alpha) - half_log_determinant - 0.5 * z.size * math.log(2.0 * math.pi)


def make_gp(
    X: npt.ArrayLike, y: npt.ArrayLike, *, shape: KernelShape, hyper: Hyperparameters, log_prior: float = 0.0
) -> GP:
    """Return the Gaussian process with given hyperparameters."""
    X, y = checked_data(X, y)
    if not X.shape[1] == shape.d == hyper.lengthscales.size:
        got = f"X {X.shape}, a kernel for {shape.d} columns and {hyper.lengthscales.size} length scales"
        raise InputError(f"make_gp: expected as many columns as length scales, got {got}")
    z, m, s = standardize(y)
    with single_threaded():
        A = covariance(X, X, shape=shape, hyper=hyper)
        A.flat[:: len(X) + 1] += hyper.noise
        L, jitter = cholesky(A, hyper.amplitude)
        alpha = solve_posdef(L, z)
    return GP(X, y, z, shape, hyper, m, s, L, alpha, jitter, log_prior)


def _others_std(y: FloatArray, z: FloatArray, s: float) -> FloatArray:
    """Return the standard deviation (n,) of all targets but one, in units of y; 1 where they are equal or missing."""
    n = y.size
    if n <= 2:
        return np.ones(n)
    unequal = ~np.eye(n, dtype=np.bool_)
    others, values = (np.broadcast_to(v, (n, n))[unequal].reshape(n, n - 1) for v in (z, y))
    std: FloatArray = s * others.std(axis=1)
    std[values.max(axis=1) == values.min(axis=1)] = 1.0
    return std


def checked_data(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return read-only copies of ``X (n, d)`` and ``y (n,)``, n >= 1, as float arrays, or raise InputError."""
    inputs, targets = np.array(X, dtype=np.float64, order="C"), np.array(y, dtype=np.float64)
    if inputs.ndim != 2 or targets.ndim != 1 or len(inputs) != len(targets) or targets.size == 0:
        shapes = f"{inputs.shape} and {targets.shape}"
        raise InputError(f"training data: expected X (n, d) and y (n,) with n >= 1, got {shapes}")
    if not np.isfinite(targets).all():
        place = int(np.flatnonzero(~np.isfinite(targets))[0])
        raise InputError(f"training data: expected finite targets, got {targets[place]} at position {place}")
    if np.isinf(inputs).any():
        raise InputError("training data: expected inputs to be finite, or nan where inactive; got inf")
    inputs.flags.writeable = targets.flags.writeable = False
    return inputs, targets


def checked_inputs(X: npt.ArrayLike, d: int) -> FloatArray:
    """Return ``X (m, d)`` as floats, or raise InputError."""
    inputs = np.asarray(X, dtype=np.float64)
    if inputs.ndim != 2 or inputs.shape[1] != d:
        raise InputError(f"GP: expected inputs of shape (m, {d}), got {inputs.shape}")
    return inputs
