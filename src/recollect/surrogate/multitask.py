"""Several functions, one Gaussian process: tasks that share a kernel and correlate (ICM).

::

    k((x, i), (x', j)) = B[i, j] k(x, x') + u_i [same row],     B = W W^T + diag(v)

Notation: t tasks; k the product kernel of ``kernels`` with amplitude 1, so that all tasks share its length scales;
``W (t, r)``, the ``shared`` part, makes tasks alike or opposite; ``v (t,)``, the ``own`` part, is what each has to
itself; ``u (t,)`` is one ``noise`` variance per task, since tasks are other datasets.  N rows of all tasks together:
``X (N, d)``, ``y (N,)``, ``task (N,)``.  Each task is standardised by itself, ``z = (y - m_i) / s_i``, and predicted in
its own units.  A model is never changed: ``condition`` returns a new one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.numerics.descent import minimize_multistart
from recollect.numerics.linalg import append_with_jitter, cholesky, solve_lower, solve_posdef
from recollect.numerics.threads import single_threaded
from recollect.surrogate.gp import VARIANCE_FLOOR, checked_data, checked_inputs
from recollect.surrogate.kernels import Hyperparameters, KernelShape, covariance, cross_covariance
from recollect.surrogate.multitask_objective import SPREAD, MultiTaskObjective
from recollect.surrogate.prior import TARGET_PRIOR, Prior
from recollect.surrogate.scaling import normalize, restore, square, standardize

DECREASE = 1e-6  # relative, of the log posterior: below a thousandth for all rows together, which no prediction shows


@dataclass(frozen=True, slots=True, eq=False)
class TaskHyperparameters:
    """Length scales ``(d,)``, ``shared (t, r)``, ``own (t,)`` and ``noise (t,)``, for standardised targets."""

    lengthscales: FloatArray
    shared: FloatArray
    own: FloatArray
    noise: FloatArray

    def __post_init__(self) -> None:
        """Check shapes and signs, and keep copies that nobody can write to."""
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

    @property
    def kernel(self) -> Hyperparameters:
        """The hyperparameters of k as the kernel functions want them; noise belongs to the rows and is not used."""
        return Hyperparameters(1.0, self.lengthscales, 1.0)

    @classmethod
    def default(cls, d: int, t: int, r: int) -> TaskHyperparameters:
        """Starting point: amplitude 2 and noise 1e-8 as for a single process, half of the amplitude in common.

        Columns of W after the first are cosines: where a column is zero its slope is zero, too.
        """
        shared = np.cos(np.pi * np.outer(np.arange(t) + 0.5, np.arange(r)) / t)
        shared[:, 1:] *= SPREAD
        return cls(np.ones(d), shared, np.full(t, 1.0 if r else 2.0), np.full(t, 1e-8))


@dataclass(frozen=True, slots=True, eq=False)
class MultiTaskGP:
    """Posterior of all tasks; make one with ``fit_multitask`` or ``make_multitask``. ``task`` counts from 0."""

    X: FloatArray
    y: FloatArray
    task: IntArray
    z: FloatArray
    shape: KernelShape
    hyper: TaskHyperparameters
    m: FloatArray
    s: FloatArray
    L: FloatArray
    alpha: FloatArray
    jitter: float
    log_prior: float = 0.0

    @property
    def log_marginal_likelihood(self) -> float:
        """Log marginal likelihood of the standardised targets of all tasks."""
        half_log_determinant = float(np.log(self.L.diagonal()).sum())
        return -0.5 * float(self.z @ self.alpha) - half_log_determinant - 0.5 * self.y.size * math.log(2.0 * math.pi)

    @property
    def log_posterior(self) -> float:
        """What ``fit_multitask`` maximises: log marginal likelihood plus the log prior it was given."""
        return self.log_marginal_likelihood + self.log_prior

    def mean(self, X: npt.ArrayLike, *, task: int) -> FloatArray:
        """Posterior mean ``(m,)`` of one task."""
        with single_threaded():
            k = self._cross(checked_inputs(X, self.shape.d), task)
            return self._restored(k @ self.alpha, task)

    def predict(self, X: npt.ArrayLike, *, task: int, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance ``(m,)`` of one task's function, or of an observation with ``include_noise``."""
        with single_threaded():
            k = self._cross(checked_inputs(X, self.shape.d), task)
            mean = self._restored(k @ self.alpha, task)
            V = solve_lower(self.L, k.T, overwrite=True).T  # in the memory of k
            variance = self.hyper.B[task, task] - np.einsum("ij,ij->i", V, V)
        np.maximum(variance, VARIANCE_FLOOR, out=variance)
        if include_noise:
            variance += self.hyper.noise[task]
        return mean, variance * square(float(self.s[task]))

    def joint(self, X: npt.ArrayLike, *, task: int, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Posterior mean ``(m,)`` and covariance ``(m, m)`` of one task: symmetric, with nothing clipped."""
        mean, spread = self.mean(X, task=task), self.covariance(X, X, task=task)
        spread = 0.5 * (spread + spread.T)
        if include_noise:
            spread.flat[:: len(mean) + 1] += self.hyper.noise[task] * square(float(self.s[task]))
        return mean, spread

    def covariance(self, A: npt.ArrayLike, B: npt.ArrayLike, *, task: int) -> FloatArray:
        """Posterior covariance ``(a, b)`` of one task's function between points A and B, with nothing clipped."""
        A, B = checked_inputs(A, self.shape.d), checked_inputs(B, self.shape.d)
        with single_threaded():
            V, W = (solve_lower(self.L, self._cross(points, task).T) for points in (A, B))
            prior = self.hyper.B[task, task] * covariance(A, B, shape=self.shape, hyper=self.hyper.kernel)
            return np.asarray((prior - V.T @ W) * square(float(self.s[task])))

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike, *, task: int) -> MultiTaskGP:
        """The model after more data of one task, with the same hyperparameters and the same standardisation."""
        if np.size(y_new) == 0:
            return self
        X_new, y_new = checked_data(X_new, y_new)
        checked_inputs(X_new, self.shape.d)
        across = self._between(task)
        with single_threaded():
            cross = covariance(X_new, self.X, shape=self.shape, hyper=self.hyper.kernel) * across
            corner = self.hyper.B[task, task] * covariance(X_new, X_new, shape=self.shape, hyper=self.hyper.kernel)
            corner.flat[:: len(X_new) + 1] += self.hyper.noise[task]
            L, jitter = append_with_jitter(self.L, cross, corner)
            z = np.concatenate((self.z, normalize(y_new, float(self.m[task]), float(self.s[task]))))
            alpha = solve_posdef(L, z)
        X, y = np.concatenate((self.X, X_new)), np.concatenate((self.y, y_new))
        tasks = np.concatenate((self.task, np.full(y_new.size, task)))
        return replace(self, X=X, y=y, task=tasks, z=z, L=L, alpha=alpha, jitter=max(self.jitter, jitter))

    def _between(self, task: int) -> FloatArray:
        """``B[task, j] (N,)`` with j the task of each row."""
        if not 0 <= task < self.hyper.t:
            raise InputError(f"MultiTaskGP: expected a task from 0 to {self.hyper.t - 1}, got {task}")
        return np.asarray(self.hyper.B[task, self.task])

    def _cross(self, X: FloatArray, task: int) -> FloatArray:
        """Prior covariance ``(m, N)`` of one task at X with all rows."""
        across = self._between(task)
        k = cross_covariance(X, self.X, shape=self.shape, hyper=self.hyper.kernel)
        k *= across
        return k

    def _restored(self, z: FloatArray, task: int) -> FloatArray:
        return restore(z, float(self.m[task]), float(self.s[task]))


