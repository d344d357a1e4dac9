"""Transforms of targets, applied to each task on its own (paper section 5.3).

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
    """Return ``z = (y - mean) / std``, the mean, and the standard deviation, which is 1 when all values are equal.

    Values are first scaled to magnitude one by a power of two, which is exact and keeps squares and differences from
    overflowing. They are centred on one of themselves, which keeps the digits of values that differ little.
    """
    y = _checked(y, min_size=1)
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
    """Return ``(y - mean) / std`` for a given mean and standard deviation; the difference does not overflow."""
    shrink = 0.25 if max(abs(mean), float(np.abs(y).max(initial=0.0))) > 1e300 else 1.0
    return np.asarray((shrink * y - shrink * mean) / (shrink * std), dtype=np.float64)


def restore(z: FloatArray, mean: float, std: float) -> FloatArray:
    """Return ``mean + std z``, the inverse of `normalize`; finite for targets close to the largest number."""
    if max(abs(mean), std) < 1e300:
        return np.asarray(mean + std * z)
    limit = 0.25 * np.finfo(np.float64).max
    return np.asarray(4.0 * np.clip(0.25 * mean + 0.25 * std * z, -limit, limit))


def square(std: float) -> float:
    """Return ``std^2`` within 1e-290 and 1e290: variances stay finite and positive for targets of any magnitude."""
    return min(max(std, 1e-145), 1e145) ** 2


def copula(y: npt.ArrayLike) -> FloatArray:
    """Return normal scores of the ranks, clipped so that the extremes stay finite; ties share their average rank."""
    from scipy.special import ndtri

    y = _checked(y, min_size=2)
    n = y.size
    _, inverse, counts = np.unique(y, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - 0.5 * (counts - 1))[inverse]
    delta = 1.0 / (4.0 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    return np.asarray(ndtri(np.clip((rank - 1.0) / (n - 1.0), delta, 1.0 - delta)), dtype=np.float64)


def compress_tail(y: npt.ArrayLike) -> tuple[FloatArray, float, float]:
    """Return ``z = (y - median) / scale``, above the median ``ln(1 + z)`` instead, then the median and the scale.

    The scale is the root mean square distance of the better half from the median. The better half keeps its
    proportions; values that are much worse, however large, no longer hide the differences among the good ones. If the
    better half is constant, or numbers are too large, the targets are standardized instead.
    """
    y = _checked(y, min_size=1)
    half = _better_half(y)
    if half is None:
        return standardize(y)
    middle, scale = half
    with np.errstate(over="ignore"):
        z = np.minimum((y - middle) / scale, 1e300)
    return np.where(z <= 0.0, z, np.log1p(np.maximum(z, 0.0))), middle, scale


def tail_constants(y: npt.ArrayLike) -> tuple[float, float, bool]:
    """Return the centre and the scale of `compress_tail`, and whether it compresses; else it standardizes."""
    values = _checked(y, min_size=1)
    half = _better_half(values)
    return (*standardize(values)[1:], False) if half is None else (*half, True)


def _better_half(y: FloatArray) -> tuple[float, float] | None:
    """Return the median and the scale of `compress_tail`; None if there is no scale, or numbers are too large."""
    with np.errstate(over="ignore"):
        middle = float(np.median(y))
        better = middle - y[y <= middle]
        widest = float(better.max(initial=0.0))  # empty below a median of -inf, the mean of two huge values
        if not 0.0 < widest < math.inf:
            return None
        scale = widest * math.sqrt(float(np.mean(np.square(better / widest))))  # squares must not overflow
    return middle, max(scale, _SMALLEST)


def in_units_of_y(mean: float, std: float, *, y: FloatArray, scaling: Scaling) -> tuple[float, float] | None:
    """Convert a prediction on the scale of ``transform(y, scaling)`` to the units of y; None where ranks have none.

    What exceeds the largest number is the largest number.
    """
    if scaling == "copula":
        return None
    offset, scale, slope = 0.0, 1.0, 1.0
    if scaling != "unscaled":
        _, offset, scale = standardize(y) if scaling == "meanvar" else compress_tail(y)
    if scaling == "tail" and mean > 0.0 and _better_half(y) is not None:
        mean, slope = math.expm1(min(mean, 600.0)), math.exp(min(mean, 600.0))
    limit = float(np.finfo(np.float64).max)
    return min(max(offset + scale * mean, -limit), limit), min(scale * slope * std, limit)


def transform(y: npt.ArrayLike, scaling: Scaling) -> FloatArray:
    """Return the targets under the named transform: ``"meanvar"``, ``"copula"``, ``"unscaled"`` or ``"tail"``."""
    if scaling == "meanvar":
        return standardize(y)[0]
    if scaling == "copula":
        return copula(y)
    if scaling == "unscaled":
        return _checked(y, min_size=0).copy()
    if scaling == "tail":
        return compress_tail(y)[0]
    raise InputError(f"transform: expected scaling to be one of {', '.join(get_args(Scaling))}; got {scaling!r}")


def _checked(y: npt.ArrayLike, *, min_size: int) -> FloatArray:
    values = np.asarray(y, dtype=np.float64)
    if values.ndim != 1 or values.size < min_size:
        raise InputError(f"targets: expected an array (n,) with n >= {min_size}, got shape {values.shape}")
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"targets: expected finite numbers, got {values[place]} at position {place}")
    return values
