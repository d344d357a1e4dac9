"""Maximum a posteriori fit of a Gaussian process.

`fit_gp` searches the logarithms of the hyperparameters with batched BFGS, from one given starting point and from
``restarts`` random ones at once, and keeps the best.  Columns that never vary do not matter; their length scales keep
the value of the given starting point (1 by default).

A run continues to convergence unless every hyperparameter comes within a factor of two of those of a better run.  That
saves a quarter of the evaluations and was never seen to lose an optimum.  Abandoning runs because they seem too far
behind, or following all of them loosely and polishing the best, occasionally does lose one.

A fit minimizes the negative log posterior of the hyperparameters, with its gradient::

    -ln p = z^T A^-1 z / 2 + ln|A| / 2 + n ln(2 pi) / 2 - ln p(a) - ln p(l) - ln p(v),   A = K + v I
    d LML / d theta = tr((alpha alpha^T - A^-1) dA/dtheta) / 2,                    alpha = A^-1 z

Notation: ``z (n,)`` standardized targets; ``theta (s, p)``, rows ``(ln a, ln l of the free columns, ln v)``.  N pairs
of rows i > j with the same inactive columns; all other covariances are zero.  Matrices are symmetric, so each pair
appears once and everything elementwise runs over vectors (N,), for s settings of the kernel at a time.  Columns
in which no pair differs cannot matter: they are not ``free``.  ``precision (s, f)`` is 1 / l^2 of the free columns.

A fit evaluates this hundreds of times.  Differences are computed once, sums over columns are matrix products, and
arrays are reused from call to call, also by other objectives (the one place where a value is changed in place).
Several settings, also for several datasets with the same pairs and free columns, are evaluated at once, which shares
the cost of calling NumPy.  How settings are batched never depends on those for other datasets, so neither do the
results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, KernelShape, is_inactive
from recollect.numerics.bfgs import BFGSOptions, minimize_batched_bfgs
from recollect.numerics.linalg import single_threaded
from recollect.surrogate.gp import GP, checked_data, make_gp
from recollect.surrogate.kernels import Hyperparameters, fill_inactive, kernel_and_slope_in_place, same_activity
from recollect.surrogate.prior import PAPER_PRIOR, Prior
from recollect.surrogate.scaling import standardize

DatasetSlices: TypeAlias = Sequence[tuple[int, slice]]  # the number of a dataset, and which settings are for it
ONE_DATASET: DatasetSlices = ((0, slice(None)),)
MAX_BATCH_ENTRIES = 24_000  # pairs of rows times settings: their arrays stay in the cache of a core
TARGET_BFGS = BFGSOptions(merge_distance=math.log(2.0))
# Second derivatives of past runs' log posteriors are about 5; knowing that saves a third of the time.
SOURCE_BFGS = replace(TARGET_BFGS, inverse_curvature=0.2)


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How to fit a Gaussian process."""

    prior: Prior = PAPER_PRIOR  # bounds and densities of the hyperparameters
    restarts: int = 10  # random starting points besides the given one
    conditional: bool | None = None  # whether rows with different inactive columns are uncorrelated; None: if there are
    bfgs: BFGSOptions = TARGET_BFGS  # how the search proceeds from each starting point

    def __post_init__(self) -> None:
        """Check the number of restarts."""
        if self.restarts < 0:
            raise InputError(f"FitSettings: expected restarts >= 0, got {self.restarts}")


PAPER_SETTINGS = FitSettings()


def fit_gp(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    categorical: npt.ArrayLike | None = None,
    settings: FitSettings = PAPER_SETTINGS,
    start: Hyperparameters | None = None,
    rng: np.random.Generator,
) -> GP:
    """Return a Gaussian process on ``X (n, d)``, nan = inactive, and ``y (n,)`` at the best hyperparameters found.

    ``categorical (d,)`` marks the columns that are compared by equality (None: there are none).  ``start`` is the first
    starting point, for instance the hyperparameters of the previous fit; ``rng`` draws the others.  InputError if
    shapes do not agree, or the data are not finite.
    """
    X, y = checked_data(X, y)
    d = X.shape[1]
    mask = np.zeros(d, dtype=np.bool_) if categorical is None else np.asarray(categorical, dtype=np.bool_)
    if mask.shape != (d,):
        raise InputError(f"fit_gp: expected categorical to be a mask of shape ({d},), got {mask.shape}")
    shape = KernelShape(mask, bool(is_inactive(X).any()) if settings.conditional is None else settings.conditional)
    first = start or Hyperparameters.default(d)
    if first.lengthscales.size != d:
        raise InputError(f"fit_gp: expected a start with {d} length scales, got {first.lengthscales.size}")
    with single_threaded():
        (theta,) = map_estimates([FitProblem(X, standardize(y)[0], shape, first.log(), rng)], settings)
        log_prior = float(settings.prior.log_density(theta[:1], theta[-1:])[0][0])
        log_prior += float(settings.prior.lengthscale_log_density(theta[None, 1:-1])[0][0])
        hyper = settings.prior.clip(Hyperparameters.from_log(theta))
        return make_gp(X, y, shape=shape, hyper=hyper, log_prior=log_prior)