@dataclass(frozen=True, slots=True)
class MultiTaskSettings:
    """How to fit: prior, columns of W, and random starts besides the given one.

    The prior's amplitude is that of ``v``, which is all there is with no columns, and its bounds are those of the
    squares of W, too.  One start is enough as a rule: many tasks together leave less doubt than a few observations of
    one, and what random starts found more probable on real runs did not predict better.
    """

    prior: Prior = TARGET_PRIOR
    rank: int = 1
    restarts: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in (("rank", self.rank), ("restarts", self.restarts)):
            if value < 0:
                raise InputError(f"MultiTaskSettings: expected {name} >= 0, got {value}")

    def columns(self, t: int) -> int:
        """Columns of W for t tasks: with t - 1 and the diagonal, any covariance of tasks is possible."""
        return min(self.rank, t - 1)


def make_multitask(
    Xs: Sequence[npt.ArrayLike],
    ys: Sequence[npt.ArrayLike],
    *,
    shape: KernelShape,
    hyper: TaskHyperparameters,
    log_prior: float = 0.0,
) -> MultiTaskGP:
    """Multi-task Gaussian process with given hyperparameters, on task i's ``Xs[i] (n_i, d)`` and ``ys[i] (n_i,)``."""
    X, y, task = _stacked(Xs, ys, shape)
    if hyper.t != len(ys) or hyper.lengthscales.size != shape.d:
        came = f"hyperparameters of {hyper.t} tasks with {hyper.lengthscales.size} length scales"
        raise InputError(f"make_multitask: expected those of {len(ys)} tasks with {shape.d} columns, got {came}")
    z, m, s = _standardized(y, task)
    with single_threaded():
        A = covariance(X, X, shape=shape, hyper=hyper.kernel)
        A *= hyper.B[np.ix_(task, task)]
        A.flat[:: len(X) + 1] += hyper.noise[task]
        L, jitter = cholesky(A, float(hyper.B.diagonal().max()))
        alpha = solve_posdef(L, z)
    return MultiTaskGP(X, y, task, z, shape, hyper, m, s, L, alpha, jitter, log_prior)


