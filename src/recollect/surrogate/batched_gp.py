"""Posteriors of many Gaussian processes at the same points, as one computation.

Everything is in the processes' own standardized units: targets have mean zero and variance one, and the caller applies
the affine map of each process.

Notation: k processes with inputs ``X_i (n_i, d)``, standardized targets ``z_i (n_i,)``, amplitude a_i, noise v_i and
correlations R_i; ``indices (k',)`` the requested processes, all by default; m points.  With r_i = R_i(x, X_i), ::

    mean_i = r_i^T alpha_i,     alpha_i = (R_i + v_i/a_i I)^-1 z_i                                         (k', m)
    variance_i = a_i (1 - |L_i^-1 r_i|^2),     L_i L_i^T = R_i + v_i/a_i I                                  (k', m)
    covariance_i = a_i (R_i(A, B) - (L_i^-1 r_i(A))^T L_i^-1 r_i(B))                                        (k', a, b)

Means need no factor, so only the alphas are kept of the matrices: thousands of processes fit into memory.  Factors are
computed on demand, and the most recently used are cached, since a search needs the same ones hundreds of times.  Work
is done in pieces of bounded size, whatever k, n_i and m are.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import FloatArray, IntArray, KernelShape, is_inactive, unique_rows
from recollect.numerics.linalg import append_cholesky, cholesky, single_threaded, solve_lower, solve_posdef
from recollect.surrogate.batched_kernel import (
    Block,
    PaddedInputs,
    PreparedPoints,
    Selector,
    chunks,
    exact_correlations,
    make_blocks,
    prepare_points,
    prior_correlations,
)
from recollect.surrogate.gp import VARIANCE_FLOOR
from recollect.surrogate.kernels import Hyperparameters, covariance

NOISE_FREE = math.exp(-25.0)  # variance that stands for "no noise"
FACTOR_CACHE_BYTES = 1 << 28

# Number of a block, rows of the result, and where in the block their processes are; None: all of them, in order.
Selection = tuple[int, IntArray, IntArray | None]


class BatchedGP:
    """k Gaussian processes over the same columns, with given hyperparameters."""

    def __init__(
        self, X: Sequence[FloatArray], z: Sequence[FloatArray], *, shape: KernelShape, theta: FloatArray
    ) -> None:
        """Take inputs, standardized targets and ``theta (k, d + 2)``, rows as of `Hyperparameters.log`."""
        self.shape, self.size = shape, len(X)
        natural = np.exp(theta)
        self.amplitudes: FloatArray = natural[:, 0].copy()  # prior variances (k,)
        self._lengthscales = natural[:, 1:-1].copy()
        self._noises = natural[:, -1] / natural[:, 0]  # relative to the amplitude
        self._X = tuple(X)
        self._blocks: list[Block] = []
        self._alphas: list[FloatArray] = []  # (g, N) of each block
        self._location = np.zeros((self.size, 2), dtype=np.intp)  # block and position in it of each process
        self._factors = _FactorCache(FACTOR_CACHE_BYTES)
        with single_threaded():
            for block, padded in make_blocks(self._X, self._lengthscales, shape):
                self._location[block.indices, 0] = len(self._blocks)
                self._location[block.indices, 1] = np.arange(len(block.indices))
                self._blocks.append(block)
                targets = [z[i] for i in block.indices]
                self._alphas.append(_alphas(block, padded, targets, self._noises[block.indices]))

    def means(self, X: FloatArray, indices: IntArray | None = None) -> FloatArray:
        """Return posterior means ``(k', m)``."""
        points = prepare_points(X, self.shape)
        out = np.empty((self.size if indices is None else len(indices), len(points)))
        with single_threaded():
            for piece in _pieces(self._blocks, self._selection(indices), points):
                out[piece.rows, piece.span] = self._piece_means(piece)
        return out

    def posterior(self, X: FloatArray, indices: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return posterior means and variances of the functions, both ``(k', m)``."""
        points = prepare_points(X, self.shape)
        wanted = np.arange(self.size) if indices is None else indices
        mean, variance = np.empty((len(wanted), len(points))), np.empty((len(wanted), len(points)))
        with single_threaded():
            for piece in _pieces(self._blocks, self._selection(indices), points):
                mean[piece.rows, piece.span] = self._piece_means(piece)
                for row, r in zip(piece.rows, piece.r, strict=True):
                    variance[row, piece.span] = _remaining_variance(self._factor(int(wanted[row])), r)
        variance *= self.amplitudes[wanted, None]
        return mean, np.maximum(variance, VARIANCE_FLOOR, out=variance)

    def covariances(self, A: FloatArray, B: FloatArray, indices: IntArray) -> FloatArray:
        """Return posterior covariances ``(k', a, b)`` between ``A (a, d)`` and ``B (b, d)``; nothing is clipped."""
        first, second = prepare_points(A, self.shape), prepare_points(B, self.shape)
        out = np.empty((len(indices), len(first), len(second)))
        with single_threaded():
            for number, rows, local in self._selection(indices):
                block = self._blocks[number]
                for some in chunks(len(rows), len(second) * block.height):
                    selector = some if local is None else local[some]
                    factors = [self._factor(int(i)) for i in indices[rows[some]]]
                    right = [_whiten(L, r) for L, r in zip(factors, block.correlations(second, selector), strict=True)]
                    widest = max(len(factors) * max(block.height, len(second)), self.shape.d * len(second))
                    for span in chunks(len(first), widest):
                        part = first.at(span)
                        values = prior_correlations(part, second, block.scales.at(selector))
                        left = block.correlations(part, selector)
                        for i, L in enumerate(factors):
                            values[i] -= _whiten(L, left[i]).T @ right[i]
                        out[rows[some], span] = values
        out *= self.amplitudes[indices, None, None]
        return out

    def noise_free(self, X_t: FloatArray, indices: IntArray) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the variances ``(k', m)`` given the own means, noise-free, at ``Z_i = X_i u X_t``::

            variance_i = a_i - k_i(x, Z_i) (K_i(Z_i, Z_i) + e^-25 I)^-1 k_i(Z_i, x)

        Conditioning a process on its own mean does not change the mean.  Repeated rows of Z_i are left out, which is
        exact.  All factors are computed here; the returned function only evaluates.
        """
        with single_threaded():
            conditioned = [self._conditioned(int(i), X_t) for i in indices]
            Z, factors = [Z for Z, _ in conditioned], [L for _, L in conditioned]
            blocks = [block for block, _ in make_blocks(Z, self._lengthscales[indices], self.shape)]
        everything = [(number, block.indices, None) for number, block in enumerate(blocks)]
        amplitudes = self.amplitudes[indices, None]

        def variances(X: FloatArray) -> FloatArray:
            points = prepare_points(X, self.shape)
            out = np.empty((len(factors), len(points)))
            with single_threaded():
                for piece in _pieces(blocks, everything, points):
                    for row, r in zip(piece.rows, piece.r, strict=True):
                        out[row, piece.span] = _remaining_variance(factors[row], r)
            out *= amplitudes
            return np.maximum(out, VARIANCE_FLOOR, out=out)

        return variances

    def _selection(self, indices: IntArray | None) -> list[Selection]:
        if indices is None:
            return [(number, block.indices, None) for number, block in enumerate(self._blocks)]
        home, local = self._location[indices].T
        chosen = ((int(number), np.flatnonzero(home == number)) for number in np.unique(home))
        return [(number, rows, local[rows]) for number, rows in chosen]

    def _piece_means(self, piece: _Piece) -> FloatArray:
        alpha = self._alphas[piece.number][piece.selector]
        return np.asarray(np.matmul(piece.r, alpha[:, :, None])[:, :, 0])

    def _factor(self, i: int) -> FloatArray:
        """Return L_i of the training matrix."""
        return self._factors.get((i, False), lambda: self._factorize(self._X[i], i, float(self._noises[i])))

    def _conditioned(self, i: int, X_t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Z_i without repeated rows, and the factor of its noise-free matrix: that of X_i, extended."""
        own, new = _distinct(self._X[i], X_t)
        X = self._X[i][own]
        noise = NOISE_FREE / float(self.amplitudes[i])
        L = self._factors.get((i, True), lambda: self._factorize(X, i, noise))
        if new.size == 0:
            return X, L
        added, unit = X_t[new], Hyperparameters(1.0, self._lengthscales[i], noise)
        corner = covariance(added, added, shape=self.shape, hyper=unit)
        corner.flat[:: len(added) + 1] += noise
        side = covariance(added, X, shape=self.shape, hyper=unit)
        return np.concatenate((X, added)), append_cholesky(L, side, corner)[0]

    def _factorize(self, X: FloatArray, i: int, noise: float) -> FloatArray:
        R = covariance(X, X, shape=self.shape, hyper=Hyperparameters(1.0, self._lengthscales[i], noise))
        R.flat[:: len(X) + 1] += noise
        return cholesky(R, 1.0)[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A part of a computation that is small enough to be done at once."""

    number: int  # of the block
    selector: Selector  # processes of the block
    rows: IntArray  # of the result
    span: slice  # of the points
    r: FloatArray  # correlations (rows, span, N), free to be overwritten


def _pieces(blocks: Sequence[Block], selection: Sequence[Selection], points: PreparedPoints) -> Iterator[_Piece]:
    """Yield correlations of the selected processes with all points, piece by piece."""
    for number, rows, local in selection:
        block = blocks[number]
        for some in chunks(len(rows), len(points) * block.height):
            selector = some if local is None else local[some]
            for span in chunks(len(points), (some.stop - some.start) * block.height):
                yield _Piece(number, selector, rows[some], span, block.correlations(points.at(span), selector))


def _alphas(block: Block, padded: PaddedInputs, targets: Sequence[FloatArray], noises: FloatArray) -> FloatArray:
    """Return ``(R_i + noise_i I)^-1 z_i`` of every process of a block, (g, N), zero in the padding."""
    alphas = np.zeros((len(targets), block.height))
    for some in chunks(len(targets), block.height**2):
        R = exact_correlations(padded.at(some), block.scales.at(some))
        R.reshape(len(R), -1)[:, :: block.height + 1] += noises[some, None]
        for i, A in zip(range(some.start, some.stop), R, strict=True):
            z = targets[i]
            alphas[i, : z.size] = solve_posdef(cholesky(A[: z.size, : z.size], 1.0)[0], z)
    return alphas


def _whiten(L: FloatArray, r: FloatArray) -> FloatArray:
    """Return ``L^-1 r^T (n, m)`` for padded correlations ``r (m, N)``, which may be overwritten."""
    return solve_lower(L, r[:, : len(L)].T, overwrite=True)


def _remaining_variance(L: FloatArray, r: FloatArray) -> FloatArray:
    """Return ``1 - |L^-1 r|^2 (m,)``: the share of the prior variance that the data leave."""
    V = _whiten(L, r)
    return np.asarray(1.0 - np.einsum("nm,nm->m", V, V))


def _distinct(X: FloatArray, X_t: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the first occurrences of the rows of ``X``, and of those rows of ``X_t`` that are not in ``X``."""
    both = np.concatenate((X, X_t))
    first = unique_rows(np.where(is_inactive(both), np.nan, both))
    return first[first < len(X)], first[first >= len(X)] - len(X)


class _FactorCache:
    """The most recently used factors, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes = limit, 0
        self._factors: OrderedDict[tuple[int, bool], FloatArray] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[_FactorCache], tuple[int]]:
        """Pickle and copy as an empty cache: a lock cannot be copied, and factors can be computed again."""
        return _FactorCache, (self._limit,)

    def get(self, key: tuple[int, bool], compute: Callable[[], FloatArray]) -> FloatArray:
        """Return the factor cached under ``key``, computed now if there is none."""
        with self._lock:
            factor = self._factors.get(key)
            if factor is not None:
                self._factors.move_to_end(key)
                return factor
        factor = compute()  # not under the lock: two threads may compute the same factor, which is harmless
        with self._lock:
            if key not in self._factors:
                self._bytes += factor.nbytes
            self._factors[key] = factor
            while self._bytes > self._limit and len(self._factors) > 1:
                self._bytes -= self._factors.popitem(last=False)[1].nbytes
        return factor
