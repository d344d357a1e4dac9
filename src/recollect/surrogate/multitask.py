"""Several functions, one Gaussian process: tasks that share a kernel and correlate (ICM), and its fit.

::

    k((x, i), (x', j)) = B[i, j] k(x, x') + u_i [same row],     B = W W^T + diag(v)

Notation: t tasks; k the product kernel of ``kernels`` with amplitude 1, so that all tasks share its length scales;
``W (t, r)``, the ``shared`` part, makes tasks alike or opposite; ``v (t,)``, the ``own`` part, is what each has to
itself; ``u (t,)`` is one ``noise`` variance per task, since tasks are different datasets.  N rows of all tasks
together: ``X (N, d)``, ``y (N,)``, ``task (N,)``.  Each task is standardized by itself, ``z = (y - m_i) / s_i``, and
predicted in its own units.  Models are immutable: `condition` returns a new one.

A fit minimizes the negative log posterior of ``theta = (ln l of the free columns, W row by row, ln v, ln u)``::

    A[n, m] = B[i, j] k(x_n, x_m) + [n = m] u_i,   n a row of task i, m one of task j
    -ln p   = z^T A^-1 z / 2 + ln|A| / 2 + N ln(2 pi) / 2 - ln p(W) - sum_i (ln p(v_i) + ln p(u_i)) - ln p(l)
    d LML   = tr(G dA) / 2,  G = alpha alpha^T - A^-1,  alpha = A^-1 z
            = <Q, dB>,       Q[i, j] = sum of G[n, m] k(x_n, x_m) / 2 over the rows n of task i and m of task j

so that d LML / d W = 2 Q W and d LML / d v_i = Q_ii, whatever the number of tasks, after one pass over the pairs.  As
for a single process, pairs of rows appear once, and columns in which no pair differs are not free.  For one task and
r = 0 this is the one of `fit`.

Prior: v has the density of a single process's amplitude and u that of its noise, for every task.  The entries of W are
normal with standard deviation 1/2 around `mean_of_w`.  The first keeps a model with few observations of a task from
being certain about it.  The second lets the other tasks speak for it from its first observation on, when its likelihood
cannot tell similar from dissimilar tasks.  Without the two, predictions after 1 to 5 observations are far worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, KernelShape
from recollect.numerics.bfgs import minimize_multistart
from recollect.numerics.linalg import cholesky, single_threaded, solve_posdef
from recollect.surrogate.fit import PairwiseKernel, RowPairs, Scratch
from recollect.surrogate.gp import GP, checked_data, log_marginal_likelihood
from recollect.surrogate.kernels import Hyperparameters, covariance
from recollect.surrogate.prior import TARGET_PRIOR, Prior
from recollect.surrogate.scaling import standardize

Arrays: TypeAlias = Sequence[npt.ArrayLike]  # one per task

STD_OF_W = 0.5  # prior standard deviation of the entries of W
# Relative, of the log posterior: below a thousandth for all rows together, which no prediction shows.
VALUE_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class TaskHyperparameters:
    """Hyperparameters of a multi-task Gaussian process on standardized targets."""

    lengthscales: FloatArray  # (d,) common to all tasks
    shared: FloatArray  # W (t, r), what tasks have in common
    own: FloatArray  # v (t,), the variance that each task has to itself
    noise: FloatArray  # u (t,), the noise variance of each task

    def __post_init__(self) -> None:
        """Check shapes and signs, and keep read-only copies."""
        for name, ndim in (("lengthscales", 1), ("shared", 2), ("own", 1), ("noise", 1)):
            values = np.array(getattr(self, name), dtype=np.float64)
            kind = "finite" if name == "shared" else "positive and finite"
            if values.ndim != ndim or not np.isfinite(values).all() or (name != "shared" and (values <= 0.0).any()):
                raise InputError(f"TaskHyperparameters: expected {name} {kind}, with {ndim} axes, got {values}")
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        if not len(self.shared) == self.own.size == self.noise.size >= 1:
            sizes = f"{self.shared.shape}, {self.own.shape} and {self.noise.shape}"
            raise InputError(f"TaskHyperparameters: expected shared (t, r), own (t,), noise (t,), t >= 1, got {sizes}")

    @property
    def t(self) -> int:
        """Number of tasks."""
        return self.own.size

    @property
    def B(self) -> FloatArray:
        """Covariance ``(t, t)`` between the tasks at one point."""
        return self.shared @ self.shared.T + np.diag(self.own)

    @property
    def correlations(self) -> FloatArray:
        """Correlations ``(t, t)`` between the tasks, with ones on the diagonal."""
        B = self.B
        return np.asarray(B / np.sqrt(np.outer(B.diagonal(), B.diagonal())))

    @classmethod
    def default(cls, d: int, t: int, r: int) -> TaskHyperparameters:
        """Return a starting point: amplitude 2 and noise 1e-8 as for a single process, half of the amplitude shared.

        Columns of W after the first are cosines, since the gradient of a column that is zero is zero, too.
        """
        shared = np.cos(np.pi * np.outer(np.arange(t) + 0.5, np.arange(r)) / t)
        shared[:, 1:] *= STD_OF_W
        return cls(np.ones(d), shared, np.full(t, 1.0 if r else 2.0), np.full(t, 1e-8))


@dataclass(frozen=True, slots=True, eq=False)
class MultiTaskGP:
    """Posterior of all tasks, numbered from 0; create one with `fit_multitask` or `make_multitask`.

    Attributes are those of `GP`, for all tasks together.
    """

    X: FloatArray
    y: FloatArray
    task: IntArray  # (N,) task of each row
    z: FloatArray
    shape: KernelShape
    hyper: TaskHyperparameters
    m: FloatArray  # (t,) mean of each task
    s: FloatArray  # (t,) standard deviation of each task
    L: FloatArray
    alpha: FloatArray
    jitter: float
    log_prior: float = 0.0

    @property
    def log_marginal_likelihood(self) -> float:
        """Log marginal likelihood of the standardized targets of all tasks."""
        return log_marginal_likelihood(self.z, self.alpha, self.L)

    @property
    def log_posterior(self) -> float:
        """What `fit_multitask` maximizes: log marginal likelihood plus log prior."""
        return self.log_marginal_likelihood + self.log_prior

    def mean(self, X: npt.ArrayLike, *, task: int) -> FloatArray:
        """Return the posterior mean ``(m,)`` of one task."""
        return self._posterior_of(task).mean(X)

    def predict(self, X: npt.ArrayLike, *, task: int, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return posterior mean and variance ``(m,)`` of one task, or of its observations with ``include_noise``."""
        return self._posterior_of(task).predict(X, include_noise=include_noise)

    def covariance(self, A: npt.ArrayLike, B: npt.ArrayLike, *, task: int) -> FloatArray:
        """Return the posterior covariance ``(a, b)`` of one task between points A and B, with nothing clipped."""
        return self._posterior_of(task).covariance(A, B)

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike, *, task: int) -> MultiTaskGP:
        """Return the model after more data of one task, with the same hyperparameters and standardization."""
        before = self._posterior_of(task)
        gp = before.condition(X_new, y_new)
        if gp is before:
            return self
        tasks = np.append(self.task, np.full(gp.n - before.n, task))
        return replace(self, X=gp.X, y=gp.y, task=tasks, z=gp.z, L=gp.L, alpha=gp.alpha, jitter=gp.jitter)

    def _posterior_of(self, task: int) -> GP:
        """Return one task's function given the rows of all tasks; targets ``y`` keep the units of their tasks."""
        if not 0 <= task < self.hyper.t:
            raise InputError(f"MultiTaskGP: expected a task from 0 to {self.hyper.t - 1}, got {task}")
        B, m, s = self.hyper.B, float(self.m[task]), float(self.s[task])
        hyper = Hyperparameters(B[task, task], self.hyper.lengthscales, float(self.hyper.noise[task]))
        data = (self.X, self.y, self.z, self.shape, hyper, m, s, self.L, self.alpha, self.jitter)
        return GP(*data, across=B[task, self.task])


