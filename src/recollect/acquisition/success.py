"""How likely a candidate is to succeed, judged by which trials failed.

Failures are often a matter of where one is: too large a model, too long a training. The acquisition value is therefore
multiplied by a probability of success, as is usual under unknown constraints. It is one minus the posterior mean of a
Gaussian process on the failure indicator (0 = succeeded, 1 = failed), with the space's kernel shape, one length scale
for all columns, and enough noise that a single failure among successes is taken for bad luck. Far from all trials it is
the part of them that succeeded. Were it 1 there, a model that knows one success would send one trial after the other
into the corners of the cube, each far from all that failed before. It never falls below `FLOOR`: nothing is excluded
for good but the failed configurations themselves.

Notation: ``Z (n + f, d)`` evaluated points, then failed ones; ``r (n + f,)`` the indicator, ``rate`` its mean.
"""

from __future__ import annotations

import math

import numpy as np

from recollect.acquisition.improvement import Score
from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import cholesky, solve_posdef
from recollect.surrogate.kernels import Hyperparameters, KernelShape, covariance, cross_covariance

NOISE = 0.01
FLOOR = 1e-3


def weigh_by_success(score: Score, evaluated: FloatArray, failed: FloatArray, *, shape: KernelShape) -> Score:
    """Add the logarithm of the probability of success to a logarithmic score."""
    if len(failed) == 0:
        return score
    # Half the typical distance of two random points of the unit cube: sqrt(d / 6) / 2.
    length = 0.5 * math.sqrt(shape.d / 6.0)
    hyper = Hyperparameters(1.0, np.full(shape.d, length), NOISE)
    Z = np.concatenate([evaluated, failed])
    r = np.concatenate([np.zeros(len(evaluated)), np.ones(len(failed))])
    rate = r.mean()
    A = covariance(Z, Z, shape=shape, hyper=hyper)
    A.flat[:: len(Z) + 1] += NOISE
    alpha = solve_posdef(cholesky(A, 1.0)[0], r - rate)

    def weighted(X: FloatArray) -> FloatArray:
        failure = rate + cross_covariance(X, Z, shape=shape, hyper=hyper) @ alpha
        return np.asarray(score(X) + np.log(np.clip(1.0 - failure, FLOOR, 1.0)))

    return weighted