def fit_multitask(
    Xs: Sequence[npt.ArrayLike],
    ys: Sequence[npt.ArrayLike],
    *,
    shape: KernelShape,
    settings: MultiTaskSettings,
    start: TaskHyperparameters | None,
    rng: np.random.Generator,
) -> MultiTaskGP:
    """Multi-task Gaussian process at the most probable hyperparameters found.

    ``start`` is the first starting point, for instance the hyperparameters of the previous fit.  Length scales of
    columns that never vary stay as they are there.
    """
    X, y, task = _stacked(Xs, ys, shape)
    t, r = len(ys), settings.columns(len(ys))
    first = start or TaskHyperparameters.default(shape.d, t, r)
    if first.shared.shape != (t, r) or first.lengthscales.size != shape.d:
        came = f"{first.lengthscales.size} and {first.shared.shape}"
        raise InputError(f"fit_multitask: expected a start with {shape.d} length scales and W {(t, r)}, got {came}")
    with single_threaded():
        z = _standardized(y, task)[0]
        objective = MultiTaskObjective(X, z, task, shape=shape, prior=settings.prior, rank=r)
        moving = np.log(first.lengthscales[objective.free])
        given = np.concatenate((moving, first.shared.ravel(), np.log(first.own), np.log(first.noise)))
        starts = np.vstack((given, objective.layout.draw_starts(settings.restarts, settings.prior, rng=rng)))
        bounds = objective.layout.bounds(settings.prior)
        theta, _, _ = minimize_multistart(objective, starts, bounds, decrease=DECREASE)
        log_lengths, W, log_own, log_noise = objective.layout.split(theta)
        lengths = first.lengthscales.copy()
        lengths[objective.free] = np.exp(log_lengths)
        hyper = TaskHyperparameters(lengths, W, np.exp(log_own), np.exp(log_noise))
        return make_multitask(Xs, ys, shape=shape, hyper=hyper, log_prior=objective.log_prior(theta)[0])


def _stacked(
    Xs: Sequence[npt.ArrayLike], ys: Sequence[npt.ArrayLike], shape: KernelShape
) -> tuple[FloatArray, FloatArray, IntArray]:
    """All rows: ``X (N, d)``, ``y (N,)``, ``task (N,)``."""
    if len(Xs) != len(ys) or not ys:
        raise InputError(f"multi-task data: expected X and y of at least one task, got {len(Xs)} and {len(ys)}")
    data = [checked_data(X, y) for X, y in zip(Xs, ys, strict=True)]
    for i, (X, _) in enumerate(data):
        if X.shape[1] != shape.d:
            raise InputError(f"multi-task data: expected {shape.d} columns, got X {X.shape} for task {i}")
    task = np.repeat(np.arange(len(data)), [y.size for _, y in data])
    return np.concatenate([X for X, _ in data]), np.concatenate([y for _, y in data]), task


def _standardized(y: FloatArray, task: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``z (N,)``, and mean and standard deviation ``(t,)`` of each task."""
    parts = [standardize(y[task == i]) for i in range(int(task.max()) + 1)]
    m, s = np.array([(m, s) for _, m, s in parts]).T
    return np.concatenate([z for z, _, _ in parts]), m, s