@dataclass(frozen=True, slots=True)
class MultiTaskSettings:
    """How to fit a multi-task Gaussian process."""

    prior: Prior = TARGET_PRIOR  # bounds and densities; those of the amplitude hold for v, its bounds for squares of W
    rank: int = 1  # largest number of columns of W
    # Random starting points besides the given one. None is needed as a rule: many tasks together leave less doubt than
    # a few observations of one, and what random starts found more probable on real runs did not predict better.
    restarts: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in (("rank", self.rank), ("restarts", self.restarts)):
            if value < 0:
                raise InputError(f"MultiTaskSettings: expected {name} >= 0, got {value}")

    def columns(self, t: int) -> int:
        """Return the number of columns of W for t tasks; t - 1 and the diagonal allow any covariance of tasks."""
        return min(self.rank, t - 1)


def make_multitask(
    Xs: Arrays, ys: Arrays, *, shape: KernelShape, hyper: TaskHyperparameters, log_prior: float = 0.0
) -> MultiTaskGP:
    """Return the model with given hyperparameters, on task i's ``Xs[i] (n_i, d)`` and ``ys[i] (n_i,)``."""
    X, y, task, z, m, s = _stacked(Xs, ys, shape)
    if hyper.t != len(ys) or hyper.lengthscales.size != shape.d:
        got = f"{hyper.t} tasks with {hyper.lengthscales.size} length scales"
        raise InputError(f"make_multitask: expected hyperparameters of {len(ys)} tasks, {shape.d} columns, got {got}")
    with single_threaded():
        A = covariance(X, X, shape=shape, hyper=Hyperparameters(1.0, hyper.lengthscales, 1.0))
        A *= hyper.B[np.ix_(task, task)]
        A.flat[:: len(X) + 1] += hyper.noise[task]
        L, jitter = cholesky(A, float(hyper.B.diagonal().max()))
        alpha = solve_posdef(L, z)
    return MultiTaskGP(X, y, task, z, shape, hyper, m, s, L, alpha, jitter, log_prior)


