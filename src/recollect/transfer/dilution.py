"""Against weight dilution: leave base models out that are unlikely to beat the target (paper section 4.3).

Among many poor models one looks right by chance. So each base model is kept only with the probability of ranking
better than the target, times a factor that shrinks as the horizon comes closer.

Notation: ``fraction (k,)`` how often a base model did better, ``n`` observations so far, ``horizon`` H = evaluations in
all, ``keep (k,)`` probability of keeping a base model.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray

Dilution = Literal["probabilistic", "constant", "none"]


def check_dilution(kind: str) -> None:
    """Refuse a ``kind`` of dilution that does not exist."""
    if kind not in get_args(Dilution):
        raise InputError(f"dilution must be one of {', '.join(map(repr, get_args(Dilution)))}, got {kind!r}")


def keep_probability(fraction: FloatArray, n: int, *, horizon: int | None, kind: Dilution) -> FloatArray:
    """Probability of keeping each base model: (k,), 1 - p_drop of equation 9.

    "probabilistic": (1 - n/H) fraction, and 0 from n = H on; "constant": fraction, whatever n; "none": 1.
    Only "probabilistic" needs a horizon.
    """
    check_dilution(kind)
    if kind == "none":
        return np.ones_like(fraction)
    if kind == "constant":
        return fraction.copy()
    if horizon is None:
        raise InputError("horizon must be given for the dilution 'probabilistic', got None")
    return max(0.0, 1.0 - n / horizon) * fraction


def draw_dropped(keep: FloatArray, rng: np.random.Generator) -> BoolArray:
    """Draw which base models to leave out, by one uniform number per model in order: (k,)."""
    dropped: BoolArray = rng.random(keep.size) < 1.0 - keep
    return dropped
