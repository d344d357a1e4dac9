"""KL weights: how much a past run believes its optimum to be where the target believes its own (paper section 5.3).

Every model is represented by samples of its minimizer (see ``minimizers``). The Kullback-Leibler divergence from a base
model's distribution to the target's is estimated from distances to nearest neighbours, and weights fall exponentially
with it.

Notation: ``P (N, d)`` and ``Q (M, d)`` samples of two distributions, rho_i the distance of row i of P to the nearest
other row of P, nu_i that to the nearest row of Q::

    KL(P || Q) = d/N sum_i ln(nu_i / rho_i) + ln(M / (N - 1))

Both distances are taken from the rows of P; that is what makes it a divergence of P from Q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.transfer.weights import Weights, as_count, as_finite

TINY = 1e-14  # added to distances: samples may coincide, in corners of the cube above all
DISTANCES_HELD = 1 << 20


def kl_weights(base_samples: ArrayLike, target_samples: ArrayLike, *, eta: float = 10.0) -> Weights:
    """Weigh base models by exp(-KL(base || target) / eta) and the target by exp(0) = 1, then divide by the sum.

    base_samples    (k, N, d)  minimizers of functions drawn from each base model, N >= 2
    target_samples  (M, d)     the same of the target model
    eta             how much divergence is forgiven: larger values make the weights more alike

    Nothing is dropped. The estimate may be negative, and then a base model weighs more than the target. ``losses`` of
    the answer are the divergences, 0 for the target; nothing is ranked.
    """
    target_samples = as_finite("target_samples", target_samples, shape=(None, None))
    base_samples = as_finite("base_samples", base_samples, shape=(None, None, target_samples.shape[1]))
    if not (math.isfinite(eta) and eta > 0):
        raise InputError(f"eta must be a finite number above 0, got {eta}")
    k = len(base_samples)
    divergence = np.zeros(k + 1)
    divergence[:k] = [nearest_neighbour_kl(samples, target_samples) for samples in base_samples]
    with np.errstate(over="ignore"):  # a tiny eta leaves only the nearest: exp(-inf) is 0
        v = np.exp((divergence.min() - divergence) / eta)
    return Weights(v / v.sum(), divergence, np.full(k + 1, np.nan), np.zeros(k, dtype=np.bool_), np.ones(k))


def nearest_neighbour_kl(P: ArrayLike, Q: ArrayLike) -> float:
    """Estimate KL(P || Q) from samples ``P (N, d)``, N >= 2, and ``Q (M, d)``, M >= 1; may be negative."""
    P = as_finite("P", P, shape=(None, None))
    Q = as_finite("Q", Q, shape=(None, P.shape[1]))
    N, M = as_count("number of samples in P", len(P), least=2), as_count("number of samples in Q", len(Q), least=1)
    d = as_count("number of dimensions", P.shape[1], least=1)
    rho, nu = _nearest(P, P, others=True), _nearest(P, Q, others=False)
    return d * float(np.mean(np.log((nu + TINY) / (rho + TINY)))) + math.log(M / (N - 1))


def refuse_unless_continuous(categorical: ArrayLike, names: Sequence[str], *, conditional: bool) -> None:
    """Refuse a search space in which minimizers cannot be sampled: one with categories or conditions.

    categorical  (d,)  which hyperparameters have choices without order; integers are not meant
    names        (d,)  of the hyperparameters
    conditional  whether any of them may be inactive
    """
    mask = np.asarray(categorical, dtype=np.bool_)
    if mask.shape != (len(names),):
        raise InputError(f"categorical must have shape ({len(names)},), one entry for each name, got {mask.shape}")
    rule = "kl needs a search space of floats and integers without conditions"
    unordered = [repr(name) for name, is_categorical in zip(names, mask, strict=True) if is_categorical]
    if unordered:
        verb = "is" if len(unordered) == 1 else "are"
        raise InputError(f"{rule}; {', '.join(unordered)} {verb} categorical")
    if conditional:
        raise InputError(f"{rule}; some hyperparameters of this one are active only when others have certain values")


def _nearest(P: FloatArray, Q: FloatArray, *, others: bool) -> FloatArray:
    """Distance (N,) of every row of P to the nearest row of Q, or to any but itself when Q is P and ``others``."""
    from scipy.spatial.distance import cdist

    nearest = np.empty(len(P))
    rows = max(1, DISTANCES_HELD // len(Q))
    for start in range(0, len(P), rows):
        distances = cdist(P[start : start + rows], Q)
        if others:
            own = np.arange(len(distances))
            distances[own, start + own] = np.inf
        nearest[start : start + rows] = distances.min(axis=1)
    return nearest
