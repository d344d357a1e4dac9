"""Target transforms, applied to each task on its own (paper section 5.3).

Notation: ``y (n,)`` targets as observed, ``z (n,)`` transformed.  ``standardize`` is also what every Gaussian process
does to its targets, whatever transform was chosen before.  Standard deviations are those of the population (ddof = 0).
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

Scaling: TypeAlias = Literal["meanvar", "copula", "unscaled", "tail"]

_SMALLEST = math.ulp(0.0)  # a standard deviation must not round to zero


def standardize(y: npt.ArrayLike) -> tuple[FloatArray, float, float]:
    """``z = (y - mean) / std``, with the mean and the standard deviation, which is 1 when all values are equal.

    The values are brought to magnitude one by a power of two, which is exact, so that neither squares nor differences
    overflow; and they are centred on one of themselves first, which keeps the digits of values that differ little.
    """
    y = _checked(y, least=1)
    low, high = float(y.min()), float(y.max())
    if low == high:  # not std == 0: the mean of equal numbers may round
        return np.zeros(y.size), low, 1.0
    exponent = math.frexp(max(-low, high))[1]
    scaled = np.ldexp(y, -exponent)
    centre = math.ldexp(low, -exponent)
    deviation = scaled - centre
    shift = float(deviation.mean())
    deviation -= shift
    std = math.sqrt(float(np.mean(deviation * deviation)))
    return deviation / std, math.ldexp(centre + shift, exponent), max(math.ldexp(std, exponent), _SMALLEST)


def normalize(y: FloatArray, mean: float, std: float) -> FloatArray:
    """``(y - mean) / std`` for a mean and a standard deviation found before; the difference does not overflow."""
    shrink = 0.25 if max(abs(mean), float(np.abs(y).max(initial=0.0))) > 1e300 else 1.0
    return np.asarray((shrink * y - shrink * mean) / (shrink * std), dtype=np.float64)


def restore(z: FloatArray, mean: float, std: float) -> FloatArray:
    """``mean + std z``, the inverse of ``normalize``; finite for targets close to the largest number."""
    if max(abs(mean), std) < 1e300:
        return np.asarray(mean + std * z)
    limit = 0.25 * np.finfo(np.float64).max
    return np.asarray(4.0 * np.clip(0.25 * mean + 0.25 * std * z, -limit, limit))


def square(std: float) -> float:
    """``std^2`` within 1e-290 and 1e290: variances stay finite and positive whatever the magnitude of the targets."""
    return min(max(std, 1e-145), 1e145) ** 2


def copula(y: npt.ArrayLike) -> FloatArray:
    """Normal scores of the ranks, clipped so that the extremes stay finite; ties share their average rank."""
    from scipy.special import ndtri

    y = _checked(y, least=2)
    n = y.size
    _, inverse, counts = np.unique(y, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - 0.5 * (counts - 1))[inverse]
    delta = 1.0 / (4.0 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    quantile = np.clip((rank - 1.0) / (n - 1.0), delta, 1.0 - delta)
    return np.asarray(ndtri(quantile), dtype=np.float64)


def compress_tail(y: npt.ArrayLike) -> tuple[FloatArray, float, float]:
    """``z = (y - median) / scale``, and ``ln(1 + z)`` of that above the median; with the median and the scale.

    The scale is the root mean square distance of the better half from the median. The better half keeps its
    proportions; values that are much worse, however large, no longer hide the differences among the good ones. Where
    the better half is constant, or numbers are too large for that, the targets are standardised instead.
    """
    y = _checked(y, least=1)
    with np.errstate(over="ignore"):
        middle = float(np.median(y))
        better = middle - y[y <= middle]
        widest = float(better.max())
        if not 0.0 < widest < math.inf:
            return standardize(y)
        scale = widest * math.sqrt(float(np.mean(np.square(better / widest))))  # squares must not overflow
        z = np.minimum((y - middle) / scale, 1e300)
    return np.where(z <= 0.0, z, np.log1p(np.maximum(z, 0.0))), middle, scale


def transform(y: npt.ArrayLike, scaling: Scaling) -> FloatArray:
    """Targets under the named transform: ``"meanvar"``, ``"copula"``, ``"unscaled"`` or ``"tail"``."""
    if scaling == "meanvar":
        return standardize(y)[0]
    if scaling == "copula":
        return copula(y)
    if scaling == "unscaled":
        return _checked(y, least=0).copy()
    if scaling == "tail":
        return compress_tail(y)[0]
    raise InputError(f"transform: expected scaling to be one of {', '.join(get_args(Scaling))}; got {scaling!r}")


def _checked(y: npt.ArrayLike, *, least: int) -> FloatArray:
    values = np.asarray(y, dtype=np.float64)
    if values.ndim != 1 or values.size < least:
        raise InputError(f"targets: expected an array (n,) with n >= {least}, got shape {values.shape}")
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"targets: expected finite numbers, got {values[place]} at position {place}")
    return values
