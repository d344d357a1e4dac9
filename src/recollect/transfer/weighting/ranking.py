"""Misranked pairs and their bootstrap: how well a model orders the target's observations (paper section 4.1).

This is the only place that compares rankings. Lower is better and all inequalities are strict, so that ties count as
the paper's equations count them.

Notation: ``f (k, n)`` predictions of k base models at the n target inputs, ``y (n,)`` observations, ``loo (n,)``
leave-one-out predictions of the target model in the units of y, ``M (m, n, n)`` misranked ordered pairs of m models,
``counts (S, n)`` how often each of S resamples holds each observation.

Loss of a resample as a quadratic form: the sum over all ordered pairs of drawn positions equals ``c' M c``, where c are
the multiplicities, because a pair of drawn copies of a and b contributes M[a, b] and there are c_a c_b of them. Only
the products c_a c_b with a <= b differ, so the losses of all models are one matrix product

    W (m, n(n+1)/2) @ Phi (n(n+1)/2, S),   W = M[a, b] + M[b, a] (a < b), M[a, a];   Phi = c_a c_b.

All numbers are integers up to n^2, hence float32 is exact up to n = 4096.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from recollect.numerics.arrays import BoolArray, FloatArray

Losses = NDArray[np.float32 | np.float64]
Counts = NDArray[np.uint16 | np.uint32]

FLOAT32_EXACT = 4096  # n^2 <= 2^24: every partial sum is an integer that float32 holds
PACKED_LIMIT = 200  # above, Phi outgrows the cache and one product per model is faster
PAIR_BYTES = 4 << 20  # misranked pairs held at a time, as booleans
PHI_BYTES = 16 << 20  # products c_a c_b held at a time
LOSS_BYTES = 48 << 20  # losses held at a time
MAX_COMPARED = 2000  # observations whose pairs are counted to describe a model
SAMPLE_STEP = 256  # chunks of resamples are multiples of this, so that sums over them do not depend on LOSS_BYTES


def misranked_pairs(f: FloatArray, y: FloatArray) -> BoolArray:
    """Return the ordered pairs (a, b) that models with predictions ``f (..., n)`` misrank: (..., n, n), equation 3."""
    return np.asarray((f[..., :, None] < f[..., None, :]) != (y[:, None] < y))


def misranked_pairs_target(loo: FloatArray, y: FloatArray) -> BoolArray:
    """Return the ordered pairs (a, b) that the target model misranks when a is left out: (n, n), equation 4.

    The prediction of a is compared with the observation of b, a = b included: an under-predicted point is misranked
    with itself. That handicap of the target is part of the equation.
    """
    return np.asarray((loo[:, None] < y) != (y[:, None] < y))


def misranked_blocks(base: FloatArray, loo: FloatArray | None, y: FloatArray) -> Iterator[tuple[slice, BoolArray]]:
    """Yield misranked pairs of all base models, then the target unless ``loo`` is None, in blocks of bounded memory."""
    models = len(base) + (loo is not None)
    size = max(1, PAIR_BYTES // max(1, y.size**2))
    for start in range(0, models, size):
        stop = min(start + size, models)
        pairs = misranked_pairs(base[start:stop], y)
        if loo is not None and stop == models:
            pairs = np.concatenate([pairs, misranked_pairs_target(loo, y)[None]])
        yield slice(start, stop), pairs


def misranked_counts(base: FloatArray, loo: FloatArray | None, y: FloatArray) -> FloatArray:
    """Count misranked ordered pairs per model, without resampling: (k+1,) target last, or (k,) without ``loo``."""
    counts = np.empty(len(base) + (loo is not None))
    for block, pairs in misranked_blocks(base, loo, y):
        counts[block] = pairs.sum(axis=(1, 2))
    return counts


def misranked_fraction(base: FloatArray, y: FloatArray) -> FloatArray:
    """Return the share of the n(n-1)/2 pairs a < b that each base model misranks: (k,), section 3.1. Needs n >= 2."""
    first, second = np.triu_indices(y.size, 1)
    fraction = np.empty(len(base))
    for block, pairs in misranked_blocks(base, None, y):
        fraction[block] = pairs[:, first, second].mean(axis=1)
    return fraction


def tied_pairs(y: FloatArray) -> int:
    """Return the number of pairs a < b of equal observations."""
    times = np.unique(y, return_counts=True)[1]
    return int(np.sum(times * (times - 1))) // 2


def misranked_different(base: FloatArray, y: FloatArray) -> tuple[FloatArray, int]:
    """Return how many ordered pairs of different observations each model misranks (k,), and how many there are.

    Of two equal observations a model that tells them apart misranks one ordered pair, whatever it says. Of very many
    observations only the first are compared: the pairs of all do not fit into memory, and add nothing.
    """
    base, y = base[:, :MAX_COMPARED], y[:MAX_COMPARED]
    tied = tied_pairs(y)
    return np.maximum(misranked_counts(base, None, y) - tied, 0.0), len(y) * (len(y) - 1) - 2 * tied


def order_scores(misranked: FloatArray, y: FloatArray) -> FloatArray:
    """Return how far above chance models order the observations, in standard deviations, given `misranked_counts`.

    The scale is that of Kendall's rank statistic: the number of pairs in the right order minus those in the wrong one,
    over its standard deviation for an uninformative model. Not all observations may be equal.
    """
    n, times, tied = len(y), np.unique(y, return_counts=True)[1], tied_pairs(y)
    pairs = n * (n - 1) // 2 - tied
    variance = (n * (n - 1) * (2 * n + 5) - np.sum(times * (times - 1) * (2 * times + 5))) / 18
    # Of two equal observations every model that tells them apart misranks exactly one ordered pair.
    return np.asarray((pairs - (misranked - tied)) / math.sqrt(variance))


def bootstrap_counts(n: int, samples: int, *, rng: np.random.Generator) -> Counts:
    """Draw ``samples`` resamples of n observations with replacement, and count each observation's copies: (S, n)."""
    small = n <= np.iinfo(np.uint16).max
    drawn = rng.integers(0, n, size=(samples, n), dtype=np.uint16 if small else np.uint32)
    counts: Counts = np.empty_like(drawn)
    rows = max(1, PHI_BYTES // (16 * n))  # bincount works on two int64 arrays of this many rows
    for start in range(0, samples, rows):
        part = drawn[start : start + rows]
        flat = part + n * np.arange(len(part), dtype=np.int64)[:, None]
        counts[start : start + rows] = np.bincount(flat.ravel(), minlength=part.size).reshape(part.shape)
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class ResampledLosses:
    """Losses of k base models and the target in S resamples, in chunks of bounded memory.

    Dropping needs all resamples and the minima come after dropping, hence two passes. The losses are held in between
    when they fit into one chunk; otherwise those of the kept models are computed again from the same resamples.
    """

    base: FloatArray
    loo: FloatArray
    y: FloatArray
    counts: Counts
    held: Losses | None

    @classmethod
    def over(cls, base: FloatArray, loo: FloatArray, y: FloatArray, counts: Counts) -> Self:
        """Prepare the passes over predictions ``base (k, n)`` and ``loo (n,)`` of ``y (n,)`` in ``counts (S, n)``."""
        fits = len(counts) <= _sample_step(len(base) + 1)
        return cls(base, loo, y, counts, next(_loss_chunks(base, loo, y, counts)) if fits else None)

    def compare(self) -> tuple[FloatArray, FloatArray]:
        """Return how often each base model strictly beats the target, as a share (k,), and all mean losses (k+1,)."""
        ahead, total = np.zeros(len(self.base)), np.zeros(len(self.base) + 1)
        for losses in self._pass(np.ones(len(self.base), dtype=np.bool_)):
            ahead += np.count_nonzero(losses[:-1] < losses[-1], axis=1)
            total += losses.sum(axis=1, dtype=np.float64)
        return ahead / len(self.counts), total / len(self.counts)

    def shares(self, dropped: BoolArray) -> FloatArray:
        """Return the mean share of each model in the minimum without the ``dropped (k,)`` base models: (k+1,)."""
        return argmin_shares(self._pass(~dropped), np.append(~dropped, True))

    def _pass(self, kept: BoolArray) -> Iterator[Losses]:
        if self.held is None:
            yield from _loss_chunks(self.base[kept], self.loo, self.y, self.counts)
        else:
            yield self.held if kept.all() else self.held[np.append(kept, True)]


def argmin_shares(chunks: Iterable[Losses], kept: BoolArray) -> FloatArray:
    """Return the mean share of each model in the minimum over resamples, ties shared equally: (k+1,), equation 5.

    ``chunks`` are losses (m, s) of the m models that are ``kept (k+1,)``; the others get 0.
    """
    shares, seen = np.zeros(np.count_nonzero(kept)), 0
    for losses in chunks:
        for start in range(0, losses.shape[1], SAMPLE_STEP):
            part = losses[:, start : start + SAMPLE_STEP]
            best = part == part.min(axis=0)
            shares += best @ (1.0 / best.sum(axis=0))
        seen += losses.shape[1]
    values = np.zeros(kept.size)
    values[kept] = shares / seen
    return values


def draw_losses(draws: FloatArray, y: FloatArray) -> FloatArray:
    """Count misranked pairs of each posterior draw: ``draws (k, S, n)`` -> (k, S)."""
    rows = max(1, PAIR_BYTES // (4 * max(1, y.size**2)))  # a quarter, to stay within the cache
    losses = np.empty(draws.shape[:2])
    for model, own in zip(losses, draws, strict=True):
        for start in range(0, len(own), rows):
            model[start : start + rows] = misranked_pairs(own[start : start + rows], y).sum(axis=(1, 2))
    return losses


def fold_losses(folds: FloatArray, y: FloatArray) -> FloatArray:
    """Count misranked pairs of the target by draws of its leave-one-out models: ``folds (n, S, n)`` -> (S,).

    Fold a judges only the pairs (a, b), with its own draw at both ends, so there is no handicap on the diagonal.
    """
    losses = np.zeros(folds.shape[1])
    for a, draws in enumerate(folds):
        losses += ((draws[:, a, None] < draws) != (y[a] < y)).sum(axis=1)
    return losses


def _loss_chunks(base: FloatArray, loo: FloatArray, y: FloatArray, counts: Counts) -> Iterator[Losses]:
    """Yield losses of all models, target last, for as many resamples at a time as fit: arrays (k+1, s).

    Each array overwrites the previous one, so that only one is in memory.
    """
    step = _sample_step(len(base) + 1)
    losses: Losses = np.empty((len(base) + 1, min(step, len(counts))), dtype=_exact_dtype(y.size))
    for start in range(0, len(counts), step):
        part = counts[start : start + step]
        for block, pairs in misranked_blocks(base, loo, y):
            _fill(losses[block, : len(part)], pairs, part)
        yield losses[:, : len(part)]


def _sample_step(models: int) -> int:
    """Return how many resamples of this many models fit into the memory for losses."""
    return max(1, LOSS_BYTES // (4 * models * SAMPLE_STEP)) * SAMPLE_STEP


def _exact_dtype(n: int) -> type[np.float32] | type[np.float64]:
    return np.float32 if n <= FLOAT32_EXACT else np.float64


def _fill(losses: Losses, pairs: BoolArray, counts: Counts) -> None:
    """Write the losses of m models in S resamples into ``losses (m, S)``."""
    (_fill_packed if counts.shape[1] <= PACKED_LIMIT else _fill_by_model)(losses, pairs, counts)


def _fill_packed(losses: Losses, pairs: BoolArray, counts: Counts) -> None:
    """W @ Phi for all models at once, a chunk of resamples at a time."""
    form = _pack(pairs)
    step = max(1, min(1024, PHI_BYTES // (4 * max(1, form.shape[1]))))
    n = counts.shape[1]
    phi = np.empty((form.shape[1], min(step, len(counts))), dtype=np.float32)
    for start in range(0, len(counts), step):
        c = counts[start : start + step].T.astype(np.float32, order="C")
        products, row = phi[:, : c.shape[1]], 0
        for a in range(n):  # row by row, because contiguous products are several times faster than gathered ones
            np.multiply(c[a], c[a:], out=products[row : row + n - a])
            row += n - a
        np.matmul(form, products, out=losses[:, start : start + step])


def _pack(pairs: BoolArray) -> NDArray[np.float32]:
    """W: upper triangle, row by row, of M + M' with the diagonal of M."""
    n = pairs.shape[1]
    both = pairs.view(np.int8) + pairs.view(np.int8).transpose(0, 2, 1)
    both[:, np.arange(n), np.arange(n)] //= 2
    upper = np.flatnonzero(np.triu(np.ones((n, n), dtype=np.bool_)))
    return both.reshape(len(pairs), n * n).take(upper, axis=1).astype(np.float32)


def _fill_by_model(losses: Losses, pairs: BoolArray, counts: Counts) -> None:
    """Sum over a of c_a (M c)_a, one model and a chunk of resamples at a time."""
    step = max(1, PHI_BYTES // (8 * counts.shape[1]))
    for start in range(0, len(counts), step):
        c = counts[start : start + step].T.astype(losses.dtype, order="C")
        for i, own in enumerate(pairs):
            losses[i, start : start + step] = (c * (own.astype(losses.dtype) @ c)).sum(axis=0)
