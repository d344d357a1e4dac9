"""A fitted Gaussian process: a value that predicts.

Notation: ``X (n, d)`` training inputs with nan for inactive entries, ``y (n,)`` targets, ``z = (y - m) / s`` the
standardised ones, ``A = K + noise I = L L^T``, ``alpha = A^-1 z``.  Predictions are in the units of ``y``::

    mean = m + s k_*^T alpha,      variance = s^2 max(k(x, x) - k_*^T A^-1 k_*, 1e-10)   [+ s^2 noise]

A model is never changed: ``condition`` returns a new one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import append_with_jitter, cholesky, solve_lower, solve_posdef
from recollect.numerics.threads import single_threaded
from recollect.surrogate.kernels import Hyperparameters, KernelShape, covariance, cross_covariance
from recollect.surrogate.loo import leave_one_out
from recollect.surrogate.scaling import normalize, restore, square, standardize

VARIANCE_FLOOR = 1e-10  # of the normalised latent variance


@dataclass(frozen=True, slots=True, eq=False)
class GP:
    """Gaussian process posterior; make one with ``fit_gp`` or ``make_gp``."""

    X: FloatArray
    y: FloatArray
    z: FloatArray
    shape: KernelShape
    hyper: Hyperparameters
    m: float
    s: float
    L: FloatArray
    alpha: FloatArray
    jitter: float
    log_prior: float = 0.0

    @property
    def n(self) -> int:
        """Number of training points."""
        return self.y.size

    @property
    def log_marginal_likelihood(self) -> float:
        """Log marginal likelihood of the standardised targets."""
        half_log_determinant = float(np.log(self.L.diagonal()).sum())
        return -0.5 * float(self.z @ self.alpha) - half_log_determinant - 0.5 * self.n * math.log(2.0 * math.pi)

    @property
    def log_posterior(self) -> float:
        """What ``fit_gp`` maximises: log marginal likelihood plus the log prior it was given (none for ``make_gp``)."""
        return self.log_marginal_likelihood + self.log_prior

    def mean(self, X: npt.ArrayLike) -> FloatArray:
        """Posterior mean ``(m,)``."""
        X = checked_inputs(X, self.shape.d)
        with single_threaded():
            k = cross_covariance(X, self.X, shape=self.shape, hyper=self.hyper)
            return restore(k @ self.alpha, self.m, self.s)

    def predict(self, X: npt.ArrayLike, *, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance ``(m,)`` of the latent function, or of an observation with ``include_noise``."""
        X = checked_inputs(X, self.shape.d)
        with single_threaded():
            k = cross_covariance(X, self.X, shape=self.shape, hyper=self.hyper)
            mean = restore(k @ self.alpha, self.m, self.s)
            V = solve_lower(self.L, k.T, overwrite=True).T  # in the memory of k
            variance = self.hyper.amplitude - np.einsum("ij,ij->i", V, V)
        np.maximum(variance, VARIANCE_FLOOR, out=variance)
        if include_noise:
            variance += self.hyper.noise
        return mean, variance * square(self.s)

    def joint(self, X: npt.ArrayLike, *, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Posterior mean ``(m,)`` and covariance ``(m, m)``: symmetric, with nothing clipped."""
        X = checked_inputs(X, self.shape.d)
        with single_threaded():
            k = cross_covariance(X, self.X, shape=self.shape, hyper=self.hyper)
            mean = restore(k @ self.alpha, self.m, self.s)
            V = solve_lower(self.L, k.T)
            spread = covariance(X, X, shape=self.shape, hyper=self.hyper) - V.T @ V
        spread = 0.5 * (spread + spread.T)
        if include_noise:
            spread.flat[:: len(X) + 1] += self.hyper.noise
        return mean, spread * square(self.s)

    def covariance(self, A: npt.ArrayLike, B: npt.ArrayLike) -> FloatArray:
        """Posterior covariance ``(a, b)`` of the latent function between points A and B, with nothing clipped."""
        A, B = checked_inputs(A, self.shape.d), checked_inputs(B, self.shape.d)
        with single_threaded():
            V = solve_lower(self.L, cross_covariance(A, self.X, shape=self.shape, hyper=self.hyper).T)
            W = solve_lower(self.L, cross_covariance(B, self.X, shape=self.shape, hyper=self.hyper).T)
            return (covariance(A, B, shape=self.shape, hyper=self.hyper) - V.T @ W) * square(self.s)

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike) -> GP:
        """The model after seeing more data, with the same hyperparameters and the same standardisation."""
        if np.size(y_new) == 0:
            return self
        X_new, y_new = checked_data(X_new, y_new)
        if X_new.shape[1] != self.shape.d:
            raise InputError(f"GP.condition: expected X_new (k, {self.shape.d}), got {X_new.shape}")
        with single_threaded():
            B = covariance(X_new, self.X, shape=self.shape, hyper=self.hyper)
            C = covariance(X_new, X_new, shape=self.shape, hyper=self.hyper)
            C.flat[:: len(X_new) + 1] += self.hyper.noise
            L, jitter = append_with_jitter(self.L, B, C)
            z = np.concatenate((self.z, normalize(y_new, self.m, self.s)))
            alpha = solve_posdef(L, z)
        X, y = np.concatenate((self.X, X_new)), np.concatenate((self.y, y_new))
        return replace(self, X=X, y=y, z=z, L=L, alpha=alpha, jitter=max(self.jitter, jitter))

    def loo(self) -> tuple[FloatArray, FloatArray]:
        """Mean ``(n,)`` and variance ``(n,)`` of every target, predicted from all others (see ``loo``)."""
        with single_threaded():
            return leave_one_out(self.y, self.L)


def make_gp(
    X: npt.ArrayLike, y: npt.ArrayLike, *, shape: KernelShape, hyper: Hyperparameters, log_prior: float = 0.0
) -> GP:
    """Gaussian process with given hyperparameters."""
    X, y = checked_data(X, y)
    if not X.shape[1] == shape.d == hyper.lengthscales.size:
        raise InputError(
            f"make_gp: expected as many columns as length scales, got X {X.shape}, a kernel for {shape.d} columns "
            f"and {hyper.lengthscales.size} length scales"
        )
    z, m, s = standardize(y)
    with single_threaded():
        A = covariance(X, X, shape=shape, hyper=hyper)
        A.flat[:: len(X) + 1] += hyper.noise
        L, jitter = cholesky(A, hyper.amplitude)
        alpha = solve_posdef(L, z)
    return GP(X, y, z, shape, hyper, m, s, L, alpha, jitter, log_prior)


def checked_data(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Copies of ``X (n, d)`` and ``y (n,)`` with n >= 1, as arrays of floats that nobody can write to."""
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
    """``X (m, d)`` as floats."""
    inputs = np.asarray(X, dtype=np.float64)
    if inputs.ndim != 2 or inputs.shape[1] != d:
        raise InputError(f"GP: expected inputs of shape (m, {d}), got {inputs.shape}")
    return inputs
