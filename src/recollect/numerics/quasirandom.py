"""Point sets that fill the unit cube more evenly than independent draws.

Notation: n points in d dimensions, always as an (n, d) array.
"""

from __future__ import annotations

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

SOBOL_BITS = 30  # scrambled Sobol coordinates are multiples of 2^-30


def latin_hypercube(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return (n, d) points in [0, 1): in every column exactly one uniform point per stratum [i/n, (i+1)/n)."""
    _check_shape(n, d)
    if n == 0 or d == 0:
        return np.empty((n, d))
    strata = rng.permuted(np.tile(np.arange(n)[:, None], (1, d)), axis=0)
    # (i + 0.999..)/n may round up to the next stratum's edge; the stratum is half open.
    return np.minimum((strata + rng.random((n, d))) / n, np.nextafter((strata + 1) / n, 0.0))


def sobol(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return the first n points (n, d) in [0, 1) of a scrambled Sobol sequence."""
    _check_shape(n, d)
    if n == 0 or d == 0:
        return np.empty((n, d))
    from scipy.stats import qmc

    if d > qmc.Sobol.MAXDIM:
        raise InputError(f"a Sobol sequence has at most {qmc.Sobol.MAXDIM} dimensions, got d={d}")
    # Whole powers of two keep the balance of the sequence (and SciPy quiet); the tail is cut off.
    sequence = qmc.Sobol(d, scramble=True, bits=SOBOL_BITS, seed=rng)
    points: FloatArray = sequence.random_base2(int(n - 1).bit_length())
    return np.ascontiguousarray(points[:n])


def sobol_normals(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return (n, d) standard normal values from a scrambled Sobol sequence; all finite."""
    from scipy.special import ndtri

    # Half a bit further, every coordinate lies strictly inside (0, 1), so the inverse CDF stays finite.
    normals: FloatArray = ndtri(sobol(n, d, rng) + 2.0 ** -(SOBOL_BITS + 1))
    return normals


def _check_shape(n: int, d: int) -> None:
    if n < 0 or d < 0:
        raise InputError(f"expected n >= 0 points and d >= 0 dimensions, got n={n}, d={d}")
