"""The product kernel of all models, Matern-5/2 x Hamming x same activity, and its hyperparameters.

::

    k(x, x') = a (1 + t + t^2/3) exp(-t) exp(-h/2) [x and x' have the same inactive columns]
    t^2 = 5 sum_j (x_j - x'_j)^2 / l_j^2     over numerical columns
    h   = sum_j [x_j != x'_j] / l_j^2        over categorical columns

Notation: ``X (n, d)`` encoded configurations, nan (or any value <= -1) = inactive; ``m`` rows of ``A`` against ``n``
rows of ``B``; amplitude ``a``, length scales ``l (d,)``.  The last factor is used in conditional spaces only.
Observation noise is not part of the functions here: it belongs to the diagonal of the training matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray

INACTIVE = -1.0
LARGEST_EXPONENT = 600.0  # exp(-600) is zero for a kernel, while exp of less runs into slow subnormal numbers
_BLOCK = 8192  # entries, 64 KB


@dataclass(frozen=True, slots=True, eq=False)
class KernelShape:
    """Kinds of columns: ``categorical (d,)`` ones compare by equality; ``conditional``: rows may have inactive ones."""

    categorical: BoolArray
    conditional: bool

    def __post_init__(self) -> None:
        """Check the mask and protect it."""
        mask = np.array(self.categorical, dtype=np.bool_)
        if mask.ndim != 1:
            raise InputError(f"KernelShape: expected categorical to be a mask (d,), got shape {mask.shape}")
        mask.flags.writeable = False
        object.__setattr__(self, "categorical", mask)

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.categorical.size


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """Amplitude (a variance), length scales ``(d,)`` and noise variance, for standardised targets."""

    amplitude: float
    lengthscales: FloatArray
    noise: float

    def __post_init__(self) -> None:
        """Check that all are positive, and protect the array."""
        scales = np.array(self.lengthscales, dtype=np.float64)
        if scales.ndim != 1:
            raise InputError(f"Hyperparameters: expected length scales (d,), got shape {scales.shape}")
        for name, values in (("amplitude", self.amplitude), ("lengthscales", scales), ("noise", self.noise)):
            if not (np.isfinite(values).all() and np.all(np.greater(values, 0.0))):
                raise InputError(f"Hyperparameters: expected {name} to be positive and finite, got {values}")
        scales.flags.writeable = False
        object.__setattr__(self, "amplitude", float(self.amplitude))
        object.__setattr__(self, "lengthscales", scales)
        object.__setattr__(self, "noise", float(self.noise))

    def log(self) -> FloatArray:
        """``(ln amplitude, ln length scales, ln noise)``, shape (d + 2,)."""
        return np.log(np.concatenate(([self.amplitude], self.lengthscales, [self.noise])))

    @classmethod
    def from_log(cls, theta: npt.ArrayLike) -> Hyperparameters:
        """Inverse of ``log``."""
        values = np.exp(np.asarray(theta, dtype=np.float64))
        return cls(float(values[0]), values[1:-1], float(values[-1]))

    @classmethod
    def default(cls, d: int) -> Hyperparameters:
        """The starting point of every fit: (2, 1, ..., 1, 1e-8)."""
        return cls(2.0, np.ones(d), 1e-8)


def cross_covariance(A: FloatArray, B: FloatArray, *, shape: KernelShape, hyper: Hyperparameters) -> FloatArray:
    """``k(A, B) (m, n)`` for prediction: distances by one matrix product, everything else in place.

    The product rounds squared distances at 1e-16 of the squared norms: right for cross-covariances, too coarse
    for a training matrix whose noise may be 1e-11 (see ``covariance``).
    """
    numerical = ~shape.categorical
    inverse = math.sqrt(5.0) / hyper.lengthscales[numerical]
    P, Q = filled(A, shape), filled(B, shape)
    centre = Q[:, numerical].mean(axis=0) if len(Q) else 0.0  # small norms, hence small rounding errors
    U, V = (P[:, numerical] - centre) * inverse, (Q[:, numerical] - centre) * inverse
    # |u|^2 + |v|^2 - 2 u v in one product, by two more columns
    left = np.column_stack((U, np.einsum("ij,ij->i", U, U), np.ones(len(U))))
    right = np.column_stack((-2.0 * V, np.ones(len(V)), np.einsum("ij,ij->i", V, V)))
    squared = left @ right.T
    np.maximum(squared, 0.0, out=squared)
    return finish_kernel(squared, _mismatch(P, Q, shape, hyper), same_activity(A, B, shape), hyper.amplitude)


def covariance(A: FloatArray, B: FloatArray, *, shape: KernelShape, hyper: Hyperparameters) -> FloatArray:
    """``k(A, B) (m, n)`` from exact differences: for training matrices and for rows appended to them."""
    P, Q = filled(A, shape), filled(B, shape)
    t = np.zeros((len(P), len(Q)))
    for j in np.flatnonzero(~shape.categorical):
        step = np.subtract.outer(P[:, j], Q[:, j])
        step *= math.sqrt(5.0) / hyper.lengthscales[j]
        step *= step
        t += step
    return finish_kernel(t, _mismatch(P, Q, shape, hyper), same_activity(A, B, shape), hyper.amplitude)


def same_activity(A: FloatArray, B: FloatArray, shape: KernelShape) -> BoolArray | None:
    """Mask ``(m, n)`` of the pairs with the same inactive columns; None when it would be true everywhere."""
    if not shape.conditional:
        return None
    first, second = activity_patterns(A), activity_patterns(B)
    if len(second) and (first == second[0]).all() and (second == second[0]).all():
        return None
    mask = np.ones((len(first), len(second)), dtype=np.bool_)
    for word in range(first.shape[1]):
        mask &= np.equal.outer(first[:, word], second[:, word])
    return mask


def activity_patterns(X: FloatArray) -> npt.NDArray[np.uint64]:
    """The set of inactive columns of each row as bits, in as many 64-bit words as needed: (n, words)."""
    bits = np.packbits(inactive(X), axis=1)
    words = -(-max(bits.shape[1], 1) // 8)
    padded = np.zeros((len(X), 8 * words), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


def inactive(X: FloatArray) -> BoolArray:
    """Mask of inactive entries: nan, or the marker -1 (or less)."""
    return ~(X > INACTIVE)


def filled(X: FloatArray, shape: KernelShape) -> FloatArray:
    """X without nan.

    In a conditional space only rows with the same inactive columns interact, so any constant there gives
    distance zero; 0 keeps the norms small, which the marker -1 over a short length scale would not.
    """
    return np.where(inactive(X), 0.0 if shape.conditional else INACTIVE, X)


def _mismatch(P: FloatArray, Q: FloatArray, shape: KernelShape, hyper: Hyperparameters) -> FloatArray | None:
    """Half the Hamming exponent h/2 of every pair; None without categorical columns."""
    columns = np.flatnonzero(shape.categorical)
    if columns.size == 0:
        return None
    total = np.zeros((len(P), len(Q)))
    for j in columns:
        total += np.not_equal.outer(P[:, j], Q[:, j]) * (0.5 / hyper.lengthscales[j] ** 2)
    return total


def finish_kernel(
    squared: FloatArray, mismatch: FloatArray | None, same: BoolArray | None, amplitude: float
) -> FloatArray:
    """Kernel values from ``t^2``, whose memory they take.

    In blocks that stay in the cache, with one small work array: twice as fast as whole arrays at (1000, 50).
    """
    flat = squared.reshape(-1)
    work = np.empty(min(_BLOCK, flat.size))
    for begin in range(0, flat.size, _BLOCK):
        block = slice(begin, begin + _BLOCK)
        t = flat[block]
        polynomial = work[: t.size]
        np.multiply(t, 1.0 / 3.0, out=polynomial)
        np.sqrt(t, out=t)
        polynomial += t
        polynomial += 1.0
        if mismatch is not None:
            t += mismatch.reshape(-1)[block]
        np.minimum(t, LARGEST_EXPONENT, out=t)
        np.negative(t, out=t)
        np.exp(t, out=t)
        t *= polynomial
        t *= amplitude
        if same is not None:
            t *= same.reshape(-1)[block]
    return squared
