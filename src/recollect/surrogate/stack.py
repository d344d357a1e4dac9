"""Posteriors of many Gaussian processes at the same points, as one computation.

Everything is in the processes' own standardised units: targets have mean zero and variance one, and a caller who wants
other units applies the affine map of each process.

Notation: k processes with inputs ``X_i (n_i, d)``, standardised targets ``z_i (n_i,)``, amplitude a_i, noise v_i and
correlations R_i; ``members (k',)`` the processes asked for, all by default; m points.  With r_i = R_i(x, X_i), ::

    mean_i = r_i^T alpha_i,     alpha_i = (R_i + v_i/a_i I)^-1 z_i                                         (k', m)
    variance_i = a_i (1 - |L_i^-1 r_i|^2),     L_i L_i^T = R_i + v_i/a_i I                                  (k', m)
    covariance_i = a_i (R_i(A, B) - (L_i^-1 r_i(A))^T L_i^-1 r_i(B))                                        (k', a, b)

Means need no factor, so the alphas are all that is kept of the matrices: thousands of processes fit into memory.
Factors are made when they are asked for, and those used last are kept, since a search asks for the same ones hundreds
of times.  Work is done in pieces of bounded size, whatever k, n_i and m are.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import FloatArray, IntArray
from recollect.numerics.linalg import append_cholesky, cholesky, solve_lower, solve_posdef
from recollect.numerics.threads import single_threaded
from recollect.surrogate.gp import VARIANCE_FLOOR
from recollect.surrogate.kernels import INACTIVE, Hyperparameters, KernelShape, covariance, inactive
from recollect.surrogate.stacked_kernel import (
    Block,
    Padded,
    Points,
    Take,
    exact_correlations,
    make_blocks,
    make_points,
    prior_correlations,
    steps,
)

NOISE_FREE = math.exp(-25.0)  # variance that stands for "no noise"
FACTOR_MEMORY = 1 << 28  # bytes of factors that are kept


Selection = tuple[int, IntArray, IntArray | None]
"""Number of a block, rows of the result, and where in the block their processes are; None: all of them, in order."""


class GPStack:
    """k Gaussian processes over the same columns, with given hyperparameters."""

    __slots__ = (
        "_X",
        "_alphas",
        "_blocks",
        "_factors",
        "_lengthscales",
        "_noises",
        "_place",
        "amplitudes",
        "shape",
        "size",
    )

    def __init__(
        self, X: Sequence[FloatArray], z: Sequence[FloatArray], *, shape: KernelShape, theta: FloatArray
    ) -> None:
        """From inputs, standardised targets and ``theta (k, d + 2)``, rows as of ``Hyperparameters.log``."""
        self.shape, self.size = shape, len(X)
        natural = np.exp(theta)
        self.amplitudes: FloatArray = natural[:, 0].copy()
        self._lengthscales = natural[:, 1:-1].copy()
        self._noises = natural[:, -1] / natural[:, 0]  # relative to the amplitude
        self._X = tuple(X)
        self._blocks: list[Block] = []
        self._alphas: list[FloatArray] = []  # (g, N) of each block
        self._place = np.zeros((self.size, 2), dtype=np.intp)  # block and place in it of each process
        self._factors = _Recent(FACTOR_MEMORY)
        with single_threaded():
            for block, padded in make_blocks(self._X, self._lengthscales, shape):
                self._place[block.members, 0] = len(self._blocks)
                self._place[block.members, 1] = np.arange(len(block.members))
                self._blocks.append(block)
                targets = [z[i] for i in block.members]
                self._alphas.append(_alphas(block, padded, targets, self._noises[block.members]))

    def means(self, X: FloatArray, members: IntArray | None = None) -> FloatArray:
        """Posterior means ``(k', m)``."""
        points = make_points(X, self.shape)
        out = np.empty((self._count(members), len(points)))
        with single_threaded():
            for piece in _sweep(self._blocks, self._selection(members), points):
                out[piece.rows, piece.span] = self._piece_means(piece)
        return out

    def posterior(self, X: FloatArray, members: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Posterior means and variances of the latent functions, both ``(k', m)``."""
        points = make_points(X, self.shape)
        wanted = np.arange(self.size) if members is None else members
        mean, variance = np.empty((len(wanted), len(points))), np.empty((len(wanted), len(points)))
        with single_threaded():
            for piece in _sweep(self._blocks, self._selection(members), points):
                mean[piece.rows, piece.span] = self._piece_means(piece)
                for row, r in zip(piece.rows, piece.r, strict=True):
                    variance[row, piece.span] = _unexplained(self._factor(int(wanted[row])), r)
        variance *= self.amplitudes[wanted, None]
        return mean, np.maximum(variance, VARIANCE_FLOOR, out=variance)

    def covariances(self, A: FloatArray, B: FloatArray, members: IntArray) -> FloatArray:
        """Posterior covariances ``(k', a, b)`` between the points ``A (a, d)`` and ``B (b, d)``; nothing is clipped."""
        first, second = make_points(A, self.shape), make_points(B, self.shape)
        out = np.empty((len(members), len(first), len(second)))
        with single_threaded():
            for number, rows, local in self._selection(members):
                block = self._blocks[number]
                for some in steps(len(rows), len(second) * block.height):
                    take = some if local is None else local[some]
                    factors = [self._factor(int(i)) for i in members[rows[some]]]
                    right = [_whiten(L, r) for L, r in zip(factors, block.correlations(second, take), strict=True)]
                    widest = max(len(factors) * max(block.height, len(second)), self.shape.d * len(second))
                    for span in steps(len(first), widest):
                        part = first.at(span)
                        values = prior_correlations(part, second, block.scales.at(take))
                        left = block.correlations(part, take)
                        for i, L in enumerate(factors):
                            values[i] -= _whiten(L, left[i]).T @ right[i]
                        out[rows[some], span] = values
        out *= self.amplitudes[members, None, None]
        return out

    def noise_free(self, X_t: FloatArray, members: IntArray) -> Callable[[FloatArray], FloatArray]:
        """Variances ``(k', m)`` of the processes given their own means, noise-free, at ``Z_i = X_i u X_t``::

            variance_i = a_i - k_i(x, Z_i) (K_i(Z_i, Z_i) + e^-25 I)^-1 k_i(Z_i, x)

        Conditioning a process on its own mean does not change the mean.  Repeated rows of Z_i are left out, which is
        exact.  All factors are made here; the function that is returned only evaluates.
        """
        with single_threaded():
            conditioned = [self._conditioned(int(i), X_t) for i in members]
            Z, factors = [Z for Z, _ in conditioned], [L for _, L in conditioned]
            blocks = [block for block, _ in make_blocks(Z, self._lengthscales[members], self.shape)]
        everything = [(number, block.members, None) for number, block in enumerate(blocks)]
        amplitudes = self.amplitudes[members, None]

        def variances(X: FloatArray) -> FloatArray:
            points = make_points(X, self.shape)
            out = np.empty((len(factors), len(points)))
            with single_threaded():
                for piece in _sweep(blocks, everything, points):
                    for row, r in zip(piece.rows, piece.r, strict=True):
                        out[row, piece.span] = _unexplained(factors[row], r)
            out *= amplitudes
            return np.maximum(out, VARIANCE_FLOOR, out=out)

        return variances

    def _count(self, members: IntArray | None) -> int:
        return self.size if members is None else len(members)

    def _selection(self, members: IntArray | None) -> list[Selection]:
        if members is None:
            return [(number, block.members, None) for number, block in enumerate(self._blocks)]
        home, local = self._place[members].T
        chosen = ((int(number), np.flatnonzero(home == number)) for number in np.unique(home))
        return [(number, rows, local[rows]) for number, rows in chosen]

    def _piece_means(self, piece: _Piece) -> FloatArray:
        alpha = self._alphas[piece.number][piece.take]
        return np.asarray(np.matmul(piece.r, alpha[:, :, None])[:, :, 0])

    def _factor(self, i: int) -> FloatArray:
        """L_i of the training matrix."""
        return self._factors.get((i, False), lambda: self._factorise(self._X[i], i, float(self._noises[i])))

    def _conditioned(self, i: int, X_t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Z_i without repeated rows, and the factor of its noise-free matrix: that of X_i, kept, with rows appended."""
        X = self._X[i]
        own, new = _distinct(X, X_t)
        X = X[own]
        noise = NOISE_FREE / float(self.amplitudes[i])
        L = self._factors.get((i, True), lambda: self._factorise(X, i, noise))
        if new.size == 0:
            return X, L
        added, unit = X_t[new], Hyperparameters(1.0, self._lengthscales[i], noise)
        corner = covariance(added, added, shape=self.shape, hyper=unit)
        corner.flat[:: len(added) + 1] += noise
        side = covariance(added, X, shape=self.shape, hyper=unit)
        return np.concatenate((X, added)), append_cholesky(L, side, corner)

    def _factorise(self, X: FloatArray, i: int, noise: float) -> FloatArray:
        R = covariance(X, X, shape=self.shape, hyper=Hyperparameters(1.0, self._lengthscales[i], noise))
        R.flat[:: len(X) + 1] += noise
        return cholesky(R, 1.0)[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """A part of a computation that is small enough to be done at once."""

    number: int  # of the block
    take: Take  # processes of the block
    rows: IntArray  # of the result
    span: slice  # of the points
    r: FloatArray  # correlations (rows, span, N), free to be overwritten


def _sweep(blocks: Sequence[Block], selection: Sequence[Selection], points: Points) -> Iterator[_Piece]:
    """Correlations of the selected processes with all points, piece by piece."""
    for number, rows, local in selection:
        block = blocks[number]
        for some in steps(len(rows), len(points) * block.height):
            take = some if local is None else local[some]
            count = some.stop - some.start
            for span in steps(len(points), count * block.height):
                yield _Piece(number, take, rows[some], span, block.correlations(points.at(span), take))


def _alphas(block: Block, padded: Padded, targets: Sequence[FloatArray], noises: FloatArray) -> FloatArray:
    """``(R_i + noise_i I)^-1 z_i`` of every process of a block, (g, N), zero in the padding."""
    alphas = np.zeros((len(targets), block.height))
    for some in steps(len(targets), block.height**2):
        R = exact_correlations(padded.at(some), block.scales.at(some))
        R.reshape(len(R), -1)[:, :: block.height + 1] += noises[some, None]
        for i, A in zip(range(some.start, some.stop), R, strict=True):
            z = targets[i]
            alphas[i, : z.size] = solve_posdef(cholesky(A[: z.size, : z.size], 1.0)[0], z)
    return alphas


def _whiten(L: FloatArray, r: FloatArray) -> FloatArray:
    """``L^-1 r^T (n, m)`` for padded correlations ``r (m, N)``, which may be overwritten."""
    return solve_lower(L, r[:, : len(L)].T, overwrite=True)


def _unexplained(L: FloatArray, r: FloatArray) -> FloatArray:
    """``1 - |L^-1 r|^2 (m,)``: the share of the prior variance that the data leave."""
    V = _whiten(L, r)
    return np.asarray(1.0 - np.einsum("nm,nm->m", V, V))


def _distinct(X: FloatArray, X_t: FloatArray) -> tuple[IntArray, IntArray]:
    """First occurrences of the rows of ``X``, and of those rows of ``X_t`` that are not in ``X``."""
    first: dict[bytes, int] = {}
    both = np.concatenate((X, X_t))
    both = np.where(inactive(both), INACTIVE, both) + 0.0  # -0 and 0 are the same value
    for place, row in enumerate(both):
        first.setdefault(row.tobytes(), place)
    kept = np.fromiter(first.values(), dtype=np.intp)
    return kept[kept < len(X)], kept[kept >= len(X)] - len(X)


class _Recent:
    """The factors used last, up to so many bytes of them."""

    __slots__ = ("_bytes", "_kept", "_limit", "_lock")

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes = limit, 0
        self._kept: OrderedDict[tuple[int, bool], FloatArray] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[int, bool], make: Callable[[], FloatArray]) -> FloatArray:
        """The factor kept under ``key``, made now if there is none."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        made = make()  # not under the lock: two threads may make the same factor, which is harmless
        with self._lock:
            if key not in self._kept:
                self._bytes += made.nbytes
            self._kept[key] = made
            while self._bytes > self._limit and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return made
