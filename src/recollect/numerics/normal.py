"""Logarithm of the expected improvement under a normal prediction, and sums of numbers kept as logarithms.

Lower is better.  For a prediction N(mean, std^2) and an incumbent ``eta``, with ``z = (eta - mean) / std``::

    EI = E[max(0, eta - f)] = std h(z),      h(z) = phi(z) + z Phi(z)

Far from the incumbent (z << 0) EI underflows, and phi + z Phi loses all digits long before.  With t = -z and Mills'
ratio R(t) = Phi(-t) / phi(t) = sqrt(pi/2) erfcx(t / sqrt 2), ::

    h(z) = phi(z) q(t),      q(t) = 1 - t R(t) = 1/t^2 - 3/t^4 + 15/t^6 - ...

where the series replaces the difference once it cancels.  Nothing underflows in log h = log phi + log q, so log-EI
keeps the order of candidates at any distance.

All functions take arrays of any shapes that broadcast, and emit no NumPy warnings.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from recollect.numerics.arrays import FloatArray

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_DIRECT = -1.0  # above this z the textbook formula keeps its digits
_SERIES = 30.0  # beyond this t the series of q is exact to machine precision, while 1 - t R(t) has lost three digits


def log_expected_improvement(mean: npt.ArrayLike, std: npt.ArrayLike, eta: npt.ArrayLike) -> FloatArray:
    """Logarithm of EI, accurate at any distance from the incumbent; ``-inf`` where ``std`` is 0."""
    mean, std, eta = (np.asarray(a, dtype=np.float64) for a in (mean, std, eta))
    with np.errstate(all="ignore"):
        difference, std = np.broadcast_arrays(eta - mean, std)
        gap, sigma = difference.ravel(), std.ravel()
        z = gap / sigma
        value, near = np.empty_like(z), z > _DIRECT
        value[near] = np.log(_near_improvement(gap[near], sigma[near], z[near]))
        t = -z[~near]
        value[~near] = np.log(sigma[~near]) + _log_q(t) - LOG_SQRT_2PI - 0.5 * t * t
        value[sigma <= 0.0] = -np.inf
        return np.asarray(value.reshape(difference.shape))


def log_improvement_slopes(mean: FloatArray, std: FloatArray, eta: float) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of log-EI by ``mean`` and by ``std`` (m,): -Phi(z) / EI and phi(z) / EI."""
    from scipy.special import erfcx, ndtr

    z = (eta - mean) / std
    t = np.maximum(-z, 0.0)
    ratio = math.sqrt(0.5 * math.pi) * erfcx(t * math.sqrt(0.5))  # Mills' ratio
    log_phi = -0.5 * np.maximum(z, _DIRECT) ** 2 - LOG_SQRT_2PI
    near = z > _DIRECT
    with np.errstate(over="ignore"):  # where z is large, EI is eta - mean and phi vanishes
        h = np.where(near, _near_improvement(z, np.ones_like(z), z), 1.0)
    q = np.exp(_log_q(np.maximum(t, -_DIRECT)))
    by_mean = np.where(near, ndtr(z) / h, ratio / q)
    by_std = np.where(near, np.exp(log_phi) / h, 1.0 / q)
    return -by_mean / std, by_std / std


def log_sum_exp(terms: FloatArray) -> FloatArray:
    """Return the logarithm of the sum over the first axis of exp(terms), without overflow; -inf terms count as 0."""
    top = np.max(terms, axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.sum(np.exp(terms - safe), axis=0)))


def _near_improvement(gap: FloatArray, sigma: FloatArray, z: FloatArray) -> FloatArray:
    """EI for z > -1.  For z > 0 as gap + std h(-z): exact where z is huge, and safe where it is infinite."""
    from scipy.special import ndtr

    t = np.abs(z)
    tail = np.exp(-0.5 * t * t - LOG_SQRT_2PI) - np.where(np.isinf(t), 0.0, t) * ndtr(-t)
    return np.asarray(np.maximum(gap, 0.0) + sigma * tail)


def _log_q(t: FloatArray) -> FloatArray:
    """Return log q(t) for t >= 1; by the series' logarithm far out, since q itself underflows beyond t = 1e154."""
    from scipy.special import erfcx

    near = np.minimum(t, _SERIES)
    q = 1.0 - near * (math.sqrt(0.5 * math.pi) * erfcx(near * math.sqrt(0.5)))
    u, series = 1.0 / (t * t), np.ones_like(t)
    for k in (17, 15, 13, 11, 9, 7, 5, 3):  # t^2 q(t) by Horner: 1 - 3u (1 - 5u (1 - 7u (...))) with u = t^-2
        series = 1.0 - k * u * series
    return np.where(t > _SERIES, np.log(series) - 2.0 * np.log(t), np.log(q))
