"""Expected improvement under a normal prediction, and its logarithm.

Lower is better.  For a prediction N(mean, std^2) and an incumbent ``eta``, with ``z = (eta - mean) / std``::

    EI = E[max(0, eta - f)] = std h(z),      h(z) = phi(z) + z Phi(z)

Far from the incumbent (z << 0) EI underflows, and phi + z Phi loses all digits long before.  With t = -z and Mills'
ratio R(t) = Phi(-t) / phi(t) = sqrt(pi/2) erfcx(t / sqrt 2), ::

    h(z) = phi(z) q(t),      q(t) = 1 - t R(t) = 1/t^2 - 3/t^4 + 15/t^6 - ...

where the series replaces the difference once that one cancels.  Nothing underflows in log h = log phi + log q, so
log-EI keeps the order of candidates at any distance, and its gradient stays finite.

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


def expected_improvement(mean: npt.ArrayLike, std: npt.ArrayLike, eta: npt.ArrayLike) -> FloatArray:
    """Expected improvement; never negative, 0 where ``std`` is 0."""
    gap, sigma, z, shape = _prepare(mean, std, eta)
    with np.errstate(all="ignore"):
        value = np.empty_like(z)
        near = z > _DIRECT
        value[near] = _near_improvement(gap[near], sigma[near], z[near])
        far = ~near
        t = -z[far]
        value[far] = sigma[far] * np.exp(-0.5 * t * t - LOG_SQRT_2PI) * _mills(t)[1]
        value[sigma <= 0.0] = 0.0
        return np.maximum(value, 0.0).reshape(shape)


def log_expected_improvement(mean: npt.ArrayLike, std: npt.ArrayLike, eta: npt.ArrayLike) -> FloatArray:
    """Logarithm of EI, accurate at any distance from the incumbent; ``-inf`` where ``std`` is 0."""
    gap, sigma, z, shape = _prepare(mean, std, eta)
    with np.errstate(all="ignore"):
        value = np.empty_like(z)
        near = z > _DIRECT
        value[near] = np.log(_near_improvement(gap[near], sigma[near], z[near]))
        far = ~near
        t = -z[far]
        value[far] = np.log(sigma[far]) + _log_q(t) - LOG_SQRT_2PI - 0.5 * t * t
        value[sigma <= 0.0] = -np.inf
        return value.reshape(shape)


def log_ei_gradient(mean: npt.ArrayLike, std: npt.ArrayLike, eta: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Derivatives of log-EI by ``mean`` and by ``std``; zero where ``std`` is 0, where log-EI does not move.

    dEI/dmean = -Phi(z) and dEI/dstd = phi(z), hence -Phi / EI and phi / EI; in the tail phi cancels:
    -R / (std q) and 1 / (std q).
    """
    from scipy.special import ndtr

    gap, sigma, z, shape = _prepare(mean, std, eta)
    with np.errstate(all="ignore"):
        by_mean, by_std = np.empty_like(z), np.empty_like(z)
        near = z > _DIRECT
        value = _near_improvement(gap[near], sigma[near], z[near])
        by_mean[near] = -ndtr(z[near]) / value
        by_std[near] = np.exp(-0.5 * z[near] ** 2 - LOG_SQRT_2PI) / value
        far = ~near
        ratio, inverse = _tail_slopes(-z[far])
        by_mean[far] = -ratio / sigma[far]
        by_std[far] = inverse / sigma[far]
        largest = np.finfo(np.float64).max
        for slope in (by_mean, by_std):
            slope[sigma <= 0.0] = 0.0
            np.clip(slope, -largest, largest, out=slope)
    return by_mean.reshape(shape), by_std.reshape(shape)


def _prepare(
    mean: npt.ArrayLike, std: npt.ArrayLike, eta: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[int, ...]]:
    """Gap eta - mean, std and z as flat arrays of the broadcast shape, and that shape."""
    mean, std, eta = (np.asarray(a, dtype=np.float64) for a in (mean, std, eta))
    with np.errstate(all="ignore"):
        difference, std = np.broadcast_arrays(eta - mean, std)
        gap, sigma = difference.ravel(), std.ravel()
        return gap, sigma, gap / sigma, difference.shape


def _near_improvement(gap: FloatArray, sigma: FloatArray, z: FloatArray) -> FloatArray:
    """EI for z > -1.  For z > 0 as gap + std h(-z): exact where z is huge, and safe where it is infinite."""
    from scipy.special import ndtr

    t = np.abs(z)
    tail = np.exp(-0.5 * t * t - LOG_SQRT_2PI) - np.where(np.isinf(t), 0.0, t) * ndtr(-t)
    return np.asarray(np.maximum(gap, 0.0) + sigma * tail)


def _mills(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """R(t) and q(t) = 1 - t R(t) for t >= 1."""
    from scipy.special import erfcx

    ratio = math.sqrt(0.5 * math.pi) * erfcx(t * math.sqrt(0.5))
    q = np.where(t > _SERIES, _series(t) / (t * t), 1.0 - t * ratio)
    return ratio, q


def _tail_slopes(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """R(t) / q(t) and 1 / q(t) for t >= 1; apart from ``_mills`` for the same reason as ``_log_q``."""
    ratio, q = _mills(np.minimum(t, _SERIES))
    scaled = _series(t)  # t^2 q, and t R = 1 - q
    beyond = t > _SERIES
    return np.where(beyond, t * (1.0 / scaled - 1.0 / (t * t)), ratio / q), np.where(beyond, t * t / scaled, 1.0 / q)


def _log_q(t: FloatArray) -> FloatArray:
    """log q(t) for t >= 1; apart from ``_mills`` because q itself underflows beyond t = 1e154."""
    _, q = _mills(np.minimum(t, _SERIES))
    return np.where(t > _SERIES, np.log(_series(t)) - 2.0 * np.log(t), np.log(q))


def _series(t: FloatArray) -> FloatArray:
    """t^2 q(t) = 1 - 3 u + 15 u^2 - 105 u^3 + ... with u = t^-2, odd factorials with alternating signs."""
    u = 1.0 / (t * t)
    total = np.ones_like(u)
    for k in (17, 15, 13, 11, 9, 7, 5, 3):  # Horner: 1 - 3u (1 - 5u (1 - 7u (...)))
        total = 1.0 - k * u * total
    return total