def fit_multitask(
    Xs: Arrays,
    ys: Arrays,
    *,
    shape: KernelShape,
    settings: MultiTaskSettings,
    start: TaskHyperparameters | None,
    rng: np.random.Generator,
) -> MultiTaskGP:
    """Return a multi-task Gaussian process at the most probable hyperparameters found; data as in `make_multitask`.

    ``start`` is the first starting point, for instance the hyperparameters of the previous fit; length scales of
    columns that never vary keep its values. ``rng`` draws the other starting points.
    """
    X, _, task, z, _, _ = _stacked(Xs, ys, shape)
    t, r = len(ys), settings.columns(len(ys))
    first = start or TaskHyperparameters.default(shape.d, t, r)
    if first.shared.shape != (t, r) or first.lengthscales.size != shape.d:
        got = f"{first.lengthscales.size} and {first.shared.shape}"
        raise InputError(f"fit_multitask: expected a start with {shape.d} length scales and W {(t, r)}, got {got}")
    with single_threaded():
        objective = NegativeMultiTaskLogPosterior(X, z, task, shape=shape, prior=settings.prior, rank=r)
        log_lengths = np.log(first.lengthscales[objective.free])
        first_theta = np.concatenate((log_lengths, first.shared.ravel(), np.log(first.own), np.log(first.noise)))
        starts = np.vstack((first_theta, objective.layout.draw_starts(settings.restarts, settings.prior, rng=rng)))
        bounds = objective.layout.bounds(settings.prior)
        theta, _, _ = minimize_multistart(objective, starts, bounds, value_tolerance=VALUE_TOLERANCE)
        log_lengths, W, log_own, log_noise = objective.layout.split(theta)
        lengths = first.lengthscales.copy()
        lengths[objective.free] = np.exp(log_lengths)
        hyper = TaskHyperparameters(lengths, W, np.exp(log_own), np.exp(log_noise))
        return make_multitask(Xs, ys, shape=shape, hyper=hyper, log_prior=objective.log_prior(theta)[0])


