"""Leave-one-out predictions in closed form.

What n refits would predict, each leaving one point out, keeping the hyperparameters, and standardising its own n - 1
targets.  With ``A = L L^T``, and m_-k, s_-k the mean and standard deviation of the other targets::

    g_k   = y_k - ([A^-1 y]_k - m_-k [A^-1 1]_k) / [A^-1]_kk
    var_k = s_-k^2 / [A^-1]_kk                                     (of an observation: noise included)

The fold's standard deviation cancels in the mean; its mean does not.
"""

from __future__ import annotations

import numpy as np

from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import inverse_from_cholesky, solve_posdef
from recollect.surrogate.scaling import restore, square, standardize


def leave_one_out(y: FloatArray, L: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean ``(n,)`` and variance ``(n,)`` of every target given all others.

    When all targets are equal, or there is only one, the mean is ``y`` itself; with a single target the variance is
    that of the prior.
    """
    n = y.size
    z, m, s = standardize(y)  # in standardised units, so that nothing cancels between large numbers
    inverse = inverse_from_cholesky(L)
    spread = 1.0 / inverse.diagonal()
    scale = _others_std(y, z, s)
    variance = np.array([square(float(s_k)) for s_k in scale]) * spread
    if n == 1 or (y == y[0]).all():
        return y.copy(), variance
    others = (z.sum() - z) / (n - 1)
    rhs = np.column_stack((z, np.ones(n)))
    solved = solve_posdef(L, rhs)
    mean = z - (solved[:, 0] - others * solved[:, 1]) * spread
    return restore(mean, m, s), variance


def _others_std(y: FloatArray, z: FloatArray, s: float) -> FloatArray:
    """Standard deviation (n,) of all targets but one, in the units of y; 1 where these are equal or there are none."""
    n = y.size
    if n <= 2:
        return np.ones(n)
    others = np.broadcast_to(z, (n, n))[~np.eye(n, dtype=np.bool_)].reshape(n, n - 1)
    values = np.broadcast_to(y, (n, n))[~np.eye(n, dtype=np.bool_)].reshape(n, n - 1)
    std: FloatArray = s * others.std(axis=1)
    std[values.max(axis=1) == values.min(axis=1)] = 1.0
    return std