def rows_to_fit(y: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return ``size`` rows to fit hyperparameters to, where all rows would take too long.

    Half of them are the best, around which the model has to be right; the others are drawn at random. Fits take the
    third power of the number of rows, and hyperparameters change little with hundreds of them.
    """
    order = np.argsort(y, kind="stable")
    best = size // 2
    return np.sort(np.concatenate([order[:best], rng.choice(order[best:], size - best, replace=False)]))


def extend_to_all(part: GP, X: FloatArray, y: FloatArray, settings: FitSettings) -> GP:
    """Return a Gaussian process on all data with the hyperparameters of one that was fitted to some of the rows."""
    # Amplitude and noise are in units of the targets' variance, which differs between the part and the whole.
    ratio = (part.s / standardize(y)[2]) ** 2
    own = part.hyper
    hyper = settings.prior.clip(Hyperparameters(ratio * own.amplitude, own.lengthscales, ratio * own.noise))
    return make_gp(X, y, shape=part.shape, hyper=hyper, log_prior=part.log_prior)


@dataclass(frozen=True, slots=True, eq=False)
class FitProblem:
    """One dataset to find hyperparameters for."""

    X: FloatArray  # (n, d)
    z: FloatArray  # (n,) standardized targets
    shape: KernelShape
    first: FloatArray  # (d + 2,) logarithms of the first starting point
    rng: np.random.Generator  # draws the other starting points


def map_estimates(problems: Sequence[FitProblem], settings: FitSettings) -> list[FloatArray]:
    """Return the logarithms ``(d + 2,)`` of each problem's most probable hyperparameters, found independently."""
    prior, each = settings.prior, settings.restarts + 1
    bounds = prior.log_bounds(problems[0].shape.d)
    pairs = [RowPairs(problem.X, problem.shape) for problem in problems]
    batches = _batches(pairs)
    order = [number for batch in batches for number in batch]
    starts = np.vstack([_starts(problems[number], settings, pairs[number].free) for number in order])
    scratch = Scratch()
    objectives = [
        NegativeLogPosterior([pairs[i] for i in batch], [problems[i].z for i in batch], prior=prior, scratch=scratch)
        for batch in batches
    ]
    searched = [_searched(objective.free) for objective in objectives]
    firsts = np.cumsum([0, *map(len, batches)])  # the first group of each batch

    def posterior(theta: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray]:
        values, slopes = np.empty(len(theta)), np.zeros(theta.shape)
        edges = np.searchsorted(group, firsts)
        for objective, free, first, begin, end in zip(objectives, searched, firsts, edges, edges[1:], strict=False):
            if begin < end:
                batch = objective(theta[begin:end, free], group[begin:end] - first)
                values[begin:end], slopes[begin:end, free] = batch
        return values, slopes

    group = np.repeat(np.arange(len(order)), each)
    ends, values = minimize_batched_bfgs(posterior, starts, bounds, group=group, options=settings.bfgs)
    best = ends[values.reshape(len(order), each).argmin(axis=1) + each * np.arange(len(order))]
    return [best[place] for place in np.argsort(order)]


def _batches(pairs: Sequence[RowPairs]) -> list[list[int]]:
    """Return the numbers of datasets that can be evaluated together; one with inactive entries stays alone."""
    batches: dict[tuple[object, ...], list[int]] = {}
    for number, dataset in enumerate(pairs):
        key = (dataset.n, dataset.free.tobytes()) if dataset.complete else (number,)
        batches.setdefault(key, []).append(number)
    return list(batches.values())


def _starts(problem: FitProblem, settings: FitSettings, free: BoolArray) -> FloatArray:
    """Return (restarts + 1, d + 2): the first start, and random ones, which equal it where columns are not free."""
    bounds = settings.prior.log_bounds(problem.shape.d)
    starts = np.tile(np.clip(problem.first, bounds[:, 0], bounds[:, 1]), (settings.restarts + 1, 1))
    starts[1:, _searched(free)] = settings.prior.draw_starts(settings.restarts, int(free.sum()), rng=problem.rng)
    return starts


def _searched(free: BoolArray) -> BoolArray:
    """Return the mask (d + 2,) of hyperparameters to search: amplitude, length scales of free columns, and noise."""
    return np.concatenate(([True], free, [True]))


class Scratch:
    """Work arrays that are reused, so that few of them fill the cache of a core."""

    def __init__(self) -> None:
        """Start without arrays."""
        self._arrays: dict[tuple[str, int], FloatArray] = {}

    def rows(self, name: str, count: int, width: int) -> FloatArray:
        """Return the array (count, width) of this name, with arbitrary content."""
        array = self._arrays.get((name, width))
        if array is None or len(array) < count:
            array = self._arrays[name, width] = np.zeros((count, width))
        return array[:count]


class RowPairs:
    """The pairs of rows of one dataset ``X (n, d)``, nan = inactive, and how they differ."""

    def __init__(self, X: FloatArray, shape: KernelShape) -> None:
        """Compute the differences of all pairs."""
        self.n = len(X)
        row, column = np.tril_indices(self.n, -1)
        same = same_activity(X, X, shape)
        if same is not None:
            correlated = same[row, column]
            row, column = row[correlated], column[correlated]
        self.row: IntArray = row  # (N,) the larger row number of each pair
        self.column: IntArray = column  # (N,) the smaller one
        columns = np.ascontiguousarray(fill_inactive(X, shape).T)
        differences = np.array([x[row] - x[column] for x in columns]).reshape(shape.d, row.size)
        self.free: BoolArray = np.asarray(differences.any(axis=1))  # (d,) whether some pair differs
        categorical = shape.categorical[self.free]
        self.numerical, self.categorical = np.flatnonzero(~categorical), np.flatnonzero(categorical)  # among the free
        self.squares = np.square(differences[self.free & ~shape.categorical])  # (f, N) of the numerical columns
        self.unequal = (differences[self.free & shape.categorical] != 0.0).astype(np.float64)  # (f', N)

    @property
    def complete(self) -> bool:
        """Whether all pairs may correlate."""
        return self.row.size == self.n * (self.n - 1) // 2


class PairwiseKernel:
    """The kernel on datasets with the same pairs and free columns; `evaluate` fills ``k`` and ``w (s, N)``."""

    def __init__(self, datasets: Sequence[RowPairs], scratch: Scratch) -> None:
        """Prepare for these datasets."""
        self._datasets, self._scratch = datasets, scratch
        self._width = datasets[0].row.size
        self.k = self.w = scratch.rows("k", 0, self._width)

    def evaluate(self, amplitude: FloatArray, precision: FloatArray, slices: DatasetSlices = ONE_DATASET) -> None:
        """Put the kernel into ``k``, and its slope by squared distances (see ``kernels``) into ``w``."""
        self.k, self.w, t = (self._scratch.rows(name, len(precision), self._width) for name in "kwt")
        first = self._datasets[0]
        scaled = 5.0 * precision.take(first.numerical, axis=1)  # in C order, or a row's product depends on the others
        for number, rows in slices:
            np.matmul(scaled[rows], self._datasets[number].squares, out=t[rows])
        half_hamming: FloatArray | None = None
        if first.categorical.size:
            half_hamming = self._scratch.rows("h", len(precision), self._width)
            halves = 0.5 * precision.take(first.categorical, axis=1)
            for number, rows in slices:
                np.matmul(halves[rows], self._datasets[number].unequal, out=half_hamming[rows])
        kernel_and_slope_in_place(t, half_hamming, amplitude, k=self.k, w=self.w)

    def slopes(self, G: FloatArray, precision: FloatArray, slices: DatasetSlices = ONE_DATASET) -> FloatArray:
        """Return the sum over pairs of G (s, N) times the kernel's derivative by ln l (s, f); overwrites k and w."""
        slopes = np.empty(precision.shape)
        first = self._datasets[0]
        self.w *= G
        for number, rows in slices:
            slopes[rows, first.numerical] = self.w[rows] @ self._datasets[number].squares.T
        if first.categorical.size:
            self.k *= G
            for number, rows in slices:
                slopes[rows, first.categorical] = self.k[rows] @ self._datasets[number].unequal.T
        return np.asarray(slopes * precision)


class NegativeLogPosterior:
    """Callable ``theta (s, p) -> (values (s,), gradients (s, p))``; infinite where a matrix cannot be factorized."""

    def __init__(
        self, datasets: Sequence[RowPairs], z: Sequence[FloatArray], *, prior: Prior, scratch: Scratch | None = None
    ) -> None:
        """Prepare for datasets with the same pairs and free columns, and their standardized targets ``z``.

        ``scratch`` may be shared by objectives that are called in turn.
        """
        from scipy.linalg import lapack

        first = datasets[0]
        if len({(pairs.n, pairs.row.size, pairs.free.tobytes()) for pairs in datasets}) > 1:
            raise InputError("NegativeLogPosterior: expected datasets with the same pairs and free columns")
        self._lapack: Any = lapack
        self._z, self._prior = z, prior
        self._scratch = scratch or Scratch()
        self._pairs, self._kernel = first, PairwiseKernel(datasets, self._scratch)
        self.free: BoolArray = first.free
        self._entry = first.row * first.n + first.column  # lower triangle of a C-ordered matrix
        self._max_batch = max(1, MAX_BATCH_ENTRIES // max(1, self._entry.size))

    def __call__(self, theta: FloatArray, numbers: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return values and gradients at the rows of ``theta``; ``numbers (s,)``, ascending, name their datasets."""
        ends = [len(theta)] if numbers is None else np.searchsorted(numbers, np.arange(1, len(self._z) + 1))
        batches = [self._evaluate(theta[rows], slices) for rows, slices in self._batches(ends)]
        if len(batches) == 1:
            return batches[0]
        values, gradients = zip(*batches, strict=True)
        return np.concatenate(values), np.concatenate(gradients)

    def _batches(self, ends: Sequence[int] | IntArray) -> Iterator[tuple[slice, DatasetSlices]]:
        """Yield the rows to evaluate at once, and which of them are for which dataset; ``ends``: where their rows end.

        The rows of a dataset are split only if they alone are too many.
        """
        first, slices, begin = 0, list[tuple[int, slice]](), 0
        for number, end in enumerate(ends):
            while begin < end:
                until = min(int(end), begin + self._max_batch)
                if slices and until - first > self._max_batch:
                    yield slice(first, begin), slices
                    first, slices = begin, []
                slices.append((number, slice(begin - first, until - first)))
                begin = until
        if slices:
            yield slice(first, begin), slices

    def _evaluate(self, theta: FloatArray, slices: DatasetSlices) -> tuple[FloatArray, FloatArray]:
        n = self._pairs.n
        amplitude, noise = np.exp(theta[:, 0]), np.exp(theta[:, -1])
        precision = np.exp(-2.0 * theta[:, 1:-1])  # 1 / l_j^2
        self._kernel.evaluate(amplitude, precision, slices)
        entries = self._matrices(amplitude + noise)
        alpha, roots, traces = self._invert(entries, slices)
        fit = np.empty(len(theta))
        for number, rows in slices:
            fit[rows] = alpha[rows] @ self._z[number]
        log_prior, amplitude_slope, noise_slope = self._prior.log_density(theta[:, 0], theta[:, -1])
        log_lengths, length_slopes = self._prior.lengthscale_log_density(theta[:, 1:-1])
        value = 0.5 * fit + np.log(roots).sum(axis=1) + 0.5 * n * math.log(2.0 * math.pi) - log_prior - log_lengths
        gradient = np.empty(theta.shape)
        by_noise = 0.5 * noise * (np.square(alpha).sum(axis=1) - traces)
        gradient[:, -1] = -by_noise - noise_slope
        # tr(G A) = z^T alpha - n, and A is the kernel plus the noise: no further sum over pairs is needed.
        gradient[:, 0] = by_noise - 0.5 * (fit - n) - amplitude_slope
        G = alpha.take(self._pairs.row, axis=1)
        G *= alpha.take(self._pairs.column, axis=1)
        G -= entries.take(self._entry, axis=1)  # A^-1, in the place of A
        # RowPairs count twice, which cancels the factor 1/2 of the trace.
        gradient[:, 1:-1] = -self._kernel.slopes(G, precision, slices) - length_slopes
        singular = np.isinf(roots[:, 0])
        value[singular], gradient[singular] = math.inf, 0.0
        return value, gradient

    def _matrices(self, diagonal: FloatArray) -> FloatArray:
        """Return the lower triangles of A, each matrix (n, n) as a row."""
        n = self._pairs.n
        entries = self._scratch.rows("A", diagonal.size, n**2)
        if not self._pairs.complete:
            entries.fill(0.0)  # a failed factorization may leave anything between the blocks
        entries[:, self._entry] = self._kernel.k
        entries[:, :: n + 1] = diagonal[:, None]
        return entries

    def _invert(self, entries: FloatArray, slices: DatasetSlices) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Replace A by A^-1; return alpha and the diagonal of the factor (s, n), and the traces of A^-1 (s,).

        The diagonal is infinite where A cannot be factorized.
        """
        n = self._pairs.n
        alpha, roots = np.zeros((len(entries), n)), np.full((len(entries), n), math.inf)
        for number, rows in slices:
            for i, row in enumerate(entries[rows], start=rows.start):
                # The transpose of the C-ordered lower triangle is the upper one: LAPACK factorizes it without a copy.
                U, info = self._lapack.dpotrf(row.reshape(n, n).T, lower=0, clean=0, overwrite_a=1)
                if info == 0:
                    roots[i] = row[:: n + 1]
                    alpha[i], _ = self._lapack.dpotrs(U, self._z[number], lower=0)
                    self._lapack.dpotri(U, lower=0, overwrite_c=1)
        return alpha, roots, entries[:, :: n + 1].sum(axis=1)