def _stacked(
    Xs: Arrays, ys: Arrays, shape: KernelShape
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Return all rows, ``X (N, d)``, ``y``, ``task`` and ``z (N,)``, and each task's mean and standard deviation."""
    if len(Xs) != len(ys) or not ys:
        raise InputError(f"multi-task data: expected X and y of at least one task, got {len(Xs)} and {len(ys)}")
    data = [checked_data(X, y) for X, y in zip(Xs, ys, strict=True)]
    for i, (X, _) in enumerate(data):
        if X.shape[1] != shape.d:
            raise InputError(f"multi-task data: expected {shape.d} columns, got X {X.shape} for task {i}")
    task = np.repeat(np.arange(len(data)), [y.size for _, y in data])
    z, m, s = zip(*(standardize(y) for _, y in data), strict=True)
    X, y = (np.concatenate(parts) for parts in zip(*data, strict=True))
    return X, y, task, np.concatenate(z), np.array(m), np.array(s)


def mean_of_w(t: int, r: int) -> FloatArray:
    """Return the prior mean of W ``(t, r)``: one function common to all tasks, and no other."""
    return np.repeat(np.eye(1, r), t, axis=0)


@dataclass(frozen=True, slots=True)
class ThetaLayout:
    """Where the hyperparameters are in ``theta``: ``free`` length scales, ``t`` tasks, ``r`` columns of W."""

    free: int
    t: int
    r: int

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return views of ``ln l (free,)``, ``W (t, r)``, ``ln v (t,)`` and ``ln u (t,)``."""
        own = self.free + self.t * self.r
        W = theta[self.free : own].reshape(self.t, self.r)
        return theta[: self.free], W, theta[own : own + self.t], theta[own + self.t :]

    def bounds(self, prior: Prior) -> FloatArray:
        """Return bounds ``(p, 2)`` of theta; those of the amplitude hold for v and for the squares of W."""
        amplitude, *lengths, noise = prior.log_bounds(self.free)
        largest = math.exp(0.5 * amplitude[1])
        rows = [*lengths, *[(-largest, largest)] * (self.t * self.r), *[amplitude] * self.t, *[noise] * self.t]
        return np.array(rows, dtype=np.float64)

    def draw_starts(self, count: int, prior: Prior, *, rng: np.random.Generator) -> FloatArray:
        """Draw starting points ``(count, p)``: l, W, v and u from the prior."""
        lengths = prior.draw_starts(count, self.free, rng=rng)[:, 1:-1]
        tasks = prior.draw_starts(count * self.t, 0, rng=rng).reshape(count, self.t, 2)
        W = mean_of_w(self.t, self.r) + STD_OF_W * rng.standard_normal((count, self.t, self.r))
        return np.hstack((lengths, W.reshape(count, self.t * self.r), tasks[:, :, 0], tasks[:, :, 1]))


class NegativeMultiTaskLogPosterior:
    """Callable ``theta (p,) -> (value, gradient (p,))``; infinite where the matrix cannot be factorized."""

    def __init__(self, X: FloatArray, z: FloatArray, task: IntArray, *, shape: KernelShape, prior: Prior, rank: int):
        """Prepare for these rows, and for W with ``rank`` columns."""
        from scipy.linalg import lapack

        self._lapack: Any = lapack
        self._z, self._task, self._prior = z, task, prior
        n, t = z.size, int(task.max()) + 1
        self._pairs = RowPairs(X, shape)
        self._kernel = PairwiseKernel([self._pairs], Scratch())
        row, column = self._pairs.row, self._pairs.column
        self.free: BoolArray = self._pairs.free
        self.layout = ThetaLayout(int(self.free.sum()), t, rank)
        self._block = task[row] * t + task[column]  # place of the pair's tasks in B
        self._matrix = np.zeros((n, n))
        self._entries = self._matrix.reshape(-1)
        self._entry = row * n + column  # lower triangle of a C-ordered matrix
        self._b = np.empty(row.size)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient at ``theta``."""
        n = self._z.size
        log_lengths, W, log_own, log_noise = self.layout.split(theta)
        gradient = np.zeros(theta.size)
        own, noise = np.exp(log_own), np.exp(log_noise)
        B = W @ W.T + np.diag(own)
        precision = np.exp(-2.0 * log_lengths)  # 1 / l_j^2
        self._fill_matrix(precision, B, noise)
        # The transpose of the C-ordered lower triangle is the upper triangle, which LAPACK factorizes without a copy.
        U, info = self._lapack.dpotrf(self._matrix.T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            return math.inf, gradient
        alpha, _ = self._lapack.dpotrs(U, self._z, lower=0)
        value = 0.5 * float(self._z @ alpha) + float(np.log(U.diagonal()).sum()) + 0.5 * n * math.log(2.0 * math.pi)
        inverse, _ = self._lapack.dpotri(U, lower=0, overwrite_c=1)
        by_noise = 0.5 * np.bincount(self._task, alpha * alpha - inverse.diagonal(), minlength=own.size)
        by_lengths, Q = self._pair_slopes(alpha, precision)
        Q.flat[:: own.size + 1] += by_noise  # k(x, x) = 1
        likelihood = (by_lengths, 2.0 * Q @ W, Q.diagonal() * own, by_noise * noise)
        log_prior, prior_slopes = self.log_prior(theta)
        for part, slopes, prior in zip(self.layout.split(gradient), likelihood, prior_slopes, strict=True):
            part[:] = -slopes - prior
        return value - log_prior, gradient

    def log_prior(self, theta: FloatArray) -> tuple[float, tuple[FloatArray, ...]]:
        """Return the log prior at ``theta``, up to a constant, and its derivatives, split as theta is."""
        log_lengths, W, log_own, log_noise = self.layout.split(theta)
        of_lengths, length_slopes = self._prior.lengthscale_log_density(log_lengths[None])
        densities, own_slopes, noise_slopes = self._prior.log_density(log_own, log_noise)
        distance = (W - mean_of_w(*W.shape)) / STD_OF_W * self._prior.use_priors
        total = float(of_lengths[0] + densities.sum()) - 0.5 * float(np.square(distance).sum())
        return total, (length_slopes[0], -distance / STD_OF_W, own_slopes, noise_slopes)

    def _fill_matrix(self, precision: FloatArray, B: FloatArray, noise: FloatArray) -> None:
        """Put A into ``_matrix``, and B_ij of each pair into ``_b``."""
        self._kernel.evaluate(np.ones(1), precision[None])
        B.reshape(-1).take(self._block, out=self._b, mode="clip")
        if not self._pairs.complete:
            self._entries.fill(0.0)  # a failed factorization may leave anything between the blocks
        self._entries[self._entry] = self._b * self._kernel.k[0]
        self._entries[:: self._z.size + 1] = (B.diagonal() + noise)[self._task]

    def _pair_slopes(self, alpha: FloatArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return d LML / d ln l, and Q without the diagonal of G; pairs count twice, which cancels the factor 1/2."""
        t = self.layout.t
        G = alpha.take(self._pairs.row)
        G *= alpha.take(self._pairs.column)
        G -= self._entries.take(self._entry)  # A^-1, in the place of A
        halves = np.bincount(self._block, G * self._kernel.k[0], minlength=t * t).reshape(t, t)
        G *= self._b
        by_lengths = self._kernel.slopes(G[None], precision[None])[0]
        return by_lengths, np.asarray(0.5 * (halves + halves.T), dtype=np.float64)
