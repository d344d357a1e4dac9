"""Two-stage transfer weights from rankings, TST-R (paper section 3.1).

The distance of a base model to the target is the share of pairs it misranks; an Epanechnikov kernel of bandwidth rho
turns it into a weight. The target has distance 0 to itself, so nothing is measured for it.

Notation: ``d (k,)`` misranked share of the pairs a < b, ``v (k+1,)`` weights before they are normalised.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.transfer import ranking
from recollect.transfer.dilution import Dilution, check_dilution, draw_dropped, keep_probability
from recollect.transfer.weights import Weights, as_count, as_finite, as_generator


def tst_weights(
    base: ArrayLike,
    y: ArrayLike,
    *,
    rho: float,
    horizon: int | None = None,
    dilution: Dilution = "none",
    rng: np.random.Generator | None = None,
) -> Weights:
    """Weigh base models by the share of observation pairs that they misrank.

    base     (k, n)  predictions of the base models at the target's inputs; only their order counts
    y        (n,)    observations of the target, lower is better
    rho      bandwidth: a base model that misranks this share of the pairs, or more, is dropped
    dilution "none" (original), or "probabilistic" (needs ``horizon``) and "constant", which keep a base model with the
             probability (1 - n/H)(1 - d) and 1 - d; both need ``rng``

    ``losses`` of the answer are the shares d. Fewer than two observations give uniform weights.
    """
    y = as_finite("y", y, shape=(None,))
    base = as_finite("base", base, shape=(None, y.size))
    horizon = None if horizon is None else as_count("horizon", horizon, least=1)
    _check(rho, dilution, horizon, rng)
    if y.size < 2:
        return Weights.uniform(len(base))
    distance = ranking.misranked_fraction(base, y)
    keep = keep_probability(1.0 - distance, y.size, horizon=horizon, kind=dilution)
    q = np.minimum(distance, rho) / rho  # 1 and above is the same to the kernel
    dropped: BoolArray = q >= 1.0
    if rng is not None:
        dropped |= draw_dropped(keep, rng)
    v: FloatArray = np.append(np.where(dropped, 0.0, 0.75 * (1.0 - q**2)), 0.75)
    misranked = ranking.misranked_counts(base, None, y)
    return Weights(v / v.sum(), np.append(distance, np.nan), np.append(misranked, np.nan), dropped, keep)


def _check(rho: float, dilution: Dilution, horizon: int | None, rng: np.random.Generator | None) -> None:
    if not (math.isfinite(rho) and rho > 0):
        raise InputError(f"rho must be a finite number above 0, got {rho}")
    check_dilution(dilution)
    if dilution == "probabilistic" and horizon is None:
        raise InputError("horizon must be given for the dilution 'probabilistic', got None")
    if dilution != "none" and rng is None:
        raise InputError(f"rng must be given for the dilution {dilution!r}, got None")
    if rng is not None:
        as_generator("rng", rng)
