"""The one kernel of all models, Matern-5/2 x Hamming x same activity, and its hyperparameters.

::

    k(x, x') = a (1 + t + t^2/3) exp(-t) exp(-h/2) [x and x' have the same inactive columns]
    t^2 = 5 sum_j (x_j - x'_j)^2 / l_j^2     over numerical columns
    h   = sum_j [x_j != x'_j] / l_j^2        over categorical columns
    dk / d(t^2/5) = -w / 2,                  w = a (5/3) (1 + t) exp(-t) exp(-h/2)

Notation: ``X (n, d)`` encoded configurations, nan (or any value <= -1) = inactive; ``m`` rows of ``A`` against ``n``
rows of ``B``; amplitude ``a``, length scales ``l (d,)``.  The last factor is used in conditional spaces only.
Observation noise is not part of the functions here: it belongs to the diagonal of the training matrix.

`kernel_in_place` and `kernel_and_slope_in_place` are the only places that evaluate the formula on arrays of distances;
they add the terms of the polynomial in the order that needs the fewest passes, so their last digits differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import INACTIVE, BoolArray, FloatArray, KernelShape, is_inactive

WordArray: TypeAlias = npt.NDArray[np.uint64]

SQRT5 = math.sqrt(5.0)
MATERN52_SLOPE = 5.0 / 3.0  # the factor of w
LARGEST_EXPONENT = 600.0  # exp(-600) is zero for a kernel, while exp of less runs into slow subnormal numbers
_BLOCK = 8192  # entries, 64 KB


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """Hyperparameters of a Gaussian process on standardized targets."""

    amplitude: float  # prior variance of the function
    lengthscales: FloatArray  # (d,) in units of the encoded columns
    noise: float  # variance of the observation noise

    def __post_init__(self) -> None:
        """Check that all are positive, and make the array read-only."""
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
        """Return ``(ln amplitude, ln length scales, ln noise)``, shape (d + 2,)."""
        return np.log(np.concatenate(([self.amplitude], self.lengthscales, [self.noise])))

    @classmethod
    def from_log(cls, theta: npt.ArrayLike) -> Hyperparameters:
        """Return the hyperparameters that `log` describes."""
        values = np.exp(np.asarray(theta, dtype=np.float64))
        return cls(float(values[0]), values[1:-1], float(values[-1]))

    @classmethod
    def default(cls, d: int) -> Hyperparameters:
        """Return the starting point of every fit: (2, 1, ..., 1, 1e-8)."""
        return cls(2.0, np.ones(d), 1e-8)


def cross_covariance(A: FloatArray, B: FloatArray, *, shape: KernelShape, hyper: Hyperparameters) -> FloatArray:
    """Return ``k(A, B) (m, n)`` for prediction: distances by one matrix product, everything else in place.

    The product rounds squared distances at 1e-16 of the squared norms: right for cross-covariances, too coarse for a
    training matrix whose noise may be 1e-11 (see `covariance`).
    """
    P, Q = fill_inactive(A, shape), fill_inactive(B, shape)
    squared = _squared_distances(P, Q, shape, hyper)
    return kernel_in_place(squared, _half_hamming(P, Q, shape, hyper), same_activity(A, B, shape), hyper.amplitude)


def cross_covariance_and_slope(
    A: FloatArray, B: FloatArray, *, shape: KernelShape, hyper: Hyperparameters
) -> tuple[FloatArray, FloatArray]:
    """Return ``k(A, B)`` and w, its slope by squared distances, both (m, n), from distances as in `cross_covariance`.

    The derivative of k by a numerical column j of A is ``-w (A_j - B_j) / l_j^2``.
    """
    P, Q = fill_inactive(A, shape), fill_inactive(B, shape)
    squared = _squared_distances(P, Q, shape, hyper)
    k, w = np.empty(squared.shape), np.empty(squared.shape)
    amplitudes = np.full(len(P), hyper.amplitude)
    kernel_and_slope_in_place(squared, _half_hamming(P, Q, shape, hyper), amplitudes, k=k, w=w)
    same = same_activity(A, B, shape)
    if same is not None:
        k *= same
        w *= same
    return k, w


def distance_gradient(
    weights: FloatArray, A: FloatArray, B: FloatArray, *, shape: KernelShape, hyper: Hyperparameters
) -> FloatArray:
    """Return ``sum_i weights_i (B_i - A) / l^2`` (m, d), zero by categorical columns.

    With ``weights = w c (m, n)`` that is the gradient of ``k(A, B) c`` by A.
    """
    numerical = np.flatnonzero(~shape.categorical)
    points, rows = (fill_inactive(Z, shape)[:, numerical] for Z in (A, B))
    along = weights @ rows - weights.sum(axis=1)[:, None] * points
    gradient = np.zeros((len(A), shape.d))
    gradient[:, numerical] = along / np.square(hyper.lengthscales[numerical])
    return gradient


def _squared_distances(P: FloatArray, Q: FloatArray, shape: KernelShape, hyper: Hyperparameters) -> FloatArray:
    """Return ``t^2`` of every pair, by one matrix product."""
    numerical = ~shape.categorical
    inverse = SQRT5 / hyper.lengthscales[numerical]
    centre = Q[:, numerical].mean(axis=0) if len(Q) else 0.0  # small norms, hence small rounding errors
    U, V = (P[:, numerical] - centre) * inverse, (Q[:, numerical] - centre) * inverse
    # |u|^2 + |v|^2 - 2 u v in one product, by two more columns
    left = np.column_stack((U, np.einsum("ij,ij->i", U, U), np.ones(len(U))))
    right = np.column_stack((-2.0 * V, np.ones(len(V)), np.einsum("ij,ij->i", V, V)))
    squared = left @ right.T
    return np.asarray(np.maximum(squared, 0.0, out=squared))


def covariance(A: FloatArray, B: FloatArray, *, shape: KernelShape, hyper: Hyperparameters) -> FloatArray:
    """Return ``k(A, B) (m, n)`` from exact differences: for training matrices and for rows appended to them."""
    P, Q = fill_inactive(A, shape), fill_inactive(B, shape)
    t = np.zeros((len(P), len(Q)))
    for j in np.flatnonzero(~shape.categorical):
        step = np.subtract.outer(P[:, j], Q[:, j])
        step *= SQRT5 / hyper.lengthscales[j]
        step *= step
        t += step
    return kernel_in_place(t, _half_hamming(P, Q, shape, hyper), same_activity(A, B, shape), hyper.amplitude)


def same_activity(A: FloatArray, B: FloatArray, shape: KernelShape) -> BoolArray | None:
    """Return the mask ``(m, n)`` of pairs with the same inactive columns; None where it would be true everywhere."""
    if not shape.conditional:
        return None
    first, second = activity_patterns(A), activity_patterns(B)
    if len(second) and (first == second[0]).all() and (second == second[0]).all():
        return None
    return np.asarray(equal_patterns(first, second[None])[0])


def equal_patterns(A: WordArray, B: WordArray) -> BoolArray:
    """Return a mask ``(g, a, b)`` of pairs with equal inactive columns; ``A ([g,] a, words)``, ``B (g, b, words)``."""
    mask: BoolArray = A[..., :, None, 0] == B[:, None, :, 0]
    for word in range(1, B.shape[2]):
        mask &= A[..., :, None, word] == B[:, None, :, word]
    return mask


def activity_patterns(X: FloatArray) -> WordArray:
    """Return the set of inactive columns of each row as bits, in as many 64-bit words as needed: (n, words)."""
    bits = np.packbits(is_inactive(X), axis=1)
    words = -(-max(bits.shape[1], 1) // 8)
    padded = np.zeros((len(X), 8 * words), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


def fill_inactive(X: FloatArray, shape: KernelShape) -> FloatArray:
    """Return X without nan.

    In a conditional space only rows with the same inactive columns interact, so any constant gives distance zero
    there; 0 keeps the norms small, which the marker -1 over a short length scale would not.
    """
    return np.where(is_inactive(X), 0.0 if shape.conditional else INACTIVE, X)


def _half_hamming(P: FloatArray, Q: FloatArray, shape: KernelShape, hyper: Hyperparameters) -> FloatArray | None:
    """Return half the Hamming distance, h/2, of every pair; None without categorical columns."""
    columns = np.flatnonzero(shape.categorical)
    if columns.size == 0:
        return None
    total = np.zeros((len(P), len(Q)))
    for j in columns:
        total += np.not_equal.outer(P[:, j], Q[:, j]) * (0.5 / hyper.lengthscales[j] ** 2)
    return total


def matern52_polynomial(t: FloatArray) -> FloatArray:
    """Return ``1 + t + t^2/3``, the factor of exp(-t) in the Matern-5/2 kernel."""
    return 1.0 + t + t * t / 3.0


def kernel_in_place(
    squared: FloatArray, half_hamming: FloatArray | None, same: BoolArray | None, amplitude: float
) -> FloatArray:
    """Replace ``t^2`` by the kernel's values, and return them.

    The work is done in blocks that stay in the cache, with one small work array: twice as fast as whole arrays at
    (1000, 50).
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
        if half_hamming is not None:
            t += half_hamming.reshape(-1)[block]
        _decay_in_place(t)
        t *= polynomial
        t *= amplitude
        if same is not None:
            t *= same.reshape(-1)[block]
    return squared


def kernel_and_slope_in_place(
    squared: FloatArray, half_hamming: FloatArray | None, amplitude: FloatArray, *, k: FloatArray, w: FloatArray
) -> None:
    """Put the kernel's values into ``k`` and w, its slope by squared distances, into ``w``, all (s, N).

    ``squared`` holds ``t^2`` and is overwritten; ``amplitude (s,)`` is one per row.
    """
    t = squared
    np.multiply(t, 1.0 / 3.0, out=k)
    np.sqrt(t, out=t)
    np.add(t, 1.0, out=w)
    k += w
    if half_hamming is not None:
        t += half_hamming
    _decay_in_place(t)
    t *= amplitude[:, None]
    k *= t
    t *= MATERN52_SLOPE
    w *= t


def _decay_in_place(exponent: FloatArray) -> None:
    np.minimum(exponent, LARGEST_EXPONENT, out=exponent)
    np.negative(exponent, out=exponent)
    np.exp(exponent, out=exponent)
